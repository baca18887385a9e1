//! Text from clients, servers and logs, made safe for a terminal: names may hold control characters, which a terminal would
//! carry out, and characters that hide or reorder text. The rule is the one of the gateway's logs and of its dashboard.

pub(crate) use evenkeel_gateway::observe::visible::{
    is_visible as is_printable, visible as printable, visible_json as printable_json,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_a_terminal_that_it_would_carry_out() {
        assert_eq!(printable("system:node:ä→日本"), "system:node:ä→日本");
        assert_eq!(printable("a\u{1b}[2Jb\u{9b}31m\u{7}\r\n\t"), r"a\u{1b}[2Jb\u{9b}31m\u{7}\u{d}\u{a}\u{9}");
        assert_eq!(printable("ab\u{202e}txt\u{200b}\u{e0041}"), r"ab\u{202e}txt\u{200b}\u{e0041}");
    }

    #[test]
    fn json_says_the_same() {
        let name = "a\u{1b}\u{7f}\u{9b}31m\u{202e}\u{feff}\u{e0041}ä\"\\";
        let json = serde_json::to_string(name).unwrap();
        let escaped = printable_json(&json);
        assert!(escaped.chars().all(is_printable), "{escaped}");
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), name);
        assert_eq!(printable_json("{}"), "{}");
        assert_eq!(printable_json("{\n \"\u{7f}\": 1\n}"), "{\n \"\\u007f\": 1\n}");
    }
}
