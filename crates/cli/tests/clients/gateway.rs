//! The gateway and the API in one process.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use super::child::{PATIENCE, address_after};
use super::folder::folder;
use super::manifest::{level, schema};
use super::peer::{Upstream, get};
use super::served::{Served, no_kubectl};

/// An object governs within this, once it is applied. How long the disk takes before that is not asked.
const AT_ONCE: Duration = Duration::from_millis(100);

/// A gateway with its API, and where the gateway listens. Its preset is `kubernetes` unless `more` says otherwise.
pub(super) fn serve(upstream: &Upstream, data: &Path, more: &[&str]) -> (Served, SocketAddr) {
    let (url, data_dir) = (upstream.url(), data.to_str().unwrap());
    let preset = if more.contains(&"--preset") { &[][..] } else { &["--preset", "kubernetes"] };
    let gateway = ["serve", "--upstream", &url, "--listen", "127.0.0.1:0", "--admin-listen", "none"];
    let api = ["--data-dir", data_dir, "--api-listen", "127.0.0.1:0"];
    let mut served = Served::start(data, &[&gateway[..], preset, &api, more].concat());
    let line = served.process.line_with("ready: ");
    let address = address_after(&line, "listening on ");
    (served, address)
}

/// Sends everybody to a level that lets one request at a time through, or to one that lets all through.
pub(super) fn everybody(level: &str) -> serde_json::Value {
    let rule = json!({
        "subjects": [{"kind": "User", "user": {"name": "*"}}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    });
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": "everybody"},
        "spec": {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": 2, "rules": [rule]},
    })
}

#[tokio::test]
async fn what_is_applied_governs_traffic_within_a_tenth_of_a_second() {
    let upstream = Upstream::start();
    let folder = folder();
    let (served, address) = serve(&upstream, folder.path(), &[]);
    let client = served.admin().await;
    let closed = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
        "metadata": {"name": "closed"},
        "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 0, "lendablePercent": 0,
            "borrowingLimitPercent": 0, "limitResponse": {"type": "Reject"}}},
    });
    let levels: Api<PriorityLevelConfiguration> = Api::all(client.clone());
    let manager = PatchParams::apply("test").force();
    levels.patch("closed", &manager, &Patch::Apply(closed)).await.unwrap();
    let schemas: Api<FlowSchema> = Api::all(client);
    let applied = schemas.patch("everybody", &manager, &Patch::Apply(everybody("closed"))).await.unwrap();
    schema_governs(address, &applied.uid().unwrap());
    // One request holds the only place there is.
    let status = move || tokio::task::spawn_blocking(move || get(address, "/").0);
    let slow = tokio::task::spawn_blocking(move || get(address, "/slow").0);
    upstream.slow_request();
    let mut times = Vec::new();
    for round in 0..10 {
        let (level, expected) = if round % 2 == 0 { ("exempt", 200) } else { ("closed", 429) };
        schemas.patch("everybody", &manager, &Patch::Apply(everybody(level))).await.unwrap();
        let applied_at = Instant::now();
        while status().await.unwrap() != expected {
            assert!(applied_at.elapsed() < PATIENCE, "{level} never governs");
        }
        times.push(applied_at.elapsed());
    }
    upstream.let_go();
    assert_eq!(slow.await.unwrap(), 200);
    times.sort();
    assert!(times[times.len() / 2] < AT_ONCE, "{times:?}");
}

#[tokio::test]
async fn a_status_is_no_change_of_what_governs() {
    let upstream = Upstream::start();
    let folder = folder();
    let (mut served, address) = serve(&upstream, folder.path(), &["--no-status-controller"]);
    let schemas: Api<FlowSchema> = Api::all(served.admin().await);
    let manager = PatchParams::apply("test").force();
    let applied = schemas.patch("everybody", &manager, &Patch::Apply(everybody("exempt"))).await.unwrap();
    schema_governs(address, &applied.uid().unwrap());
    for status in ["True", "False", "Unknown", "True"] {
        let condition = json!({"type": "Tested", "status": status, "lastTransitionTime": "2024-01-02T03:04:05Z"});
        let patch = json!({"status": {"conditions": [condition]}});
        schemas.patch_status("everybody", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }
    served.process.signal("TERM");
    assert_eq!(served.process.end().0.code(), Some(0));
    let log = served.process.rest();
    assert_eq!(log.matches("the objects changed and are in effect").count(), 1, "{log}");
}

#[tokio::test]
async fn lb_2a_a_write_that_leaves_the_gateway_too_few_seats_is_refused() {
    let upstream = Upstream::start();
    let folder = folder();
    let (served, _) = serve(&upstream, folder.path(), &["--preset", "plain", "--concurrency", "2"]);
    let levels: Api<PriorityLevelConfiguration> = Api::all(served.admin().await);
    let create = async |name: &str| {
        let level = json!({
            "metadata": {"name": name},
            "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 10, "limitResponse": {"type": "Reject"}}},
        });
        levels.create(&PostParams::default(), &serde_json::from_value(level).unwrap()).await
    };
    create("a").await.unwrap();
    let refused = create("b").await.unwrap_err().to_string();
    assert!(refused.contains("\"b\" is forbidden: 2 seats are too few for 3 priority levels with shares"), "{refused}");
    assert!(levels.get_opt("b").await.unwrap().is_none());
}

#[tokio::test]
async fn manifests_are_applied_through_the_api_as_a_manager() {
    let upstream = Upstream::start();
    let folder = folder();
    let objects = folder.path().join("objects");
    fs::create_dir(&objects).unwrap();
    let file = objects.join("one.yaml");
    fs::write(&file, format!("{}---\n{}", level("batch", 7), schema("batch", "batch", 800))).unwrap();
    let (served, _) = serve(&upstream, &folder.path().join("data"), &["--objects", objects.to_str().unwrap()]);
    let api: Api<FlowSchema> = Api::all(served.admin().await);
    let applied = precedence_becomes(&api, 800).await;
    // Whoever writes the status may be listed before or after it: entries of the same second are in the order of their names.
    let of_manifest =
        applied.managed_fields().iter().find(|entry| entry.manager.as_deref() == Some("evenkeel-objects"));
    let of_manifest = of_manifest.unwrap_or_else(|| panic!("{:?}", applied.managed_fields()));
    assert_eq!(of_manifest.operation.as_deref(), Some("Apply"));
    assert!(!of_manifest.fields_v1.as_ref().unwrap().0["f:spec"]["f:matchingPrecedence"].is_null(), "{of_manifest:?}");
    fs::write(&file, format!("{}---\n{}", level("batch", 7), schema("batch", "batch", 801))).unwrap();
    precedence_becomes(&api, 801).await;
}

#[tokio::test]
async fn manifests_leave_to_others_what_they_do_not_mention() {
    let folder = folder();
    let (data, file) = (folder.path().join("data"), folder.path().join("one.yaml"));
    // As an item of a list, and in an older version.
    let list = |limited: &str| {
        format!(
            "apiVersion: flowcontrol.apiserver.k8s.io/v1beta3
kind: PriorityLevelConfigurationList
items:
- metadata: {{name: batch}}
  spec: {{type: Limited, limited: {{{limited}limitResponse: {{type: Reject}}}}}}
"
        )
    };
    fs::write(&file, list("")).unwrap();
    let arguments = ["--objects", file.to_str().unwrap()];
    let served = Served::api(&data, &arguments);
    let levels: Api<PriorityLevelConfiguration> = Api::all(served.admin().await);
    let limited = json!({"spec": {"limited": {"nominalConcurrencyShares": 77, "lendablePercent": 30}}});
    let patched = levels.patch("batch", &PatchParams::default(), &Patch::Merge(limited)).await.unwrap();
    assert_eq!(numbers(&patched), (Some(77), Some(30)));
    served.stop();
    let served = Served::api(&data, &arguments);
    let levels: Api<PriorityLevelConfiguration> = Api::all(served.admin().await);
    assert_eq!(numbers(&levels.get("batch").await.unwrap()), (Some(77), Some(30)));
    // What it mentions is its own, though it is what would be filled in.
    fs::write(&file, list("nominalConcurrencyShares: 30, ")).unwrap();
    let until = Instant::now() + PATIENCE;
    while numbers(&levels.get("batch").await.unwrap()) != (Some(30), Some(30)) {
        assert!(Instant::now() < until, "the manifest is not applied");
    }
}

/// Shares, and how many of them are lent.
fn numbers(level: &PriorityLevelConfiguration) -> (Option<i32>, Option<i32>) {
    let limited = level.spec.as_ref().unwrap().limited.as_ref().unwrap();
    (limited.nominal_concurrency_shares, limited.lendable_percent)
}

/// Waits until the schema of the manifests has that precedence.
async fn precedence_becomes(api: &Api<FlowSchema>, precedence: i32) -> FlowSchema {
    let until = Instant::now() + PATIENCE;
    loop {
        let schema = api.get_opt("batch").await.unwrap();
        let found = schema.as_ref().and_then(|schema| schema.spec.as_ref()).and_then(|spec| spec.matching_precedence);
        match schema {
            Some(schema) if found == Some(precedence) => return schema,
            _ => assert!(Instant::now() < until, "the manifest is not applied"),
        }
    }
}

#[test]
fn kubectl_governs_the_gateway() {
    if no_kubectl() {
        return;
    }
    let upstream = Upstream::start();
    let folder = folder();
    let (served, address) = serve(&upstream, folder.path(), &[]);
    assert_eq!(get(address, "/a").0, 200);
    let everybody = serde_json::to_string(&everybody("exempt")).unwrap();
    served.kubectl_reads(&everybody, &["apply", "-f", "-"]);
    let uid = served.kubectl_does(&["get", "flowschema", "everybody", "-o", "jsonpath={.metadata.uid}"]);
    schema_governs(address, &uid);
}

/// Waits until requests are classified by the schema with that UID.
pub(super) fn schema_governs(address: SocketAddr, uid: &str) {
    let until = Instant::now() + PATIENCE;
    while schema_of_request(address).as_deref() != Some(uid) {
        assert!(Instant::now() < until, "the schema does not govern");
    }
}

/// The UID of the schema that a request is classified by.
fn schema_of_request(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET /a HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("x-kubernetes-pf-flowschema-uid").then(|| value.trim().to_owned())
    };
    answer.lines().find_map(header)
}

/// SF-4: a new API starts with what the short form says; from then on, its objects belong to it.
#[tokio::test]
async fn the_short_form_seeds_an_api_that_is_new_and_no_other() {
    let upstream = Upstream::start();
    let folder = folder();
    let settings = folder.path().join("evenkeel.yaml");
    let form = |share: u32| {
        format!(
            "levels:\n  paying: {{share: {share}}}\n  free: {{share: 10}}\nmatch:\n- {{group: gold, level: paying}}\n- {{level: free}}\n"
        )
    };
    fs::write(&settings, form(90)).unwrap();
    let (data, file) = (folder.path().join("data"), settings.to_str().unwrap());
    let more = ["--preset", "plain", "--config", file];
    let (served, address) = serve(&upstream, &data, &more);
    let levels: Api<PriorityLevelConfiguration> = Api::all(served.admin().await);
    let paying = levels.get("paying").await.unwrap();
    let managers: Vec<_> = paying.managed_fields().iter().filter_map(|entry| entry.manager.clone()).collect();
    assert_eq!(managers, ["evenkeel-settings"]);
    let shares = |level: &PriorityLevelConfiguration| {
        level.spec.as_ref().unwrap().limited.as_ref().unwrap().nominal_concurrency_shares
    };
    assert_eq!(shares(&paying), Some(90));
    assert_eq!(get(address, "/").0, 200);
    // What is changed through the API stays, whatever the settings say later.
    let patch = Patch::Merge(json!({"spec": {"limited": {"nominalConcurrencyShares": 60}}}));
    levels.patch("paying", &PatchParams::default(), &patch).await.unwrap();
    served.stop();
    fs::write(&settings, form(30)).unwrap();
    let (served, _) = serve(&upstream, &data, &more);
    let levels: Api<PriorityLevelConfiguration> = Api::all(served.admin().await);
    assert_eq!(shares(&levels.get("paying").await.unwrap()), Some(60));
    served.stop();
}
