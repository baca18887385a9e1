//! Audit events as clouds and tools hand them out: in an entry of a log service, or behind a prefix.
//!
//! | from | what a line or an object is |
//! |---|---|
//! | CloudWatch Logs (EKS) | an object whose `message` or `@message` is the event, a pair of `field` and `value`, or a time and the event |
//! | Azure Monitor (AKS) | an object whose `properties.log` or `log_s` is the event |
//! | Cloud Logging (GKE) | an object with a `protoPayload`, see [`cloud_audit`](super::cloud_audit) |
//! | `oc adm node-logs` (OpenShift) | the name of a node and the event |
//! | container runtimes | an object whose `log` is the event |

use std::borrow::Cow;

use super::cloud_audit::{self, CloudEntry};
use super::{Damage, audit};
use crate::json::Scanner;
use crate::record::Record;
use crate::users::Users;

/// The members of an entry that are read.
#[derive(Default)]
struct LogEntry<'a> {
    content: Option<Content<'a>>,
    /// The name and the value of a column: a row of a query has an object for each.
    column: Option<Cow<'a, str>>,
    value: Option<Content<'a>>,
    cloud: CloudEntry<'a>,
    /// Whether it says how far a search has come.
    is_progress: bool,
}

/// The event of an entry.
enum Content<'a> {
    /// As text, which may be something else.
    Text(Cow<'a, str>),
    /// As an object.
    Object(&'a [u8]),
}

/// The longest prefix: the name of a node has 253 letters at most.
const PREFIX_MAX: usize = 300;

/// Reads an entry. `Ok(None)`: it is not about a request.
pub(super) fn read<'a>(line: &'a [u8], users: &mut Users) -> Result<Option<Record<'a>>, Damage> {
    let start = line.iter().take(PREFIX_MAX).position(|byte| *byte == b'{').ok_or(Damage::Form)?;
    if start > 0 {
        // A prefix ends with a space, and quotes nothing.
        let is_prefix = line[..start].ends_with(b" ") && !line[..start].contains(&b'"');
        return if is_prefix { audit::read(&line[start..], users).map(Some) } else { Err(Damage::Form) };
    }
    let mut scanner = Scanner::new(line);
    let entry = LogEntry::scan(&mut scanner)?;
    scanner.end()?;
    let content = match (entry.content, entry.column.as_deref()) {
        (Some(content), _) => content,
        (None, Some("@message")) => entry.value.ok_or(Damage::Missing("value"))?,
        // Another column, or the list of the streams that were searched.
        (None, Some(_)) => return Ok(None),
        (None, None) if entry.is_progress => return Ok(None),
        (None, None) => return cloud_audit::record(entry.cloud, users),
    };
    match content {
        Content::Object(event) => audit::read(event, users).map(Some),
        // Other programs write into the same log.
        Content::Text(text) if !text.trim_start().starts_with('{') => Ok(None),
        Content::Text(Cow::Borrowed(text)) => audit::read(text.trim_ascii().as_bytes(), users).map(Some),
        Content::Text(Cow::Owned(text)) => {
            audit::read(text.trim_ascii().as_bytes(), users).map(Record::into_owned).map(Some)
        }
    }
}

// === impl LogEntry ===

impl<'a> LogEntry<'a> {
    fn scan(scanner: &mut Scanner<'a>) -> Result<Self, Damage> {
        let mut entry = Self::default();
        scanner.object(|name, scanner| {
            match name {
                "message" | "@message" | "log" | "log_s" => entry.content = Content::scan(scanner)?,
                "properties" if scanner.peek() == Some(b'{') => {
                    scanner.object(|name, scanner| {
                        match name {
                            "log" => entry.content = Content::scan(scanner)?,
                            _ => scanner.skip()?,
                        }
                        Ok::<_, Damage>(())
                    })?;
                }
                "field" if scanner.peek() == Some(b'"') => entry.column = Some(scanner.string()?),
                "value" => entry.value = Content::scan(scanner)?,
                "searchedCompletely" => {
                    entry.is_progress = true;
                    scanner.skip()?;
                }
                _ => entry.cloud.member(name, scanner)?,
            }
            Ok::<_, Damage>(())
        })?;
        Ok(entry)
    }
}

// === impl Content ===

impl<'a> Content<'a> {
    fn scan(scanner: &mut Scanner<'a>) -> Result<Option<Self>, Damage> {
        Ok(match scanner.peek() {
            Some(b'"') => Some(Self::Text(scanner.string()?)),
            Some(b'{') => Some(Self::Object(scanner.raw_value()?)),
            _ => {
                scanner.skip()?;
                None
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &str = r#"{"kind":"Event","auditID":"a-1","stage":"ResponseComplete","requestURI":"/api/v1/pods","verb":"list","user":{"username":"alice"},"requestReceivedTimestamp":"2026-11-16T10:51:10.100000Z","stageTimestamp":"2026-11-16T10:51:10.350000Z","annotations":{"note":"a \"quoted\" word"}}"#;

    /// The event as text in JSON.
    fn quoted() -> String {
        format!("\"{}\\n\"", EVENT.replace('\\', "\\\\").replace('"', "\\\""))
    }

    #[test]
    fn the_event_is_found_wherever_it_is() {
        let expected = audit::read(EVENT.as_bytes(), &mut Users::default()).unwrap();
        let quoted = quoted();
        for line in [
            format!("ci-master-0.example.internal {EVENT}"),
            format!("2026-11-16T10:51:10.350Z {EVENT}"),
            format!(
                r#"{{"logStreamName":"kube-apiserver-audit-1","timestamp":1794826270350,"message":{quoted},"eventId":"7"}}"#
            ),
            format!(r#"{{"@timestamp":"2026-11-16 10:51:10.350","@message":{EVENT}}}"#),
            format!(r#"{{"field":"@message","value":{quoted}}}"#),
            format!(
                r#"{{"time":"2026-11-16T10:51:10Z","category":"kube-audit","properties":{{"log":{quoted},"stream":"stdout"}}}}"#
            ),
            format!(r#"{{"TimeGenerated":"2026-11-16T10:51:10Z","log_s":{quoted}}}"#),
            format!(r#"{{"log":{quoted},"stream":"stdout","time":"2026-11-16T10:51:10Z"}}"#),
        ] {
            assert_eq!(read(line.as_bytes(), &mut Users::default()), Ok(Some(expected.clone())), "{line}");
        }
    }

    #[test]
    fn what_is_not_about_a_request_is_left_out_and_damage_is_named() {
        let found = |line: &str| read(line.as_bytes(), &mut Users::default()).map(|record| record.is_some());
        for line in [
            r#"{"message":"I1116 10:51:11.6 1 controller.go:615] quota admission added evaluator"}"#,
            r#"{"field":"@timestamp","value":"2026-11-16 10:51:10.350"}"#,
            r#"{"logStreamName":"kube-apiserver-audit-1","searchedCompletely":true}"#,
        ] {
            assert_eq!(found(line), Ok(false), "{line}");
        }
        assert_eq!(found(r#"{"message":"{}"}"#), Err(Damage::Missing("stage")));
        assert_eq!(found(r#"{"a":1}"#), Err(Damage::Missing("protoPayload")));
        assert_eq!(found("no event"), Err(Damage::Form));
        assert_eq!(found(&format!("\"node\" {EVENT}")), Err(Damage::Form));
    }
}
