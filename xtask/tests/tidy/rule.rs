//! Every rule that is cited (`FQ-23`, `API-163`, a test named `fq_23_…`) is one of the specification in `docs/spec`.

use std::collections::BTreeSet;

use crate::offence::{Offence, numbered};

pub(crate) const SPECIFICATION: &str = "docs/spec/";

/// The numbers of all rules of the specification.
pub(crate) struct Rules<'a>(BTreeSet<Rule<'a>>);

/// The subject of a rule (`FQ`) and its number.
type Rule<'a> = (&'a str, u32);

// === impl Rules ===

impl<'a> Rules<'a> {
    /// A rule is defined where its number opens a paragraph, an item or a row, or is followed by a tag such as `[D]`.
    pub(crate) fn defined_in(texts: impl Iterator<Item = &'a str>) -> Self {
        let lines = texts.flat_map(str::lines);
        Self(
            lines
                .flat_map(|line| rules(line).filter(|(start, _)| is_definition(line, *start)))
                .map(|(_, rule)| rule)
                .collect(),
        )
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Numbers whose subject the specification has, but not that number.
    pub(crate) fn check(&self, path: &str, text: &str) -> Vec<Offence> {
        let mut offences = Vec::new();
        for (line, text) in numbered(text) {
            let named = rule_in_name(text);
            let named = named.as_ref().map(|(subject, number)| (subject.as_str(), *number));
            for rule in rules(text).map(|(_, rule)| rule).chain(named).filter(|rule| self.lacks(rule)) {
                let (subject, number) = rule;
                let fault = format!("`{subject}-{number}` is not a rule in {SPECIFICATION}");
                offences.push(Offence::new(path, line, fault));
            }
        }
        offences
    }

    fn lacks(&self, rule: &Rule<'_>) -> bool {
        self.0.iter().any(|(subject, _)| *subject == rule.0) && !self.0.contains(rule)
    }
}

/// All that looks like a rule in a line, and where it starts: two or three capital letters, a hyphen and a number.
fn rules(line: &str) -> impl Iterator<Item = (usize, Rule<'_>)> {
    line.match_indices('-').filter_map(|(hyphen, _)| {
        let before = &line[..hyphen];
        let subject_start =
            before.rfind(|c: char| !c.is_ascii_uppercase()).map_or(0, |last| last + char_length(before, last));
        let subject = &before[subject_start..];
        let stands_alone = !before[..subject_start].ends_with(|c: char| c.is_alphanumeric() || "_-".contains(c));
        let after = &line[hyphen + 1..];
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let number = after[..digits].parse().ok()?;
        let ends = !after[digits..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
        (stands_alone && ends && (2..=3).contains(&subject.len())).then_some((subject_start, (subject, number)))
    })
}

/// The rule that a function is named after, as in `fn fq_23_ties`.
fn rule_in_name(line: &str) -> Option<(String, u32)> {
    let (_, name) = line.split_once("fn ")?;
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let subject = words.next().filter(|word| (2..=3).contains(&word.len()))?.to_ascii_uppercase();
    Some((subject, words.next()?.parse().ok()?))
}

fn char_length(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(0, char::len_utf8)
}

fn is_definition(line: &str, start: usize) -> bool {
    let opens = line[..start].chars().all(|c| " *|-".contains(c)) && start > 0;
    let number_and_rest = &line[start..];
    let rest = number_and_rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '-');
    opens || ["[D]", "[O]", "[Q]", "[E]"].iter().any(|tag| rest.trim_start().starts_with(tag))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offence::assert_offences;

    const TEXT: &str = "\
**FQ-1 [D] Seats.** As in FQ-7.
- PB-2 A list, see PB-3.
* **OG-4** Guidance.
| KW-5 | A weakness |
| `User` (FM-6 [D]) | a subject, see FM-8 |
See API-9.
";

    #[test]
    fn rules_that_are_absent() {
        let rules = Rules::defined_in([TEXT].into_iter());
        assert!(!rules.is_empty());
        assert_offences(&rules.check("a.rs", "// FQ-1, PB-2, OG-4, KW-5 to\n//! FM-6\n"), &[]);
        assert_offences(
            &rules.check("a.rs", "fine\n// (FQ-7) as in\n//! PB-3, FM-8: **FQ-10**\n"),
            &[
                "a.rs:2: `FQ-7` is not a rule in docs/spec/",
                "a.rs:3: `PB-3` is not a rule in docs/spec/",
                "a.rs:3: `FM-8` is not a rule in docs/spec/",
                "a.rs:3: `FQ-10` is not a rule in docs/spec/",
            ],
        );
    }

    #[test]
    fn names_of_tests() {
        let rules = Rules::defined_in([TEXT].into_iter());
        let text = "fn fq_1_seats() {\n    fn utf_8() {\nasync fn kw_6_weak() {\nfn fq_x_7() {\n";
        assert_offences(&rules.check("a.rs", text), &["a.rs:3: `KW-6` is not a rule in docs/spec/"]);
    }

    #[test]
    fn what_only_looks_like_a_rule() {
        let rules = Rules::defined_in([TEXT].into_iter());
        // Another subject, part of a longer word, or no number.
        for text in ["API-9 UTF-8 SHA-256", "XFQ-7 xFQ-7 A-FQ-7 é-FQ-7", "FQ-7a FQ-x FQ-", "fq-7 -FQ-7"] {
            assert_offences(&rules.check("a.rs", text), &[]);
        }
        assert_eq!(rules.check("a.rs", "éFQ-7 …FQ-7").len(), 1, "letters of any script");
    }
}
