//! Findings for people: the line that each is about, with what is wrong under it.

use std::collections::HashMap;
use std::io;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use evenkeel_check::{Finding, Report, Severity, SourceLocation};

use super::input::Input;
use crate::terminal::{ColorChoice, Paint, Shade, printable, width};

/// Writes findings.
pub(super) struct Text<'a> {
    /// The lines of each file.
    lines: HashMap<&'a str, Vec<&'a str>>,
    objects: usize,
    tests: usize,
    paint: Paint,
    renderer: Renderer,
}

// === impl Text ===

impl<'a> Text<'a> {
    pub(super) fn new(input: &'a Input<'_>, color: ColorChoice) -> Self {
        let output = io::stdout();
        let paint = color.paint(&output);
        let renderer = if paint.is_on() { Renderer::styled().hyperlink(true) } else { Renderer::plain() };
        let lines = input.sources().map(|source| {
            let text = std::str::from_utf8(&source.text).unwrap_or_default();
            (source.name.as_str(), text.lines().collect())
        });
        Self {
            lines: lines.collect(),
            objects: input.own,
            tests: input.tests.len(),
            paint,
            renderer: renderer.term_width(width(&output)),
        }
    }

    pub(super) fn report(&self, report: &Report) -> String {
        let mut text = String::new();
        for finding in &report.findings {
            text += &self.finding(finding);
            text += "\n\n";
        }
        for undecided in &report.undecided {
            let (object, rule) = (&undecided.object, undecided.rule);
            let word = self.paint.text(Shade::Blue, "undecided");
            text += &format!("{word}[{rule}]: {} {:?}: {}\n", object.kind, object.name, undecided.message);
        }
        text + &self.summary(report)
    }

    fn finding(&self, finding: &Finding) -> String {
        let level = match finding.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Info => Level::INFO,
        };
        let address = finding.rule.address();
        let [message, help, file] = [&finding.message, &finding.help, &finding.place.file].map(|text| printable(text));
        let mut title = level.primary_title(&*message).id(finding.rule.name());
        if self.paint.is_on() {
            title = title.id_url(address);
        }
        let object = format!("{} {:?}", finding.object.kind, finding.object.name);
        let group = match self.line(&finding.place) {
            Some((line, number, span)) => {
                let annotation = AnnotationKind::Primary.span(span).label(&object);
                let snippet = Snippet::source(line).line_start(number).path(&*file).annotation(annotation);
                title.element(snippet)
            }
            None => {
                let place = finding.place.at.map_or(String::new(), |at| format!(", {file}:{at}"));
                Group::with_title(title).element(Level::NOTE.message(format!("in {object}{place}")))
            }
        };
        let group = match &finding.witness {
            Some(witness) => {
                let example = format!("for example: {}, which goes to {:?}", witness.request, witness.flow_schema);
                group.element(Level::NOTE.message(printable(&example).into_owned()))
            }
            None => group,
        };
        let group = group.element(Level::HELP.message(&*help));
        self.renderer.render(&[group])
    }

    /// The line of a place as it is shown, its number, and the bytes of the word that is there.
    fn line(&self, place: &SourceLocation) -> Option<(String, usize, std::ops::Range<usize>)> {
        let at = place.at?;
        let number = usize::try_from(at.line).ok()?;
        let line = self.lines.get(place.file.as_str())?.get(number.checked_sub(1)?)?;
        let line = line.replace('\t', " ");
        let column = usize::try_from(at.column).ok()?.checked_sub(1)?;
        let before = line.char_indices().nth(column).map_or(line.as_str(), |(byte, _)| &line[..byte]);
        // Escapes are longer than what they stand for.
        let start = printable(before).len();
        let line = printable(&line).into_owned();
        let end = start + word_length(line.get(start..).unwrap_or_default());
        Some((line, number, start..end))
    }

    fn summary(&self, report: &Report) -> String {
        let count = |severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
        let counts = [
            (count(Severity::Error), "error", Shade::Red),
            (count(Severity::Warning), "warning", Shade::Yellow),
            (count(Severity::Info), "info", Shade::Blue),
        ];
        let told = counts.iter().filter(|(count, _, _)| *count > 0).map(|(count, word, shade)| {
            let plural = if *count == 1 || *word == "info" { "" } else { "s" };
            self.paint.text(*shade, &format!("{count} {word}{plural}"))
        });
        let told: Vec<String> = told.collect();
        let found = if told.is_empty() { self.paint.text(Shade::Green, "nothing found") } else { told.join(", ") };
        let tests = match self.tests {
            0 => String::new(),
            1 => " and 1 test".to_owned(),
            tests => format!(" and {tests} tests"),
        };
        let plural = if self.objects == 1 { "" } else { "s" };
        format!("{found} in {} object{plural}{tests}\n", self.objects)
    }
}

/// How long the word at the start of a text is, in bytes; at least one, so that there is something to point at.
fn word_length(text: &str) -> usize {
    let end = match text.chars().next() {
        Some(quote @ ('"' | '\'')) => text.get(1..).and_then(|rest| rest.find(quote)).map(|end| end + 2),
        _ => text.find(|character: char| character.is_whitespace() || matches!(character, ':' | ',' | '}' | ']')),
    };
    end.unwrap_or(text.len()).max(1)
}
