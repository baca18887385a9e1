//! Access logs of nginx and Envoy in JSON, whose members have the usual names.

use super::Damage;
use super::exchange::LoggedExchange;
use super::field::LogField;
use crate::json::Scanner;
use crate::record::Record;
use crate::users::Users;

pub(super) fn read<'a>(line: &'a [u8], users: &mut Users) -> Result<Record<'a>, Damage> {
    let mut scanner = Scanner::new(line);
    let mut exchange = LoggedExchange::default();
    scanner.object(|name, scanner| {
        match LogField::of_member(name) {
            LogField::Other => scanner.skip()?,
            LogField::Header => {
                let is_null = scanner.peek() == Some(b'n');
                let value = if is_null { scanner.skip().map(|()| "".into()) } else { scanner.scalar() }?;
                exchange.set_header(name.to_owned().into(), value);
            }
            _ if scanner.peek() == Some(b'n') => scanner.skip()?,
            field => exchange.set(field, scanner.scalar()?)?,
        }
        Ok::<_, Damage>(())
    })?;
    scanner.end()?;
    exchange.into_record(users)
}

#[cfg(test)]
mod tests {
    use evenkeel_engine::User;
    use evenkeel_engine::time::MILLISECOND;

    use super::*;
    use crate::record::{Action, Outcome};
    use crate::timestamp::rfc3339;

    #[test]
    fn nginx() {
        let text = br#"{"time_iso8601":"2026-11-16T10:51:04+00:00","msec":"1794826263.850","remote_addr":"192.0.2.7","remote_user":"","request_method":"GET","request_uri":"/orders?x=1","status":"200","request_time":"0.250","request_id":"7f"}"#;
        let record = read(text, &mut Users::default()).unwrap();
        assert_eq!(Some(record.arrived), rfc3339("2026-11-16T10:51:03.600Z"));
        assert_eq!((record.service, record.wait), (Some(250 * MILLISECOND), None));
        assert_eq!(*record.user.unwrap(), User::new("address:192.0.2.7", ["system:unauthenticated"]));
        assert_eq!((record.action, &*record.target), (Action::Method("GET".into()), "/orders?x=1"));
    }

    #[test]
    fn envoy() {
        let text = br#"{"start_time":"2026-11-16T10:51:03.600Z","method":"POST","path":"/orders","response_code":429,"duration":250,"user":"alice","groups":"dev","response_flags":null}"#;
        let record = read(text, &mut Users::default()).unwrap();
        assert_eq!(Some(record.arrived), rfc3339("2026-11-16T10:51:03.600Z"));
        assert_eq!((record.service, record.outcome), (None, Outcome::Rejected(None)));
        assert_eq!(*record.user.unwrap(), User::new("alice", ["dev", "system:authenticated"]));
        let damage = |text: &str| read(text.as_bytes(), &mut Users::default()).unwrap_err().to_string();
        assert_eq!(damage(r#"{"method":"GET","path":"/"}"#), "the time is missing");
        assert_eq!(damage(r#"{"start_time":"x"}"#), "the start time is invalid");
        assert_eq!(damage(r#"{"path":["x"]}"#), "expected a string or a number at byte 8");
    }
}
