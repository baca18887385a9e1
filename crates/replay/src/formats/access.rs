//! The access log of Evenkeel: an object a line.

use std::borrow::Cow;

use evenkeel::events::CostKind;
use evenkeel_engine::queue_set::Rejection;
use evenkeel_engine::time::Nanos;
use evenkeel_sim::REASONS;

use super::Damage;
use crate::json::Scanner;
use crate::logged_head::LoggedHead;
use crate::record::{Action, Outcome, Placed, Record, Stage};
use crate::timestamp::{milliseconds, rfc3339};
use crate::users::Users;

pub(super) fn read<'a>(line: &'a [u8], users: &mut Users) -> Result<Record<'a>, Damage> {
    let mut scanner = Scanner::new(line);
    let (mut time, mut id, mut user, mut method, mut target) = (None, None, None, None, None);
    let (mut schema, mut level, mut seats, mut reason) = (None, None, None, None);
    let (mut cost, mut cost_unit, mut bytes) = (None, None, None);
    let (mut receive, mut wait, mut service) = (None, None, None);
    let mut groups: Vec<Cow<'_, str>> = Vec::new();
    let mut head = LoggedHead::default();
    scanner.object(|name, scanner| {
        match name {
            "time" => time = Some(scanner.string()?),
            "requestId" => id = scanner.string_or_null()?,
            "user" => user = scanner.string_or_null()?,
            "groups" if scanner.peek() == Some(b'[') => scanner.array(|scanner| {
                groups.push(scanner.string()?);
                Ok::<_, Damage>(())
            })?,
            "client" => head.address = scanner.string_or_null()?,
            "headers" if scanner.peek() == Some(b'{') => scanner.object(|name, scanner| {
                head.headers.push((name.to_owned().into(), scanner.string_or_null()?));
                Ok::<_, Damage>(())
            })?,
            "method" => method = Some(scanner.string()?),
            "path" => target = Some(scanner.string()?),
            "schema" => schema = scanner.string_or_null()?,
            "level" => level = scanner.string_or_null()?,
            "seats" => seats = whole(scanner, "seats")?,
            "cost" => cost = amount(scanner, "cost")?,
            "costUnit" => cost_unit = scanner.string_or_null()?,
            "bytesOut" => bytes = amount(scanner, "bytesOut")?,
            "receiveMs" => receive = Some(span(scanner, "receiveMs")?),
            "waitMs" => wait = Some(span(scanner, "waitMs")?),
            "serviceMs" => service = Some(span(scanner, "serviceMs")?),
            "rejected" => reason = scanner.string_or_null()?,
            _ => scanner.skip()?,
        }
        Ok::<_, Damage>(())
    })?;
    scanner.end()?;
    let time = rfc3339(&time.ok_or(Damage::Missing("time"))?).ok_or(Damage::Invalid("time"))?;
    // The request asks for seats after its body was received.
    let arrived = time + receive.unwrap_or(0);
    let placed = schema.zip(level).map(|(schema, level)| Placed { schema, level });
    let outcome = match (&user, &placed, reason) {
        (None, ..) => Outcome::Unauthenticated,
        (_, None, _) => Outcome::NotLimited,
        (_, _, Some(reason)) if is_of_flow_control(&reason) => Outcome::Rejected(Some(reason)),
        _ => Outcome::Served,
    };
    let is_served = outcome == Outcome::Served;
    Ok(Record {
        id,
        stage: Stage::Whole,
        arrived,
        written: arrived + wait.unwrap_or(0) + service.unwrap_or(0),
        wait,
        service: service.filter(|_| is_served),
        user: user.map(|user| users.of_names(&user, &groups)),
        action: Action::Method(method.ok_or(Damage::Missing("method"))?),
        target: target.ok_or(Damage::Missing("path"))?,
        head,
        outcome,
        placed,
        seats,
        cost: cost.filter(|_| is_served).zip(cost_unit.as_deref().and_then(CostKind::of_noun)),
        bytes: bytes.filter(|_| is_served),
    })
}

/// Whether flow control rejects requests for this reason. The gateway has further reasons, for requests that already have
/// seats.
fn is_of_flow_control(reason: &str) -> bool {
    // A simulated client never disconnects, so that `REASONS` lacks that reason.
    REASONS.iter().chain([&Rejection::Cancelled]).any(|known| known.as_str() == reason)
}

/// Reads a whole number, which a program that rewrites the log may have written as `3.0`; `null` counts as absent.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number in range")]
fn whole(scanner: &mut Scanner<'_>, name: &'static str) -> Result<Option<u32>, Damage> {
    if scanner.peek() == Some(b'n') {
        scanner.skip()?;
        return Ok(None);
    }
    let number: f64 = scanner.scalar()?.parse().map_err(|_| Damage::Invalid(name))?;
    let is_whole = number.fract().abs() < f64::EPSILON && (0.0..=f64::from(u32::MAX)).contains(&number);
    if is_whole { Ok(Some(number as u32)) } else { Err(Damage::Invalid(name)) }
}

/// Reads a number that is not below zero; `null` counts as absent.
fn amount(scanner: &mut Scanner<'_>, name: &'static str) -> Result<Option<f64>, Damage> {
    if scanner.peek() == Some(b'n') {
        scanner.skip()?;
        return Ok(None);
    }
    let number: f64 = scanner.scalar()?.parse().map_err(|_| Damage::Invalid(name))?;
    if number.is_finite() && number >= 0.0 { Ok(Some(number)) } else { Err(Damage::Invalid(name)) }
}

/// Reads milliseconds. A rejected request has no service time: `null` counts as absent.
fn span(scanner: &mut Scanner<'_>, name: &'static str) -> Result<Nanos, Damage> {
    if scanner.peek() == Some(b'n') {
        scanner.skip()?;
        return Ok(0);
    }
    milliseconds(scanner.number()?).ok_or(Damage::Invalid(name))
}

#[cfg(test)]
mod tests {
    use evenkeel_engine::User;

    use super::*;

    const SERVED: &str = r#"{"time":"2026-11-16T10:51:03.604580Z","requestId":"7f","user":"alice","groups":["dev","system:authenticated"],"method":"GET","path":"/orders?page=2","schema":"global-default","level":"everyone","flow":"alice","seats":3,"waitMs":12.5,"serviceMs":40.25,"status":200,"upstream":"127.0.0.1:9000","bytesIn":0,"bytesOut":512}"#;

    #[test]
    fn every_field_is_read() {
        let record = read(SERVED.as_bytes(), &mut Users::default()).unwrap();
        assert_eq!(record.id.as_deref(), Some("7f"));
        assert_eq!(*record.user.clone().unwrap(), User::new("alice", ["dev", "system:authenticated"]));
        assert_eq!((&record.action, &*record.target), (&Action::Method("GET".into()), "/orders?page=2"));
        assert_eq!((record.wait, record.service, record.seats), (Some(12_500_000), Some(40_250_000), Some(3)));
        assert_eq!(record.written - record.arrived, 52_750_000);
        assert_eq!((record.cost, record.bytes), (None, Some(512.0)));
        let placed = Placed { schema: "global-default".into(), level: "everyone".into() };
        assert_eq!((record.outcome, record.placed), (Outcome::Served, Some(placed)));
    }

    /// CO-6: a cost counts with its unit only.
    #[test]
    fn co_6_a_cost_has_a_unit() {
        let cost = |text: &str| {
            let text = SERVED.replace(r#""seats":3"#, text);
            read(text.as_bytes(), &mut Users::default()).unwrap().cost
        };
        assert_eq!(cost(r#""cost":412.5,"costExpected":0,"costUnit":"tokens""#), Some((412.5, CostKind::Tokens)));
        assert_eq!(cost(r#""cost":412.5,"costUnit":"stones""#), None);
        assert_eq!(cost(r#""cost":412.5"#), None);
    }

    #[test]
    fn a_request_arrives_when_its_body_is_there() {
        let text = SERVED.replace(r#""waitMs""#, r#""receiveMs":2000.5,"waitMs""#);
        let [whole, slow] = [SERVED, &text].map(|text| read(text.as_bytes(), &mut Users::default()).unwrap());
        assert_eq!(slow.arrived - whole.arrived, 2_000_500_000);
        assert_eq!((slow.wait, slow.service), (whole.wait, whole.service));
        assert_eq!(slow.written - slow.arrived, 52_750_000);
    }

    #[test]
    fn rejected_requests_have_a_reason() {
        let text = SERVED.replace(r#""status":200"#, r#""status":429,"rejected":"queue-full""#);
        let record = read(text.as_bytes(), &mut Users::default()).unwrap();
        assert_eq!((record.outcome, record.service), (Outcome::Rejected(Some("queue-full".into())), None));
    }

    #[test]
    fn the_client_and_the_error_change_nothing() {
        let read = |text: &str| {
            let mut record = read(text.as_bytes(), &mut Users::default()).unwrap();
            // The client is for flow schemas that tell flows apart by address.
            record.head = LoggedHead::default();
            format!("{record:?}")
        };
        let before = SERVED.replace("200", "502");
        let now = before.replace(r#""user""#, r#""client":"2001:db8::7","user""#);
        let now = now.replace(r#""upstream""#, r#""error":"cut","upstream""#);
        assert!(now.contains("client") && now.contains("error"));
        assert_eq!(read(&now), read(&before));
        let detected = crate::formats::Format::detect(now.as_bytes()).map(|format| format.to_string());
        assert_eq!(detected.as_deref(), Some("Evenkeel access log"));
    }

    /// A program that rewrites the log may reorder members, put white space between them, escape other characters, and write
    /// absent values as `null`.
    #[test]
    fn a_line_that_was_written_anew_says_the_same() {
        let anew = r#" { "bytesOut" : 512, "upstream":"127.0.0.1:9000", "waitMs": 1.25e1, "serviceMs": 40.250,
            "seats": 3.0 , "path" : "\/orders?page\u003d2", "method": "GET", "rejected": null, "error": null,
            "level": "everyone", "schema": "global\u002ddefault", "flow":"alice",
            "groups" : [ "dev" , "system:authenticated" ], "user": "\u0061lice", "requestId": "7f", "status": 200,
            "bytesIn":0, "time" : "2026-11-16T10:51:03.604580Z" } "#;
        let [first, second] = [SERVED, anew].map(|text| read(text.as_bytes(), &mut Users::default()).unwrap());
        assert_eq!(first, second);
        let absent = SERVED.replace("\"seats\":3", "\"seats\":null");
        assert_eq!(read(absent.as_bytes(), &mut Users::default()).unwrap().seats, None);
    }

    #[test]
    fn requests_that_flow_control_never_saw() {
        let outcome = |text: String| read(text.leak().as_bytes(), &mut Users::default()).unwrap().outcome;
        assert_eq!(outcome(SERVED.replace("\"user\"", "\"u\"")), Outcome::Unauthenticated);
        assert_eq!(outcome(SERVED.replace("\"schema\"", "\"s\"")), Outcome::NotLimited);
        let cut = SERVED.replace("\"status\":200", "\"status\":408,\"rejected\":\"body-timeout\"");
        assert_eq!(outcome(cut), Outcome::Served, "it had a seat");
    }

    #[test]
    fn damage_is_named() {
        for (from, to, damage) in [
            ("time", "tame", "time is missing"),
            ("10:51", "10-51", "time is invalid"),
            ("12.5", "-12.5", "waitMs is invalid"),
            ("\"waitMs\":12.5", "\"receiveMs\":-1", "receiveMs is invalid"),
            ("\"seats\":3", "\"seats\":-3", "seats is invalid"),
            ("\"seats\":3", "\"cost\":-3", "cost is invalid"),
            ("512", "-512", "bytesOut is invalid"),
            ("method", "m", "method is missing"),
        ] {
            let text = SERVED.replacen(from, to, 1);
            assert_eq!(read(text.as_bytes(), &mut Users::default()).unwrap_err().to_string(), damage);
        }
    }
}
