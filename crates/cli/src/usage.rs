//! What is wrong with a command line, in one sentence.

use clap::error::ErrorKind;

/// What is wrong, what may have been meant, and where to look it up.
pub(crate) fn sentence(error: &clap::Error) -> String {
    let text = error.render().to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "there is no command; try `evenkeel demo`, or see `evenkeel --help` for all commands".to_owned();
    }
    let mut paragraphs = text.split("\n\n").map(one_line);
    let fault = paragraphs.next().unwrap_or_default();
    let fault = fault.strip_prefix("error: ").unwrap_or(&fault);
    let mut command = "evenkeel".to_owned();
    let mut tips = String::new();
    for paragraph in paragraphs {
        if let Some(usage) = paragraph.strip_prefix("Usage: ") {
            command = command_of(usage);
        } else if let Some(tip) = paragraph.strip_prefix("tip: ") {
            tips += &format!("; {}", tip.replace(" tip: ", "; "));
        }
    }
    format!("{fault}{tips}; see `{command} --help`")
}

fn one_line(paragraph: &str) -> String {
    paragraph.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The command that a line of usage is about: its words up to the first argument.
fn command_of(usage: &str) -> String {
    let words = usage.split(' ').take_while(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
    words.collect::<Vec<_>>().join(" ")
}
