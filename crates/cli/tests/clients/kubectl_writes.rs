//! kubectl as people write with it.

use serde_json::Value;
use tempfile::TempDir;

use super::folder::folder;
use super::manifest::{level, schema};
use super::served::{Served, no_kubectl, run, script};

const FILE: [&str; 2] = ["-f", "-"];

fn field(server: &Served, name: &str, path: &str) -> String {
    server.kubectl_does(&["get", "flowschema", name, "-o", &format!("jsonpath={{{path}}}")])
}

fn precedence(server: &Served, name: &str) -> String {
    field(server, name, ".spec.matchingPrecedence")
}

#[test]
fn create_label_annotate_replace_and_delete() {
    if no_kubectl() {
        return;
    }
    let folder = folder();
    // A status that is written between what `replace` reads and what it writes would be a conflict.
    let server = Served::api(folder.path(), &["--no-status-controller"]);
    let both = format!("{}---\n{}", level("batch", 7), schema("batch", "batch", 800));
    let created = server.kubectl_reads(&both, &["create", "-f", "-"]);
    assert_eq!(
        created,
        "prioritylevelconfiguration.flowcontrol.apiserver.k8s.io/batch created\n\
         flowschema.flowcontrol.apiserver.k8s.io/batch created\n"
    );
    let again = server.kubectl_ends(&both, &["create", "-f", "-"]);
    assert!(again.code == Some(1) && again.errors.contains("(AlreadyExists)"), "{again:?}");
    server.kubectl_does(&["label", "flowschema", "batch", "team=reports"]);
    let selected = server.kubectl_does(&["get", "flowschemas", "-l", "team in (reports)", "-o", "name"]);
    assert_eq!(selected, "flowschema.flowcontrol.apiserver.k8s.io/batch\n");
    server.kubectl_does(&["annotate", "flowschema", "batch", "example.com/note=a b"]);
    assert_eq!(field(&server, "batch", ".metadata.annotations.example\\.com/note"), "a b");
    server.kubectl_reads(&schema("batch", "batch", 810), &["replace", "-f", "-"]);
    assert_eq!(precedence(&server, "batch"), "810");
    let deleted = server.kubectl_does(&["delete", "flowschema/batch", "prioritylevelconfiguration/batch"]);
    assert_eq!(deleted.lines().count(), 2, "{deleted}");
    assert_eq!(server.kubectl_ends("", &["get", "flowschema", "batch"]).code, Some(1));
}

#[test]
fn deletions_of_every_kind_end() {
    if no_kubectl() {
        return;
    }
    let folder = folder();
    let server = Served::api(folder.path(), &[]);
    for cascade in ["foreground", "orphan", "background"] {
        server.kubectl_reads(&schema("batch", "workload-low", 800), &["create", "-f", "-"]);
        // It waits until the object is gone.
        server.kubectl_does(&["delete", "flowschema", "batch", &format!("--cascade={cascade}"), "--timeout=60s"]);
        assert_eq!(server.kubectl_ends("", &["get", "flowschema", "batch"]).code, Some(1), "{cascade}");
    }
}

#[test]
fn what_is_wrong_is_refused_with_its_place() {
    if no_kubectl() {
        return;
    }
    let folder = folder();
    let server = Served::api(folder.path(), &[]);
    let wrong = schema("wrong", "workload-low", 800).replace("ByUser", "ByShoeSize");
    let ended = server.kubectl_ends(&wrong, &["create", "-f", "-"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.errors.contains("spec.distinguisherMethod.type: Unsupported value: "), "{ended:?}");
    let unknown = schema("wrong", "workload-low", 800).replace("  rules:", "  rulez: []\n  rules:");
    let ended = server.kubectl_ends(&unknown, &["create", "-f", "-"]);
    assert!(ended.code == Some(1) && ended.errors.contains("unknown field \"spec.rulez\""), "{ended:?}");
}

#[test]
fn every_type_of_patch() {
    if no_kubectl() {
        return;
    }
    let folder = folder();
    let server = Served::api(folder.path(), &[]);
    server.kubectl_reads(&schema("patched", "workload-low", 800), &["create", "-f", "-"]);
    let patch = |kind: &str, patch: &str| {
        server.kubectl_does(&["patch", "flowschema", "patched", "--type", kind, "-p", patch]);
        precedence(&server, "patched")
    };
    assert_eq!(patch("merge", r#"{"spec":{"matchingPrecedence":801}}"#), "801");
    assert_eq!(patch("json", r#"[{"op":"replace","path":"/spec/matchingPrecedence","value":802}]"#), "802");
    assert_eq!(patch("strategic", r#"{"spec":{"matchingPrecedence":803}}"#), "803");
    let failed = r#"[{"op":"test","path":"/spec/matchingPrecedence","value":1}]"#;
    let ended = server.kubectl_ends("", &["patch", "flowschema", "patched", "--type=json", "-p", failed]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
}

#[test]
fn apply_on_the_client_and_diff() {
    if no_kubectl() {
        return;
    }
    let folder = folder();
    // A status that is written while `diff` runs would be a difference.
    let server = Served::api(folder.path(), &["--no-status-controller"]);
    let applied =
        |precedence: u32| server.kubectl_reads(&schema("one", "workload-low", precedence), &["apply", "-f", "-"]);
    assert!(applied(800).ends_with("/one created\n"));
    assert!(applied(800).ends_with("/one unchanged\n"));
    let changed = schema("one", "workload-low", 805);
    let diff = server.kubectl_ends(&changed, &[&["diff"][..], &FILE].concat());
    assert_eq!(diff.code, Some(1), "{diff:?}");
    assert!(diff.output.contains("-  matchingPrecedence: 800\n+  matchingPrecedence: 805\n"), "{}", diff.output);
    assert!(applied(805).ends_with("/one configured\n"));
    let diff = server.kubectl_ends(&changed, &["diff", "-f", "-"]);
    assert_eq!((diff.code, diff.output.as_str()), (Some(0), ""), "{diff:?}");
    // Nothing of a dry run is kept.
    let dry = server.kubectl_reads(&schema("one", "workload-low", 806), &["apply", "--dry-run=server", "-f", "-"]);
    assert!(dry.contains("(server dry run)"), "{dry}");
    assert_eq!(precedence(&server, "one"), "805");
}

#[test]
fn apply_on_the_server_with_conflicts() {
    if no_kubectl() {
        return;
    }
    let folder = folder();
    let server = Served::api(folder.path(), &[]);
    let apply = |precedence: u32, more: &[&str]| {
        let arguments = [&["apply", "--server-side"], &FILE[..], more].concat();
        server.kubectl_ends(&schema("owned", "workload-low", precedence), &arguments)
    };
    let first = apply(800, &[]);
    assert!(first.output.ends_with("/owned serverside-applied\n"), "{first:?}");
    let conflict = apply(801, &["--field-manager=other"]);
    assert_eq!(conflict.code, Some(1));
    assert!(conflict.errors.contains("conflict with \"kubectl\""), "{conflict:?}");
    assert!(conflict.errors.contains(".spec.matchingPrecedence"), "{conflict:?}");
    assert_eq!(apply(801, &["--field-manager=other", "--force-conflicts"]).code, Some(0));
    assert_eq!(precedence(&server, "owned"), "801");
    let shown = server.kubectl_does(&["get", "flowschema", "owned", "-o", "json", "--show-managed-fields"]);
    let object: Value = serde_json::from_str(&shown).unwrap();
    let managers: Vec<_> = object["metadata"]["managedFields"].as_array().unwrap().iter().collect();
    let owner = managers.iter().find(|entry| !entry["fieldsV1"]["f:spec"]["f:matchingPrecedence"].is_null()).unwrap();
    assert_eq!(owner["manager"], "other");
}

#[test]
fn edit_with_an_editor() {
    if no_kubectl() {
        return;
    }
    // Nothing may be run where the data is, on some machines.
    let (data, folder) = (folder(), TempDir::new().unwrap());
    let server = Served::api(data.path(), &[]);
    server.kubectl_reads(&schema("edited", "workload-low", 800), &["create", "-f", "-"]);
    let editor = folder.path().join("editor");
    script(&editor, "sed -i 's/matchingPrecedence: 800/matchingPrecedence: 820/' \"$1\"");
    let mut kubectl = server.kubectl();
    let ended = run(kubectl.env("KUBE_EDITOR", &editor).args(["edit", "flowschema", "edited"]), "");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.output.ends_with("/edited edited\n"), "{ended:?}");
    assert_eq!(precedence(&server, "edited"), "820");
}

#[tokio::test]
async fn what_was_saved_as_a_list_is_checked_compared_and_put_back() {
    if no_kubectl() {
        return;
    }
    let folders = [folder(), folder()];
    let [old, new] = folders.each_ref().map(|folder| Served::api(folder.path(), &[]));
    let both = format!("{}---\n{}", level("saved", 7), schema("saved", "saved", 800));
    old.kubectl_reads(&both, &["create", "-f", "-"]);
    // A status that is written after that would be a difference.
    old.all_have_conditions().await;
    let saved = old.kubectl_does(&["get", "flowschemas,prioritylevelconfigurations", "-o", "yaml"]);
    assert!(saved.contains("kind: List"), "{saved}");
    assert_eq!(old.kubectl_reads(&saved, &["diff", "-f", "-"]), "");
    // As docs/store.md says: what the old server gave the objects, the new one gives them itself.
    let is_given = |line: &&str| ["    resourceVersion:", "    uid:"].iter().any(|given| line.starts_with(given));
    let saved: Vec<&str> = saved.lines().filter(|line| !is_given(line)).collect();
    let saved = saved.join("\n");
    let mistaken = saved.replace("matchingPrecedence: 800", "matchingPrecendence: 800");
    let refused = new.kubectl_ends(&mistaken, &["apply", "-f", "-"]);
    assert!(refused.code == Some(1) && refused.errors.contains("\"matchingPrecendence\""), "{refused:?}");
    new.kubectl_reads(&saved, &["apply", "-f", "-"]);
    assert_eq!(precedence(&new, "saved"), "800");
    let deleted = new.kubectl_reads(&saved, &["delete", "-f", "-", "--wait=false"]);
    assert!(deleted.contains("flowschema.flowcontrol.apiserver.k8s.io \"saved\" deleted"), "{deleted}");
}

#[test]
fn who_changed_what_is_in_the_audit_file() {
    if no_kubectl() {
        return;
    }
    let folder = folder();
    let file = folder.path().join("audit.log");
    let server = Served::api(folder.path(), &["--audit-file", file.to_str().unwrap()]);
    server.kubectl_reads(&schema("batch", "workload-low", 800), &["create", "-f", "-"]);
    let as_editor = ["--as", "ed", "--as-group", "evenkeel:editors"];
    server.kubectl_does(&[&["label", "flowschema", "batch", "team=reports"][..], &as_editor].concat());
    server.kubectl_does(&["delete", "flowschema", "batch"]);
    // When the server has ended, everything is in the file.
    server.stop();
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let word = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
    let told: Vec<_> =
        lines.iter().map(|line| ["user", "impersonatedBy", "verb", "name"].map(|name| word(line, name))).collect();
    let admin = word(&lines[0], "user");
    assert_eq!(
        told,
        [[&*admin, "", "create", "batch"], ["ed", &*admin, "patch", "batch"], [&*admin, "", "delete", "batch"]]
    );
}
