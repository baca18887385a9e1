//! Text from clients, servers and logs, made safe for a terminal: names may hold control characters, which a terminal would
//! carry out, and characters that hide or reorder text. The rule is the one of the gateway's logs and of its dashboard.

use std::borrow::Cow;

use evenkeel_gateway::observe::visible::is_visible;

pub(crate) use evenkeel_gateway::observe::visible::visible_json as printable_json;

/// Replaces a character that is not shown.
const REPLACEMENT: char = '\u{fffd}';

/// The text, with each such character replaced by one, so that places in the text and columns of tables stay what they are.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_visible) {
        return Cow::Borrowed(text);
    }
    text.chars().map(|character| if is_visible(character) { character } else { REPLACEMENT }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_a_terminal_that_it_would_carry_out() {
        assert_eq!(printable("system:node:ä→日本"), "system:node:ä→日本");
        assert_eq!(printable("a\u{1b}[2Jb\u{9b}31m\u{7}\r\n\t"), "a�[2Jb�31m����");
        assert_eq!(printable("ab\u{202e}txt\u{200b}\u{e0041}"), "ab�txt��");
    }

    #[test]
    fn json_says_the_same() {
        let name = "a\u{1b}\u{7f}\u{9b}31m\u{202e}\u{feff}\u{e0041}ä\"\\";
        let json = serde_json::to_string(name).unwrap();
        let escaped = printable_json(&json);
        assert!(escaped.chars().all(is_visible), "{escaped}");
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), name);
        assert_eq!(printable_json("{}"), "{}");
        assert_eq!(printable_json("{\n \"\u{7f}\": 1\n}"), "{\n \"\\u007f\": 1\n}");
    }
}
