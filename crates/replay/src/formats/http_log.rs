//! The request log of a kube-apiserver at verbosity 3. It has no users, but the decisions of flow control.

use std::borrow::Cow;

use evenkeel_engine::digest::parse_duration;
use evenkeel_engine::time::{Instant, Nanos};

use super::{Damage, quoted};
use crate::logged_head::LoggedHead;
use crate::record::{Action, Outcome, Placed, Record, Stage};
use crate::timestamp::klog;

/// The fields of a line that a replay needs.
#[derive(Default)]
struct HttpLogLine<'a> {
    verb: Option<Cow<'a, str>>,
    target: Option<Cow<'a, str>>,
    id: Option<Cow<'a, str>>,
    latency: Option<Nanos>,
    /// Present only if the wait was long.
    wait: Option<Nanos>,
    service: Option<Nanos>,
    schema: Option<Cow<'a, str>>,
    level: Option<Cow<'a, str>>,
    seats: Option<u32>,
    code: Option<u16>,
}

const MARK: &str = "] \"HTTP\" ";

/// Reads a line; `None` if it is not about a request.
pub(super) fn read(line: &[u8]) -> Result<Option<Record<'_>>, Damage> {
    let text = std::str::from_utf8(line).map_err(|_| Damage::Invalid("the encoding"))?.trim_end();
    let (severity, rest) = text.split_at_checked(1).ok_or(Damage::Form)?;
    if !matches!(severity, "I" | "W" | "E" | "F") {
        return Err(Damage::Form);
    }
    let mut words = rest.splitn(3, ' ');
    let (day, time) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let stamp = rest.get(..day.len() + 1 + time.len()).ok_or(Damage::Form)?;
    let written = klog(stamp).ok_or(Damage::Invalid("the time"))?;
    let Some((_, fields)) = rest.split_once(MARK) else { return Ok(None) };
    HttpLogLine::scan(fields)?.into_record(written).map(Some)
}

// === impl HttpLogLine ===

impl<'a> HttpLogLine<'a> {
    fn scan(fields: &'a str) -> Result<Self, Damage> {
        let mut line = Self::default();
        quoted::pairs(fields, |key, value| {
            match key {
                "verb" => line.verb = Some(value),
                "URI" => line.target = Some(value),
                "audit-ID" => line.id = Some(value),
                "latency" => line.latency = Some(duration(&value, "latency")?),
                "fl_priorityandfairness" => line.wait = Some(duration(&value, "fl_priorityandfairness")?),
                "apf_execution_time" => line.service = Some(duration(&value, "apf_execution_time")?),
                "apf_fs" => line.schema = Some(value),
                "apf_pl" => line.level = Some(value),
                "apf_iseats" => line.seats = Some(value.parse().map_err(|_| Damage::Invalid("apf_iseats"))?),
                "resp" => line.code = Some(value.parse().map_err(|_| Damage::Invalid("resp"))?),
                _ => {}
            }
            Ok(())
        })?;
        Ok(line)
    }

    fn into_record(self, written: Instant) -> Result<Record<'a>, Damage> {
        let latency = self.latency.ok_or(Damage::Missing("latency"))?;
        let placed = self.schema.zip(self.level).map(|(schema, level)| Placed { schema, level });
        let outcome = match (&placed, self.service, self.code.ok_or(Damage::Missing("resp"))?) {
            (Some(_), None, 429) => Outcome::Rejected(None),
            (None, _, 401) => Outcome::Unauthenticated,
            _ => Outcome::Served,
        };
        Ok(Record {
            head: LoggedHead::default(),
            id: self.id,
            stage: Stage::Whole,
            arrived: written + -latency,
            written,
            // The log leaves out short waits.
            wait: self.wait.or(self.service.map(|_| 0)),
            service: self.service,
            user: None,
            action: Action::Verb(verb(&self.verb.ok_or(Damage::Missing("verb"))?)),
            target: self.target.ok_or(Damage::Missing("URI"))?,
            outcome,
            placed,
            seats: self.seats,
            cost: None,
            bytes: None,
        })
    }
}

fn duration(text: &str, name: &'static str) -> Result<Nanos, Damage> {
    let duration = parse_duration(text).map_err(|_| Damage::Invalid(name))?;
    Ok(duration.as_nanos().try_into().unwrap_or(Nanos::MAX))
}

/// The log has the verbs of metrics, some of which are methods.
fn verb(name: &str) -> Cow<'static, str> {
    match name {
        "POST" => "create".into(),
        "PUT" => "update".into(),
        "APPLY" => "patch".into(),
        other => other.to_lowercase().into(),
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_engine::time::MILLISECOND;

    use super::*;

    const START: &str = "I1116 10:51:11.600000   15963 httplog.go:135] \"HTTP\" ";

    fn record(fields: &str) -> Result<Option<Record<'static>>, Damage> {
        let line: &'static str = format!("{START}{fields}").leak();
        read(line.as_bytes())
    }

    #[test]
    fn lines_of_requests() {
        let fields = r#"verb="LIST" URI="/api/v1/pods" latency="1.6s" audit-ID="a-1" srcIP="127.0.0.1:56102" apf_pl="batch" apf_fs="jobs" apf_iseats=2 apf_fseats=0 apf_additionalLatency="0s" fl_priorityandfairness="600ms" apf_execution_time="967.5ms" resp=200"#;
        let record = record(fields).unwrap().unwrap();
        assert_eq!(record.written - record.arrived, 1600 * MILLISECOND);
        assert_eq!((record.wait, record.service), (Some(600 * MILLISECOND), Some(967_500_000)));
        assert_eq!(record.placed, Some(Placed { schema: "jobs".into(), level: "batch".into() }));
        assert_eq!((record.action, record.seats), (Action::Verb("list".into()), Some(2)));
        assert_eq!(record.outcome, Outcome::Served);
    }

    #[test]
    fn rejected_requests_did_not_run() {
        let outcome = |fields| record(fields).unwrap().unwrap().outcome;
        let rejected = r#"verb="LIST" URI="/a" latency="1ms" apf_pl="batch" apf_fs="batch" resp=429"#;
        assert_eq!(outcome(rejected), Outcome::Rejected(None));
        let ran =
            r#"verb="POST" URI="/a" latency="1ms" apf_pl="batch" apf_fs="batch" apf_execution_time="1ms" resp=429"#;
        assert_eq!(outcome(ran), Outcome::Served);
        assert_eq!(outcome(r#"verb="GET" URI="/a" latency="1ms" resp=401"#), Outcome::Unauthenticated);
    }

    #[test]
    fn other_lines_are_no_damage() {
        let other = b"I1116 10:51:11.600000   15963 controller.go:615] quota admission added evaluator";
        assert_eq!(read(other), Ok(None));
        assert_eq!(read(b"10:51 hello"), Err(Damage::Form));
        assert_eq!(read("é".as_bytes()), Err(Damage::Form));
        assert_eq!(read(b"Infernal weather"), Err(Damage::Invalid("the time")));
        assert_eq!(record(r#"verb="GET" URI="/a" resp=200"#), Err(Damage::Missing("latency")));
        assert_eq!(record(r#"verb="GET" URI="/a"#), Err(Damage::Form));
    }
}
