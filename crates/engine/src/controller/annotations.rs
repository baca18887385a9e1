//! The annotations of objects that Kubernetes does not know, and what is wrong with them (BM-1, BM-2).

use std::collections::BTreeMap;

use evenkeel_api::Kind;
use evenkeel_api::v1::PriorityLevelConfiguration;

/// How many long-running requests a priority level lets run at a time.
pub const MAX_LONG_RUNNING: &str = "evenkeel.dev/max-long-running";

/// An annotation with a value that is not understood. It is as if the annotation were not there (BM-2).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("annotation {annotation}: {value:?} is not {expected}; the annotation is ignored")]
pub struct IgnoredAnnotation {
    /// Its name.
    pub annotation: &'static str,
    /// Its value.
    pub value: String,
    /// What the value should be.
    pub expected: &'static str,
}

/// What is wrong with the annotations of an object of that kind.
pub fn ignored_annotations(
    kind: Kind,
    annotations: &BTreeMap<String, String>,
) -> impl Iterator<Item = IgnoredAnnotation> {
    let of_level = match kind {
        Kind::PriorityLevelConfiguration => read_max_long_running(annotations).err(),
        Kind::FlowSchema => None,
    };
    of_level.into_iter()
}

/// How many long-running requests a level lets run at a time; `None` for no limit.
pub fn max_long_running(level: &PriorityLevelConfiguration) -> Result<Option<u32>, IgnoredAnnotation> {
    read_max_long_running(&level.metadata.annotations)
}

fn read_max_long_running(annotations: &BTreeMap<String, String>) -> Result<Option<u32>, IgnoredAnnotation> {
    let Some(value) = annotations.get(MAX_LONG_RUNNING) else { return Ok(None) };
    // The type would take a sign.
    let digits = Some(value).filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).map(Some).ok_or_else(|| IgnoredAnnotation {
        annotation: MAX_LONG_RUNNING,
        value: value.clone(),
        expected: "a whole number from 0 to 4294967295",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(value: &str) -> PriorityLevelConfiguration {
        let mut level = PriorityLevelConfiguration::default();
        level.metadata.annotations.insert(MAX_LONG_RUNNING.to_owned(), value.to_owned());
        level
    }

    fn ignored(kind: Kind, value: &str) -> Vec<IgnoredAnnotation> {
        ignored_annotations(kind, &level(value).metadata.annotations).collect()
    }

    #[test]
    fn the_most_long_running_requests_are_a_whole_number() {
        assert_eq!(max_long_running(&PriorityLevelConfiguration::default()), Ok(None));
        for (value, number) in [("0", 0), ("20", 20), ("007", 7), ("4294967295", u32::MAX)] {
            assert_eq!(max_long_running(&level(value)), Ok(Some(number)), "{value}");
            assert_eq!(ignored(Kind::PriorityLevelConfiguration, value), []);
        }
    }

    #[test]
    fn bm_2_what_is_not_understood_is_named() {
        for value in ["", " ", "-1", "+1", "1.5", " 7", "many", "4294967296", "٣"] {
            let error = max_long_running(&level(value)).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "annotation evenkeel.dev/max-long-running: {value:?} is not a whole number from 0 to 4294967295; the \
                     annotation is ignored"
                )
            );
            assert_eq!(ignored(Kind::PriorityLevelConfiguration, value), [error]);
            assert_eq!(ignored(Kind::FlowSchema, value), [], "it means nothing there");
        }
    }
}
