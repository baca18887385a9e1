//! A request as an access log of nginx or Envoy has it, put together value by value.

use std::borrow::Cow;

use evenkeel_engine::time::{Instant, Nanos};

use super::Damage;
use super::field::{LogField, header_of};
use crate::logged_head::LoggedHead;
use crate::record::{Action, Outcome, Record, Stage};
use crate::timestamp::{common_log, milliseconds, rfc3339, seconds, unix_seconds};
use crate::users::Users;

/// The fields of a line that have been read so far.
#[derive(Debug, Default)]
pub(super) struct LoggedExchange<'a> {
    start: Option<Instant>,
    end: Option<Instant>,
    /// A time with decimals is preferred to one without.
    end_is_exact: bool,
    length: Option<Nanos>,
    method: Option<Cow<'a, str>>,
    target: Option<Cow<'a, str>>,
    status: Option<u16>,
    user: Option<Cow<'a, str>>,
    groups: Option<Cow<'a, str>>,
    address: Option<Cow<'a, str>>,
    id: Option<Cow<'a, str>>,
    headers: Vec<(Cow<'a, str>, Option<Cow<'a, str>>)>,
}

const TOO_MANY_REQUESTS: u16 = 429;

// === impl LoggedExchange ===

impl<'a> LoggedExchange<'a> {
    /// Notes a value. An empty value or a dash counts as absent.
    pub(super) fn set(&mut self, field: LogField, value: Cow<'a, str>) -> Result<(), Damage> {
        if matches!(&*value, "" | "-") {
            return Ok(());
        }
        match field {
            LogField::Start => self.start = Some(rfc3339(&value).ok_or(Damage::Invalid("the start time"))?),
            LogField::End => self.end_at(rfc3339(&value), false)?,
            LogField::EndLocal => self.end_at(common_log(&value), false)?,
            LogField::EndUnix => self.end_at(unix_seconds(&value), true)?,
            LogField::Seconds => self.length = Some(seconds(&value).ok_or(Damage::Invalid("the request time"))?),
            LogField::Milliseconds => {
                let length = value.parse().ok().and_then(milliseconds);
                self.length = Some(length.ok_or(Damage::Invalid("the duration"))?);
            }
            LogField::RequestLine => self.request_line(&value)?,
            LogField::Method => self.method = Some(value),
            LogField::Target => self.target = Some(value),
            LogField::Status => self.status = Some(value.parse().map_err(|_| Damage::Invalid("the status"))?),
            LogField::User => self.user = Some(value),
            LogField::Groups => self.groups = Some(value),
            LogField::Address => self.address = Some(value),
            LogField::Id => self.id = Some(value),
            LogField::Header | LogField::Other => {}
        }
        Ok(())
    }

    /// Notes the value of a header, by the name that its field has.
    pub(super) fn set_header(&mut self, field: Cow<'a, str>, value: Cow<'a, str>) {
        let is_there = !matches!(&*value, "" | "-");
        let name = match field {
            Cow::Borrowed(field) => header_of(field).unwrap_or(field).into(),
            Cow::Owned(field) => header_of(&field).unwrap_or(&field).to_owned().into(),
        };
        self.headers.push((name, is_there.then_some(value)));
    }

    fn end_at(&mut self, end: Option<Instant>, is_exact: bool) -> Result<(), Damage> {
        let end = end.ok_or(Damage::Invalid("the time"))?;
        if is_exact || !self.end_is_exact {
            self.end = Some(end);
            self.end_is_exact = is_exact;
        }
        Ok(())
    }

    fn request_line(&mut self, line: &str) -> Result<(), Damage> {
        let mut words = line.split(' ');
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Err(Damage::Invalid("the request line"));
        };
        self.method = Some(Cow::Owned(method.to_owned()));
        self.target = Some(Cow::Owned(target.to_owned()));
        Ok(())
    }

    pub(super) fn into_record(self, users: &mut Users) -> Result<Record<'a>, Damage> {
        let length = self.length;
        let arrived = match (self.start, self.end) {
            (Some(start), _) => start,
            (None, Some(end)) => end + -length.unwrap_or(0),
            (None, None) => return Err(Damage::Missing("the time")),
        };
        let is_rejected = self.status == Some(TOO_MANY_REQUESTS);
        let groups = self.groups.as_deref().unwrap_or_default();
        Ok(Record {
            id: self.id,
            stage: Stage::Whole,
            arrived,
            written: arrived + length.unwrap_or(0),
            wait: None,
            service: length.filter(|_| !is_rejected),
            user: Some(users.of_client(self.user.as_deref(), groups, self.address.as_deref())),
            action: Action::Method(self.method.ok_or(Damage::Missing("the method"))?),
            target: self.target.ok_or(Damage::Missing("the path"))?,
            head: LoggedHead { headers: self.headers, address: self.address },
            outcome: if is_rejected { Outcome::Rejected(None) } else { Outcome::Served },
            placed: None,
            seats: None,
            cost: None,
            bytes: None,
        })
    }
}
