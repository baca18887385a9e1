//! `Input`: the objects, tests and calls to check, from files or from a cluster.

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::Result;
use evenkeel_api::bootstrap::BootstrapObjects;
use evenkeel_api::decode::{Node, Position, Problem, Value, parse_text};
use evenkeel_api::{AnyObject, Kind};
use evenkeel_check::{Call, ClassificationTest, Endpoint, Expectation, Finding, Located, Request, SourceLocation};
use serde::Deserialize;

use crate::exit::WrongUsage;
use crate::object_files::{EvenkeelKind, FileDocument, FileObject, ObjectFiles, SourceFile, malformed};

/// Everything that is checked together.
pub(super) struct Input<'a> {
    pub(super) files: &'a ObjectFiles,
    pub(super) objects: Vec<Located<'a>>,
    pub(super) tests: Vec<ClassificationTest>,
    pub(super) calls: Vec<Call>,
    /// Documents that cannot be decoded, and so are not checked.
    pub(super) undecodable: Vec<Finding>,
    /// How many objects are the user's own.
    pub(super) own: usize,
    /// The files that the calls are from.
    call_files: Vec<SourceFile>,
}

/// A test as it is written. Its fields may be in `spec` or beside it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TestDocument {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    #[serde(default)]
    metadata: Metadata,
    spec: Option<Test>,
    request: Option<Request>,
    expect: Option<Expectation>,
}

#[derive(Deserialize, Default)]
struct Metadata {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    request: Request,
    expect: Expectation,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallDocument {
    caller: Endpoint,
    callee: Endpoint,
}

// === impl Input ===

impl<'a> Input<'a> {
    /// The input of files, or of a cluster. `suggested` objects are added where they are missing, and `problems` are those of the
    /// files so far.
    pub(super) fn new(
        files: &'a ObjectFiles,
        cluster: &[AnyObject],
        mut problems: Vec<Problem>,
        suggested: Option<&BootstrapObjects>,
        call_path: Option<&PathBuf>,
    ) -> Result<Self> {
        let (objects, malformed_objects) = files.decode();
        problems.extend(malformed_objects);
        let mut tests = Vec::new();
        for document in files.documents_of_kind(EvenkeelKind::ClassificationTest) {
            let file = files.source(document.source).map_or("", |source| source.name.as_str());
            match test(document, file) {
                Ok(test) => tests.push(test),
                Err((at, message)) => {
                    problems.push(Problem::new(file, at, format!("ClassificationTest: {message}")));
                }
            }
        }
        let mut objects = located(objects);
        objects.extend(cluster.iter().cloned().map(Located::without_place));
        if objects.is_empty() && problems.is_empty() && !files.has_documents() {
            return Err(nothing_found());
        }
        let own = objects.len();
        add_suggested(&mut objects, suggested);
        let call_files = SourceFile::read_all(call_path.map(std::slice::from_ref).unwrap_or_default())?;
        let calls = read_calls(&call_files)?;
        if let Some(path) = call_path.filter(|_| calls.is_empty()) {
            let fault = format!("there are no calls in {}; a call has a `caller` and a `callee`", path.display());
            return Err(WrongUsage(fault).into());
        }
        let undecodable = problems.into_iter().map(undecodable).collect();
        Ok(Self { files, objects, tests, calls, undecodable, own, call_files })
    }

    /// All files that findings can be in.
    pub(super) fn sources(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.sources().iter().chain(&self.call_files)
    }
}

/// The objects with their places.
pub(super) fn located(objects: Vec<FileObject<'_>>) -> Vec<Located<'_>> {
    let located = objects.into_iter().map(|object| {
        let faults = object.dropped.into_iter().map(|problem| (problem.at, without_subject(&problem.message)));
        Located {
            version: object.version,
            file: object.file,
            tree: Some(&object.document.root),
            faults: faults.collect(),
            object: object.object,
        }
    });
    located.collect()
}

/// Adds the suggested objects that are not there.
pub(super) fn add_suggested(located: &mut Vec<Located<'_>>, suggested: Option<&BootstrapObjects>) {
    let Some(suggested) = suggested else { return };
    let own: HashSet<(Kind, String)> =
        located.iter().map(|located| (located.object.kind(), located.object.name().to_owned())).collect();
    let missing = suggested.to_objects().filter(|object| !own.contains(&(object.kind(), object.name().to_owned())));
    located.extend(missing.map(Located::without_place));
}

pub(super) fn nothing_found() -> anyhow::Error {
    WrongUsage("no flow schemas or priority levels found in the files".to_owned()).into()
}

/// Something that cannot be decoded, as a finding. The message may begin with the kind and the name of an object.
fn undecodable(problem: Problem) -> Finding {
    let Problem { file, at, message, .. } = problem;
    let place = SourceLocation::new(&file, at);
    let subject = message.split_once("\": ").and_then(|(subject, rest)| {
        let (kind, name) = subject.split_once(" \"")?;
        kind.parse::<Kind>().ok().map(|kind| (kind.name().to_owned(), name.to_owned(), rest.to_owned()))
    });
    match subject {
        Some((kind, name, message)) => Finding::undecodable(kind, name, place, message),
        None => Finding::undecodable("File", file, place, message),
    }
}

/// A message without the kind and the name in front of it, which findings show elsewhere.
fn without_subject(message: &str) -> String {
    message.split_once("\": ").map_or(message, |(_, rest)| rest).to_owned()
}

fn test(document: &FileDocument, file: &str) -> Result<ClassificationTest, (Position, String)> {
    let root = &document.root;
    let written = TestDocument::deserialize(root).map_err(|error| (root.at, error.to_string()))?;
    let Test { request, expect } = match (written.spec, written.request, written.expect) {
        (Some(spec), None, None) => spec,
        (None, Some(request), Some(expect)) => Test { request, expect },
        _ => {
            let message = "it needs `request` and `expect`, both in `spec` or both beside it";
            return Err((root.at, message.to_owned()));
        }
    };
    let name = if written.metadata.name.is_empty() { "unnamed".to_owned() } else { written.metadata.name };
    let field = if root.get("spec").is_some() { "spec.expect" } else { "expect" };
    let at = root.position_of(field);
    if expect == Expectation::default() {
        let message = "`expect` is empty, so the test cannot fail; name a `schema`, a `level`, a `flow` or `seats`";
        return Err((at, message.to_owned()));
    }
    let place = SourceLocation::new(file, at);
    Ok(ClassificationTest { name, request, expect, place })
}

/// The calls of files: a list of `caller` and `callee`, or several documents of that.
fn read_calls(files: &[SourceFile]) -> Result<Vec<Call>> {
    let (mut calls, mut problems) = (Vec::new(), Vec::new());
    for SourceFile { name, text, .. } in files {
        let documents = match parse_text(text) {
            Ok(documents) => documents,
            Err(error) => {
                problems.push(Problem::new(name, error.at, error.message));
                continue;
            }
        };
        for document in &documents {
            let listed = document.root.get("calls").unwrap_or(&document.root);
            let items = match &listed.value {
                Value::List(items) => items.as_slice(),
                _ => std::slice::from_ref(listed),
            };
            for item in items {
                match call(item, name) {
                    Ok(call) => calls.push(call),
                    Err(problem) => problems.push(problem),
                }
            }
        }
    }
    malformed(problems).map_or(Ok(calls), Err)
}

fn call(node: &Node, file: &str) -> Result<Call, Problem> {
    let CallDocument { caller, callee } = CallDocument::deserialize(node).map_err(|error| {
        let message =
            format!("a call has a `caller` and a `callee`, each the name of a flow schema or a request: {error}");
        Problem::new(file, node.at, message)
    })?;
    Ok(Call { caller, callee, place: SourceLocation::new(file, node.position_of("callee")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        std::fs::write(&path, text).unwrap();
        let files = ObjectFiles::read(&[path]).unwrap();
        let input = Input::new(&files, &[], Vec::new(), None, None).unwrap();
        let Finding { place, message, .. } = &input.undecodable[0];
        let file = place.file.replace(&format!("{}/", folder.path().display()), "");
        format!("{file}:{}: {message}", place.at.unwrap())
    }

    #[test]
    fn a_test_that_cannot_fail_is_refused() {
        let fault = "`expect` is empty, so the test cannot fail; name a `schema`, a `level`, a `flow` or `seats`";
        let test =
            "apiVersion: evenkeel.dev/v1\nkind: ClassificationTest\nrequest: {method: GET, path: /a}\nexpect: {}\n";
        assert_eq!(message(test), format!("a.yaml:4:1: ClassificationTest: {fault}"));
        let inside = test.replace("request", "spec:\n  request").replace("\nexpect", "\n  expect");
        assert_eq!(message(&inside), format!("a.yaml:5:3: ClassificationTest: {fault}"));
    }
}
