//! `evenkeel check` as a command: what it prints, how it ends, and the pages, the action and the hook that go with it.

use crate::child;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use child::{Running, evenkeel, text};
use evenkeel_api::decode::{Node, Value, parse_yaml};
use evenkeel_check::Rule;
use tempfile::TempDir;

const SCHEMA: &str = "\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: NAME}
spec:
  priorityLevelConfiguration: {name: LEVEL}
  matchingPrecedence: 500
  rules:
  - subjects: [{kind: Group, group: {name: dev}}]
    nonResourceRules: [{verbs: [get], nonResourceURLs: [/orders/*]}]
";

fn schema(name: &str, level: &str) -> String {
    SCHEMA.replace("NAME", name).replace("LEVEL", level)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// Runs `evenkeel check` in a folder, with that on standard input; for a Kubernetes API, if nothing else is said.
fn check_with(folder: &Path, arguments: &[&str], input: &str) -> Output {
    let has = |flag: &str| arguments.iter().any(|argument| argument.starts_with(flag));
    let preset: &[&str] = if has("--preset") || has("--explain") { &[] } else { &["--preset", "kubernetes"] };
    let arguments = [&["check"], preset, arguments].concat();
    let mut command = evenkeel(&arguments);
    command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn check(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let output = check_with(folder, arguments, "");
    assert_eq!(text(&output.stderr), "", "{arguments:?}");
    (output.status.code().unwrap(), text(&output.stdout))
}

/// The blocks of a page: the word behind the three backticks, and the text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let mut blocks = Vec::new();
    let mut parts = page.split("```");
    while let (Some(_), Some(block)) = (parts.next(), parts.next()) {
        blocks.push(block.split_once('\n').unwrap());
    }
    blocks
}

/// Every page has an example; the command on the page finds what the page says, and prints what the page shows (TL-10).
#[test]
fn the_example_of_every_page_is_found_by_its_rule() {
    let index = fs::read_to_string(root().join("docs/checks/README.md")).unwrap();
    for rule in Rule::ALL {
        let page = rule.page();
        let blocks = blocks(page);
        let yaml: Vec<&str> = blocks.iter().filter(|(word, _)| *word == "yaml").map(|(_, text)| *text).collect();
        let mut files = vec![("example.yaml", yaml[0])];
        files.extend(yaml.get(1).map(|calls| ("calls.yaml", *calls)));
        let folder = folder(&files);
        let console = blocks.iter().find(|(word, _)| *word == "console").unwrap().1;
        let (command, shown) = console.split_once('\n').unwrap();
        let arguments: Vec<&str> = command.strip_prefix("$ evenkeel check ").unwrap().split(' ').collect();
        let (_, printed) = check(folder.path(), &arguments);
        assert_eq!(printed, shown, "the page of {rule} shows something else");
        assert!(printed.contains(&format!("{}[{rule}]", rule.severity())), "{rule}: {printed}");
        assert!(
            page.starts_with(&format!("# {rule}\n")) && page.contains(&format!("\nSeverity: {}.\n", rule.severity()))
        );
        let summary = rule.summary().replace('\n', " ");
        let row = format!("| [{rule}]({rule}.md) | {} | {summary} |", rule.severity());
        assert!(index.contains(&row), "docs/checks/README.md has no row {row:?}");
        let (code, explained) = check(folder.path(), &["--explain", rule.name()]);
        // Headings lose their marks.
        let words = |text: &str| text.replace('#', "").split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!((code, words(&explained)), (0, words(page)));
    }
    assert_eq!(fs::read_dir(root().join("docs/checks")).unwrap().count(), Rule::ALL.len() + 1);
}

/// The example of docs/check.md.
#[test]
fn the_tutorial_shows_what_is_printed() {
    let page = fs::read_to_string(root().join("docs/check.md")).unwrap();
    let blocks = blocks(&page);
    let [("yaml", objects), ("console", console)] = blocks[..2] else { panic!("other blocks") };
    let folder = folder(&[("objects.yaml", objects)]);
    let shown = console.strip_prefix("$ evenkeel check --preset kubernetes objects.yaml\n").unwrap();
    assert_eq!(check(folder.path(), &["objects.yaml"]), (1, shown.to_owned()));
}

/// TL-3
#[test]
fn exit_codes_follow_the_severity() {
    let level = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nmetadata: {name: spare}\n\
                 spec: {type: Limited, limited: {limitResponse: {type: Reject}}}\n";
    let old = schema("a", "exempt").replace("/v1\n", "/v1beta3\n");
    let wrong = SCHEMA.replace("500", "[5]");
    let good = schema("a", "exempt");
    let folder = folder(&[
        ("good.yaml", &good),
        ("old.yaml", &old),
        ("warning.yaml", &format!("{good}---\n{level}")),
        ("error.yaml", &schema("a", "nowhere")),
        ("wrong.yaml", &wrong),
        ("broken.yaml", "a: b: c"),
        ("empty.yaml", "apiVersion: v1\nkind: ConfigMap\n"),
    ]);
    let code = |arguments: &[&str]| check_with(folder.path(), arguments, "").status.code().unwrap();
    assert_eq!(["good.yaml", "old.yaml", "warning.yaml", "error.yaml"].map(|file| code(&[file])), [0, 0, 0, 1]);
    assert_eq!(["old.yaml", "warning.yaml"].map(|file| code(&["--strict", file])), [0, 1]);
    for arguments in [
        &["empty.yaml"][..],
        &["absent.yaml"],
        &["--seats", "0", "good.yaml"],
        &["--explain", "no-such-rule"],
        &["--calls", "absent.yaml", "good.yaml"],
        &["--against", "wrong.yaml", "good.yaml"],
        &["-o", "sarif", "--against", "good.yaml", "good.yaml"],
        &[],
    ] {
        let output = check_with(folder.path(), arguments, "");
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()), "{arguments:?}");
        assert!(text(&output.stderr).starts_with("evenkeel: "), "{arguments:?}");
    }
}

/// TL-3 and TL-4: what cannot be decoded is a finding in every format, and the other files are checked all the same.
#[test]
fn one_bad_file_does_not_hide_the_others() {
    let template =
        "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata:\n  name: {{ .Release.Name }}\n";
    let folder = folder(&[
        ("wrong.yaml", &SCHEMA.replace("500", "[5]")),
        ("broken.yaml", "apiVersion: flowcontrol.apiserver.k8s.io/v1\na: b: c\n"),
        ("chart.yaml", template),
        ("error.yaml", &schema("a", "nowhere")),
    ]);
    let (code, printed) = check(folder.path(), &["-o", "json", "."]);
    assert_eq!(code, 2);
    let report: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let found: Vec<String> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| {
            let object = format!(
                "{} {}",
                finding["object"]["kind"].as_str().unwrap(),
                finding["object"]["name"].as_str().unwrap()
            );
            format!(
                "{} {}:{} {object}",
                finding["rule"].as_str().unwrap(),
                finding["file"].as_str().unwrap(),
                finding["line"]
            )
        })
        .collect();
    let expected = [
        "invalid-object ./broken.yaml:2 File ./broken.yaml",
        "invalid-object ./chart.yaml:4 File ./chart.yaml",
        "invalid-object ./wrong.yaml:6 FlowSchema NAME",
        "dangling-level ./error.yaml:5 FlowSchema a",
    ];
    assert_eq!(found, expected, "{printed}");
    assert!(printed.contains("this is a template (it has \\\"{{\\\"); render it first (`helm template`)"), "{printed}");
    let (code, printed) = check(folder.path(), &["-o", "github", "."]);
    assert_eq!((code, printed.lines().filter(|line| line.starts_with("::error file=")).count()), (2, 4), "{printed}");
    let (code, printed) = check(folder.path(), &["-o", "sarif", "."]);
    let log: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((code, log["runs"][0]["results"].as_array().unwrap().len()), (2, 4));
    let (code, printed) = check(folder.path(), &["wrong.yaml", "error.yaml"]);
    assert!(
        code == 2 && printed.contains(" --> wrong.yaml:6:23\n") && printed.ends_with("2 errors in 1 object\n"),
        "{printed}"
    );
}

/// TL-9, TL-17
#[test]
fn json_has_the_fields_of_the_contract() {
    let folder = folder(&[("a.yaml", &format!("{}---\n{}", schema("a", "exempt"), schema("b", "catch-all")))]);
    let (code, printed) = check(folder.path(), &["-o", "json", "a.yaml"]);
    assert_eq!(code, 1);
    let report: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let finding = &report["findings"][0];
    assert_eq!(finding["rule"], "unreachable-schema");
    assert_eq!(finding["severity"], "error");
    assert_eq!(finding["object"], serde_json::json!({"kind": "FlowSchema", "name": "b"}));
    assert_eq!((&finding["file"], &finding["line"], &finding["column"]), (&"a.yaml".into(), &13.into(), &12.into()));
    assert!(finding["message"].is_string() && finding["help"].is_string());
    assert_eq!(finding["witness"]["flowSchema"], "a");
    assert_eq!(finding["witness"]["groups"], serde_json::json!(["dev", "system:authenticated"]));
    assert_eq!(finding["blockers"], serde_json::json!(["a"]));
    assert_eq!(report["undecided"], serde_json::json!([]));

    let (_, printed) = check(folder.path(), &["-o", "sarif", "a.yaml"]);
    let log: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    assert_eq!(run["tool"]["driver"]["rules"].as_array().unwrap().len(), Rule::ALL.len());
    let result = &run["results"][0];
    let rule = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
    assert_eq!(run["tool"]["driver"]["rules"][rule]["id"], result["ruleId"]);
    assert_eq!(result["locations"][0]["physicalLocation"]["region"]["startLine"], 13);

    // A name is not a URI.
    fs::rename(folder.path().join("a.yaml"), folder.path().join("ä#b %20.yaml")).unwrap();
    let (_, printed) = check(folder.path(), &["-o", "sarif", "./ä#b %20.yaml"]);
    let log: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let location = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(location["artifactLocation"]["uri"], "./%C3%A4%23b%20%2520.yaml");
    fs::rename(folder.path().join("ä#b %20.yaml"), folder.path().join("a.yaml")).unwrap();

    let (_, printed) = check(folder.path(), &["-o", "github", "a.yaml"]);
    let first = printed.lines().next().unwrap();
    assert!(
        first.starts_with("::error file=a.yaml,line=13,col=12,title=unreachable-schema::FlowSchema \"b\": "),
        "{first}"
    );
    assert!(first.contains("%0AHelp: "), "{first}");
}

/// TL-19
#[test]
fn calls_are_read_like_other_files_and_have_places() {
    let level = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nmetadata: {name: few}\n\
                 spec: {type: Limited, limited: {limitResponse: {type: Reject}}}\n";
    let objects = format!("{level}---\n{}---\n{}", schema("a", "few"), schema("b", "few").replace("orders", "prices"));
    let calls = "# what a asks for\n- caller: a\n  callee: b\n";
    let folder = folder(&[("objects.yaml", &objects), ("calls.yaml", calls)]);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(calls.as_bytes()).unwrap();
    fs::write(folder.path().join("calls.gz"), packed.finish().unwrap()).unwrap();
    fs::create_dir(folder.path().join("calls")).unwrap();
    fs::write(folder.path().join("calls/of-a.yaml"), calls).unwrap();
    for (argument, file, input) in [
        ("calls.yaml", "calls.yaml", ""),
        ("calls.gz", "calls.gz", ""),
        ("calls", "calls/of-a.yaml", ""),
        ("-", "<stdin>", calls),
    ] {
        let output = check_with(folder.path(), &["-o", "json", "--calls", argument, "objects.yaml"], input);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), String::new()), "{argument}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = report["findings"].as_array().unwrap();
        let finding = findings.iter().find(|finding| finding["rule"] == "inversion").unwrap();
        let place = serde_json::json!([finding["file"], finding["line"], finding["column"]]);
        assert_eq!(place, serde_json::json!([file, 3, 3]));
        let printed = text(&check_with(folder.path(), &["--calls", argument, "objects.yaml"], input).stdout);
        assert!(printed.contains(&format!("--> {file}:3:3\n")) && printed.contains("3 |   callee: b\n"), "{printed}");
    }
    let wrong = check_with(folder.path(), &["--calls", "-", "objects.yaml"], "- caller: a\n- callee: [b]\n");
    let faults = text(&wrong.stderr);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(faults.contains("<stdin>:1:3: a call has") && faults.contains("\n<stdin>:2:3: a call has"), "{faults}");
}

/// `kubectl get flowschemas,prioritylevelconfigurations -o yaml | evenkeel check -` (TL-2)
#[test]
fn the_objects_of_a_cluster_can_be_piped_in() {
    let mut items = Vec::new();
    for object in evenkeel_api::bootstrap::all().to_objects() {
        let item = match object {
            evenkeel_api::AnyObject::FlowSchema(schema) => serde_json::to_value(schema),
            evenkeel_api::AnyObject::PriorityLevelConfiguration(level) => serde_json::to_value(level),
        };
        let mut item = item.unwrap();
        item["metadata"]["uid"] = "3e0f1b1c-0000-4000-8000-000000000000".into();
        item["metadata"]["resourceVersion"] = "7".into();
        item["metadata"]["creationTimestamp"] = "2024-01-02T03:04:05Z".into();
        items.push(item);
    }
    let list =
        serde_json::json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items});
    let output = check_with(Path::new("."), &["--strict", "-"], &serde_json::to_string_pretty(&list).unwrap());
    assert_eq!(
        (text(&output.stderr), text(&output.stdout)),
        (String::new(), "nothing found in 19 objects\n".to_owned())
    );
    assert_eq!(output.status.code(), Some(0));
}

/// Nothing but information about what we ship.
#[test]
fn nothing_is_found_in_deploy_and_examples() {
    for path in ["deploy/objects.yaml", "examples/tenants.yaml"] {
        let (code, printed) = check(&root(), &["--strict", path]);
        assert_eq!(code, 0, "{printed}");
        let (code, printed) = check(&root(), &["--strict", "--preset", "plain", path]);
        assert_eq!(code, 0, "{printed}");
    }
    let mistakes = check_with(&root(), &["examples/mistakes.yaml"], "");
    let printed = text(&mistakes.stdout);
    assert_eq!((mistakes.status.code(), printed.matches("error[invalid-object]").count()), (Some(2), 5), "{printed}");
}

/// TL-16
/// A character that nobody sees has an escape in the line, and the marks are still below the word.
#[test]
fn a_place_behind_a_hidden_character_is_pointed_at() {
    let metadata = "{name: orders, annotations: {note: \"x\u{202e}y\", evenkeel.dev/wieght: '2'}}";
    let text = SCHEMA.replace("{name: NAME}", metadata).replace("LEVEL", "catch-all");
    let folder = folder(&[("objects.yaml", &text)]);
    let (_, printed) = check(folder.path(), &["objects.yaml"]);
    let mut lines =
        printed.lines().skip_while(|line| !(line.contains("note:") && line.contains("evenkeel.dev/wieght:")));
    let (line, marks) = (lines.next().unwrap(), lines.next().unwrap());
    assert!(line.contains(r#"note: "x\u{202e}y""#), "{printed}");
    assert_eq!(marks.find('^'), line.find("evenkeel.dev/wieght:"), "{printed}");
}

#[test]
fn what_moves_is_told_with_a_request() {
    let folder = folder(&[
        ("old.yaml", &schema("a", "exempt")),
        ("same.yaml", &format!("# The same.\n{}", schema("a", "exempt"))),
        ("new.yaml", &schema("a", "exempt").replace("/orders/*", "/orders/new/*")),
    ]);
    let same = check(folder.path(), &["--against", "old.yaml", "same.yaml"]);
    assert_eq!(same, (0, "no request is classified differently\n".to_owned()));
    let (code, printed) = check(folder.path(), &["--against", "old.yaml", "new.yaml"]);
    assert_eq!(code, 1);
    insta::assert_snapshot!(printed);
    let (_, printed) = check(folder.path(), &["-o", "json", "--against", "old.yaml", "new.yaml"]);
    let outcome: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let moved = &outcome["differences"][0];
    assert_eq!(moved["old"], serde_json::json!({"flowSchema": "a", "priorityLevel": "exempt"}));
    assert_eq!(moved["new"], serde_json::json!({"flowSchema": "catch-all", "priorityLevel": "catch-all"}));
    assert_eq!(moved["witness"]["verb"], "get");
}

/// TL-12
#[test]
fn a_verb_of_the_other_preset_is_told() {
    let folder = folder(&[("a.yaml", &schema("a", "exempt").replace("verbs: [get]", "verbs: [post]"))]);
    let (code, printed) = check(folder.path(), &["a.yaml"]);
    assert!(code == 1 && printed.contains("use `--preset plain`"), "{printed}");
    assert_eq!(check(folder.path(), &["--preset", "plain", "a.yaml"]).0, 0);
}

/// TL-18
#[test]
fn tests_in_files_are_run() {
    let test = "apiVersion: evenkeel.dev/v1\nkind: ClassificationTest\nmetadata: {name: NAME}\n\
                request: {user: ann, groups: [dev, 'system:authenticated'], method: GET, path: PATH}\n\
                expect: {schema: a, level: exempt, flow: '', seats: 1}\n";
    let right = test.replace("NAME", "right").replace("PATH", "/orders/1");
    let wrong = test.replace("NAME", "wrong").replace("PATH", "/carts/1");
    let objects = schema("a", "exempt");
    let folder = folder(&[
        ("right.yaml", &format!("{objects}---\n{right}")),
        ("wrong.yaml", &format!("{objects}---\n{right}---\n{wrong}")),
        ("odd.yaml", &format!("{objects}---\n{}", right.replace("expect:", "wants:"))),
    ]);
    assert_eq!(check(folder.path(), &["right.yaml"]), (0, "nothing found in 1 object and 1 test\n".to_owned()));
    let (code, printed) = check(folder.path(), &["wrong.yaml"]);
    assert_eq!(code, 1);
    assert!(printed.contains(r#"the request gets schema "catch-all" instead of "a""#), "{printed}");
    let odd = check_with(folder.path(), &["odd.yaml"], "");
    assert_eq!(odd.status.code(), Some(2));
    let printed = text(&odd.stdout);
    assert!(printed.contains("ClassificationTest: ") && printed.contains(" odd.yaml:11:1\n"), "{printed}");
}

/// TL-11
#[test]
fn what_is_assumed_of_the_server_can_be_said() {
    let mut check_command = evenkeel_cli::command();
    check_command.build();
    let arguments = check_command.find_subcommand("check").unwrap().get_arguments();
    let defaults: Vec<String> = arguments
        .filter(|argument| {
            ["seats", "wait_limit", "service_time", "widest", "borrowing"].contains(&argument.get_id().as_str())
        })
        .map(|argument| argument.get_help().unwrap().to_string())
        .map(|help| help.split_once("[default: ").map(|(_, rest)| rest.replace('\n', " ")).unwrap_or_default())
        .collect();
    assert_eq!(
        defaults,
        [
            "as --config says, or auto; 600 with --preset kubernetes]",
            "that of --config, or 15s]",
            "",
            "by the routes of --config, or 1; 10 with --preset kubernetes]",
            "that of --config, or immediate; periodic with --preset kubernetes]",
        ]
    );
    let level = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nmetadata: {name: a}\n\
                 spec: {type: Limited, limited: {nominalConcurrencyShares: 20, lendablePercent: 100, limitResponse:\n  \
                 {type: Queue, queuing: {queues: 64, handSize: 6, queueLengthLimit: 20}}}}\n";
    let objects = schema("a", "a").replace("  rules:", "  distinguisherMethod: {type: ByUser}\n  rules:");
    let folder = folder(&[("a.yaml", &format!("{level}---\n{objects}"))]);
    let has = |rule: &str, flags: &[&str]| {
        let (_, printed) = check(folder.path(), &[flags, &["-o", "json", "a.yaml"]].concat());
        let report: serde_json::Value = serde_json::from_str(&printed).unwrap();
        report["findings"].as_array().unwrap().iter().any(|finding| finding["rule"] == rule)
    };
    for (rule, without, with) in [
        ("few-seats", &[][..], &["--seats", "1"][..]),
        ("few-seats", &["--preset", "plain"], &["--preset", "plain", "--widest", "1000"]),
        ("hand-too-wide", &[], &["--seats", "7"]),
        ("bufferbloat", &[], &["--service-time", "30s"]),
        ("bufferbloat", &[], &["--wait-limit", "10ms"]),
        ("lends-everything", &["--borrowing", "immediate"], &[]),
    ] {
        assert!(!has(rule, without) && has(rule, with), "{rule} with {with:?} and without");
    }
}

/// TL-6
#[test]
fn colour_and_links_are_for_terminals() {
    let folder = folder(&[("a.yaml", &schema("a", "nowhere"))]);
    let (_, plain) = check(folder.path(), &["a.yaml"]);
    assert!(!plain.contains('\x1b'), "{plain:?}");
    let (_, coloured) = check(folder.path(), &["--color", "always", "a.yaml"]);
    assert!(coloured.contains("\x1b]8;;https://evenkeel.dev/docs/checks/dangling-level\x1b\\"), "{coloured:?}");
}

/// The gateway logs the same findings when it loads objects.
#[test]
fn the_gateway_logs_what_is_found() {
    let objects = format!("{}---\n{}", schema("a", "exempt"), schema("b", "catch-all"));
    let folder = folder(&[("objects.yaml", &objects)]);
    let path = folder.path().join("objects.yaml");
    let mut gateway = Running::start(&[
        "serve",
        "--upstream",
        "http://127.0.0.1:9",
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
        "--objects",
        path.to_str().unwrap(),
    ]);
    let line = gateway.line_with("unreachable-schema");
    assert!(line.contains("WARN") && line.contains("no request can be classified to this schema"), "{line}");
}

fn item<'a>(node: &'a Node, path: &[&str]) -> &'a Node {
    path.iter().fold(node, |node, name| node.get(name).unwrap_or_else(|| panic!("no {name}")))
}

fn list(node: &Node) -> &[Node] {
    let Value::List(items) = &node.value else { panic!("no list") };
    items
}

/// Runs a command line of a file with bash, with the binary in the path.
fn bash(script: &str, folder: &Path, variables: &[(&str, &str)]) -> Output {
    let binary = Path::new(env!("CARGO_BIN_EXE_evenkeel"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    command.args(["-e", "-o", "pipefail", "-c", script]).current_dir(folder).env("PATH", path).env("NO_COLOR", "1");
    command.envs(variables.iter().copied()).output().unwrap()
}

#[test]
fn the_action_runs_what_it_names() {
    let action = parse_yaml(&fs::read(root().join("action.yml")).unwrap()).unwrap();
    let root = &action[0].root;
    assert_eq!(item(root, &["runs", "using"]).as_str(), Some("composite"));
    assert_eq!(item(root, &["inputs", "files", "required"]).value, Value::Bool(true));
    let steps = list(item(root, &["runs", "steps"]));
    assert!(steps.iter().all(|step| item(step, &["shell"]).as_str() == Some("bash")));
    let runs: Vec<&str> = steps.iter().map(|step| item(step, &["run"]).as_str().unwrap()).collect();
    let folder = folder(&[("a.yaml", &schema("a", "nowhere")), ("b.yaml", &schema("b", "exempt"))]);
    // Evenkeel is in the path, so nothing is installed.
    assert!(bash(runs[0], folder.path(), &[]).status.success());
    let Value::Map(environment) = &item(&steps[1], &["env"]).value else { panic!("no environment") };
    let inputs: Vec<(&str, &str)> =
        environment.iter().map(|member| (member.key.as_str(), member.value.as_str().unwrap())).collect();
    assert_eq!(inputs, [("FILES", "${{ inputs.files }}"), ("ARGUMENTS", "${{ inputs.arguments }}")]);
    let good = bash(runs[1], folder.path(), &[("FILES", "b.yaml"), ("ARGUMENTS", "--preset kubernetes")]);
    assert!(good.status.success() && good.stdout.is_empty(), "{good:?}");
    let bad = bash(
        runs[1],
        folder.path(),
        &[("FILES", "a.yaml b.yaml"), ("ARGUMENTS", "--strict --seats 200 --preset kubernetes")],
    );
    assert_eq!(bad.status.code(), Some(1));
    assert!(text(&bad.stdout).starts_with("::error file=a.yaml,line=5,"), "{bad:?}");
}

#[test]
fn the_hook_runs_what_it_names() {
    let hooks = parse_yaml(&fs::read(root().join(".pre-commit-hooks.yaml")).unwrap()).unwrap();
    let hook = &list(&hooks[0].root)[0];
    assert_eq!(item(hook, &["id"]).as_str(), Some("evenkeel-check"));
    assert_eq!(item(hook, &["pass_filenames"]).value, Value::Bool(false));
    let entry = item(hook, &["entry"]).as_str().unwrap();
    let folder = folder(&[("a.yaml", &schema("a", "nowhere")), ("b.yaml", &schema("b", "exempt"))]);
    assert_eq!(bash(&format!("{entry} b.yaml"), folder.path(), &[]).status.code(), Some(0));
    assert_eq!(bash(&format!("{entry} ."), folder.path(), &[]).status.code(), Some(1));
}

/// One file for all tools: everything is as the settings say.
#[test]
fn the_settings_say_what_is_checked_and_what_the_server_is_like() {
    let form = "concurrency: 8\nlevels:\n  a: {share: 50, queue: 2000}\n  unused: {share: 50}\nmatch:\n- {level: a}\n- {user: zoe, level: a}\n";
    let folder = folder(&[("evenkeel.yaml", form), ("none.yaml", "concurrency: 8\n")]);
    let output =
        evenkeel(&["check", "--config", "evenkeel.yaml", "-o", "json"]).current_dir(folder.path()).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let found: Vec<String> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| {
            format!(
                "{} {}:{}",
                finding["rule"].as_str().unwrap(),
                finding["line"],
                finding["object"]["name"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(found, ["bufferbloat 3:a", "unused-level 4:unused", "unreachable-schema 7:a-2"], "{report}");
    let output = evenkeel(&["check", "--config", "none.yaml"]).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "evenkeel: none.yaml: the settings have no objects to check; add `levels` and `match`\n"
    );
    let output = evenkeel(&["check", "evenkeel.yaml"]).current_dir(folder.path()).output().unwrap();
    let note = "preset plain (the default; for a Kubernetes API, add --preset kubernetes)\n\
                concurrency auto (the default: levels are checked with the most seats that it may find, 1000; for a number of seats, add \
                --concurrency N)\n";
    assert_eq!(text(&output.stderr), note);
}
