//! Audit events of a kube-apiserver as requests (`audit.k8s.io/v1`).

use serde::Deserialize;

use super::question::Question;

/// What is of interest of an event.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: String,
    user: EventUser,
    impersonated_user: Option<EventUser>,
}

#[derive(Debug, Default, Deserialize)]
struct EventUser {
    #[serde(default)]
    username: String,
    #[serde(default)]
    groups: Vec<String>,
}

/// One event, or the list in which a webhook gets them.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Entry {
    List { items: Vec<Event> },
    Event(Box<Event>),
}

/// How many events are explained at a time. `evenkeel replay` is for whole logs.
const EVENTS_MAX: usize = 1000;

/// Reads one event, a list of them, or one in each line.
pub(super) fn read(text: &str) -> Result<Vec<Question>, String> {
    let mut events = Vec::new();
    for entry in serde_json::Deserializer::from_str(text).into_iter::<Entry>() {
        match entry.map_err(|error| format!("this is not an audit event: {error}"))? {
            Entry::List { items } => events.extend(items),
            Entry::Event(event) => events.push(*event),
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
        let question = Question::new(&method(&self.verb), &self.request_uri, Some(user.username), user.groups)?;
        // The server has recorded all of them.
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
        assert_eq!(read(&format!("{EVENT}\n{EVENT}\n")).unwrap().len(), 2);
        assert_eq!(read(&format!(r#"{{"kind":"EventList","items":[{EVENT},{EVENT}]}}"#)).unwrap().len(), 2);
    }

    #[test]
    fn the_impersonated_user_counts() {
        let event = EVENT.replace("\"objectRef\"", "\"impersonatedUser\":{\"username\":\"bob\"},\"objectRef\"");
        assert_eq!(read(&event).unwrap()[0].user.as_deref(), Some("bob"));
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
        assert!(read("{}").unwrap_err().starts_with("this is not an audit event: "));
        assert!(read("hello").unwrap_err().starts_with("this is not an audit event: expected value at line 1"));
        assert!(read(&EVENT.repeat(EVENTS_MAX + 1)).unwrap_err().contains("use `evenkeel replay`"));
    }
}
