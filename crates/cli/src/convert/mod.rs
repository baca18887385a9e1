//! `evenkeel convert`: writes objects in another version of the API, and leaves the rest of their files as it is; or from the short form
//! to objects and back.

mod edits;
mod in_place;
mod rewrite;
mod short;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;
use evenkeel_api::decode::{Position, Problem, Problems};
use evenkeel_api::{GROUP, Version};

use crate::exit::{Exit, WrongUsage};
use crate::object_files::{BYTE_ORDER_MARK, ObjectFiles, SourceFile, standard_input_once};
use crate::terminal::print;
use rewrite::{Rewritten, rewrite};

const EXAMPLES: &str = "\
Examples:
  See what a file looks like in v1:
    evenkeel convert --to v1 flowcontrol.yaml
  Change all files of a directory:
    evenkeel convert --to v1 --in-place deploy/
  See the objects that `levels` and `match` of a settings file stand for, and the other way:
    evenkeel convert --to objects evenkeel.yaml > own-objects.yaml
    evenkeel convert --to short own-objects.yaml
  Move the objects of an old cluster to a new one:
    kubectl get flowschemas,prioritylevelconfigurations -o yaml > old.yaml
    evenkeel convert --to v1 old.yaml > new.yaml";

/// Converts flow schemas and priority levels to another version of the API, or from the short form to objects and back.
///
/// With `--to objects`, `levels` and `match` become the objects that they stand for. With `--to short`, objects of an ordinary service
/// become `levels` and `match`; if one cannot be said in short, the command names it and says why.
///
/// Comments, the order of documents, and everything that is not a flow schema or a priority level stay byte for byte the same.
/// Zero shares, which v1beta3 reads as 30, are kept with the annotation that Kubernetes has for them; v1beta2 and v1beta1 cannot
/// express them, and the command refuses to convert such objects to these versions. The result is read again and compared with
/// the original before anything is written. Templates (files with "{{") are refused.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = EXAMPLES)]
pub(crate) struct Convert {
    /// The version to write, or `objects` or `short`.
    #[arg(long, value_name = "VERSION", value_parser = target())]
    to: Target,
    /// Change the files themselves. Each file is replaced atomically. If one of them cannot be converted, none is changed.
    #[arg(short, long)]
    in_place: bool,
    /// Files, directories, or `-` for standard input.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

/// The form to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    /// Objects in this version.
    Version(Version),
    /// The objects that a short form stands for.
    Objects,
    /// The short form.
    Short,
}

fn target() -> impl TypedValueParser<Value = Target> {
    let names = Version::ALL.map(Version::name).into_iter().chain(["objects", "short"]);
    PossibleValuesParser::new(names).map(|name| match name.as_str() {
        "objects" => Target::Objects,
        "short" => Target::Short,
        // The name is one of them.
        _ => Target::Version(name.parse().unwrap_or(Version::V1)),
    })
}

// === impl Convert ===

impl Convert {
    pub(crate) fn run(&self) -> Result<Exit> {
        standard_input_once(&self.files)?;
        match self.to {
            Target::Version(version) => self.rewrite_files(version),
            Target::Objects | Target::Short if self.in_place => {
                let message = "--in-place is for another version of objects; print the result and save it";
                Err(WrongUsage(message.to_owned()).into())
            }
            Target::Objects => written(&short::to_objects(&ObjectFiles::read(&self.files)?)?),
            Target::Short => written(&short::to_short(&ObjectFiles::read(&self.files)?)?),
        }
    }

    fn rewrite_files(&self, to: Version) -> Result<Exit> {
        let sources = SourceFile::read_all(&self.files)?;
        let mut problems = Vec::new();
        let mut results = Vec::new();
        for source in &sources {
            match self.convert(source, to) {
                Ok(Some(result)) => results.push((source, result)),
                Ok(None) => {}
                Err(found) => problems.extend(found),
            }
        }
        if let Some(problems) = Problems::new(problems) {
            return Err(WrongUsage(problems.to_string()).into());
        }
        if self.in_place { write_in_place(&results, to) } else { write_out(&results) }?;
        Ok(Exit::Success)
    }

    /// The new text of a file, or nothing for a file of a folder that has no objects.
    fn convert(&self, source: &SourceFile, to: Version) -> Result<Option<Rewritten>, Problems> {
        let start = Position { line: 1, column: 1 };
        let fault = |message: &str| Problems::from(Problem::new(&source.name, start, message));
        let Ok(text) = std::str::from_utf8(&source.text) else { return Err(fault("it is not UTF-8")) };
        if !source.is_named && !text.contains(GROUP) {
            return Ok(None);
        }
        if self.in_place && source.path.is_none() {
            return Err(fault("standard input cannot be changed in place; leave out --in-place"));
        }
        if self.in_place && source.is_packed {
            return Err(fault("a compressed file cannot be changed in place; decompress it first"));
        }
        if short::is_short(text) {
            return Err(fault("this is a short form, which has no version; write its objects with --to objects"));
        }
        rewrite(&source.name, text, to).map(Some)
    }
}

fn written(text: &str) -> Result<Exit> {
    print(text)?;
    Ok(Exit::Success)
}

fn write_in_place(results: &[(&SourceFile, Rewritten)], to: Version) -> Result<()> {
    for (source, Rewritten { text, converted }) in results {
        let Some(path) = source.path.as_deref().filter(|_| source.text != text.as_bytes()) else { continue };
        in_place::replace(path, text)
            .map_err(|error| WrongUsage(format!("cannot replace {}: {error}", source.name)))?;
        let objects = if *converted == 1 { "object" } else { "objects" };
        // A failure to write this line does not matter.
        let _ = writeln!(io::stderr(), "{}: {converted} {objects} converted to {}", source.name, to.name());
    }
    Ok(())
}

fn write_out(results: &[(&SourceFile, Rewritten)]) -> Result<()> {
    let texts: Vec<&str> = results.iter().map(|(_, rewritten)| rewritten.text.as_str()).collect();
    print(joined(&texts))?;
    Ok(())
}

/// Several files become one text of several documents.
fn joined(texts: &[&str]) -> String {
    let mut whole = String::new();
    for (index, text) in texts.iter().enumerate() {
        // A byte order mark belongs at the start of the whole.
        let text = if index > 0 { text.trim_start_matches(BYTE_ORDER_MARK) } else { text };
        if index > 0 && !text.starts_with("---") {
            whole += "---\n";
        }
        whole += text;
        if index + 1 < texts.len() && !text.is_empty() && !text.ends_with('\n') {
            whole.push('\n');
        }
    }
    whole
}
