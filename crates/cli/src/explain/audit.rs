//! Audit events of a kube-apiserver as requests (`audit.k8s.io/v1`).

use http::HeaderValue;
use http::header::USER_AGENT;
use serde::Deserialize;
use serde_json::Value;

use super::question::Question;
use crate::object_files::BYTE_ORDER_MARK;

/// The fields of an event that are read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: String,
    user: EventUser,
    impersonated_user: Option<EventUser>,
    /// The client, and the proxies on the way.
    #[serde(rename = "sourceIPs")]
    source_ips: Option<Vec<String>>,
    user_agent: Option<String>,
}

/// A server may leave out what is empty, or write it as null.
#[derive(Debug, Deserialize)]
struct EventUser {
    username: Option<String>,
    groups: Option<Vec<String>>,
}

/// How many events are explained at a time. `evenkeel replay` is for whole logs.
const EVENTS_MAX: usize = 1000;

/// Reads one event, a list of them, or one in each line.
pub(super) fn read(text: &str) -> Result<Vec<Question>, String> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let fault = |error: serde_json::Error| format!("this is not an audit event: {error}");
    let mut events = Vec::new();
    for entry in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        let mut entry = entry.map_err(fault)?;
        // A webhook gets events in lists.
        let entries = match entry.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items,
            Some(Value::Null) => Vec::new(),
            Some(_) => return Err("this is not a list of audit events: items is not a list".to_owned()),
            None => vec![entry],
        };
        for entry in entries {
            events.push(Event::deserialize(entry).map_err(|error| {
                let number = events.len() + 1;
                format!("audit event {number} cannot be explained: {error}")
            })?);
        }
        if events.len() > EVENTS_MAX {
            return Err(format!(
                "there are more than {EVENTS_MAX} audit events; use `evenkeel replay` for a whole log"
            ));
        }
    }
    if events.is_empty() {
        return Err("there is no audit event".to_owned());
    }
    events.into_iter().map(Event::question).collect()
}

// === impl Event ===

impl Event {
    fn question(self) -> Result<Question, String> {
        let user = self.impersonated_user.unwrap_or(self.user);
        let mut question =
            Question::new(&method(&self.verb), &self.request_uri, user.username, user.groups.unwrap_or_default())?;
        question.address = self.source_ips.and_then(|addresses| addresses.first()?.parse().ok());
        let user_agent = self.user_agent.and_then(|name| HeaderValue::from_str(&name).ok());
        question.headers.extend(user_agent.map(|name| (USER_AGENT, name)));
        // The server has recorded all groups.
        Ok(Question { has_all_groups: true, ..question })
    }
}

/// The method of a request with that verb: an event has only the verb.
fn method(verb: &str) -> String {
    match verb {
        "get" | "list" | "watch" | "connect" | "proxy" => "GET".to_owned(),
        "create" => "POST".to_owned(),
        "update" => "PUT".to_owned(),
        "deletecollection" => "DELETE".to_owned(),
        other => other.to_ascii_uppercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &str = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete",
        "requestURI":"/api/v1/namespaces/a/pods?limit=500","verb":"list",
        "user":{"username":"alice","groups":["dev","system:authenticated"]},"objectRef":{"resource":"pods"}}"#;

    #[test]
    fn events_are_read_alone_in_lists_and_in_lines() {
        let one = read(EVENT).unwrap();
        assert_eq!(
            (one[0].method.as_str(), &*one[0].target.to_string()),
            ("GET", "/api/v1/namespaces/a/pods?limit=500")
        );
        assert_eq!((one[0].user.as_deref(), one[0].groups.len(), one[0].has_all_groups), (Some("alice"), 2, true));
        assert_eq!((one[0].address, one[0].headers.len()), (None, 0));
        assert_eq!(read(&format!("{EVENT}\n{EVENT}\n")).unwrap().len(), 2);
        assert_eq!(read(&format!(r#"{{"kind":"EventList","items":[{EVENT},{EVENT}]}}"#)).unwrap().len(), 2);
    }

    #[test]
    fn null_and_a_byte_order_mark_are_read() {
        let event = EVENT.replace(r#"["dev","system:authenticated"]"#, "null");
        let read = read(&format!("\u{feff}{event}")).unwrap();
        assert_eq!((read[0].user.as_deref(), read[0].groups.len()), (Some("alice"), 0));
    }

    #[test]
    fn the_impersonated_user_counts() {
        let event = EVENT.replace("\"objectRef\"", "\"impersonatedUser\":{\"username\":\"bob\"},\"objectRef\"");
        assert_eq!(read(&event).unwrap()[0].user.as_deref(), Some("bob"));
    }

    #[test]
    fn the_client_is_the_first_address() {
        let sent = r#""userAgent":"kubectl/v1.36.0","sourceIPs":["10.0.0.7","192.0.2.1"],"objectRef""#;
        let read = read(&EVENT.replace("\"objectRef\"", sent)).unwrap();
        assert_eq!(read[0].address, Some([10, 0, 0, 7].into()));
        assert_eq!(read[0].headers[USER_AGENT], "kubectl/v1.36.0");
    }

    #[test]
    fn verbs_become_methods() {
        let event =
            |verb: &str| read(&EVENT.replace("\"list\"", &format!("\"{verb}\""))).unwrap()[0].method.to_string();
        let methods = ["watch", "create", "update", "patch", "delete", "deletecollection", "head", "post"].map(event);
        assert_eq!(methods, ["GET", "POST", "PUT", "PATCH", "DELETE", "DELETE", "HEAD", "POST"]);
    }

    #[test]
    fn what_is_no_event_is_refused() {
        assert_eq!(read("").unwrap_err(), "there is no audit event");
        assert_eq!(read("{}").unwrap_err(), "audit event 1 cannot be explained: missing field `requestURI`");
        let without = |field: &str| read(&format!("{EVENT}{}", EVENT.replace(field, "other"))).unwrap_err();
        for field in ["requestURI", "verb", "user"] {
            assert_eq!(without(field), format!("audit event 2 cannot be explained: missing field `{field}`"));
        }
        assert!(read("5").unwrap_err().starts_with("audit event 1 cannot be explained: invalid type: integer `5`"));
        assert_eq!(read(r#"{"items":5}"#).unwrap_err(), "this is not a list of audit events: items is not a list");
        assert_eq!(read(r#"{"items":null}"#).unwrap_err(), "there is no audit event");
        assert!(read("hello").unwrap_err().starts_with("this is not an audit event: expected value at line 1"));
        assert!(read(&EVENT.repeat(EVENTS_MAX + 1)).unwrap_err().contains("use `evenkeel replay`"));
    }
}
