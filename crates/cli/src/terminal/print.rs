//! How commands print their result, as text or as JSON.

use std::io::{self, Write};

use anyhow::{Context, Result};
use serde::Serialize;

use super::printable_json;
use crate::exit::WrongUsage;

/// Whether the output of a command still has a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Reads,
    /// The reader has closed the output, as `head` does after some lines.
    Gone,
}

/// Writes the result of a command to standard output. A reader that has closed the output is no error; any other failure means
/// that the command could not do its work.
pub(crate) fn print(text: impl AsRef<[u8]>) -> Result<Reader> {
    written(write(&mut io::stdout().lock(), text.as_ref()))
}

/// The meaning of a result of writing to standard output.
pub(crate) fn written(result: io::Result<()>) -> Result<Reader> {
    match result {
        Ok(()) => Ok(Reader::Reads),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(WrongUsage(format!("cannot write to standard output: {error}")).into()),
    }
}

/// JSON as commands print it: on several lines, and safe for a terminal.
pub(crate) fn pretty_json(value: &impl Serialize) -> Result<String> {
    let json = serde_json::to_string_pretty(value).context("cannot encode the result as JSON")?;
    Ok(format!("{}\n", printable_json(&json)))
}

fn write(output: &mut impl Write, text: &[u8]) -> io::Result<()> {
    output.write_all(text)?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails when the buffer is written out.
    struct Broken(io::ErrorKind);

    impl Write for Broken {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn a_closed_pipe_is_no_error_and_a_full_disk_is_one() {
        let print = |kind| written(write(&mut Broken(kind), b"a"));
        assert_eq!(print(io::ErrorKind::BrokenPipe).unwrap(), Reader::Gone);
        let error = print(io::ErrorKind::StorageFull).unwrap_err();
        assert!(error.is::<WrongUsage>(), "{error}");
        assert!(error.to_string().starts_with("cannot write to standard output: "), "{error}");
    }
}
