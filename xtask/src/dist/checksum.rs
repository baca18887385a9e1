//! SHA-256 of files, as `sha256sum` prints it.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// In hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The file that `sha256sum --check` reads.
pub(crate) fn sums<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut text = String::new();
    for (name, content) in files {
        text += &format!("{}  {name}\n", sha256(content));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_sum() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sums([("a.txt", &b""[..])]), format!("{empty}  a.txt\n"));
    }
}
