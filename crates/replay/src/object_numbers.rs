//! How many objects of each resource there are: what lists cost depends on it, and logs do not tell.

use std::collections::HashMap;

use evenkeel_engine::time::Instant;
use evenkeel_engine::work::{ObjectStatistics, Statistics};

/// The number of objects of each resource. It does not change during a replay.
///
/// ```
/// use evenkeel_replay::ObjectNumbers;
///
/// let numbers: ObjectNumbers = "pods 1200 4096\ndeployments.apps: 70\n".parse().unwrap();
/// assert_eq!(numbers.len(), 2);
/// let metrics = r#"apiserver_resource_objects{group="apps",resource="deployments"} 70"#;
/// assert_eq!(metrics.parse::<ObjectNumbers>().unwrap().len(), 1);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectNumbers {
    /// By resource, then by API group. One step each, so that looking one up needs no text that is put together.
    by_resource: HashMap<Box<str>, HashMap<Box<str>, Number>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Number {
    count: i64,
    average_bytes: i64,
}

/// Why a file of object numbers cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text:?} is neither `RESOURCE.GROUP NUMBER [BYTES]` nor a metric")]
pub struct ObjectNumbersError {
    line: usize,
    text: String,
}

/// The metrics that tell the number of objects. `-1` stands for a number that the server does not know.
const METRICS: [&str; 2] = ["apiserver_resource_objects{", "apiserver_storage_objects{"];

/// The metric that tells the size of all objects of a resource, in servers that cost lists by size.
const SIZES: &str = "apiserver_resource_size_estimate_bytes{";

// === impl ObjectNumbers ===

impl ObjectNumbers {
    /// How many resources are known.
    pub fn len(&self) -> usize {
        self.by_resource.values().map(HashMap::len).sum()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.by_resource.is_empty()
    }

    /// Whether the size of any object is known. Where none is, lists can only be costed by the number of objects.
    pub(crate) fn has_sizes(&self) -> bool {
        self.by_resource.values().flat_map(HashMap::values).any(|number| number.average_bytes > 0)
    }

    fn number(&mut self, resource: &str, group: &str) -> &mut Number {
        self.by_resource.entry(resource.into()).or_default().entry(group.into()).or_default()
    }

    /// Takes a line of metrics. `None`: it is one of those that are wanted, but is malformed.
    fn take_metric(&mut self, name: &str, value: &str, sizes: &mut Vec<(String, String, f64)>) -> Option<()> {
        let counts = METRICS.iter().find_map(|metric| name.strip_prefix(metric));
        let Some(labels) = counts.or_else(|| name.strip_prefix(SIZES)) else { return Some(()) };
        let value: f64 = value.parse().ok()?;
        let resource = label(labels, "resource")?;
        let (resource, group) = match label(labels, "group") {
            Some(group) => (resource, group),
            None => resource.split_once('.').unwrap_or((resource, "")),
        };
        if value < 0.0 {
            return Some(());
        }
        if counts.is_some() {
            self.number(resource, group).count = whole(value);
        } else {
            sizes.push((resource.to_owned(), group.to_owned(), value));
        }
        Some(())
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a number of objects or bytes")]
fn whole(value: f64) -> i64 {
    value as i64
}

impl std::str::FromStr for ObjectNumbers {
    type Err = ObjectNumbersError;

    /// Reads lines such as `deployments.apps 70 4096` (a resource with its group, the number of objects, and perhaps their
    /// average size in bytes), or a dump of the metrics of a kube-apiserver.
    fn from_str(text: &str) -> Result<Self, ObjectNumbersError> {
        let mut numbers = Self::default();
        let mut sizes = Vec::new();
        for (line, text) in text.lines().enumerate() {
            let fault = || ObjectNumbersError { line: line + 1, text: text.to_owned() };
            let trimmed = text.trim();
            if trimmed.is_empty() || trimmed.starts_with('#') {
                continue;
            }
            if let Some((name, value)) = trimmed.rsplit_once(' ').filter(|(name, _)| is_metric(name)) {
                numbers.take_metric(name, value, &mut sizes).ok_or_else(fault)?;
                continue;
            }
            let mut words = trimmed.split([' ', '\t', ':', ',']).filter(|word| !word.is_empty());
            let key = words.next().ok_or_else(fault)?;
            let mut number = || words.next().map(|word| word.parse::<u32>().map_err(|_| fault())).transpose();
            let count = number()?.ok_or_else(fault)?.into();
            let average_bytes = number()?.unwrap_or(0).into();
            if words.next().is_some() {
                return Err(fault());
            }
            let (resource, group) = key.split_once('.').unwrap_or((key, ""));
            *numbers.number(resource, group) = Number { count, average_bytes };
        }
        for (resource, group, bytes) in sizes {
            let number = numbers.number(&resource, &group);
            number.average_bytes = whole(bytes) / number.count.max(1);
        }
        Ok(numbers)
    }
}

impl ObjectStatistics for ObjectNumbers {
    fn statistics(&self, resource: &str, api_group: &str, _now: Instant) -> Statistics {
        match self.by_resource.get(resource).and_then(|by_group| by_group.get(api_group)) {
            Some(&Number { count, average_bytes }) => Statistics::Fresh { count, average_bytes },
            None => Statistics::NeverRecorded,
        }
    }
}

fn is_metric(name: &str) -> bool {
    let word = name.split('{').next().unwrap_or_default();
    word.contains('_') && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':')
}

/// The value of a label; no resource and no group has a quote in it.
fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    labels.trim_end_matches('}').split(',').find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        (key == name).then(|| value.trim_matches('"'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics(text: &str, resource: &str, group: &str) -> Statistics {
        text.parse::<ObjectNumbers>().unwrap().statistics(resource, group, Instant::default())
    }

    #[test]
    fn lists_of_resources() {
        let text = "# yesterday\npods 1200 4096\n\ndeployments.apps: 70\n";
        assert_eq!(statistics(text, "pods", ""), Statistics::Fresh { count: 1200, average_bytes: 4096 });
        assert_eq!(statistics(text, "deployments", "apps"), Statistics::Fresh { count: 70, average_bytes: 0 });
        assert_eq!(statistics(text, "deployments", ""), Statistics::NeverRecorded);
    }

    #[test]
    fn dumps_of_metrics() {
        let text = "# TYPE apiserver_resource_objects gauge\n\
            apiserver_resource_objects{group=\"apps\",resource=\"deployments\"} 70\n\
            apiserver_storage_objects{resource=\"leases.coordination.k8s.io\"} 3\n\
            apiserver_storage_objects{resource=\"pods\"} -1\n\
            apiserver_resource_size_estimate_bytes{group=\"apps\",resource=\"deployments\"} 7e+04\n\
            go_goroutines 12\n\
            apiserver_flowcontrol_current_r{priority_level=\"a b\"} 1.5e+03\n";
        assert_eq!(statistics(text, "deployments", "apps"), Statistics::Fresh { count: 70, average_bytes: 1000 });
        assert_eq!(statistics(text, "leases", "coordination.k8s.io"), Statistics::Fresh { count: 3, average_bytes: 0 });
        assert_eq!(statistics(text, "pods", ""), Statistics::NeverRecorded);
    }

    #[test]
    fn other_lines_are_named() {
        for text in ["pods", "pods many", "pods 1 2 3", "pods -1"] {
            let error = format!("#\n{text}").parse::<ObjectNumbers>().unwrap_err().to_string();
            assert_eq!(error, format!("line 2: {text:?} is neither `RESOURCE.GROUP NUMBER [BYTES]` nor a metric"));
        }
    }
}
