//! The object files of all tools: YAML or JSON, several documents, lists, gzip, folders, standard input.
//!
//! [`ObjectFiles::read`] reads everything that was named. [`ObjectFiles::valid_objects`] is for tools that need objects they can
//! use, and [`configuration`] for those that need nothing else; [`ObjectFiles::read_parts`] and [`ObjectFiles::decode`] are for
//! tools that go on without the faulty parts. Documents of `evenkeel.dev/v1` are in [`ObjectFiles::documents_of_kind`]; documents
//! of other groups are left out.
//!
//! The errors of this module end a command with exit code 2 and name file, line and column.

mod document;
mod object;
mod source;
mod template;

use std::path::PathBuf;

use anyhow::Result;
use evenkeel_api::decode::{Problem, Problems};
use evenkeel_api::{AnyObject, Preset};

use crate::exit::WrongUsage;
use document::documents_of;
pub(crate) use document::{EvenkeelKind, FileDocument};
pub(crate) use object::FileObject;
pub(crate) use source::{BYTE_ORDER_MARK, SourceFile, standard_input_once};
pub(crate) use template::template_problem;

/// The content of the files, in the order in which they were named.
#[derive(Debug, Default)]
pub(crate) struct ObjectFiles {
    sources: Vec<SourceFile>,
    documents: Vec<FileDocument>,
}

/// The error for everything that is wrong with the files: one line each.
pub(crate) fn malformed(problems: Vec<Problem>) -> Option<anyhow::Error> {
    Problems::new(problems).map(|problems| WrongUsage(problems.to_string()).into())
}

/// The flow schemas and priority levels of files, which must be valid. There must be some: an empty configuration is a mistake,
/// such as the output of a command that failed.
pub(crate) fn configuration(paths: &[PathBuf], preset: Preset) -> Result<Vec<AnyObject>> {
    let files = ObjectFiles::read(paths)?;
    let objects: Vec<_> = files.valid_objects(preset)?.into_iter().map(|object| object.object).collect();
    if objects.is_empty() {
        let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        let fault = format!("no flow schemas or priority levels found in {}", names.join(", "));
        return Err(WrongUsage(fault).into());
    }
    Ok(objects)
}

// === impl ObjectFiles ===

impl ObjectFiles {
    /// Reads files, folders (with the folders in them) and, for `-`, standard input.
    ///
    /// Fails if anything cannot be read, is neither YAML nor JSON, or is an object of the group or one of Evenkeel's own
    /// documents in an unknown version or of an unknown kind.
    pub(crate) fn read(paths: &[PathBuf]) -> Result<Self> {
        let (files, problems) = Self::read_parts(paths)?;
        malformed(problems).map_or(Ok(files), Err)
    }

    /// The same, with everything that is wrong with the files beside what could be read of them.
    pub(crate) fn read_parts(paths: &[PathBuf]) -> Result<(Self, Vec<Problem>)> {
        let sources = SourceFile::read_all(paths)?;
        let (mut documents, mut problems) = (Vec::new(), Vec::new());
        for (index, source) in sources.iter().enumerate() {
            let mut found = Vec::new();
            documents_of(source, index, &mut documents, &mut found);
            problems.extend(unless_template(found, source));
        }
        Ok((Self { sources, documents }, problems))
    }

    /// All files.
    pub(crate) fn sources(&self) -> &[SourceFile] {
        &self.sources
    }

    /// Whether there is anything in the files that a tool may use.
    pub(crate) fn has_documents(&self) -> bool {
        !self.documents.is_empty()
    }

    /// The file that a document or an object is in.
    pub(crate) fn source(&self, index: usize) -> Option<&SourceFile> {
        self.sources.get(index)
    }

    /// The documents of `evenkeel.dev/v1` of that kind.
    pub(crate) fn documents_of_kind(&self, kind: EvenkeelKind) -> impl Iterator<Item = &FileDocument> {
        self.documents.iter().filter(move |document| document.is_of(kind))
    }

    /// The flow schemas and priority levels. Fails if one is invalid, has unknown fields, or is there twice.
    pub(crate) fn valid_objects(&self, preset: Preset) -> Result<Vec<FileObject<'_>>> {
        let (objects, mut problems) = self.decode();
        problems.extend(wrong_with(&objects, preset));
        malformed(problems).map_or(Ok(objects), Err)
    }

    /// The flow schemas and priority levels that can be decoded, not validated, and what is wrong with the others.
    pub(crate) fn decode(&self) -> (Vec<FileObject<'_>>, Vec<Problem>) {
        let (mut objects, mut problems) = (Vec::new(), Vec::new());
        for document in &self.documents {
            let Some(source) = self.source(document.source) else { continue };
            match FileObject::decode(document, source) {
                Ok(object) => objects.extend(object),
                Err(found) => problems.extend(unless_template(found, source)),
            }
        }
        // All objects of a template have the same problem.
        problems.dedup();
        (objects, problems)
    }
}

/// The problems of a file; if it is a template, only that.
fn unless_template(problems: Vec<Problem>, source: &SourceFile) -> Vec<Problem> {
    if problems.is_empty() {
        return problems;
    }
    template_problem(&source.name, &String::from_utf8_lossy(&source.text), |_| true).map_or(problems, |one| vec![one])
}

/// The problems of objects that could be decoded.
fn wrong_with(objects: &[FileObject<'_>], preset: Preset) -> Vec<Problem> {
    let mut problems = object::repeated(objects);
    for object in objects {
        problems.extend(object.dropped.iter().cloned());
        problems.extend(object.invalid(preset));
    }
    problems
}

#[cfg(test)]
mod tests;
