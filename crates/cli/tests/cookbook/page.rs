//! The page: its sections, and the files and commands in their fenced blocks.
//!
//! A block of the language `console` is what a reader sees in a terminal: commands after `$ `, and under each what it prints. Every
//! other block is a file. Its name is the code span that the line before the block begins with.

use std::fs;
use std::path::Path;

pub(crate) struct Page {
    /// Its path in the repository.
    name: &'static str,
    text: String,
    sections: Vec<Section>,
}

pub(crate) struct Section {
    /// The page that it is on.
    pub(crate) page: &'static str,
    title: String,
    pub(crate) steps: Vec<Step>,
}

/// Something that a reader does.
pub(crate) enum Step {
    Save { name: String, text: String },
    Run(Run),
}

/// A command, and what it prints.
pub(crate) struct Run {
    /// The line of the page.
    pub(crate) line: usize,
    pub(crate) command: String,
    pub(crate) output: Vec<String>,
}

// === impl Page ===

impl Page {
    pub(crate) fn read(name: &'static str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
        Self::parse(name, fs::read_to_string(path).unwrap())
    }

    fn parse(name: &'static str, text: String) -> Self {
        let mut sections: Vec<Section> = Vec::new();
        let mut lines = (1..).zip(text.lines());
        // The last line that is not empty.
        let mut before = "";
        while let Some((number, line)) = lines.next() {
            if let Some(title) = line.strip_prefix("## ") {
                sections.push(Section { page: name, title: title.to_owned(), steps: Vec::new() });
            } else if let Some(language) = line.strip_prefix("```") {
                let block: Vec<(usize, &str)> = lines.by_ref().take_while(|(_, line)| *line != "```").collect();
                let steps = &mut sections.last_mut().expect("a block before the first section").steps;
                match language {
                    "console" => steps.extend(runs(&block)),
                    _ => steps.push(saved(before, &block, number)),
                }
            }
            if !line.is_empty() {
                before = line;
            }
        }
        Self { name, text, sections }
    }

    /// Everything that a reader does from the top of the page to its end.
    pub(crate) fn sections(&self) -> impl Iterator<Item = &Section> {
        self.sections.iter()
    }

    pub(crate) fn titles(&self) -> impl Iterator<Item = &str> {
        self.sections.iter().map(|section| &*section.title)
    }

    pub(crate) fn has_line(&self, line: &str) -> bool {
        self.text.lines().any(|other| other == line)
    }

    pub(crate) fn has_text(&self, text: &str) -> bool {
        self.text.contains(text)
    }

    pub(crate) fn section(&self, title: &str) -> &Section {
        let found = self.sections.iter().find(|section| section.title == title);
        found.unwrap_or_else(|| panic!("{} has no section {title:?}", self.name))
    }
}

// === impl Section ===

impl Section {
    /// The names and texts of the files of this section.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.steps.iter().filter_map(|step| match step {
            Step::Save { name, text } => Some((&**name, &**text)),
            Step::Run(_) => None,
        })
    }

    /// The text of a file of this section.
    pub(crate) fn file(&self, wanted: &str) -> &str {
        let found = self.files().find_map(|(name, text)| (name == wanted).then_some(text));
        found.unwrap_or_else(|| panic!("{:?} has no file {wanted:?}", self.title))
    }
}

fn saved(label: &str, block: &[(usize, &str)], number: usize) -> Step {
    let name = label.strip_prefix('`').and_then(|rest| rest.split_once('`')).map(|(name, _)| name.to_owned());
    let name =
        name.unwrap_or_else(|| panic!("line {number}: the line before a file must begin with its name, as `name`"));
    Step::Save { name, text: block.iter().flat_map(|(_, line)| [line, "\n"]).collect() }
}

fn runs(block: &[(usize, &str)]) -> Vec<Step> {
    let mut runs: Vec<Run> = Vec::new();
    for (line, text) in block {
        match (text.strip_prefix("$ "), runs.last_mut()) {
            (Some(command), _) => runs.push(Run { line: *line, command: command.to_owned(), output: Vec::new() }),
            (None, Some(run)) => run.output.push((*text).to_owned()),
            (None, None) => panic!("line {line}: output without a command"),
        }
    }
    runs.into_iter().map(Step::Run).collect()
}
