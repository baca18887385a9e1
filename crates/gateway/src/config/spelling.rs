//! The known name that a misspelt one probably means.

/// The closest of the known names, if it differs in so few letters that it was probably meant.
pub(super) fn closest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let distances = known.iter().map(|known| (distance(&name.to_lowercase(), &known.to_lowercase()), *known));
    let (distance, found) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= found.len().div_ceil(3)).then_some(found)
}

/// How many letters have to be added, left out, replaced or exchanged with their neighbour.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for i in 0..=one.len() {
        for j in 0..=other.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
                let least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                let is_exchange = i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
                if is_exchange { least.min(rows[i - 2][j - 2] + 1) } else { least }
            };
        }
    }
    rows[one.len()][other.len()]
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
