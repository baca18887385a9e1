//! Templates of Helm charts: files that are no YAML yet.

use evenkeel_api::decode::{Position, Problem};

/// The beginning of an action of a template.
const ACTION: &str = "{{";

/// The first action of a template in a line that counts.
pub(crate) fn template_problem(file: &str, text: &str, counts: impl Fn(u32) -> bool) -> Option<Problem> {
    let mut lines = (1..).zip(text.lines()).filter_map(|(number, line)| Some((number, line, line.find(ACTION)?)));
    let (line, text, column) = lines.find(|(number, _, _)| counts(*number))?;
    let column = u32::try_from(text[..column].chars().count() + 1).unwrap_or(u32::MAX);
    let message =
        "this is a template (it has \"{{\"); render it first (`helm template`), or edit the template manually";
    Some(Problem::new(file, Position { line, column }, message))
}
