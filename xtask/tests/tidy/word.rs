//! Work that is left to do is written down as an issue, not as a word in a file.

use crate::offence::{Offence, has_extension, numbered};

// In two halves, so that this file does not offend against itself.
const BANNED: [&str; 4] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX"), concat!("HA", "CK")];

const EXTENSIONS: [&str; 4] = ["rs", "toml", "md", "sh"];

pub(crate) fn check(path: &str, text: &str) -> Vec<Offence> {
    if !EXTENSIONS.iter().any(|extension| has_extension(path, extension)) {
        return Vec::new();
    }
    let words = numbered(text).flat_map(|(line, text)| words(text).map(move |word| (line, word)));
    words
        .filter(|(_, word)| BANNED.contains(word))
        .map(|(line, word)| Offence::new(path, line, format!("`{word}`: do it now or open an issue")))
        .collect()
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offence::assert_offences;

    #[test]
    fn banned_words() {
        for word in BANNED {
            for extension in EXTENSIONS {
                let path = format!("a.{extension}");
                let text = format!("fine\n# {word}(someone): later\n");
                let expected = format!("{path}:2: `{word}`: do it now or open an issue");
                assert_offences(&check(&path, &text), &[&expected]);
            }
        }
    }

    #[test]
    fn other_words() {
        let inside = format!("{0}S {0}_LIST a{0} {1}", BANNED[0], BANNED[0].to_lowercase());
        assert_offences(&check("a.rs", &inside), &[]);
        assert_offences(&check("a.json", BANNED[0]), &[]);
    }
}
