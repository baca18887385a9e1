//! Kubernetes audit events: `audit.k8s.io/v1`, at any level.

use std::borrow::Cow;

use evenkeel_engine::digest::parse_duration;
use evenkeel_engine::time::Nanos;

use super::Damage;
use crate::json::Scanner;
use crate::logged_head::LoggedHead;
use crate::record::{Action, Outcome, Record, Stage};
use crate::timestamp::rfc3339;
use crate::users::Users;

/// The fields of an event that a replay needs.
#[derive(Default)]
struct AuditEvent<'a> {
    id: Option<Cow<'a, str>>,
    stage: Option<Cow<'a, str>>,
    target: Option<Cow<'a, str>>,
    verb: Option<Cow<'a, str>>,
    user: Option<&'a [u8]>,
    impersonated: Option<&'a [u8]>,
    received: Option<Cow<'a, str>>,
    written: Option<Cow<'a, str>>,
    code: Option<u16>,
    notes: Annotations,
}

/// The annotations that a replay needs.
#[derive(Default)]
struct Annotations {
    wait: Option<Nanos>,
    /// Authorization comes after flow control: an event with its decision passed flow control.
    is_authorized: bool,
}

const TOO_MANY_REQUESTS: u16 = 429;
const UNAUTHORIZED: u16 = 401;

pub(super) fn read<'a>(line: &'a [u8], users: &mut Users) -> Result<Record<'a>, Damage> {
    let mut scanner = Scanner::new(line);
    let event = AuditEvent::scan(&mut scanner)?;
    scanner.end()?;
    event.into_record(users)
}

// === impl AuditEvent ===

impl<'a> AuditEvent<'a> {
    fn scan(scanner: &mut Scanner<'a>) -> Result<Self, Damage> {
        let mut event = Self::default();
        scanner.object(|name, scanner| {
            match name {
                "auditID" => event.id = Some(scanner.string()?),
                "stage" => event.stage = Some(scanner.string()?),
                "requestURI" => event.target = Some(scanner.string()?),
                "verb" => event.verb = Some(scanner.string()?),
                "user" => event.user = Some(scanner.raw_value()?),
                "impersonatedUser" if scanner.peek() == Some(b'{') => event.impersonated = Some(scanner.raw_value()?),
                "requestReceivedTimestamp" => event.received = Some(scanner.string()?),
                "stageTimestamp" => event.written = Some(scanner.string()?),
                "responseStatus" if scanner.peek() == Some(b'{') => event.code = code(scanner)?,
                "annotations" if scanner.peek() == Some(b'{') => event.notes = Annotations::scan(scanner)?,
                _ => scanner.skip()?,
            }
            Ok::<_, Damage>(())
        })?;
        Ok(event)
    }

    fn into_record(self, users: &mut Users) -> Result<Record<'a>, Damage> {
        let stage = match &*self.stage.ok_or(Damage::Missing("stage"))? {
            "RequestReceived" => Stage::Received,
            "ResponseStarted" => Stage::Started,
            "ResponseComplete" | "Panic" => Stage::Complete,
            _ => return Err(Damage::Invalid("stage")),
        };
        let time = |text: Option<Cow<'_, str>>, name| {
            rfc3339(&text.ok_or(Damage::Missing(name))?).ok_or(Damage::Invalid(name))
        };
        let arrived = time(self.received, "requestReceivedTimestamp")?;
        let written = time(self.written, "stageTimestamp")?;
        let user = users.of_json(self.impersonated.or(self.user).ok_or(Damage::Missing("user"))?)?;
        let outcome = match self.code {
            Some(TOO_MANY_REQUESTS) if !self.notes.is_authorized => Outcome::Rejected(None),
            Some(UNAUTHORIZED) if user.name.is_empty() => Outcome::Unauthenticated,
            _ => Outcome::Served,
        };
        let ran = stage != Stage::Received && outcome == Outcome::Served;
        let wait = self.notes.wait;
        Ok(Record {
            head: LoggedHead::default(),
            id: Some(self.id.ok_or(Damage::Missing("auditID"))?),
            stage,
            arrived,
            written,
            wait,
            service: ran.then(|| (written - arrived - wait.unwrap_or(0)).max(0)),
            user: Some(user),
            action: Action::Verb(self.verb.ok_or(Damage::Missing("verb"))?),
            target: self.target.ok_or(Damage::Missing("requestURI"))?,
            outcome,
            placed: None,
            seats: None,
            cost: None,
            bytes: None,
        })
    }
}

// === impl Annotations ===

impl Annotations {
    fn scan(scanner: &mut Scanner<'_>) -> Result<Self, Damage> {
        let mut notes = Self::default();
        scanner.object(|name, scanner| {
            match name {
                "apiserver.latency.k8s.io/apf-queue-wait" => {
                    let wait = parse_duration(&scanner.string()?).map_err(|_| Damage::Invalid("apf-queue-wait"))?;
                    notes.wait = Some(wait.as_nanos().try_into().unwrap_or(Nanos::MAX));
                }
                "authorization.k8s.io/decision" => {
                    notes.is_authorized = true;
                    scanner.skip()?;
                }
                _ => scanner.skip()?,
            }
            Ok::<_, Damage>(())
        })?;
        Ok(notes)
    }
}

/// The code of a `responseStatus`.
fn code(scanner: &mut Scanner<'_>) -> Result<Option<u16>, Damage> {
    let mut code = None;
    scanner.object(|name, scanner| {
        match name {
            "code" => code = Some(scanner.scalar()?.parse().map_err(|_| Damage::Invalid("responseStatus.code"))?),
            _ => scanner.skip()?,
        }
        Ok::<_, Damage>(())
    })?;
    Ok(code)
}

#[cfg(test)]
mod tests {
    use evenkeel_engine::User;
    use evenkeel_engine::time::MILLISECOND;

    use super::*;

    fn event(members: &str) -> String {
        format!(
            r#"{{"kind":"Event","auditID":"a-1","requestURI":"/api/v1/pods?limit=5","verb":"list","user":{{"username":"alice"}},
            "requestReceivedTimestamp":"2026-11-16T10:51:10.100000Z","stageTimestamp":"2026-11-16T10:51:10.350000Z"{members}}}"#
        )
    }

    /// TL-32
    #[test]
    fn service_time_is_without_the_wait() {
        let text = event(
            r#","stage":"ResponseComplete","responseStatus":{"metadata":{},"code":200},
            "annotations":{"apiserver.latency.k8s.io/apf-queue-wait":"50.5ms","authorization.k8s.io/decision":"allow"}"#,
        );
        let record = read(text.as_bytes(), &mut Users::default()).unwrap();
        assert_eq!(record.id.as_deref(), Some("a-1"));
        assert_eq!((record.stage, &record.outcome), (Stage::Complete, &Outcome::Served));
        assert_eq!(record.wait, Some(50_500_000));
        assert_eq!(record.service, Some(250 * MILLISECOND - 50_500_000));
        assert_eq!((&*record.target, record.action), ("/api/v1/pods?limit=5", Action::Verb("list".into())));
    }

    /// TL-33
    #[test]
    fn the_impersonated_user_counts() {
        let text = event(r#","stage":"RequestReceived","impersonatedUser":{"username":"bob","groups":["b"]}"#);
        let record = read(text.as_bytes(), &mut Users::default()).unwrap();
        assert_eq!(*record.user.unwrap(), User::new("bob", ["b"]));
        assert_eq!(record.service, None, "it has only arrived");
    }

    #[test]
    fn flow_control_rejects_before_authorization() {
        fn outcome(members: &str) -> Outcome<'static> {
            let text: &'static str = event(members).leak();
            read(text.as_bytes(), &mut Users::default()).unwrap().outcome
        }
        let rejected = r#","stage":"ResponseComplete","responseStatus":{"code":429}"#;
        assert_eq!(outcome(rejected), Outcome::Rejected(None));
        let evicted = r#","stage":"ResponseComplete","responseStatus":{"code":429},"annotations":{"authorization.k8s.io/decision":"allow"}"#;
        assert_eq!(outcome(evicted), Outcome::Served, "a handler may answer 429 too");
        let unknown = r#","stage":"ResponseStarted","responseStatus":{"code":401},"user":{}"#;
        assert_eq!(outcome(unknown), Outcome::Unauthenticated);
    }

    #[test]
    fn damage_is_named() {
        let damage = |text: &str| read(text.as_bytes(), &mut Users::default()).unwrap_err().to_string();
        assert_eq!(damage("{}"), "stage is missing");
        assert_eq!(damage(&event(r#","stage":"Lunch""#)), "stage is invalid");
        assert_eq!(damage(&event(r#","stage":"Panic","stageTimestamp":"noon""#)), "stageTimestamp is invalid");
        assert_eq!(damage(r#"{"stage":"#), "the text is cut off at byte 9");
        assert_eq!(damage("hello"), "expected an object at byte 0");
    }
}
