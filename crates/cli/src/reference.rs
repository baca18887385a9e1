//! The page `docs/commands.md`: every command with its flags, made from what `--help` is made from.

use std::fmt::Write;

use clap::{Arg, Command};

use crate::exit::Exit;
use crate::{demo, replay};

const OPENING: &str = "\
# Commands

All commands of the `evenkeel` binary. This page is generated from what `--help` prints; to update it, run
`EVENKEEL_UPDATE=1 cargo test -p evenkeel-cli --test all reference`.

In the repository, you can run `cargo run --profile quick -p evenkeel-cli --` instead of `evenkeel`. [Install](install.md) shows how to
install the binary.
";

const FORMAT: &str = "\
### What `evenkeel demo -o json` prints

Fields may be added; the ones below keep their names and meanings as long as `formatVersion` is the same. Times are in
milliseconds, and `null` where nothing was served.
";

const REPLAY_FORMAT: &str = "\
### What `evenkeel replay -o json` prints

Fields may be added; the ones below keep their names and meanings. Times are in milliseconds unless a name says otherwise.
";

/// The page, in Markdown.
pub fn reference() -> String {
    let mut evenkeel = crate::command();
    evenkeel.build();
    let mut page = format!("{OPENING}\n");
    page += &exit_codes();
    for command in evenkeel.get_subcommands().filter(|command| command.get_name() != "help") {
        page += &section(command);
        for part in command.get_subcommands().filter(|part| part.get_name() != "help") {
            page += &section(part);
        }
        match command.get_name() {
            "demo" => page += &fields(FORMAT, &demo::FIELDS),
            "replay" => page += &fields(REPLAY_FORMAT, &replay::FIELDS),
            _ => {}
        }
    }
    page
}

/// The fields that a command prints as JSON.
fn fields(opening: &str, fields: &[(&str, &str)]) -> String {
    let rows = fields.iter().map(|(field, meaning)| [code(field), (*meaning).to_owned()]);
    format!("\n{opening}\n{}", table(["field", "meaning"], rows))
}

fn exit_codes() -> String {
    let rows = Exit::ALL.map(|exit| [exit.code().to_string(), exit.meaning().to_owned()]);
    format!("## Exit codes\n\n{}", table(["code", "meaning"], rows))
}

fn section(command: &Command) -> String {
    let title = command.get_bin_name().unwrap_or(command.get_name());
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let examples = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let rows = command.get_arguments().filter(|argument| argument.get_id() != "help").map(row);
    let about = full_stop(&about);
    format!(
        "\n## `{title}`\n\n{about}\n\n{}\n```text\n{examples}\n```\n",
        table(["argument", "what it does", "default"], rows)
    )
}

fn row(argument: &Arg) -> [String; 3] {
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    // A default that another crate knows is told in the text of the flag.
    let (help, told) = match help.split_once(" [default: ") {
        Some((before, rest)) => {
            let (default, after) = rest.split_once(']').unwrap_or((rest, ""));
            (format!("{before}{after}"), default.to_owned())
        }
        None => (help, String::new()),
    };
    let values = argument.get_possible_values();
    let choice: Vec<String> =
        values.iter().filter(|_| !is_switch(argument)).map(|value| code(value.get_name())).collect();
    let choice = if choice.is_empty() { String::new() } else { format!(" One of {}.", choice.join(", ")) };
    let own: Vec<String> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    let default = if is_switch(argument) || own.is_empty() { told } else { code(&own.join(" ")) };
    [code(&spelling(argument)), full_stop(&help.replace('\n', " ")) + &choice, default]
}

fn is_switch(argument: &Arg) -> bool {
    !argument.get_action().takes_values()
}

/// `-o, --output <FORMAT>`
fn spelling(argument: &Arg) -> String {
    let names = argument.get_short().map(|short| format!("-{short}")).into_iter();
    let aliases = argument.get_visible_aliases().unwrap_or_default();
    let long = argument.get_long().into_iter().chain(aliases).map(|long| format!("--{long}"));
    let names: Vec<String> = names.chain(long).collect();
    let value = argument.get_value_names().unwrap_or_default().join(" ");
    match (names.is_empty(), is_switch(argument)) {
        (true, _) => value,
        (false, true) => names.join(", "),
        (false, false) => format!("{} {value}", names.join(", ")),
    }
}

/// The texts of clap come without it.
fn full_stop(text: &str) -> String {
    format!("{}.", text.trim_end_matches('.'))
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(N));
    for row in rows {
        // Writing to a text cannot fail.
        let _ = writeln!(table, "| {} |", row.map(|cell| cell.replace('|', "\\|")).join(" | "));
    }
    table
}
