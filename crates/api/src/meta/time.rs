//! `Time`: a point in time, to the second, as RFC 3339 writes it (API-12).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::schema::{Described, Shape};

/// A point in time with a resolution of one second.
///
/// Offsets are converted to UTC and fractions of a second are dropped when a time is read.
///
/// ```
/// use evenkeel_api::meta::Time;
///
/// let time: Time = "2024-01-02T04:04:05.9+01:00".parse()?;
/// assert_eq!(time.to_string(), "2024-01-02T03:04:05Z");
/// assert_eq!(time.unix_seconds(), 1_704_164_645);
/// # Ok::<(), evenkeel_api::meta::InvalidTime>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    seconds: i64,
}

/// A text that is not a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parsing time {text:?} as {LAYOUT:?}: {problem}")]
pub struct InvalidTime {
    text: String,
    problem: String,
}

/// How clients of the API know the form: the reference time that they quote in their messages.
const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
const SECONDS_PER_DAY: i64 = 86_400;
/// 0000-01-01T00:00:00Z and 9999-12-31T23:59:59Z: what four digits of a year can tell.
const SECONDS_MIN: i64 = -62_167_219_200;
const SECONDS_MAX: i64 = 253_402_300_799;

/// The rest of a time that is being read, and its whole text for errors.
struct TimeReader<'a> {
    text: &'a str,
    rest: &'a str,
}

// === impl Time ===

impl Time {
    /// The time this many seconds after 1970 began, limited to the years 0 to 9999.
    pub fn from_unix_seconds(seconds: i64) -> Self {
        Self { seconds: seconds.clamp(SECONDS_MIN, SECONDS_MAX) }
    }

    /// How many seconds after 1970 began.
    pub fn unix_seconds(self) -> i64 {
        self.seconds
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date_from_days(self.seconds.div_euclid(SECONDS_PER_DAY));
        let second = self.seconds.rem_euclid(SECONDS_PER_DAY);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

impl FromStr for Time {
    type Err = InvalidTime;

    fn from_str(text: &str) -> Result<Self, InvalidTime> {
        let mut reader = TimeReader { text, rest: text };
        let year = reader.digits(4, "2006")?;
        reader.literal("-")?;
        let month = reader.digits(2, "01")?;
        reader.literal("-")?;
        let day = reader.digits(2, "02")?;
        reader.literal("T")?;
        let hour = reader.digits(2, "15")?;
        reader.literal(":")?;
        let minute = reader.digits(2, "04")?;
        reader.literal(":")?;
        let second = reader.digits(2, "05")?;
        reader.skip_fraction();
        let offset = reader.offset()?;
        if !reader.rest.is_empty() {
            return Err(reader.invalid(format!("extra text: {:?}", reader.rest)));
        }
        for (name, value, range) in [
            ("month", month, 1..=12),
            ("day", day, 1..=days_in_month(year, month)),
            ("hour", hour, 0..=23),
            ("minute", minute, 0..=59),
            ("second", second, 0..=59),
        ] {
            if !range.contains(&value) {
                return Err(reader.invalid(format!("{name} out of range")));
            }
        }
        let seconds = days_from_date(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second - offset;
        Ok(Self::from_unix_seconds(seconds))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl Described for Time {
    const SHAPE: Shape = Shape::Time;

    fn is_absent(&self) -> bool {
        false
    }
}

// === impl TimeReader ===

impl TimeReader<'_> {
    fn invalid(&self, problem: String) -> InvalidTime {
        InvalidTime { text: self.text.to_owned(), problem }
    }

    fn expected(&self, element: &str) -> InvalidTime {
        self.invalid(format!("cannot parse {:?} as {element:?}", self.rest))
    }

    fn literal(&mut self, literal: &str) -> Result<(), InvalidTime> {
        self.rest = self.rest.strip_prefix(literal).ok_or_else(|| self.expected(literal))?;
        Ok(())
    }

    fn digits(&mut self, count: usize, element: &str) -> Result<i64, InvalidTime> {
        match self.rest.split_at_checked(count) {
            Some((digits, rest)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.rest = rest;
                Ok(digits.bytes().fold(0, |value, digit| value * 10 + i64::from(digit - b'0')))
            }
            _ => Err(self.expected(element)),
        }
    }

    fn skip_fraction(&mut self) {
        if let Some(fraction) = self.rest.strip_prefix(['.', ',']) {
            let rest = fraction.trim_start_matches(|digit: char| digit.is_ascii_digit());
            if rest.len() < fraction.len() {
                self.rest = rest;
            }
        }
    }

    /// The distance from UTC in seconds.
    fn offset(&mut self) -> Result<i64, InvalidTime> {
        const ELEMENT: &str = "Z07:00";
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let whole = self.rest;
        let sign = match whole.as_bytes().first() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return Err(self.expected(ELEMENT)),
        };
        self.rest = &whole[1..];
        let parts = (self.digits(2, ELEMENT), self.literal(":"), self.digits(2, ELEMENT));
        if let (Ok(hours @ 0..=24), Ok(()), Ok(minutes @ 0..=59)) = parts {
            return Ok(sign * (hours * 3600 + minutes * 60));
        }
        self.rest = whole;
        Err(self.expected(ELEMENT))
    }
}

fn is_leap_year(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap_year(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days between 1970-01-01 and a date of the Gregorian calendar.
///
/// Years are counted from March here, so that the leap day is the last of its year and the days before a month
/// follow one straight line.
fn days_from_date(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The date that many days after 1970-01-01: year, month, day.
fn date_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_times_are_read_and_written() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T23:59:59Z", 951_868_799),
            ("0000-01-01T00:00:00Z", SECONDS_MIN),
            ("9999-12-31T23:59:59Z", SECONDS_MAX),
        ] {
            let time: Time = text.parse().unwrap();
            assert_eq!((time.unix_seconds(), time.to_string().as_str()), (seconds, text));
        }
    }

    #[test]
    fn api_20_malformed_times_say_where_they_stop_making_sense() {
        for (text, problem) in [
            ("yesterday", "cannot parse \"yesterday\" as \"2006\""),
            ("", "cannot parse \"\" as \"2006\""),
            ("2024-01-02", "cannot parse \"\" as \"T\""),
            ("2024-01-02 03:04:05Z", "cannot parse \" 03:04:05Z\" as \"T\""),
            ("2024-01-02T03:04:05", "cannot parse \"\" as \"Z07:00\""),
            ("2024-01-02T03:04:05+1:00", "cannot parse \"+1:00\" as \"Z07:00\""),
            ("2024-13-02T03:04:05Z", "month out of range"),
            ("2023-02-29T03:04:05Z", "day out of range"),
            ("2024-01-02T24:04:05Z", "hour out of range"),
            ("2024-01-02T03:04:05Zulu", "extra text: \"ulu\""),
            ("2024-01-0é", "cannot parse \"0é\" as \"02\""),
        ] {
            let error = text.parse::<Time>().unwrap_err();
            assert_eq!(error.to_string(), format!("parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": {problem}"));
        }
    }

    proptest! {
        #[test]
        fn api_12_what_is_written_is_read_back(seconds in SECONDS_MIN..=SECONDS_MAX) {
            let time = Time::from_unix_seconds(seconds);
            prop_assert_eq!(time.to_string().parse::<Time>().unwrap(), time);
        }

        #[test]
        fn any_text_is_a_time_or_an_error(text in "\\PC*") {
            if let Ok(time) = text.parse::<Time>() {
                prop_assert_eq!(time.to_string().parse::<Time>().unwrap(), time);
            }
        }
    }
}
