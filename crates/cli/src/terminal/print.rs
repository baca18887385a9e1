//! How tools print their result.

use std::io::{self, Write};

use anyhow::Result;

use crate::exit::WrongUsage;

/// Writes the result of a tool to standard output. A reader that has seen enough, such as `head`, is no error; anything else that
/// goes wrong means that the tool could not do its work.
pub(crate) fn print(text: &str) -> Result<()> {
    write(&mut io::stdout().lock(), text)
}

fn write(output: &mut impl Write, text: &str) -> Result<()> {
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(WrongUsage(format!("cannot write to standard output: {error}")).into()),
        Ok(()) => Ok(()),
    }
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
        assert!(write(&mut Broken(io::ErrorKind::BrokenPipe), "a").is_ok());
        let error = write(&mut Broken(io::ErrorKind::StorageFull), "a").unwrap_err();
        assert!(error.is::<WrongUsage>(), "{error}");
        assert!(error.to_string().starts_with("cannot write to standard output: "), "{error}");
    }
}
