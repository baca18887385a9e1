//! No white space at the end of a line, and a line end at the end of every text file.

use crate::offence::{Offence, has_extension, numbered};

pub(crate) fn check(path: &str, text: &str) -> Vec<Offence> {
    // A snapshot shows a program's output as it is; tables for the terminal are padded. Inputs of fuzz targets have the
    // line ends of what they are.
    if has_extension(path, "snap") || path.contains("/corpus/") {
        return Vec::new();
    }
    let trailing = numbered(text)
        .filter(|(_, text)| text.ends_with(char::is_whitespace))
        .map(|(line, _)| Offence::new(path, line, "white space at the end of the line"));
    let unfinished = (!text.is_empty() && !text.ends_with('\n'))
        .then(|| Offence::new(path, text.lines().count(), "no line end at the end of the file"));
    trailing.chain(unfinished).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offence::assert_offences;

    #[test]
    fn trailing_white_space() {
        let text = "fine\nspace \ntab\t\nreturn\r\n";
        let expected = [2, 3, 4].map(|line| format!("a.md:{line}: white space at the end of the line"));
        assert_offences(&check("a.md", text), &expected.each_ref().map(String::as_str));
    }

    #[test]
    fn missing_final_line_end() {
        assert_offences(&check("a.md", "one\ntwo"), &["a.md:2: no line end at the end of the file"]);
    }

    #[test]
    fn good_files() {
        assert_offences(&check("a.md", ""), &[]);
        assert_offences(&check("a.md", "  one\n\n\ttwo\n"), &[]);
        assert_offences(&check("a.snap", "NAME   AGE   \n"), &[]);
        assert_offences(&check("tests/corpus/http1/get", "GET / HTTP/1.0\r\n\r"), &[]);
    }
}
