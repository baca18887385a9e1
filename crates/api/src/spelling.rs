//! The known name that a misspelt one probably means.

use strsim::osa_distance;

/// The closest of the known names, if it differs in so few letters that it was probably meant.
pub fn closest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let distances = known.iter().map(|known| (osa_distance(&name.to_lowercase(), &known.to_lowercase()), *known));
    let (distance, found) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= found.len().div_ceil(3)).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_recognised_and_another_word_is_not() {
        let known = ["concurrency", "idle", "connect", "url", "whenClientLeaves"];
        for (name, expected) in [
            ("concurency", Some("concurrency")),
            ("Concurrency", Some("concurrency")),
            ("idel", Some("idle")),
            ("conect", Some("connect")),
            ("urls", Some("url")),
            ("when_client_leaves", Some("whenClientLeaves")),
            ("seats", None),
            ("host", None),
            ("", None),
        ] {
            assert_eq!(closest(name, &known), expected, "{name}");
        }
        assert_eq!(closest("a", &[]), None);
    }
}
