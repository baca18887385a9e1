//! `evenkeel convert`: what is written where, and how it ends.

use crate::child;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Output, Stdio};

use child::{evenkeel, run, text};
use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

const OLD: &str = "# a level\napiVersion: flowcontrol.apiserver.k8s.io/v1beta3\nkind: PriorityLevelConfiguration\n\
                   metadata: {name: a}\nspec: {type: Limited, limited: {limitResponse: {type: Reject}}}\n";
const TEMPLATE: &str =
    "apiVersion: flowcontrol.apiserver.k8s.io/v1beta3\nkind: FlowSchema\nmetadata: {name: {{ x }}}\n";

fn new() -> String {
    OLD.replace("v1beta3", "v1")
}

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

fn with_input(arguments: &[&str], input: &[u8]) -> Output {
    let mut command = evenkeel(arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

/// TL-2, TL-22
#[test]
fn texts_come_from_files_folders_standard_input_and_archives() {
    let folder = TempDir::new().unwrap();
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(OLD.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    for input in [OLD.as_bytes(), &packed] {
        let output = with_input(&["convert", "--to", "v1", "-"], input);
        assert_eq!((text(&output.stdout), output.status.code()), (new(), Some(0)), "{}", text(&output.stderr));
    }
    fs::write(path(&folder, "a.yaml"), OLD).unwrap();
    fs::write(path(&folder, "b.yaml.gz"), packed).unwrap();
    // Nothing of ours: it need not even be YAML.
    fs::write(path(&folder, "chart.yaml"), "{{ if .Values.x }}\n").unwrap();
    let output = run(&["convert", "--to", "v1", folder.path().to_str().unwrap()]);
    assert_eq!((text(&output.stdout), output.status.code()), (format!("{}---\n{}", new(), new()), Some(0)));
}

/// TL-22
#[test]
fn files_are_replaced_as_a_whole_and_keep_their_mode() {
    let folder = TempDir::new().unwrap();
    let (file, link) = (path(&folder, "a.yaml"), path(&folder, "link.yaml"));
    fs::write(&file, OLD).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("a.yaml", &link).unwrap();
    let output = run(&["convert", "--to", "v1", "-i", &link]);
    assert_eq!(text(&output.stderr), format!("{link}: 1 object converted to v1\n"));
    assert_eq!((text(&output.stdout), output.status.code()), (String::new(), Some(0)));
    assert_eq!(fs::read_to_string(&file).unwrap(), new());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let written = fs::metadata(&file).unwrap().modified().unwrap();
    let again = run(&["convert", "--to", "v1", "-i", &file]);
    assert_eq!((text(&again.stderr), again.status.code()), (String::new(), Some(0)));
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), written, "there was nothing to write");
    assert_eq!(names(folder.path()), ["a.yaml", "link.yaml"], "nothing is left behind");
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = entries.collect();
    names.sort();
    names
}

#[test]
fn one_file_that_cannot_be_converted_leaves_all_as_they_are() {
    let folder = TempDir::new().unwrap();
    let (good, template) = (path(&folder, "a.yaml"), path(&folder, "b.yaml"));
    fs::write(&good, OLD).unwrap();
    fs::write(&template, TEMPLATE).unwrap();
    for more in [&[] as &[&str], &["--in-place"]] {
        let output = run(&[&["convert", "--to", "v1", &good, &template], more].concat());
        assert_eq!((text(&output.stdout), output.status.code()), (String::new(), Some(2)));
        let told = text(&output.stderr);
        assert!(told.starts_with(&format!("evenkeel: {template}:3:18: this is a template")), "{told}");
    }
    assert_eq!(fs::read_to_string(&good).unwrap(), OLD);
    let absent = run(&["convert", "--to", "v1", &path(&folder, "absent.yaml")]);
    assert_eq!(absent.status.code(), Some(2));
    let input = with_input(&["convert", "--to", "v1", "-i", "-"], OLD.as_bytes());
    assert_eq!(input.status.code(), Some(2));
    assert!(text(&input.stderr).contains("standard input cannot be changed in place"));
}

/// SF-2
#[test]
fn a_short_form_becomes_objects_and_comes_back() {
    let folder = TempDir::new().unwrap();
    let (settings, objects) = (path(&folder, "evenkeel.yaml"), path(&folder, "objects.yaml"));
    let form = "levels:\n  interactive: {share: 70, lend: 50%}\n  blocked: {share: 0}\nmatch:\n- {path: /healthz, exempt: true}\n\
                - {header: {X-Plan: [free, trial]}, level: blocked}\n- {level: interactive, weight: 4, per: header:X-Tenant}\n";
    fs::write(&settings, format!("concurrency: 5\n{form}")).unwrap();
    let output = run(&["convert", "--to", "objects", &settings]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    fs::write(&objects, &output.stdout).unwrap();
    assert_eq!(text(&output.stdout).matches("kind: FlowSchema").count(), 3);
    let back = run(&["convert", "--to", "short", &objects]);
    assert_eq!((text(&back.stdout), back.status.code()), (form.to_owned(), Some(0)), "{}", text(&back.stderr));
    let checked = run(&["check", "--strict", "--preset", "plain", &objects]);
    assert_eq!(text(&checked.stdout), "nothing found in 5 objects\n");
    let refused = run(&["convert", "--to", "v1", &settings]);
    assert!(text(&refused.stderr).contains("write its objects with --to objects"), "{}", text(&refused.stderr));
    fs::write(&objects, OLD).unwrap();
    let schema = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: s}\nspec: \
                  {priorityLevelConfiguration: {name: a}, rules: [{subjects: [{kind: User, user: {name: u}}], nonResourceRules: \
                  [{verbs: [get], nonResourceURLs: [/a]}]}]}\n";
    fs::write(&objects, format!("{}---\n{schema}", new())).unwrap();
    let refused = run(&["convert", "--to", "short", &objects]);
    assert_eq!(refused.status.code(), Some(2));
    let told = text(&refused.stderr);
    assert!(
        told.contains("objects.yaml:7:1: FlowSchema \"s\" cannot be said in short: it matches GET without HEAD"),
        "{told}"
    );
}
