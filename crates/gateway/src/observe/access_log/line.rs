//! A line of the access log, as JSON or as text.

use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

use evenkeel::events::CostKind;
use evenkeel::request::RequestCost;
use evenkeel_engine::User;

use super::escape::{put_json, put_text};
use crate::llm::{Tokens, whole};

/// A request as a line of the access log shows it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AccessLine<'a> {
    /// When the request arrived, since 1970.
    pub time: Duration,
    /// The id that the client and the upstream got.
    pub request_id: &'a [u8],
    /// The client's address; behind trusted proxies, the address that they name.
    pub client: IpAddr,
    /// The user, if the request was authenticated.
    pub user: Option<&'a User>,
    /// The method of the request.
    pub method: &'a str,
    /// The path and the query of the request, as they were received.
    pub path: &'a str,
    /// The service that it belongs to, if there are services.
    pub service_name: Option<&'a str>,
    /// The headers that flow schemas ask for, each with its value if the request has it.
    pub headers: &'a [(Box<str>, Option<Box<str>>)],
    /// The flow schema and priority level, if the request got as far as the flow control and is limited by it.
    pub class: Option<LineClass<'a>>,
    /// How long the request took until it asked for a seat: mostly the time until its body had arrived.
    pub receive: Duration,
    /// How long it waited for a seat.
    pub wait: Duration,
    /// How long it had its seat.
    pub service: Duration,
    /// The status of the response; 499 if the client disconnected before there was one, 0 if another proxy alone knows it.
    pub status: u16,
    /// The interface through which the gateway got the request, if another proxy forwards it: `ext_proc`.
    pub via: Option<&'a str>,
    /// Why it was rejected, if it was.
    pub rejected: Option<&'a str>,
    /// When its client was told to try again, if it was.
    pub retry_after: Option<Duration>,
    /// How the upstream failed, if the response is incomplete or the gateway's own because of that.
    pub error: Option<&'a str>,
    /// The upstream that got it or failed to, if there is one.
    pub upstream: Option<&'a str>,
    /// The bytes of its body.
    pub bytes_in: u64,
    /// The bytes of the body of its response.
    pub bytes_out: u64,
    /// What it cost and was expected to, if that counts for its flow schema.
    pub cost: Option<RequestCost>,
    /// The unit of that cost.
    pub cost_unit: Option<CostKind>,
    /// The model and the tokens of a request to a language model.
    pub llm: Option<LineTokens<'a>>,
}

/// A request of a language model: which model, and how many tokens it took so far.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct LineTokens<'a> {
    /// The name of the model; empty if the request names none.
    pub model: &'a str,
    /// The tokens of its prompt, if there was a response.
    pub prompt: Option<u64>,
    /// The prompt tokens that the server had in its cache.
    pub cached: Option<u64>,
    /// The tokens of the response, if there was one.
    pub output: Option<u64>,
}

/// The class of a request.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct LineClass<'a> {
    /// The flow schema.
    pub schema: &'a str,
    /// The priority level.
    pub level: &'a str,
    /// The flow of the flow schema.
    pub flow: &'a str,
    /// The seats that it takes.
    pub seats: u32,
}

/// Writes times as RFC 3339 has them. The text of the current second is kept.
#[derive(Debug, Default)]
pub(super) struct TimeText {
    second: u64,
    text: Vec<u8>,
}

// === impl AccessLine ===

impl AccessLine<'_> {
    /// Appends an object of JSON and the end of the line. Keys without a value are left out.
    pub(super) fn put_json(&self, out: &mut Vec<u8>, times: &mut TimeText) {
        out.extend_from_slice(b"{\"time\":\"");
        times.put(out, self.time);
        out.extend_from_slice(b"\",\"requestId\":");
        put_json(out, self.request_id);
        // Writing to memory does not fail, and an address needs no escapes.
        let _ = write!(out, ",\"client\":\"{}\"", self.client);
        if let Some(user) = self.user {
            out.extend_from_slice(b",\"user\":");
            put_json(out, user.name.as_bytes());
            out.extend_from_slice(b",\"groups\":[");
            for (index, group) in user.groups.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                put_json(out, group.as_bytes());
            }
            out.push(b']');
        }
        for (key, text) in [("method", Some(self.method)), ("path", Some(self.path)), ("service", self.service_name)] {
            put_member(out, key, text);
        }
        if !self.headers.is_empty() {
            out.extend_from_slice(b",\"headers\":{");
            for (index, (name, value)) in self.headers.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                put_json(out, name.as_bytes());
                out.push(b':');
                match value {
                    Some(value) => put_json(out, value.as_bytes()),
                    None => out.extend_from_slice(b"null"),
                }
            }
            out.push(b'}');
        }
        if let Some(class) = self.class {
            for (key, text) in [("schema", class.schema), ("level", class.level), ("flow", class.flow)] {
                put_member(out, key, Some(text));
            }
            out.extend_from_slice(b",\"seats\":");
            put_number(out, class.seats.into());
        }
        if let Some(RequestCost { actual, expected }) = self.cost {
            let _ = write!(out, ",\"cost\":{actual},\"costExpected\":{expected}");
            put_member(out, "costUnit", self.cost_unit.map(CostKind::noun));
        }
        if let Some(llm) = self.llm {
            put_member(out, "model", Some(llm.model));
            for (key, tokens) in llm.tokens() {
                let _ = write!(out, ",\"{key}\":{tokens}");
            }
        }
        for (key, time) in self.times() {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(key.as_bytes());
            out.extend_from_slice(b"\":");
            put_milliseconds(out, time);
        }
        out.extend_from_slice(b",\"status\":");
        put_number(out, self.status.into());
        put_member(out, "via", self.via);
        put_member(out, "rejected", self.rejected);
        if let Some(time) = self.retry_after {
            out.extend_from_slice(b",\"retryAfterSeconds\":");
            put_number(out, time.as_secs());
        }
        for (key, text) in [("error", self.error), ("upstream", self.upstream)] {
            put_member(out, key, text);
        }
        out.extend_from_slice(b",\"bytesIn\":");
        put_number(out, self.bytes_in);
        out.extend_from_slice(b",\"bytesOut\":");
        put_number(out, self.bytes_out);
        out.extend_from_slice(b"}\n");
    }

    /// Appends `name=value` pairs and the end of the line.
    pub(super) fn put_text(&self, out: &mut Vec<u8>, times: &mut TimeText) {
        times.put(out, self.time);
        let mut pair = |name: &str, value: &[u8]| {
            out.push(b' ');
            out.extend_from_slice(name.as_bytes());
            out.push(b'=');
            put_text(out, value);
        };
        pair("requestId", self.request_id);
        pair("client", self.client.to_string().as_bytes());
        if let Some(user) = self.user {
            pair("user", user.name.as_bytes());
            for group in &user.groups {
                pair("group", group.as_bytes());
            }
        }
        pair("method", self.method.as_bytes());
        pair("path", self.path.as_bytes());
        if let Some(service) = self.service_name {
            pair("service", service.as_bytes());
        }
        for (name, value) in self.headers {
            if let Some(value) = value {
                pair(&format!("header.{name}"), value.as_bytes());
            }
        }
        if let Some(class) = self.class {
            pair("schema", class.schema.as_bytes());
            pair("level", class.level.as_bytes());
            pair("flow", class.flow.as_bytes());
        }
        if let Some(via) = self.via {
            pair("via", via.as_bytes());
        }
        if let Some(rejected) = self.rejected {
            pair("rejected", rejected.as_bytes());
        }
        if let Some(error) = self.error {
            pair("error", error.as_bytes());
        }
        if let Some(upstream) = self.upstream {
            pair("upstream", upstream.as_bytes());
        }
        if let Some(class) = self.class {
            out.extend_from_slice(b" seats=");
            put_number(out, class.seats.into());
        }
        if let Some(RequestCost { actual, expected }) = self.cost {
            let _ = write!(out, " cost={actual} costExpected={expected}");
            if let Some(unit) = self.cost_unit {
                let _ = write!(out, " costUnit={}", unit.noun());
            }
        }
        if let Some(llm) = self.llm {
            out.extend_from_slice(b" model=");
            put_text(out, llm.model.as_bytes());
            for (key, tokens) in llm.tokens() {
                let _ = write!(out, " {key}={tokens}");
            }
        }
        if let Some(time) = self.retry_after {
            out.extend_from_slice(b" retryAfterSeconds=");
            put_number(out, time.as_secs());
        }
        for (key, time) in self.times() {
            out.push(b' ');
            out.extend_from_slice(key.as_bytes());
            out.push(b'=');
            put_milliseconds(out, time);
        }
        for (name, number) in [("status", self.status.into()), ("bytesIn", self.bytes_in), ("bytesOut", self.bytes_out)]
        {
            out.push(b' ');
            out.extend_from_slice(name.as_bytes());
            out.push(b'=');
            put_number(out, number);
        }
        out.push(b'\n');
    }

    fn times(&self) -> [(&'static str, Duration); 3] {
        [("receiveMs", self.receive), ("waitMs", self.wait), ("serviceMs", self.service)]
    }
}

// === impl LineTokens ===

impl<'a> LineTokens<'a> {
    pub(crate) fn new(model: &'a str, tokens: Option<Tokens>) -> Self {
        let of = |count: fn(&Tokens) -> f64| tokens.as_ref().map(count).map(whole);
        let (prompt, cached, output) =
            (of(|tokens| tokens.prompt), of(|tokens| tokens.cached), of(|tokens| tokens.output));
        Self { model, prompt, cached, output }
    }

    /// The counts that there are.
    fn tokens(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = [("promptTokens", self.prompt), ("cachedTokens", self.cached), ("outputTokens", self.output)];
        counts.into_iter().filter_map(|(key, tokens)| tokens.map(|tokens| (key, tokens)))
    }
}

/// Another member of an object, unless it has no value.
fn put_member(out: &mut Vec<u8>, key: &str, text: Option<&str>) {
    let Some(text) = text else { return };
    out.extend_from_slice(b",\"");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
    put_json(out, text.as_bytes());
}

/// Milliseconds, with nanoseconds after the point: requests that follow each other closely can be told apart.
fn put_milliseconds(out: &mut Vec<u8>, duration: Duration) {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    put_number(out, nanos / 1_000_000);
    out.push(b'.');
    put_padded(out, nanos % 1_000_000, 6);
}

fn put_number(out: &mut Vec<u8>, number: u64) {
    let (mut digits, mut start, mut rest) = ([0; 20], 20, number);
    loop {
        start -= 1;
        digits[start] = digit(rest);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// The last digits of a number.
fn put_padded(out: &mut Vec<u8>, number: u64, digits: u32) {
    out.extend((0..digits).rev().map(|place| digit(number / 10_u64.pow(place))));
}

fn digit(number: u64) -> u8 {
    b'0' + u8::try_from(number % 10).unwrap_or_default()
}

// === impl TimeText ===

impl TimeText {
    /// Appends a time, given since 1970, in UTC and with nanoseconds.
    fn put(&mut self, out: &mut Vec<u8>, since_epoch: Duration) {
        let second = since_epoch.as_secs();
        if self.second != second || self.text.is_empty() {
            self.second = second;
            self.text.clear();
            let (year, month, day) = civil(second / 86_400);
            let (hour, minute, second) = (second / 3600 % 24, second / 60 % 60, second % 60);
            // Writing to memory does not fail.
            let _ = write!(self.text, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.");
        }
        out.extend_from_slice(&self.text);
        put_padded(out, since_epoch.subsec_nanos().into(), 9);
        out.push(b'Z');
    }
}

/// The date of the day with this number, counted from 1 January 1970. (Hinnant's `civil_from_days`: years begin in March.)
fn civil(day_number: u64) -> (u64, u64, u64) {
    let shifted = day_number + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn line<'a>(user: &'a User, path: &'a str) -> AccessLine<'a> {
        AccessLine {
            time: Duration::new(1_700_000_000, 123_456_789),
            request_id: b"id-1",
            client: [10, 1, 2, 3].into(),
            user: Some(user),
            method: "GET",
            path,
            headers: &[],
            service_name: None,
            class: Some(LineClass { schema: "tenants", level: "low", flow: &user.name, seats: 2 }),
            receive: Duration::from_micros(56_789),
            wait: Duration::from_nanos(1_234_567),
            service: Duration::from_millis(20),
            status: 200,
            via: None,
            rejected: None,
            retry_after: None,
            error: None,
            upstream: Some("127.0.0.1:9000"),
            bytes_in: 7,
            bytes_out: 1 << 40,
            cost: None,
            cost_unit: None,
            llm: None,
        }
    }

    fn json_of(line: &AccessLine<'_>) -> String {
        let mut out = Vec::new();
        line.put_json(&mut out, &mut TimeText::default());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_of_json_has_every_field() {
        let user = User::new("alice", ["staff", "night"]);
        let text = json_of(&line(&user, "/orders?limit=7"));
        assert!(text.ends_with("}\n") && text.lines().count() == 1);
        let expected = json!({
            "time": "2023-11-14T22:13:20.123456789Z", "requestId": "id-1", "client": "10.1.2.3", "user": "alice", "groups": ["staff", "night"],
            "method": "GET", "path": "/orders?limit=7", "schema": "tenants", "level": "low", "flow": "alice", "seats": 2,
            "receiveMs": 56.789, "waitMs": 1.234_567, "serviceMs": 20.0, "status": 200, "upstream": "127.0.0.1:9000", "bytesIn": 7,
            "bytesOut": 1_u64 << 40,
        });
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), expected);
    }

    #[test]
    fn co_6_a_cost_that_counts_is_in_both_formats() {
        let (user, cost) = (User::new("alice", ["staff"]), RequestCost { actual: 412.5, expected: 0.0 });
        let line = AccessLine { cost: Some(cost), cost_unit: Some(CostKind::Bytes), ..line(&user, "/") };
        let parsed: serde_json::Value = serde_json::from_str(&json_of(&line)).unwrap();
        assert_eq!((&parsed["cost"], &parsed["costExpected"]), (&json!(412.5), &json!(0)));
        assert_eq!(parsed["costUnit"], "bytes");
        let mut out = Vec::new();
        line.put_text(&mut out, &mut TimeText::default());
        assert!(String::from_utf8(out).unwrap().contains(" seats=2 cost=412.5 costExpected=0 costUnit=bytes "));
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let user = User::default();
        let denied = AccessLine {
            user: None,
            class: None,
            upstream: None,
            rejected: Some("expired"),
            status: 401,
            ..line(&user, "/")
        };
        let parsed: serde_json::Value = serde_json::from_str(&json_of(&denied)).unwrap();
        let keys: Vec<_> = parsed.as_object().unwrap().keys().map(String::as_str).collect();
        for absent in ["user", "groups", "schema", "level", "flow", "seats", "error", "upstream"] {
            assert!(!keys.contains(&absent), "{absent}");
        }
        assert_eq!((&parsed["rejected"], &parsed["status"]), (&json!("expired"), &json!(401)));
    }

    #[test]
    fn an_upstream_that_failed_is_in_both_formats() {
        let user = User::new("alice", ["staff"]);
        let failed = AccessLine {
            client: "2001:db8::7".parse().unwrap(),
            error: Some("timeout"),
            status: 504,
            ..line(&user, "/")
        };
        let parsed: serde_json::Value = serde_json::from_str(&json_of(&failed)).unwrap();
        assert_eq!((&parsed["error"], &parsed["client"]), (&json!("timeout"), &json!("2001:db8::7")));
        let mut out = Vec::new();
        failed.put_text(&mut out, &mut TimeText::default());
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(" client=2001:db8::7 ") && text.contains(" error=timeout upstream="), "{text}");
    }

    #[test]
    fn a_line_of_text_quotes_what_could_be_misread() {
        let user = User::new("al ice=1", ["a\nb"]);
        let mut out = Vec::new();
        line(&user, "/x").put_text(&mut out, &mut TimeText::default());
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "2023-11-14T22:13:20.123456789Z requestId=id-1 client=10.1.2.3 user=\"al ice=1\" group=\"a\\nb\" method=GET path=/x \
             schema=tenants level=low flow=\"al ice=1\" upstream=127.0.0.1:9000 seats=2 receiveMs=56.789000 waitMs=1.234567 \
             serviceMs=20.000000 status=200 bytesIn=7 bytesOut=1099511627776\n"
        );
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (day, date) in [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (19_782, (2024, 2, 29)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(civil(day), date, "{day}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_back(name: String, group: String, path: String, seconds in 0..253_402_300_800_u64, wait: u32) {
            let user = User::new(name.as_str(), [group.as_str()]);
            let wait = Duration::from_micros(wait.into());
            let line = AccessLine { time: Duration::from_secs(seconds), wait, ..line(&user, &path) };
            let text = json_of(&line);
            prop_assert_eq!(text.matches('\n').count(), 1);
            let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&parsed["user"], &json!(name));
            prop_assert_eq!(&parsed["groups"], &json!([group]));
            prop_assert_eq!(&parsed["path"], &json!(path));
            let micros = parsed["waitMs"].as_f64().unwrap() * 1000.0;
            prop_assert!((micros - wait.as_secs_f64() * 1e6).abs() < 0.5);
            let date = httpdate::fmt_http_date(std::time::UNIX_EPOCH + line.time);
            let time = parsed["time"].as_str().unwrap();
            prop_assert!(date.contains(&time[11..19]) && date.contains(&time[..4]) && date.contains(&time[8..10]));
        }
    }
}
