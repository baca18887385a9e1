//! `evenkeel explain`: from files, from an API server, from a gateway, from audit events and from curl.

use crate::child;

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use child::{Running, address_after, evenkeel, run, text};
use serde_json::Value;
use tempfile::TempDir;

const OBJECTS: &str = "
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: tenants}
spec: {type: Limited, limited: {limitResponse: {type: Queue, queuing: {queues: 16, handSize: 3, queueLengthLimit: 5}}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: tenants}
spec:
  matchingPrecedence: 7
  priorityLevelConfiguration: {name: tenants}
  distinguisherMethod: {type: ByNamespace}
  rules:
  - subjects: [{kind: Group, group: {name: dev}}]
    resourceRules: [{verbs: ['*'], apiGroups: ['*'], resources: [pods], namespaces: ['*']}]
";

fn objects() -> (TempDir, String) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("objects.yaml");
    fs::write(&path, OBJECTS).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

fn json(arguments: &[&str]) -> Value {
    let has = |flag: &str| arguments.iter().any(|argument| argument.starts_with(flag));
    let preset: &[&str] = if has("--preset") || has("--config") { &[] } else { &["--preset", "kubernetes"] };
    let output = run(&[&["explain", "-o", "json"], preset, arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn complaint(arguments: &[&str]) -> String {
    let output = run(&[&["explain"], arguments].concat());
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()));
    text(&output.stderr)
}

fn winner(explained: &Value) -> (&str, &str, &str) {
    let field = |name: &str| explained[name].as_str().unwrap();
    (field("flowSchema"), field("priorityLevel"), field("flow"))
}

/// TL-21
#[test]
fn the_fields_are_those_of_the_contract() {
    let (_folder, path) = objects();
    let explained =
        json(&["GET", "/api/v1/namespaces/a/pods", "--user", "alice", "--group", "dev", "--objects", &path]);
    assert_eq!(winner(&explained), ("tenants", "tenants", "a"));
    assert_eq!(
        explained["tried"],
        serde_json::json!([{"schema": "exempt", "precedence": 1, "failed": "spec.rules[0].subjects"}])
    );
    assert_eq!(explained["request"]["verb"], "list");
    assert_eq!(explained["hand"].as_array().unwrap().len(), 3);
    assert!(
        explained["flowHash"].as_str().unwrap().starts_with("0x")
            && explained["precedence"] == 7
            && explained["limits"]["nominal"].is_i64(),
        "{explained}"
    );
    assert!(explained["seats"]["rule"].is_string());
    assert!(explained.get("live").is_none(), "nothing is live here");
    // Requests of nobody in particular, and of other resources, go elsewhere.
    let anonymous = json(&["/api/v1/namespaces/a/pods", "--objects", &path]);
    assert_eq!(winner(&anonymous), ("catch-all", "catch-all", ""));
    assert_eq!(anonymous["request"]["groups"][0], "system:unauthenticated");
}

#[test]
fn requests_are_read_from_curl_and_from_audit_events() {
    let (_folder, path) = objects();
    let url = "https://cluster:6443/api/v1/namespaces/b/pods";
    let curl =
        ["--objects", &path, "--", "curl", "-k", "-H", "Impersonate-User: bob", "-H", "Impersonate-Group: dev", url];
    assert_eq!(winner(&json(&curl)), ("tenants", "tenants", "b"));
    let quoted = format!("curl -sS -u bob:x '{url}'");
    assert_eq!(winner(&json(&["--curl", &quoted, "--group", "dev", "--objects", &path])), ("tenants", "tenants", "b"));
    let event =
        r#"{"verb":"create","requestURI":"/api/v1/namespaces/c/pods","user":{"username":"x","groups":["dev"]}}"#;
    let mut child = evenkeel(&["explain", "-o", "json", "--audit", "-", "--objects", &path])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(format!("{event}\n{event}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let explained: Vec<Value> =
        serde_json::Deserializer::from_slice(&output.stdout).into_iter().collect::<Result<_, _>>().unwrap();
    assert_eq!(explained.len(), 2);
    assert_eq!(
        (winner(&explained[1]), &explained[1]["request"]["verb"]),
        (("tenants", "tenants", "c"), &"create".into())
    );
    assert_eq!(explained[1]["request"]["groups"], serde_json::json!(["dev"]), "an event has all groups");
}

/// As `kubectl auth can-i` is spoken.
#[test]
fn a_request_is_a_verb_and_a_resource() {
    let (_folder, path) = objects();
    let explain = |arguments: &[&str]| json(&[arguments, &["--as-group", "dev", "--objects", &path]].concat());
    let explained = explain(&["list", "pods", "-n", "x", "--as", "system:serviceaccount:x:y"]);
    assert_eq!(winner(&explained), ("tenants", "tenants", "x"));
    assert_eq!((&explained["request"]["verb"], &explained["request"]["namespace"]), (&"list".into(), &"x".into()));
    let groups =
        serde_json::json!(["dev", "system:serviceaccounts", "system:serviceaccounts:x", "system:authenticated"]);
    assert_eq!(explained["request"]["groups"], groups);
    // All that matters is what the server would understand.
    for (arguments, expected) in [
        (&["get", "pods/web", "--subresource", "log", "-n", "x"][..], ["get", "pods", "log", "x", "web"]),
        (&["watch", "deployments.apps", "-A"], ["watch", "deployments", "", "", ""]),
        (&["deletecollection", "jobs.batch"], ["deletecollection", "jobs", "", "default", ""]),
        (&["create", "no"], ["create", "nodes", "", "", ""]),
    ] {
        let request = &explain(arguments)["request"];
        let fields =
            ["verb", "resource", "subresource", "namespace", "name"].map(|field| request[field].as_str().unwrap());
        assert_eq!(fields, expected, "{arguments:?}");
    }
    let path_request = explain(&["get", "/healthz"]);
    assert_eq!(
        (&path_request["request"]["verb"], &path_request["request"]["path"]),
        (&"get".into(), &"/healthz".into())
    );
}

#[test]
fn flow_schemas_that_lead_nowhere_are_shown_and_equal_reasons_share_a_row() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("objects.yaml");
    let schema = |name: &str, precedence: u32, level: &str, user: &str| {
        format!(
            "---\napiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {{name: {name}}}\nspec:\n  matchingPrecedence: {precedence}\n  \
             priorityLevelConfiguration: {{name: {level}}}\n  rules:\n  - subjects: [{{kind: User, user: {{name: {user}}}}}]\n    \
             resourceRules: [{{verbs: ['*'], apiGroups: ['*'], resources: [pods], namespaces: ['*']}}]\n"
        )
    };
    let others: String =
        (0..5).map(|number| schema(&format!("other-{number}"), 20 + number, "tenants", "bob")).collect();
    let lost = schema("lost", 10, "nowhere", "alice") + &schema("lost-too", 11, "nowhere", "bob");
    fs::write(&path, format!("{OBJECTS}{lost}{others}{}", schema("alice", 30, "tenants", "alice"))).unwrap();
    let output = run(&["explain", "list", "pods", "--as", "alice", "--objects", path.to_str().unwrap()]);
    let page = text(&output.stdout);
    let expected = "
tried        precedence  flow schema                          the first clause that does not match
             1 to 24     exempt, tenants, other-0 and 4 more  spec.rules[0].subjects

not in use   lost (precedence 10): its level \"nowhere\" does not exist; it would take this request
not in use   lost-too (precedence 11): its level \"nowhere\" does not exist

flow schema  alice  precedence 30  spec.rules[0].resourceRules[0]
";
    assert!(page.contains(expected), "{page}");
    let specification_rule = page.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').find(|word| {
        word.split_once('-').is_some_and(|(letters, number)| {
            !letters.is_empty() && letters.chars().all(|c| c.is_ascii_uppercase()) && number.parse::<u32>().is_ok()
        })
    });
    assert_eq!(specification_rule, None, "{page}");
}

/// An API server with these objects, and the folder of its files.
fn api(folder: &Path, objects: &str) -> (Running, String) {
    let data = folder.join("data");
    let arguments = ["serve", "--api-only", "--api-listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap()];
    let mut process = Running::start(&[&arguments[..], &["--objects", objects]].concat());
    let address = address_after(&process.output_until("API ready on"), "API ready on https://");
    process.line_with("manifests applied as field manager");
    (process, format!("https://{address}"))
}

#[test]
fn objects_come_from_an_api_server_over_tls() {
    let (folder, path) = objects();
    let (_process, url) = api(folder.path(), &path);
    let data = folder.path().join("data");
    let file = |name: &str| data.join(name).to_str().unwrap().to_owned();
    let request = ["GET", "/api/v1/namespaces/a/pods", "--user", "alice", "--group", "dev"];
    let by_kubeconfig = json(&[&request[..], &["--kubeconfig", &file("kubeconfig")]].concat());
    assert_eq!(winner(&by_kubeconfig), ("tenants", "tenants", "a"));
    // As a plugin of kubectl, it is about the server that kubectl uses.
    let plugin = folder.path().join("kubectl-evenkeel");
    symlink(env!("CARGO_BIN_EXE_evenkeel"), &plugin).unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new(&plugin).args(arguments).env("KUBECONFIG", file("kubeconfig")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    assert_eq!(run(&[&["explain", "-o", "json"], &request[..]].concat()), by_kubeconfig);
    let levels = &run(&["top", "--once", "-o", "json"])["levels"];
    assert!(levels.as_array().unwrap().iter().any(|level| level["name"] == "catch-all"), "{levels}");
    let checked = run(&["check", "-o", "json"]);
    let collision = checked["findings"].as_array().unwrap().iter().any(|finding| {
        finding["rule"] == "hand-collision" && finding["object"]["name"] == "tenants" && finding["file"] == ""
    });
    assert!(collision, "{checked}");
    let log = folder.path().join("audit.log");
    let event = r#"{"auditID":"a","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/a/pods","verb":"list","user":{"username":"u","groups":["dev"]},"requestReceivedTimestamp":"2026-11-16T10:51:10Z","stageTimestamp":"2026-11-16T10:51:11Z"}"#;
    fs::write(&log, event).unwrap();
    let replayed = run(&["replay", log.to_str().unwrap(), "-o", "json"]);
    assert_eq!(replayed["flows"][0]["after"]["schema"], "tenants", "{replayed}");
    let compared = run(&["replay", log.to_str().unwrap(), "--objects", &path, "-o", "json"]);
    assert_eq!(compared["requests"], 1);
    assert_ne!(compared, replayed, "the cluster is what the files are compared with");
    let workload = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workloads/noisy-neighbour/workload.yaml");
    let levels = &run(&["simulate", workload.to_str().unwrap(), "-o", "json"])["levels"];
    assert!(levels.to_string().contains("tenants"), "{levels}");
    let by_flag = ["check", "--kubeconfig", &file("kubeconfig"), &path];
    let both = Command::new(&plugin).args(by_flag).output().unwrap();
    let told = String::from_utf8(both.stderr).unwrap();
    assert!(told.contains("name a cluster to check instead of files; leave out either"), "{told}");
    let text = fs::read_to_string(file("kubeconfig")).unwrap();
    let token = text.split_once("token: ").map(|(_, rest)| rest.lines().next().unwrap().trim_matches('"').to_owned());
    let token = token.unwrap_or_else(|| panic!("no token in {text}"));
    let ca = ["--certificate-authority", &file("ca.crt")];
    let by_token = json(&[&request[..], &["--server", &url, "--token", &token], &ca].concat());
    assert_eq!(by_token, by_kubeconfig);
    let refused = complaint(&[&request[..], &["--server", &url, "--token", "wrong"], &ca].concat());
    assert!(
        refused.contains("(401 Unauthorized); grant the user that (deploy/cluster-reader.yaml), or name a context of another user with --context"),
        "{refused}"
    );
    let untrusted = complaint(&[&request[..], &["--server", &url, "--token", &token]].concat());
    assert!(untrusted.contains(&format!("cannot read from {url}: no TLS")), "{untrusted}");
    let absent = complaint(&[&request[..], &["--kubeconfig", &file("kubeconfig"), "--context", "x"]].concat());
    assert!(absent.contains("the kubeconfig has no context \"x\""), "{absent}");
}

/// As EKS, GKE and AKS have it.
#[test]
fn a_credential_plugin_of_the_kubeconfig_is_run() {
    let (folder, path) = objects();
    let (_process, _) = api(folder.path(), &path);
    let text_of = |name: &str| fs::read_to_string(folder.path().join("data").join(name)).unwrap();
    let config = text_of("kubeconfig");
    let token = config.split_once("token: ").and_then(|(_, rest)| rest.lines().next()).unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let script = write(
        "plugin.sh",
        &format!(
            "echo 'signing in' >&2\necho '{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\
             \"status\":{{\"token\":\"{}\"}}}}'\n",
            token.trim_matches('"')
        ),
    );
    let exec = |script: &str| {
        let exec = format!(
            "exec: {{apiVersion: client.authentication.k8s.io/v1, command: sh, args: ['{script}'], interactiveMode: IfAvailable}}"
        );
        write("config", &config.replace(&format!("token: {token}"), &exec))
    };
    let request = ["explain", "GET", "/api/v1/namespaces/a/pods", "--user", "alice", "--group", "dev", "--kubeconfig"];
    let output = run(&[&request[..], &[&exec(&script)]].concat());
    assert_eq!((output.status.code(), &*text(&output.stderr)), (Some(0), "signing in\n"));
    assert!(text(&output.stdout).contains("\nflow schema  tenants"), "{}", text(&output.stdout));
    let failing = write("failing.sh", "echo 'The SSO session has expired.' >&2\nexit 3\n");
    let told = complaint(&[&request[1..], &[&exec(&failing)]].concat());
    let (message, error) = told.split_once('\n').unwrap();
    assert_eq!(message, "The SSO session has expired.");
    let part = "evenkeel: the credential plugin \"sh\" of the kubeconfig failed (exit status: 3); check with `kubectl get flowschemas`";
    assert!(error.starts_with(part), "{error}");
}

/// TL-20
#[test]
fn a_running_gateway_is_asked_for_its_own_objects_and_state() {
    let (_folder, path) = objects();
    let arguments = ["serve", "--upstream", "http://127.0.0.1:9", "--preset", "kubernetes", "--objects", &path];
    let mut process =
        Running::start(&[&arguments[..], &["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]].concat());
    let line = process.line_with("ready: ");
    let admin = format!("http://{}", address_after(&line, "admin on "));
    let request = ["GET", "/api/v1/namespaces/a/pods", "--user", "alice", "--group", "dev", "--live", &admin];
    let explained = json(&request);
    assert_eq!(winner(&explained), ("tenants", "tenants", "a"));
    assert_eq!(
        (&explained["live"]["name"], &explained["live"]["wait"]["outcome"]),
        (&"tenants".into(), &"starts".into())
    );
    let output = run(&[&["explain"], &request[..]].concat());
    assert!(text(&output.stdout).contains("wait         none: it would start at once\n"), "{}", text(&output.stdout));
    drop(process);
    let gone = complaint(&request);
    assert!(gone.starts_with(&format!("evenkeel: cannot read from {admin}: no connection")), "{gone}");
}

#[test]
fn a_gateway_with_a_token_is_asked_with_it() {
    const TOKEN: &str = "a-token-of-the-admin-endpoint";
    let folder = TempDir::new().unwrap();
    let (file, wrong) = (folder.path().join("token"), folder.path().join("wrong"));
    fs::write(&file, format!("{TOKEN}\n")).unwrap();
    fs::write(&wrong, "another-token-of-some-length\n").unwrap();
    let (file, wrong) = (file.to_str().unwrap(), wrong.to_str().unwrap());
    let listen = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
    let mut gateway = evenkeel(&[&["serve", "--upstream", "http://127.0.0.1:9"], &listen[..]].concat());
    let mut process = Running::spawn(gateway.env("EVENKEEL_ADMIN_TOKEN", TOKEN));
    let admin = format!("http://{}", address_after(&process.line_with("ready: "), "admin on "));
    let request = ["GET", "/orders", "--user", "alice", "--live", &admin];
    assert_eq!(winner(&json(&[&request[..], &["--token-file", file]].concat())), ("everyone", "everyone", "alice"));
    let by_variable =
        evenkeel(&[&["explain"], &request[..]].concat()).env("EVENKEEL_ADMIN_TOKEN", TOKEN).output().unwrap();
    assert_eq!(by_variable.status.code(), Some(0), "{}", text(&by_variable.stderr));
    let advice = "needs a token or rejects this one (401); set --token-file or the variable EVENKEEL_ADMIN_TOKEN\n";
    for more in [&[] as &[&str], &["--token-file", wrong]] {
        assert_eq!(complaint(&[&request[..], more].concat()), format!("evenkeel: {admin} {advice}"));
    }
    // A token is for a server.
    assert!(complaint(&["GET", "/orders", "--token-file", file]).contains("--server"));
}

/// TL-20
#[test]
fn the_text_shows_what_can_happen() {
    let folder = TempDir::new().unwrap();
    let config = folder.path().join("evenkeel.yaml");
    fs::write(&config, "requests: {routes: [{path: /reports, seats: 5}]}\n").unwrap();
    let explain = |path: &str| {
        // `--seats` and `--concurrency` are the same.
        let output = run(&["explain", path, "--preset", "plain", "--seats", "8", "--config", config.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    // The cap of WE-4 is for Kubernetes' estimates, and not for routes.
    let routed = explain("/reports");
    assert!(routed.contains("\nseats        5  the route \"/reports\" of the settings\n"), "{routed}");
    let plain = explain("/orders");
    assert!(plain.contains("\nseats        1  the same for every request without a route\n"), "{plain}");
    assert!(plain.contains("\nqueues       one for each flow (evenkeel.dev/queuing: per-flow)\n"), "{plain}");
    // The level may borrow 8 seats (CL-5), but there is nobody to borrow from.
    let limits =
        "\nlimits       8 seats of its own; lends 8, borrows up to 0 (other levels lend 0); from 0 to 8 in all\n";
    assert!(plain.contains(limits), "{plain}");
}

#[test]
fn what_is_wrong_is_said_in_one_sentence() {
    let folder = TempDir::new().unwrap();
    let broken = folder.path().join("broken.yaml");
    fs::write(&broken, OBJECTS.replace("ByNamespace", "ByMoon")).unwrap();
    let broken = broken.to_str().unwrap();
    for (arguments, part) in [
        (&[] as &[&str], "there is no request to explain"),
        (&["GET", "/a b"], "\"/a b\" is not a path or a URL"),
        (&["orders"], "evenkeel: \"orders\" is not a path; write it as /orders\n"),
        (&["GET", "orders"], "evenkeel: \"orders\" is not a path; write it as /orders\n"),
        (&["GET"], "evenkeel: there is no path after GET; write for example evenkeel explain GET /orders\n"),
        (&["FETCH", "/orders"], "\"FETCH\" is not an HTTP method; use one of GET, HEAD"),
        (&["list", "/orders"], "\"list\" is not an HTTP method; for a path, write GET /orders"),
        (&["list", "widgets"], "\"widgets\" is not a resource that every Kubernetes has; add its group"),
        (&["GET", "/x", "-n", "shop"], "--namespace, --all-namespaces and --subresource are for a verb and a resource"),
        (&["list", "pods", "-n", "a", "-A"], "cannot be used with"),
        (&["get", "orders", "--preset", "plain"], "\"orders\" is not a path; write it as /orders"),
        (&["GET", "/x", "--objects", "/absent.yaml"], "cannot read /absent.yaml"),
        (&["GET", "/x", "--objects", broken], "broken.yaml:13:"),
        (&["GET", "/x", "--server", "cluster"], "\"cluster\" is not a URL"),
        (&["--curl", "curl -s"], "curl: there is no URL"),
        (&["--audit", broken], "this is not an audit event"),
        (&["--audit", "-", "--objects", "-"], "standard input can be read only once"),
        (&["GET", "/%zz", "--preset", "plain"], "GET /%zz would be rejected before flow control"),
    ] {
        let told = complaint(arguments);
        assert!(told.contains(part), "{arguments:?}: {told}");
    }
}

/// Objects, routes and identities are those of the settings file.
#[test]
fn a_settings_file_says_everything() {
    let (folder, objects) = objects();
    let write = |name: &str, content: String| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let objects_text = fs::read_to_string(&objects).unwrap().replace("ByNamespace", "ByUser").replace(
        "resourceRules: [{verbs: ['*'], apiGroups: ['*'], resources: [pods], namespaces: ['*']}]",
        "nonResourceRules: [{verbs: ['*'], nonResourceURLs: ['*']}]",
    );
    fs::write(&objects, objects_text).unwrap();
    let keys = write("keys.csv", "key-of-alice,alice,1,dev\n".to_owned());
    fs::set_permissions(&keys, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let settings = write(
        "evenkeel.yaml",
        format!(
            "{{objects: {objects}, concurrency: 20, requests: {{routes: [{{path: '/reports/{{*}}', seats: 3}}]}},\n\
             identity: {{sources: [{{apiKey: {{header: X-API-Key, file: {keys}}}}}, {{address: {{}}}}]}}}}"
        ),
    );
    let explained =
        json(&["--config", &settings, "--", "curl", "-H", "X-API-Key: key-of-alice", "http://a.example/reports/7"]);
    assert_eq!(winner(&explained), ("tenants", "tenants", "alice"));
    assert_eq!(explained["seats"]["initial"].as_u64().or(explained["seats"]["seats"].as_u64()), Some(3), "{explained}");
    // Without a credential, the address is who sends it.
    let by_address = json(&["--config", &settings, "--from", "10.0.0.7", "/orders"]);
    assert_eq!(by_address["request"]["groups"][0], "system:unauthenticated");
    assert!(by_address["request"]["user"].as_str().unwrap().contains("10.0.0.7"), "{by_address}");
    // Who was named stays who it is.
    let named = json(&["--config", &settings, "/orders", "--user", "bob", "--group", "dev"]);
    assert_eq!(winner(&named), ("tenants", "tenants", "bob"));
    let denied = complaint(&["--config", &settings, "--", "curl", "-H", "X-API-Key: wrong", "http://a.example/"]);
    assert!(denied.contains("the gateway would reject GET / with 401"), "{denied}");
}

/// SF-2: what matches by headers and tells clients apart by address is explained as the gateway decides it, with `--config` and with `--live`.
#[test]
fn headers_and_addresses_count() {
    let folder = TempDir::new().unwrap();
    let config = folder.path().join("evenkeel.yaml");
    let form = "levels: {gold: {share: 80}, tin: {share: 20}}\n\
                match:\n- {header: {X-Plan: gold}, level: gold, per: header:X-Team}\n- {level: tin, per: address}\n\
                identity: {sources: [{address: {trustedProxies: [10.0.0.1]}}]}\n";
    fs::write(&config, form).unwrap();
    let config = config.to_str().unwrap();
    let listen = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--concurrency", "20"];
    let mut process =
        Running::start(&[&["serve", "--config", config, "--upstream", "http://127.0.0.1:9"], &listen[..]].concat());
    let admin = format!("http://{}", address_after(&process.line_with("ready: "), "admin on "));
    for (request, level, flow) in [
        (&["/orders", "--user", "ann"][..], "tin", "127.0.0.1"),
        (&["/orders", "--user", "ann", "--from", "10.0.0.7"], "tin", "10.0.0.7"),
        (&["GET", "/orders", "--user", "ann", "-H", "X-Plan: gold", "--header", "x-team: blue"], "gold", "blue"),
        (&["/orders", "--user", "ann", "--from", "10.0.0.1", "-H", "X-Forwarded-For: 192.0.2.9"], "tin", "192.0.2.9"),
        (
            &["--user", "ann", "--", "curl", "-H", "X-Plan: gold", "-H", "X-Team: red", "http://a.example/"],
            "gold",
            "red",
        ),
        // Nobody knows which of two the service goes by.
        (&["--user", "ann", "-H", "X-Plan: gold", "--", "curl", "-H", "X-Plan: tin", "http://a/"], "tin", "127.0.0.1"),
    ] {
        for source in [["--config", config], ["--live", &admin]] {
            let explained = json(&[&["--preset", "plain"], &source[..], request].concat());
            let found = (&explained["priorityLevel"], &explained["flow"]);
            assert_eq!(found, (&level.into(), &flow.into()), "{request:?} {source:?}");
        }
    }
    // Without a settings file, too.
    let objects = run(&["convert", "--to", "objects", config]);
    let file = folder.path().join("objects.yaml");
    fs::write(&file, objects.stdout).unwrap();
    let explained = json(&["/", "--preset", "plain", "--from", "10.0.0.8", "--objects", file.to_str().unwrap()]);
    assert_eq!((&explained["priorityLevel"], &explained["flow"]), (&"tin".into(), &"10.0.0.8".into()));
    let told = complaint(&["GET", "/", "-H", "X-Plan", "--preset", "plain"]);
    assert!(told.contains("write it as `NAME: VALUE`, for example `X-Plan: gold`"), "{told}");
}

/// LM-2: what matches by model is explained as the gateway decides it, which reads the model from the body.
#[test]
fn models_count() {
    let folder = TempDir::new().unwrap();
    let config = folder.path().join("evenkeel.yaml");
    let form = "preset: llm\nlevels: {big: {share: 80}, rest: {share: 20}}\nmatch: [{model: org/Big-1, level: big}, {level: rest}]\n";
    fs::write(&config, form).unwrap();
    let config = config.to_str().unwrap();
    let listen = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--concurrency", "20"];
    let mut process =
        Running::start(&[&["serve", "--config", config, "--upstream", "http://127.0.0.1:9"], &listen[..]].concat());
    let admin = format!("http://{}", address_after(&process.line_with("ready: "), "admin on "));
    let chat = "http://a.example/v1/chat/completions";
    for (request, level) in [
        (&["POST", "/v1/chat/completions", "--model", "org/Big-1"][..], "big"),
        (&["POST", "/v1/chat/completions", "--model", "small"], "rest"),
        (&["POST", "/v1/chat/completions"], "rest"),
        (&["--", "curl", chat, "-d", "{\"model\":\"org/Big-1\"}"], "big"),
        (&["--model", "small", "--", "curl", chat, "-d", "{\"model\":\"org/Big-1\"}"], "rest"),
        (&["--", "curl", chat, "-d", "model=org/Big-1"], "rest"),
        // No model is read from a body of another route.
        (&["POST", "/files", "--model", "org/Big-1"], "rest"),
    ] {
        for source in [&["--config", config][..], &["--live", &admin, "--preset", "llm"]] {
            let explained = json(&[source, request].concat());
            assert_eq!(explained["priorityLevel"], level, "{request:?} {source:?}");
        }
    }
}

/// The seats are those of the service that host and path belong to.
#[test]
fn a_service_of_the_settings_has_seats_of_its_own() {
    let folder = TempDir::new().unwrap();
    let config = folder.path().join("evenkeel.yaml");
    let services = "services:\n  shop: {host: shop.example, upstream: 'http://127.0.0.1:9', concurrency: 8}\n  \
                    docs: {path: /docs, upstream: 'http://127.0.0.1:9'}\nconcurrency: 30\n";
    fs::write(&config, services).unwrap();
    let config = config.to_str().unwrap();
    let seats = |request: &[&str]| {
        let explained = json(&[&["--config", config, "--user", "ann"], request].concat());
        (explained["service"].clone(), explained["limits"]["nominal"].clone())
    };
    assert_eq!(seats(&["http://shop.example/x"]), ("shop".into(), 8.into()));
    assert_eq!(seats(&["/docs/x"]), ("docs".into(), 30.into()));
    assert_eq!(seats(&["/x", "-H", "Host: SHOP.example:8080"]), ("shop".into(), 8.into()));
    assert_eq!(seats(&["--", "curl", "https://shop.example"]), ("shop".into(), 8.into()));
    // A flag counts more than the file.
    assert_eq!(seats(&["http://shop.example/x", "--concurrency", "5"]), ("shop".into(), 5.into()));
    let nobody = complaint(&["GET", "http://elsewhere.example/x", "--config", config, "--user", "ann"]);
    let fault =
        "no service of the settings has requests with the host \"elsewhere.example\" and the path \"/x\"; name a URL";
    assert!(nobody.contains(fault), "{nobody}");
    let output = run(&["explain", "http://shop.example/", "--config", config]);
    assert!(text(&output.stdout).contains("\nservice      shop\n"), "{}", text(&output.stdout));
    // A gateway knows the host, too.
    let listen = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
    let mut process = Running::start(&[&["serve", "--config", config], &listen[..]].concat());
    let admin = format!("http://{}", address_after(&process.line_with("ready: "), "admin on "));
    let live = json(&["http://shop.example/x", "--live", &admin, "--preset", "plain"]);
    assert_eq!((&live["service"], &live["limits"]["nominal"]), (&"shop".into(), &8.into()));
}

/// AL-7: `--limit` says why the limit is what it is.
#[test]
fn a_gateway_says_why_its_limit_is_what_it_is() {
    for (concurrency, expected) in [
        ("auto:5..50", "limit        20 seats, not found yet; from 5 to 50\n"),
        ("7", "limit        7 seats: it is the number that `concurrency` says"),
    ] {
        let arguments =
            ["serve", "--upstream", "http://127.0.0.1:9", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
        let mut gateway = Running::spawn(&mut evenkeel(&[&arguments[..], &["--concurrency", concurrency]].concat()));
        let ready = gateway.line_with("ready: listening on");
        let admin = format!("http://{}", address_after(&ready, "admin on "));
        let output = run(&["explain", "--limit", &admin]);
        assert!(text(&output.stdout).starts_with(expected), "{}{}", text(&output.stdout), text(&output.stderr));
        let output = run(&["explain", "--limit", &admin, "-o", "json"]);
        let limit: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(limit["limit"].is_null(), concurrency == "7", "{limit}");
    }
    let complaint = complaint(&["--limit", "http://127.0.0.1:1", "GET", "/orders"]);
    assert!(complaint.contains("cannot be used with"), "{complaint}");
}
