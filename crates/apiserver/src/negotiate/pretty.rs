//! Whether JSON is laid out for people (API-78).

use crate::output::Layout;

/// How JSON is laid out, by the query parameter and, where that says nothing, by the program that asks.
pub(super) fn layout(parameter: Option<&str>, user_agent: &str) -> Layout {
    const FOR_PEOPLE: [&str; 3] = ["curl", "Wget", "Mozilla/5.0"];
    let indented = match parameter.unwrap_or_default() {
        "" => FOR_PEOPLE.iter().any(|program| user_agent.starts_with(program)),
        value => ["true", "1", "t"].iter().any(|yes| value.eq_ignore_ascii_case(yes)),
    };
    if indented { Layout::Indented } else { Layout::OneLine }
}
