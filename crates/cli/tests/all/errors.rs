//! What is wrong is said in one sentence, with what to do, and with the right exit code.

use crate::child;

use std::fs;
use std::net::TcpListener;

use child::{evenkeel, run, text};
use tempfile::TempDir;

/// The exit code and the one line on standard error; nothing is on standard output.
fn complaint(arguments: &[&str]) -> String {
    let output = run(arguments);
    let said = text(&output.stderr);
    assert_eq!(text(&output.stdout), "", "{arguments:?}");
    assert_eq!(said.lines().count(), 1, "{arguments:?} says more than one sentence:\n{said}");
    format!("{}: {}", output.status.code().unwrap(), said.trim_end())
}

#[test]
fn wrong_command_lines() {
    let cases: &[&[&str]] = &[
        &[],
        &["sevre"],
        &["serve", "--upsteam", "http://a"],
        &["serve", "--upstream"],
        &["serve", "--upstream", "127.0.0.1:9000"],
        &["serve", "--upstream", "localhost:9000"],
        &["serve", "--upstream", "orders:9000/base"],
        &["serve", "--upstream", "http://127.0.0.1:8080"],
        &["serve", "--upstream", "ftp://127.0.0.1"],
        &["serve", "--upstream", "http://127.0.0.1:70000"],
        &["serve", "--upstream", "http://alice:s3cret@127.0.0.1:9000"],
        &["serve", "--listen", "8080"],
        &["serve", "--admin-listen", "off"],
        &["serve", "--concurrency", "0"],
        &["serve", "--workers", "many"],
        &["serve", "--log-format", "xml"],
        &["serve"],
        &["serve", "http://127.0.0.1:9000"],
        &["serve", "--api-only", "--data-dir", "data", "--concurrency", "3"],
        &["serve", "--api-only", "--data-dir", "data", "--store", "etcd://a:1", "--etcd-user", "me"],
        &["serve", "--api-only", "--data-dir", "data", "--api-name", "https://gateway.example:8443"],
        &["demo", "--seconds", "0"],
        &["demo", "-o", "yaml"],
        &["completions"],
        &["completions", "csh"],
        &["man", "sevre"],
        &["man", "--directory", "no/such"],
        &["check", "nope.yaml"],
    ];
    let line = |case: &&[&str]| [&["$ evenkeel"], *case].concat().join(" ");
    let complaints: Vec<String> = cases.iter().map(|case| format!("{}\n{}\n", line(case), complaint(case))).collect();
    insta::assert_snapshot!(complaints.join("\n"));
}

#[test]
fn errors_have_no_terminal_escapes() {
    let told = complaint(&["explain", "GET", "/\u{9b}31m%zz", "--preset", "plain"]);
    assert!(told.starts_with(r"2: evenkeel: GET /\u{9b}31m%zz would be rejected before flow control: "), "{told}");
}

/// TL-2
#[test]
fn standard_input_is_read_once() {
    let fault =
        "2: evenkeel: `-` is given more than once, but standard input can be read only once; put the others into files";
    for arguments in [
        &["check", "-", "-"][..],
        &["check", "-", "--against", "-"],
        &["check", "-", "--calls", "-"],
        &["convert", "--to", "v1", "-", "-"],
        &["explain", "--audit", "-", "--objects", "-"],
        &["explain", "GET", "/", "--objects", "-", "-"],
        &["simulate", "w.yaml", "--objects", "-", "--against", "-"],
        &["simulate", "-", "--objects", "-"],
        &["replay", "a.log", "--objects", "-", "--against", "-"],
        &["replay", "-", "--objects", "-"],
        &["replay", "-", "--objects", "o.yaml", "--truth", "-"],
        &["replay", "a.log", "--objects", "-", "--object-counts", "-"],
    ] {
        assert_eq!(complaint(arguments), fault, "{arguments:?}");
    }
}

#[test]
fn a_configuration_without_objects_is_refused() {
    let folder = TempDir::new().unwrap();
    let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (empty, full, workload, log) = (name("empty.yaml"), name("full.yaml"), name("w.yaml"), name("a.log"));
    fs::write(&empty, "apiVersion: v1\nkind: List\nitems: []\n").unwrap();
    fs::write(&full, include_str!("../../../../examples/tenants.yaml")).unwrap();
    fs::write(&workload, include_str!("../../../../examples/workloads/noisy-neighbour/workload.yaml")).unwrap();
    fs::write(&log, "").unwrap();
    for arguments in [
        &["explain", "GET", "/", "--objects", &empty][..],
        &["simulate", &workload, "--objects", &empty],
        &["simulate", &workload, "--objects", &full, "--against", &empty],
        &["replay", &log, "--objects", &empty],
        &["replay", &log, "--objects", &full, "--against", &empty],
    ] {
        let fault = format!("2: evenkeel: no flow schemas or priority levels found in {empty}");
        assert_eq!(complaint(arguments), fault, "{arguments:?}");
    }
}

/// A command line of each tool that prints something, with the folder of its files.
fn printing(folder: &TempDir) -> Vec<Vec<String>> {
    let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (objects, workload, log) = (name("objects.yaml"), name("workload.yaml"), name("access.log"));
    fs::write(&objects, include_str!("../../../../examples/tenants.yaml")).unwrap();
    let flow = "{name: a, arrivals: {poisson: {rate: 5}}, service: {fixed: 10ms}}";
    let text = format!("apiVersion: evenkeel.dev/v1\nkind: Workload\nspec: {{seconds: 1, flows: [{flow}]}}\n");
    fs::write(&workload, text).unwrap();
    fs::write(&log, "192.0.2.7 - - [16/Nov/2026:10:51:03 +0000] \"GET / HTTP/1.1\" 200 512 \"-\" \"curl\"\n").unwrap();
    let words = |line: &[&str]| line.iter().map(ToString::to_string).collect();
    let upstream = ["--upstream", "http://127.0.0.1:9"];
    vec![
        words(&["--help"]),
        words(&["check", "-h"]),
        words(&["--version"]),
        words(&["man"]),
        words(&["completions", "bash"]),
        words(&[&["serve", "--print-config"], &upstream[..]].concat()),
        words(&["check", "--explain", "inversion"]),
        words(&["check", "-o", "json", "--preset", "plain", &objects]),
        words(&["check", "-o", "sarif", "--preset", "plain", &objects]),
        words(&["check", "--preset", "plain", &objects]),
        words(&["explain", "GET", "/orders", "--preset", "plain", "--objects", &objects]),
        words(&["convert", "--to", "v1", &objects]),
        words(&["simulate", &workload, "--preset", "plain", "--objects", &objects]),
        words(&["replay", &log, "--preset", "plain", "--objects", &objects]),
    ]
}

/// TL-5
#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let folder = TempDir::new().unwrap();
    for arguments in printing(&folder) {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = evenkeel(&arguments).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{arguments:?}");
    }
}

/// TL-3
#[test]
fn output_that_cannot_be_written_ends_with_2() {
    let folder = TempDir::new().unwrap();
    for arguments in printing(&folder) {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = evenkeel(&arguments).stdout(full).output().unwrap();
        let fault = "evenkeel: cannot write to standard output: No space left on device (os error 28)\n";
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(2), fault), "{arguments:?}");
        if matches!(arguments[0], "simulate" | "replay") {
            // The figures are there even if the page is not.
            let output = run(&[&arguments[..], &["--report", "/absent/report.html"]].concat());
            let fault =
                "evenkeel: cannot write the report to /absent/report.html: No such file or directory (os error 2)\n";
            assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(2), fault));
            assert!(!output.stdout.is_empty(), "{arguments:?}");
        }
    }
}

#[test]
fn wrong_files() {
    let folder = TempDir::new().unwrap();
    let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(name("unknown.yaml"), "listen:\n- adress: 127.0.0.1:80\n").unwrap();
    fs::write(name("broken.yaml"), "listen: [\n").unwrap();
    fs::write(name("tabs.yaml"), "timeouts:\n\tidle: 5s\n").unwrap();
    fs::write(name("settings.yaml"), "concurrency: 5\n").unwrap();
    fs::write(name("objects.yaml"), "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nspec: 1\n")
        .unwrap();
    let upstream = ["--upstream", "http://127.0.0.1:9000"];
    let ports = ["--listen", "127.0.0.1:0", "--admin-listen", "none"];
    let cases: &[&[&str]] = &[
        &["--config", &name("absent.yaml")],
        &["--config", &name("unknown.yaml")],
        &["--config", &name("broken.yaml")],
        &["--config", &name("tabs.yaml")],
        &["--config", &name("objects.yaml")],
        &["--objects", &name("absent")],
        &["--objects", &name("objects.yaml")],
        &["--objects", &name("tabs.yaml")],
        &["--objects", &name("settings.yaml")],
        &["--log-filter", "in fo="],
    ];
    let complaints: Vec<String> = cases
        .iter()
        .map(|case| {
            let text = format!(
                "$ evenkeel serve {}\n{}\n",
                case.join(" "),
                complaint(&[&["serve"], &upstream[..], &ports, case].concat())
            );
            text.replace(folder.path().to_str().unwrap(), "FOLDER")
        })
        .collect();
    insta::assert_snapshot!(complaints.join("\n"));
}

/// TL-3 and TL-4: folders where files are wanted, files with nothing in them, and files that are not text.
#[test]
fn files_of_the_wrong_kind() {
    let folder = TempDir::new().unwrap();
    let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir(name("hollow")).unwrap();
    fs::write(name("empty"), "").unwrap();
    fs::write(name("binary"), [0x7f, b'E', b'L', b'F', 0, 0xff, 0xfe, b'\n']).unwrap();
    fs::write(name("cut.gz"), [0x1f, 0x8b, 8, 0, 0, 0]).unwrap();
    fs::write(name("objects"), include_str!("../../../../examples/tenants.yaml")).unwrap();
    let event = r#"{"auditID":"a","stage":"ResponseComplete","requestURI":"/a","verb":"get","user":{"username":"u"},"requestReceivedTimestamp":"2026-11-16T10:51:10Z","stageTimestamp":"2026-11-16T10:51:11Z"}"#;
    fs::write(name("audit.log"), event).unwrap();
    let cases: [&[&str]; 12] = [
        &["check", "FILE"],
        &["check", "--calls", "FILE", "objects"],
        &["check", "--against", "FILE", "objects"],
        &["convert", "--to", "v1", "FILE"],
        &["explain", "--audit", "FILE"],
        &["explain", "GET", "/", "--config", "FILE"],
        &["explain", "GET", "/", "--kubeconfig", "FILE"],
        &["simulate", "FILE"],
        &["replay", "FILE", "--objects", "objects"],
        &["replay", "audit.log", "--objects", "objects", "--truth", "FILE"],
        &["replay", "audit.log", "--objects", "objects", "--object-counts", "FILE"],
        &["top", "--once", "--token-file", "FILE"],
    ];
    let mut complaints = String::new();
    for case in cases {
        for file in ["hollow", "empty", "binary", "cut.gz"] {
            let words: Vec<&str> = case.iter().map(|word| if *word == "FILE" { file } else { word }).collect();
            let output = evenkeel(&words).current_dir(folder.path()).output().unwrap();
            let said = text(&output.stdout) + &text(&output.stderr);
            complaints += &format!("$ evenkeel {}\n{}: {said}\n", words.join(" "), output.status.code().unwrap());
        }
    }
    insta::assert_snapshot!(complaints);
}

#[test]
fn a_port_that_is_taken() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for arguments in [
        &["serve", "--upstream", "http://127.0.0.1:9", "--admin-listen", "none", "--listen", &address][..],
        &["serve", "--upstream", "http://127.0.0.1:9", "--listen", "127.0.0.1:0", "--admin-listen", &address],
        &["demo", "--once", "--listen", &address],
        &["demo", "--once", "--admin-listen", &address],
    ] {
        let said = complaint(arguments);
        assert!(said.starts_with("1: evenkeel: ") && said.contains(&address), "{arguments:?}: {said}");
    }
}
