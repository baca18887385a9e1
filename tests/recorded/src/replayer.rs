//! The program that replays conversations to a server.

use std::process::Command;

use crate::{compared, conformance, own_folder};

/// The replayer, told where the conversations are. A folder that `EVENKEEL_CONFORMANCE` names may bring its own.
pub fn replayer() -> Command {
    let folder = conformance();
    let brought = folder.join("replay.py");
    let program = if brought.is_file() { brought } else { own_folder().join("conformance/replay.py") };
    let mut replayer = Command::new("python3");
    replayer.arg(program).arg("--dir").arg(folder.join("transcripts"));
    replayer
}

/// Takes the number of conversations from the last line that a replayer without differences printed, and says it.
///
/// # Panics
/// If nothing was replayed, or something differed.
pub fn replayed(what: &str, output: &str) {
    compared(what, passed(output));
}

fn passed(output: &str) -> usize {
    let summary = output.lines().last().unwrap_or_default();
    let (passed, rest) = summary.split_once(" passed, ").unwrap_or_default();
    assert!(rest == "0 failed" || rest.starts_with("0 failed, "), "not all conversations went as recorded: {output}");
    passed.parse().unwrap_or_else(|error| panic!("{summary}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_tells_how_many_passed() {
        assert_eq!(passed("ok   crud\n12 passed, 0 failed\n"), 12);
        assert_eq!(passed("3 passed, 0 failed, 1 skipped"), 3);
    }

    #[test]
    #[should_panic(expected = "not all conversations went as recorded")]
    fn a_difference_is_a_fault() {
        passed("FAIL crud\n3 passed, 1 failed");
    }

    #[test]
    #[should_panic(expected = "not all conversations went as recorded")]
    fn a_replayer_that_said_nothing_is_a_fault() {
        passed("");
    }
}
