//! What is checked: objects, tests and calls, from files.

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::Result;
use evenkeel_api::decode::{Node, Position, Problem, Value, parse_text};
use evenkeel_api::{Kind, Preset};
use evenkeel_check::{Call, ClassificationTest, Endpoint, Expectation, Located, Request, SourceLocation};
use serde::Deserialize;

use crate::exit::WrongUsage;
use crate::object_files::{EvenkeelKind, FileDocument, FileObject, ObjectFiles, SourceFile, malformed};

/// Everything that is checked together.
pub(super) struct Input<'a> {
    pub(super) files: &'a ObjectFiles,
    pub(super) objects: Vec<Located<'a>>,
    pub(super) tests: Vec<ClassificationTest>,
    pub(super) calls: Vec<Call>,
    /// The files that the calls are from.
    call_files: Vec<SourceFile>,
}

/// A test as it is written. What it says may be in `spec` or beside it.
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
    pub(super) fn new(
        files: &'a ObjectFiles,
        preset: Preset,
        with_suggested: bool,
        call_path: Option<&PathBuf>,
    ) -> Result<Self> {
        let objects = located(files, files.objects(preset)?, preset, with_suggested)?;
        let (mut tests, mut problems) = (Vec::new(), Vec::new());
        for document in files.documents_of_kind(EvenkeelKind::ClassificationTest) {
            let file = files.source(document.source).map_or("", |source| source.name.as_str());
            match test(document, file) {
                Ok(test) => tests.push(test),
                Err((at, message)) => {
                    problems.push(Problem::new(file, at, format!("ClassificationTest: {message}")));
                }
            }
        }
        if let Some(error) = malformed(problems) {
            return Err(error);
        }
        let call_files = SourceFile::read_all(call_path.map(std::slice::from_ref).unwrap_or_default())?;
        let calls = read_calls(&call_files)?;
        if let Some(path) = call_path.filter(|_| calls.is_empty()) {
            let fault = format!("there are no calls in {}; a call has a `caller` and a `callee`", path.display());
            return Err(WrongUsage(fault).into());
        }
        Ok(Self { files, objects, tests, calls, call_files })
    }

    /// All files that findings can be in.
    pub(super) fn sources(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.sources().iter().chain(&self.call_files)
    }
}

/// The objects with their places, and the suggested ones that are not among them if they are wanted.
pub(super) fn located<'a>(
    files: &'a ObjectFiles,
    objects: Vec<FileObject<'a>>,
    preset: Preset,
    with_suggested: bool,
) -> Result<Vec<Located<'a>>> {
    if objects.is_empty() && !files.has_documents() {
        let message = "no flow schemas or priority levels found in the files".to_owned();
        return Err(WrongUsage(message).into());
    }
    let mut located: Vec<Located<'a>> = objects
        .into_iter()
        .map(|object| {
            let faults = object.dropped.into_iter().map(|problem| (problem.at, without_subject(&problem.message)));
            Located {
                version: object.version,
                file: object.file,
                tree: Some(&object.document.root),
                faults: faults.collect(),
                object: object.object,
            }
        })
        .collect();
    if with_suggested {
        let own: HashSet<(Kind, String)> =
            located.iter().map(|located| (located.object.kind(), located.object.name().to_owned())).collect();
        let missing =
            preset.suggested().to_objects().filter(|object| !own.contains(&(object.kind(), object.name().to_owned())));
        located.extend(missing.map(Located::without_place));
    }
    Ok(located)
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
        let error = Input::new(&files, Preset::Plain, false, None).map(|input| input.tests.len()).unwrap_err();
        assert!(error.is::<WrongUsage>());
        error.to_string().replace(&format!("{}/", folder.path().display()), "")
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
