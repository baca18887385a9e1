//! The developer's commands, run by `cargo xtask <command>`: set-up, test, features, packages, site, workflows,
//! soak, fleet, bench, attack, browser, dist, publish, record.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool speaks to its user on the terminal")]

mod attack;
mod bench;
mod browser;
mod comparisons;
mod dist;
mod features;
mod fleet;
mod markdown;
mod packages;
mod publish;
mod record;
mod run;
mod setup;
mod site;
mod soak;
mod test;
mod workflows;

use std::process::ExitCode;

const HELP: &str = "\
The developer's commands of Evenkeel.

Usage: cargo xtask <command>

Commands:
  setup            install what the tests need and this machine lacks
  test [FILTER]    set-up, format, clippy, all tests, documentation tests, documentation, and the next four
  features         build each published crate that has features alone, and with each of them
  packages         pack the published crates, and check how large they are
  site             build the documentation site in target/site, and check its links
  workflows        check the workflow files and issue forms against GitHub's schemas
  soak [RUNS]      run all of `test` RUNS times (10) beside two busy loops; stops at the first failure
  fleet [SEEDS]    instances that share a service, under faults: a million simulated events for each of SEEDS (200),
                   and ten minutes with a real etcd
  bench [FILTER]   run the benchmarks
  attack [NAME]    run clients that mean harm against the binary, on loopback, and print what bars hold
  browser          open the dashboard in a headless Chromium, check it, and keep screenshots
  dist             make the files of a release in target/dist, and try the container image's root
  image-root [ARCH]  make only the files of the container image, for the Dockerfile
  publish          publish the crates, in order and as fast as the registry allows; for releases
  record FOLDER    copy recordings of a real Kubernetes into tests/recorded, packed
  help             show this text

FILTER is a part of a test's or a benchmark's name; only those that contain it are run.
NAME is a part of an attack's name.
ARCH is amd64 or arm64; by default that of this machine.
FOLDER contains `golden` or `conformance`, or both, with the layout of tests/recorded.
With CI=true in the environment, cargo may not change Cargo.lock.

Examples:
  cargo xtask test             everything that must pass before a commit
  cargo xtask test tidy        the same, but only tests with `tidy` in their name
  cargo xtask bench classify   only benchmarks with `classify` in their name
  cargo xtask attack drains    only attacks with `drains` in their name
";

/// The command that the user asked for.
#[derive(Debug, PartialEq, Eq)]
enum Command {
    Setup,
    Test { filter: Option<String> },
    Features,
    Packages,
    Site,
    Workflows,
    Soak { runs: u32 },
    Fleet { seeds: u32 },
    Bench { filter: Option<String> },
    Attack { name: Option<String> },
    Browser,
    Dist,
    ImageRoot { architecture: Option<String> },
    Publish,
    Record { folder: String },
    Help,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let command = match Command::parse(&arguments) {
        Ok(command) => command,
        Err(sentence) => {
            eprintln!("{sentence}");
            return ExitCode::from(2);
        }
    };
    match command.execute() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

// === impl Command ===

impl Command {
    /// Reads the arguments; a fault is one sentence for the user.
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let Some((name, rest)) = arguments.split_first() else {
            return Ok(Self::Help);
        };
        if arguments.iter().any(|argument| matches!(argument.as_str(), "--help" | "-h")) {
            return Ok(Self::Help);
        }
        let arguments_max = match name.as_str() {
            "test" | "soak" | "fleet" | "bench" | "attack" | "image-root" | "record" => 1,
            "setup" | "features" | "packages" | "site" | "workflows" | "browser" | "dist" | "publish" | "help" => 0,
            _ => {
                let commands = "setup, test, features, packages, site, workflows, soak, fleet, bench, attack, browser, \
                                dist, image-root, publish, record and help";
                return Err(format!("xtask has no command `{name}`; it has {commands}."));
            }
        };
        if let Some(option) = rest.iter().find(|argument| argument.starts_with('-')) {
            return Err(format!("`xtask {name}` has no option `{option}`; see `cargo xtask help`."));
        }
        if let Some(excess) = rest.get(arguments_max) {
            return Err(format!("`xtask {name}` does not know what to do with `{excess}`; see `cargo xtask help`."));
        }
        let argument = rest.first().cloned();
        match (name.as_str(), argument) {
            ("setup", _) => Ok(Self::Setup),
            ("test", filter) => Ok(Self::Test { filter }),
            ("features", _) => Ok(Self::Features),
            ("packages", _) => Ok(Self::Packages),
            ("site", _) => Ok(Self::Site),
            ("workflows", _) => Ok(Self::Workflows),
            ("soak", None) => Ok(Self::Soak { runs: soak::RUNS }),
            ("soak", Some(runs)) => match runs.parse() {
                Ok(runs @ 1..) => Ok(Self::Soak { runs }),
                _ => Err(format!("`xtask soak` needs a number of runs of at least 1, not `{runs}`.")),
            },
            ("fleet", None) => Ok(Self::Fleet { seeds: fleet::SEEDS }),
            ("fleet", Some(seeds)) => match seeds.parse() {
                Ok(seeds @ 1..) => Ok(Self::Fleet { seeds }),
                _ => Err(format!("`xtask fleet` needs a number of seeds of at least 1, not `{seeds}`.")),
            },
            ("bench", filter) => Ok(Self::Bench { filter }),
            ("attack", name) => Ok(Self::Attack { name }),
            ("browser", _) => Ok(Self::Browser),
            ("dist", _) => Ok(Self::Dist),
            ("image-root", architecture) => Ok(Self::ImageRoot { architecture }),
            ("publish", _) => Ok(Self::Publish),
            ("record", Some(folder)) => Ok(Self::Record { folder }),
            ("record", None) => {
                Err("`xtask record` needs a folder with recordings; see `cargo xtask help`.".to_owned())
            }
            _ => Ok(Self::Help),
        }
    }

    fn execute(&self) -> anyhow::Result<()> {
        match self {
            Self::Setup => setup::setup(),
            Self::Test { filter } => test::test(filter.as_deref()),
            Self::Features => features::features(),
            Self::Packages => packages::packages(),
            Self::Site => site::site(),
            Self::Workflows => workflows::workflows(),
            Self::Soak { runs } => soak::soak(*runs),
            Self::Fleet { seeds } => fleet::fleet(*seeds),
            Self::Bench { filter } => bench::bench(filter.as_deref()),
            Self::Attack { name } => attack::attack(name.as_deref()),
            Self::Browser => browser::browser(),
            Self::Dist => dist::dist(),
            Self::ImageRoot { architecture } => dist::image_root(architecture.as_deref()),
            Self::Publish => publish::publish(),
            Self::Record { folder } => record::record(folder),
            Self::Help => {
                print!("{HELP}");
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command, String> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Command::parse(&arguments)
    }

    #[test]
    fn commands_and_filters() {
        let filter = Some("tidy".to_owned());
        assert_eq!(parse("setup"), Ok(Command::Setup));
        assert_eq!(parse("test"), Ok(Command::Test { filter: None }));
        assert_eq!(parse("test tidy"), Ok(Command::Test { filter: filter.clone() }));
        assert_eq!(parse("features"), Ok(Command::Features));
        assert_eq!(parse("packages"), Ok(Command::Packages));
        assert_eq!(parse("site"), Ok(Command::Site));
        assert_eq!(parse("workflows"), Ok(Command::Workflows));
        assert_eq!(parse("soak"), Ok(Command::Soak { runs: 10 }));
        assert_eq!(parse("soak 3"), Ok(Command::Soak { runs: 3 }));
        assert_eq!(parse("fleet"), Ok(Command::Fleet { seeds: 200 }));
        assert_eq!(parse("fleet 3"), Ok(Command::Fleet { seeds: 3 }));
        assert_eq!(parse("bench tidy"), Ok(Command::Bench { filter }));
        assert_eq!(parse("attack"), Ok(Command::Attack { name: None }));
        assert_eq!(parse("attack drains"), Ok(Command::Attack { name: Some("drains".to_owned()) }));
        assert_eq!(parse("browser"), Ok(Command::Browser));
        assert_eq!(parse("dist"), Ok(Command::Dist));
        assert_eq!(parse("image-root arm64"), Ok(Command::ImageRoot { architecture: Some("arm64".to_owned()) }));
        assert_eq!(parse("publish"), Ok(Command::Publish));
        assert_eq!(parse("record there"), Ok(Command::Record { folder: "there".to_owned() }));
    }

    #[test]
    fn help_in_every_form() {
        for line in ["", "help", "--help", "-h", "test --help"] {
            assert_eq!(parse(line), Ok(Command::Help), "{line:?}");
        }
    }

    #[test]
    fn faults_are_one_sentence() {
        assert_eq!(
            parse("tidy"),
            Err("xtask has no command `tidy`; it has setup, test, features, packages, site, workflows, soak, fleet, bench, attack, browser, dist, image-root, publish, record and help."
                .to_owned())
        );
        assert_eq!(
            parse("test --nocapture"),
            Err("`xtask test` has no option `--nocapture`; see `cargo xtask help`.".to_owned())
        );
        for runs in ["0", "x"] {
            let sentence = format!("`xtask soak` needs a number of runs of at least 1, not `{runs}`.");
            assert_eq!(parse(&format!("soak {runs}")), Err(sentence));
        }
        assert_eq!(
            parse("record"),
            Err("`xtask record` needs a folder with recordings; see `cargo xtask help`.".to_owned())
        );
        assert_eq!(
            parse("setup now"),
            Err("`xtask setup` does not know what to do with `now`; see `cargo xtask help`.".to_owned())
        );
    }
}
