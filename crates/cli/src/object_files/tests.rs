//! Tests of reading object files.

use std::io::Write;
use std::path::PathBuf;

use evenkeel_api::Preset;

use super::*;

const LEVEL: &str = "apiVersion: flowcontrol.apiserver.k8s.io/v1beta3\nkind: PriorityLevelConfiguration\n\
                     metadata: {name: batch}\nspec: {type: Limited, limited: {limitResponse: {type: Reject}}}\n";

fn files(files: &[(&str, &[u8])]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let path = folder.path().to_owned();
    (folder, path)
}

fn names(files: &ObjectFiles) -> Vec<String> {
    files.valid_objects(Preset::Kubernetes).unwrap().iter().map(|object| object.object.name().to_owned()).collect()
}

/// The message for a single file, without the folder in front of its name.
fn message(text: &str) -> String {
    let (folder, path) = files(&[("a.yaml", text.as_bytes())]);
    let read = ObjectFiles::read(&[path.join("a.yaml")]);
    let error = read.and_then(|files| files.valid_objects(Preset::Kubernetes).map(drop)).unwrap_err();
    assert!(error.is::<WrongUsage>());
    error.to_string().replace(&format!("{}/", folder.path().display()), "")
}

fn packed(text: &str) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(text.as_bytes()).unwrap();
    packer.finish().unwrap()
}

/// TL-2
#[test]
fn folders_lists_and_packed_files_are_read_in_order() {
    let list = format!(
        "apiVersion: v1\nkind: List\nitems:\n- {{apiVersion: v1, kind: ConfigMap}}\n- {}",
        LEVEL.replace("name: batch", "name: listed").replace('\n', "\n  ")
    );
    let json = r#"{"apiVersion":"flowcontrol.apiserver.k8s.io/v1","kind":"FlowSchemaList","items":[
        {"metadata":{"name":"from-json"},"spec":{"priorityLevelConfiguration":{"name":"batch"}}}]}"#;
    let packed = packed(LEVEL);
    let (_folder, path) = files(&[
        ("c.json", json.as_bytes()),
        ("b.yaml", list.as_bytes()),
        ("a/a.yaml.gz", &packed),
        ("a/chart.yaml", b"{{- if .Values.x }}"),
        ("settings.yaml", b"upstream: x\n# flowcontrol.apiserver.k8s.io\n"),
        (".hidden.yaml", b"{{"),
        ("notes.txt", b"{{"),
    ]);
    let read = ObjectFiles::read(std::slice::from_ref(&path)).unwrap();
    assert_eq!(names(&read), ["batch", "listed", "from-json"]);
    let (objects, _) = read.decode();
    assert_eq!(objects[0].version, evenkeel_api::Version::V1beta3);
    assert!(objects[1].file.ends_with("b.yaml"));
    assert_eq!(objects[1].document.root.position_of("spec.limited").to_string(), "8:25");
}

#[test]
fn documents_of_evenkeel_are_kept_apart() {
    let text = format!("{LEVEL}---\napiVersion: evenkeel.dev/v1\nkind: Workload\n---\nkind: Pod\napiVersion: v1\n");
    let (_folder, path) = files(&[("a.yaml", text.as_bytes())]);
    let read = ObjectFiles::read(&[path.join("a.yaml")]).unwrap();
    assert_eq!(names(&read), ["batch"]);
    assert_eq!(
        read.documents_of_kind(EvenkeelKind::Workload).map(|document| document.root.at.line).collect::<Vec<_>>(),
        [6]
    );
    assert_eq!(read.documents_of_kind(EvenkeelKind::ClassificationTest).count(), 0);
}

/// TL-4
#[test]
fn errors_name_file_line_and_column() {
    assert!(message("a: b: c").starts_with("a.yaml:1:"));
    assert_eq!(message("metadata:\n\tname: x\n"), "a.yaml:2:1: YAML does not allow tabs; indent with spaces");
    assert_eq!(
        message("apiVersion: evenkeel.dev/v1\nkind: ClassificationTests\n"),
        "a.yaml:2:1: unknown kind \"ClassificationTests\" of evenkeel.dev: use ClassificationTest or Workload"
    );
    assert_eq!(
        message("apiVersion: evenkeel.dev/v2\nkind: ClassificationTest\n"),
        "a.yaml:1:1: unknown apiVersion \"evenkeel.dev/v2\": use evenkeel.dev/v1"
    );
    let settings = "this looks like a settings file, not objects; pass it with --config";
    assert_eq!(message("# Settings\nconcurrency: 5\n"), format!("a.yaml:2:1: {settings}"));
    assert_eq!(message("kind: FlowSchema\n"), "a.yaml:1:1: apiVersion is missing: use flowcontrol.apiserver.k8s.io/v1");
    assert_eq!(
        message(&LEVEL.replace("v1beta3", "v2")),
        "a.yaml:1:1: apiVersion \"flowcontrol.apiserver.k8s.io/v2\": flowcontrol.apiserver.k8s.io has the versions v1, \
         v1beta3, v1beta2, v1beta1"
    );
    assert_eq!(
        message(&LEVEL.replace("kind: PriorityLevelConfiguration", "kind: PriorityLevel")),
        "a.yaml:2:1: unknown kind \"PriorityLevel\" of flowcontrol.apiserver.k8s.io: use FlowSchema or \
         PriorityLevelConfiguration"
    );
    assert_eq!(
        message(&LEVEL.replace("type: Reject", "type: [5]")),
        "a.yaml:4:55: PriorityLevelConfiguration \"batch\": spec.limited.limitResponse.type: expected a text, found a \
         list"
    );
    assert_eq!(
        message(&LEVEL.replace("{type: Reject}", "{type: Reject}, shares: 5")),
        "a.yaml:4:64: PriorityLevelConfiguration \"batch\": spec.limited.shares: unknown field"
    );
    assert_eq!(
        message(&format!("{LEVEL}---\n{LEVEL}")),
        "a.yaml:6:1: PriorityLevelConfiguration \"batch\": is also defined in a.yaml:1:1; keep one of them"
    );
    assert_eq!(
        message(&LEVEL.replace("name: batch", "name: Batch")).split(": ").take(3).collect::<Vec<_>>(),
        ["a.yaml:3:12", "PriorityLevelConfiguration \"Batch\"", "metadata.name"]
    );
}

#[test]
fn a_missing_file_is_named() {
    let error = ObjectFiles::read(&["no/such.yaml".into()]).unwrap_err();
    assert!(error.is::<WrongUsage>());
    assert_eq!(
        error.to_string(),
        "cannot read no/such.yaml: No such file or directory (os error 2); name a file or directory that exists and is readable"
    );
}
