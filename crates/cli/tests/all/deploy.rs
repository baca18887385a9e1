//! What is in `deploy/` fits the binary: its flags exist, its settings and objects are right, its times add up.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use evenkeel_api::decode::{Document, Manifest, Node, Strictness, Value, parse_yaml};
use evenkeel_gateway::Config;

use crate::child::{run, text};

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name)).unwrap()
}

/// The value at `spec.containers[0]`, whose parts are given one by one.
fn at<'a>(node: &'a Node, path: &[&str]) -> &'a Node {
    path.iter().fold(node, |node, part| match (&node.value, part.parse::<usize>()) {
        (Value::List(items), Ok(index)) => &items[index],
        _ => node.get(part).unwrap_or_else(|| panic!("no {part:?} of {path:?}")),
    })
}

fn words(node: &Node) -> Vec<String> {
    let Value::List(items) = &node.value else { panic!("no list") };
    items.iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

fn seconds(node: &Node) -> Duration {
    let Value::Number(seconds) = &node.value else { panic!("no number: {node:?}") };
    Duration::from_secs(seconds.parse().unwrap())
}

/// The document of this kind and name.
fn find<'a>(documents: &'a [Document], kind: &str, name: &str) -> &'a Node {
    let named = |root: &Node| {
        at(root, &["kind"]).as_str() == Some(kind) && at(root, &["metadata", "name"]).as_str() == Some(name)
    };
    documents
        .iter()
        .map(|document| &document.root)
        .find(|root| named(root))
        .unwrap_or_else(|| panic!("no {kind} {name}"))
}

fn sidecar() -> Vec<Document> {
    parse_yaml(read("sidecar.yaml").as_bytes()).unwrap()
}

/// The dynamic loader itself has the name of the machine in it, and comes with the C library.
#[test]
fn the_page_names_every_shared_library() {
    let page = read("README.md");
    let Ok(ldd) = Command::new("ldd").arg(env!("CARGO_BIN_EXE_evenkeel")).output() else {
        return evenkeel_missing_tool::skip("ldd is not installed");
    };
    let libraries = String::from_utf8(ldd.stdout).unwrap();
    let needed: Vec<_> = libraries.lines().filter_map(|line| Some(line.split_once("=>")?.0.trim())).collect();
    for library in &needed {
        assert!(page.contains(&format!("`{library}`")), "deploy/README.md does not name {library}:\n{libraries}");
    }
    assert!(needed.is_empty() || needed.contains(&"libc.so.6"), "{libraries}");
}

#[test]
fn the_objects_of_the_sidecar_decode_strictly() {
    let documents = sidecar();
    let Value::Map(files) = &at(find(&documents, "ConfigMap", "evenkeel-objects"), &["data"]).value else { panic!() };
    assert_eq!(files.len(), 1);
    let text = files[0].value.as_str().unwrap();
    let manifest = Manifest::read(&files[0].key, text.as_bytes(), Strictness::Strict);
    assert_eq!(manifest.unwrap_or_else(|problems| panic!("{problems}")).entries.len(), 3);
    assert_eq!(text, read("objects.yaml"), "the sidecar's objects are those of deploy/objects.yaml");
}

#[test]
fn the_settings_of_the_sidecar_are_right_and_its_times_add_up() {
    let documents = sidecar();
    let text = at(find(&documents, "ConfigMap", "evenkeel-settings"), &["data", "evenkeel.yaml"]).as_str().unwrap();
    let config = Config::parse("sidecar.yaml", text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.check(), []);

    let pod = at(find(&documents, "Deployment", "service"), &["spec", "template", "spec"]);
    let stopping = config.timeouts.drain_notice + config.timeouts.drain;
    let service_stays = seconds(at(pod, &["containers", "1", "lifecycle", "preStop", "sleep", "seconds"]));
    let killed = seconds(at(pod, &["terminationGracePeriodSeconds"]));
    assert!(stopping < service_stays, "the service ends before the gateway has drained");
    assert!(service_stays < killed, "the pod is killed before the service has ended");
}

#[test]
fn the_sidecar_s_flags_exist_and_its_ports_are_those_of_the_settings() {
    let documents = sidecar();
    let text = at(find(&documents, "ConfigMap", "evenkeel-settings"), &["data", "evenkeel.yaml"]).as_str().unwrap();
    let config = Config::parse("sidecar.yaml", text).unwrap();
    let gateway = at(find(&documents, "Deployment", "service"), &["spec", "template", "spec", "containers", "0"]);
    // The image starts the binary by itself.
    assert_command(&[vec!["evenkeel".to_owned()], words(at(gateway, &["args"]))].concat());

    let port = |index| seconds(at(gateway, &["ports", index, "containerPort"])).as_secs();
    assert_eq!(port("0"), u64::from(config.listen[0].address.port().unwrap()));
    assert_eq!(port("1"), u64::from(config.admin.address.as_ref().unwrap().port().unwrap()));
    for (probe, path) in [("livenessProbe", "/livez"), ("readinessProbe", "/readyz")] {
        assert_eq!(at(gateway, &[probe, "httpGet", "path"]).as_str(), Some(path));
        assert_eq!(at(gateway, &[probe, "httpGet", "port"]).as_str(), Some("admin"));
    }
    // Everybody may use the first port, and those that are named the second one.
    let ingress = at(find(&documents, "NetworkPolicy", "service"), &["spec", "ingress"]);
    let port = |index| at(ingress, &[index, "ports", "0", "port"]).as_str();
    assert_eq!((port("0"), port("1")), (Some("http"), Some("admin")));
    let sources = |index: &str| at(ingress, &[index]).get("from").is_some();
    assert_eq!((sources("0"), sources("1")), (false, true));
}

#[test]
fn the_unit_s_flags_exist_and_it_waits_for_the_drain() {
    let unit = read("evenkeel.service");
    let values = |key: &str| -> Vec<String> {
        let prefix = format!("{key}=");
        unit.lines().filter_map(|line| line.strip_prefix(&prefix)).map(str::to_owned).collect()
    };
    let start = values("ExecStart");
    assert_eq!(start.len(), 1);
    let mut command: Vec<String> = start[0].split_whitespace().map(str::to_owned).collect();
    assert_eq!(Path::new(&command[0]).file_name().unwrap(), "evenkeel");
    "evenkeel".clone_into(&mut command[0]);
    assert_command(&command);

    let timeouts = Config::default().timeouts;
    let stop: u64 = values("TimeoutStopSec")[0].trim_end_matches('s').parse().unwrap();
    assert!(timeouts.drain + timeouts.drain_notice < Duration::from_secs(stop));
    assert_eq!(values("KillSignal"), ["SIGTERM"]);
    assert_eq!(values("SuccessExitStatus"), [evenkeel_cli::Exit::Cut.code().to_string()]);
    for hardened in ["DynamicUser=yes", "ProtectSystem=strict", "NoNewPrivileges=yes"] {
        assert!(unit.lines().any(|line| line == hardened), "{hardened}");
    }
}

/// A unit may write to its own folders only. The new file is made by the gateway, which has noticed the rotation by then.
#[test]
fn the_access_log_has_a_place_and_is_rotated_there() {
    let (unit, rotation) = (read("evenkeel.service"), read("evenkeel.logrotate"));
    let folder = unit.lines().find_map(|line| line.strip_prefix("LogsDirectory=")).unwrap();
    let pattern = format!("/var/log/{folder}/*.log");
    assert!(rotation.lines().any(|line| line == format!("{pattern} {{")), "{rotation}");
    for file in ["evenkeel.yaml", "evenkeel.service"] {
        assert!(read(file).contains(&format!("/var/log/{folder}")), "{file}");
    }
    let logs = tempfile::tempdir().unwrap();
    let place = |name: &str| logs.path().join(name);
    fs::write(place("access.log"), "a line\n").unwrap();
    let here = rotation.replace(&pattern, place("*.log").to_str().unwrap());
    fs::write(place("conf"), here).unwrap();
    fs::set_permissions(place("conf"), fs::Permissions::from_mode(0o644)).unwrap();
    let rotate = || {
        let mut logrotate = Command::new("logrotate");
        // Debian has it where only root looks.
        logrotate.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        logrotate.args(["--force", "--state"]).arg(place("state")).arg(place("conf")).output()
    };
    let Ok(output) = rotate() else {
        return evenkeel_missing_tool::skip("logrotate is not installed");
    };
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(place("access.log.1")).unwrap(), "a line\n", "it may still be written to");
    assert!(!place("access.log").exists(), "the gateway makes it");
    fs::write(place("access.log"), "another\n").unwrap();
    assert!(rotate().unwrap().status.success());
    assert_eq!(fs::read_to_string(place("access.log.1")).unwrap(), "another\n");
    assert!(place("access.log.2.gz").exists());
}

/// The settings of the page that names credentials are settings that there are.
#[test]
fn the_page_about_credentials_has_settings_that_exist() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/install.md")).unwrap();
    let block = |kind: &str| {
        let start = page.find(&format!("```{kind}\n")).unwrap_or_else(|| panic!("no {kind}"));
        page[start..].lines().skip(1).take_while(|line| *line != "```").collect::<Vec<_>>().join("\n")
    };
    let (unit, settings) = (block("ini"), block("yaml"));
    Config::parse("install.md", &settings).unwrap_or_else(|error| panic!("{error}"));
    let loaded = unit.lines().filter_map(|line| line.strip_prefix("LoadCredential=")?.split(':').next());
    let loaded: Vec<&str> = loaded.collect();
    assert_eq!(loaded.len(), 4);
    for name in loaded {
        let copy = format!(" /run/credentials/evenkeel.service/{name}");
        assert!(settings.lines().any(|line| line.ends_with(&copy)), "{copy}");
        assert!(read("evenkeel.service").contains(&format!("#   LoadCredential={name}:")), "{name}");
    }
}

/// Flags take precedence over the file, so the file says which of its settings have no effect.
#[test]
fn the_settings_file_names_what_the_unit_sets() {
    let (unit, settings) = (read("evenkeel.service"), read("evenkeel.yaml"));
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let flags: Vec<_> = start.split(' ').filter(|word| word.starts_with("--") && *word != "--config").collect();
    assert!(!flags.is_empty());
    for flag in flags {
        let is_named = |text: &str| text.lines().any(|line| line.contains('#') && line.contains(&format!("`{flag}")));
        assert!(is_named(&unit), "no comment of evenkeel.service explains {flag}");
        assert!(is_named(&settings), "no comment of evenkeel.yaml says that the unit has {flag}");
    }
}

#[test]
fn the_settings_that_need_a_restart_are_the_same_everywhere() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gateway.md")).unwrap();
    let row = page.lines().find(|line| line.contains("| take effect after a restart;")).unwrap();
    let settings: Vec<&str> =
        row.split('|').nth(1).unwrap().split(',').map(|word| word.trim_matches([' ', '`'])).collect();
    assert!(settings.len() > 5, "{row}");
    for file in ["evenkeel.service", "evenkeel.yaml"] {
        let text = read(file).replace("\n# ", " ");
        let sentence = text.split(". ").find(|sentence| sentence.contains("workers and log.format need")).unwrap();
        for setting in &settings {
            assert!(sentence.split([' ', ',']).any(|word| word == *setting), "{file}: no {setting} in {sentence:?}");
        }
    }
}

#[test]
fn the_compose_file_has_flags_that_exist_and_its_parts_fit() {
    let documents = parse_yaml(read("compose.yaml").as_bytes()).unwrap();
    let services = at(&documents[0].root, &["services"]);
    let gateway = at(services, &["evenkeel"]);
    let image = format!("ghcr.io/evenkeel/evenkeel:{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(at(gateway, &["image"]).as_str(), Some(image.as_str()));

    let command = words(at(gateway, &["command"]));
    let arguments: Vec<&str> = command.iter().map(String::as_str).chain(["--print-config"]).collect();
    let printed = run(&arguments);
    assert_eq!(printed.status.code(), Some(0), "{}", text(&printed.stderr));
    let config = Config::parse("compose.yaml", &text(&printed.stdout)).unwrap();

    let ports = words(at(gateway, &["ports"]));
    let (clients, admin) =
        (config.listen[0].address.port().unwrap(), config.admin.address.as_ref().unwrap().port().unwrap());
    assert_eq!(ports, [format!("{clients}:{clients}"), format!("127.0.0.1:{admin}:{admin}")]);
    assert!(at(gateway, &["environment"]).get("EVENKEEL_ADMIN_TOKEN").is_some());
    let upstream = command.iter().find_map(|word| word.strip_prefix("--upstream=http://")).unwrap();
    assert!(services.get(upstream.split_once(':').unwrap().0).is_some(), "{upstream}");
    // The objects are a file of this folder, which is mounted as a whole.
    let volume = &words(at(gateway, &["volumes"]))[0];
    let folder = volume.strip_prefix(".:").and_then(|volume| volume.strip_suffix(":ro")).unwrap();
    read(config.objects.as_ref().unwrap().strip_prefix(folder).unwrap().to_str().unwrap());

    let stop: u64 = at(gateway, &["stop_grace_period"]).as_str().unwrap().trim_end_matches('s').parse().unwrap();
    assert!(config.timeouts.drain + config.timeouts.drain_notice < Duration::from_secs(stop));
    assert!(matches!(at(gateway, &["read_only"]).value, Value::Bool(true)));
    assert_eq!(words(at(gateway, &["cap_drop"])), ["ALL"]);
}

fn assert_command(words: &[String]) {
    if let Err(error) = evenkeel_cli::command().try_get_matches_from(words) {
        panic!("{words:?}: {error}");
    }
}
