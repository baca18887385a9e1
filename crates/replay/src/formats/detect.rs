//! Tells the kinds of logs apart by their first lines.

use super::template::{COMBINED, ENVOY};
use super::{Format, Template};
use crate::json::Scanner;
use crate::users::Users;

/// So many lines are tried: a log may start in the middle of a line, or with lines about other things.
const LINES: usize = 100;

pub(super) fn detect(head: &[u8]) -> Option<Format> {
    if is_event_list(head) {
        return Some(Format::EventList);
    }
    let lines = || head.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).take(LINES);
    let templates =
        [ENVOY, COMBINED].into_iter().filter_map(|format| Template::parse(format).ok()).map(Format::Template);
    let candidates = || {
        [Format::Audit, Format::Export, Format::Access, Format::Fields, Format::HttpLog]
            .into_iter()
            .chain(templates.clone())
    };
    let users = &mut Users::default();
    let of_request = candidates().find(|format| lines().any(|line| matches!(format.read(line, users), Ok(Some(_)))));
    // A message in JSON may be anybody's.
    let mut others = candidates().filter(|format| !matches!(format, Format::Export));
    of_request.or_else(|| others.find(|format| lines().any(|line| format.read(line, users).is_ok())))
}

/// Whether this is an object with a list of `items`, in one line or in many.
fn is_event_list(head: &[u8]) -> bool {
    /// Ends the scan: what is searched for has been found, or there is something else.
    enum Stop {
        Found,
        Fault,
    }

    impl From<crate::json::JsonError> for Stop {
        fn from(_: crate::json::JsonError) -> Self {
            Self::Fault
        }
    }

    let scanned = Scanner::new(head).object(|name, scanner| match name {
        "items" if scanner.peek() == Some(b'[') => Err(Stop::Found),
        _ => Ok(scanner.skip()?),
    });
    matches!(scanned, Err(Stop::Found))
}

impl Format {
    /// The format of lines that follow this format string.
    pub fn of_template(format: &str) -> Result<Self, super::TemplateError> {
        Template::parse(format).map(Self::Template)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_told_apart() {
        let audit = r#"{"auditID":"a","stage":"ResponseComplete","requestURI":"/a","verb":"get","user":{},"requestReceivedTimestamp":"2026-11-16T10:51:10Z","stageTimestamp":"2026-11-16T10:51:10Z"}"#;
        let access = r#"{"time":"2026-11-16T10:51:10Z","user":"a","method":"GET","path":"/"}"#;
        let nginx = r#"{"msec":"1.5","request_method":"GET","request_uri":"/"}"#;
        let http_log = r#"I1116 10:51:11.6 1 httplog.go:135] "HTTP" verb="GET" URI="/" latency="1ms" resp=200"#;
        let other = "I1116 10:51:11.6 1 controller.go:615] quota admission added evaluator";
        let combined = r#"192.0.2.7 - - [16/Nov/2026:10:51:03 +0000] "GET / HTTP/1.1" 200 512 "-" "curl""#;
        let envoy = r#"[2026-11-16T10:51:03.600Z] "GET / HTTP/2" 204 - 154 0 226 100 "-" "-" "-" "a" "b""#;
        for (text, format) in [
            (audit.to_owned(), "Kubernetes audit log"),
            (format!("cut off\"}}\n\n{audit}\n{{\"half"), "Kubernetes audit log"),
            (format!("{{\"kind\":\"EventList\",\"items\":[{audit}"), "Kubernetes audit log (EventList)"),
            (format!("{{\n \"apiVersion\": \"v1\",\n \"items\": [\n  {audit}"), "Kubernetes audit log (EventList)"),
            (format!("master-0 {audit}\n"), "Kubernetes audit log (exported)"),
            (format!("{{\"@message\":{audit}}}\n"), "Kubernetes audit log (exported)"),
            (access.to_owned(), "Evenkeel access log"),
            (nginx.to_owned(), "access log in JSON"),
            (format!("{other}\n{http_log}\n"), "kube-apiserver request log"),
            (other.to_owned(), "kube-apiserver request log"),
            (combined.to_owned(), "access log"),
            (envoy.to_owned(), "access log"),
        ] {
            assert_eq!(
                Format::detect(text.as_bytes()).map(|format| format.to_string()).as_deref(),
                Some(format),
                "{text}"
            );
        }
        for text in ["", "hello\n", "{}\n", "{\"items\":1}", "{\"message\":\"hello\"}\n"] {
            assert!(Format::detect(text.as_bytes()).is_none(), "{text}");
        }
    }
}
