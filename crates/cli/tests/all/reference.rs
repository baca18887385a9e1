//! The page about the commands is the one that the commands make, and every help has an example.

use std::fs;

use clap::Command;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");

#[test]
fn the_committed_page_is_up_to_date() {
    let generated = evenkeel_cli::reference();
    if std::env::var_os("EVENKEEL_UPDATE").is_some() {
        fs::write(FILE, &generated).unwrap();
    }
    // A checkout may have other line ends than the repository.
    let committed = fs::read_to_string(FILE).unwrap_or_default().replace("\r\n", "\n");
    let line = 1 + committed.lines().zip(generated.lines()).take_while(|(old, new)| old == new).count();
    assert!(
        committed == generated,
        "docs/commands.md is not what the commands make, from line {line} on; to update it, run\n\
         EVENKEEL_UPDATE=1 cargo test -p evenkeel-cli --test all reference"
    );
}

/// TL-7
#[test]
fn the_help_of_every_command_has_an_example_that_parses() {
    let mut evenkeel = evenkeel_cli::command();
    evenkeel.build();
    evenkeel.clone().debug_assert();
    let commands: Vec<Command> =
        evenkeel.get_subcommands().filter(|command| command.get_name() != "help").cloned().collect();
    assert!(commands.len() >= 4);
    for mut command in commands.into_iter().chain([evenkeel]) {
        for help in [command.render_help(), command.render_long_help()] {
            let help = help.to_string();
            let examples: Vec<&str> =
                help.lines().map(str::trim).filter(|line| line.starts_with("evenkeel ")).collect();
            assert!(help.contains("Examples:") && !examples.is_empty(), "{} has no example", command.get_name());
            for example in examples {
                // What comes after is the shell's.
                let words = example.split([' ']).take_while(|word| !["|", ">"].contains(word));
                if let Err(error) = evenkeel_cli::command().try_get_matches_from(words) {
                    panic!("{example}: {error}");
                }
            }
        }
    }
}

#[test]
fn every_flag_says_what_it_does() {
    let mut evenkeel = evenkeel_cli::command();
    evenkeel.build();
    for command in evenkeel.get_subcommands() {
        assert!(command.get_about().is_some(), "{}", command.get_name());
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{} {}", command.get_name(), argument.get_id());
        }
    }
}
