//! Text from clients, servers and logs, made safe for a terminal: names may hold control characters, which a terminal would
//! carry out, and characters that hide or reorder text.

use std::borrow::Cow;

/// Replaces a character that is not shown.
const REPLACEMENT: char = '\u{fffd}';

/// The text, with each such character replaced.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_printable) {
        return Cow::Borrowed(text);
    }
    text.chars().map(|character| if is_printable(character) { character } else { REPLACEMENT }).collect()
}

/// JSON in which such characters are escaped: it means the same to a program, and is safe for a terminal.
pub(crate) fn printable_json(json: &str) -> Cow<'_, str> {
    // A line break is between members: strings have it escaped.
    let is_kept = |character: char| character == '\n' || is_printable(character);
    if json.chars().all(is_kept) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len() + 32);
    for character in json.chars() {
        if is_kept(character) {
            text.push(character);
        } else {
            // All of these are in the basic plane, so that one escape is enough.
            text += &format!("\\u{:04x}", u32::from(character));
        }
    }
    Cow::Owned(text)
}

fn is_printable(character: char) -> bool {
    // Control characters; marks that are invisible or change the direction of text; separators of lines.
    let is_hidden = matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}');
    !character.is_control() && !is_hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_a_terminal_that_it_would_carry_out() {
        assert_eq!(printable("system:node:ä→日本"), "system:node:ä→日本");
        assert_eq!(printable("a\u{1b}[2Jb\u{9b}31m\u{7}\r\n\t"), "a�[2Jb�31m����");
        assert_eq!(printable("ab\u{202e}txt\u{200b}"), "ab�txt�");
    }

    #[test]
    fn json_says_the_same() {
        let name = "a\u{1b}\u{7f}\u{9b}31m\u{202e}\u{feff}ä\"\\";
        let json = serde_json::to_string(name).unwrap();
        let escaped = printable_json(&json);
        assert!(escaped.chars().all(is_printable), "{escaped}");
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), name);
        assert_eq!(printable_json("{}"), "{}");
        assert_eq!(printable_json("{\n \"\u{7f}\": 1\n}"), "{\n \"\\u007f\": 1\n}");
    }
}
