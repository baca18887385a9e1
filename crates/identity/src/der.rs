//! DER, as far as it takes to read certificates and public keys.

use std::time::{Duration, SystemTime};

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const TELETEX_STRING: u8 = 0x14;
const IA5_STRING: u8 = 0x16;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The low bits of a tag that is continued in the next byte. Neither certificates nor keys have such tags.
const LONG_TAG: u8 = 0x1f;

/// A value, its tag, and what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Element<'a> {
    pub(crate) tag: u8,
    pub(crate) content: &'a [u8],
    pub(crate) rest: &'a [u8],
}

// === impl Element ===

impl<'a> Element<'a> {
    /// The first element, if it has this tag.
    pub(crate) fn of(tag: u8, input: &'a [u8]) -> Option<Self> {
        Self::read(input).filter(|element| element.tag == tag)
    }

    /// The content of the only element, if it has this tag.
    pub(crate) fn only(tag: u8, input: &'a [u8]) -> Option<&'a [u8]> {
        Self::of(tag, input).filter(|element| element.rest.is_empty()).map(|element| element.content)
    }

    /// The first element. Its length has to be in the one form that DER allows: the shortest one.
    pub(crate) fn read(input: &'a [u8]) -> Option<Self> {
        let (&tag, input) = input.split_first()?;
        if tag & LONG_TAG == LONG_TAG {
            return None;
        }
        let (&first, input) = input.split_first()?;
        let (length, input) = if first < 0x80 {
            (usize::from(first), input)
        } else {
            let (digits, input) = input.split_at_checked(usize::from(first & 0x7f))?;
            if digits.len() > 4 || digits.first().is_none_or(|digit| *digit == 0) {
                return None;
            }
            let length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
            if length < 0x80 {
                return None;
            }
            (length, input)
        };
        let (content, rest) = input.split_at_checked(length)?;
        Some(Self { tag, content, rest })
    }

    pub(crate) fn text(&self) -> Option<String> {
        match self.tag {
            UTF8_STRING | PRINTABLE_STRING | TELETEX_STRING | IA5_STRING => {
                std::str::from_utf8(self.content).ok().map(ToOwned::to_owned)
            }
            _ => None,
        }
    }

    /// A time of a certificate: `YYMMDDHHMMSSZ`, or with four digits of the year (RFC 5280, 4.1.2.5).
    pub(crate) fn time(&self) -> Option<SystemTime> {
        let digits = self.content.strip_suffix(b"Z")?;
        let (year, rest) = match self.tag {
            UTC_TIME => {
                let (year, rest) = number(digits, 2)?;
                (if year < 50 { 2000 + year } else { 1900 + year }, rest)
            }
            GENERALIZED_TIME => number(digits, 4)?,
            _ => return None,
        };
        let (month, rest) = number(rest, 2)?;
        let (day, rest) = number(rest, 2)?;
        let (hour, rest) = number(rest, 2)?;
        let (minute, rest) = number(rest, 2)?;
        let (second, []) = number(rest, 2)? else { return None };
        let is_time = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 61;
        let days = days_since_1970(year, month, day).filter(|_| is_time)?;
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(((days * 24 + hour) * 60 + minute) * 60 + second))
    }
}

/// A number of this many digits, and what follows it.
fn number(digits: &[u8], count: usize) -> Option<(u64, &[u8])> {
    let (digits, rest) = digits.split_at_checked(count)?;
    let number = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|digit| digit.is_ascii_digit()))?;
    Some((number.parse().ok()?, rest))
}

/// The days from 1970 to a date; `None` for earlier dates.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    // Years that begin in March have their odd day at the end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    days.checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_has_one_form() {
        let content = |input: &[u8]| Element::only(SEQUENCE, input).map(<[u8]>::len);
        let long = |head: &[u8], length: usize| [head, &vec![0; length]].concat();
        assert_eq!(content(&long(b"\x30\x7f", 0x7f)), Some(0x7f));
        assert_eq!(content(&long(b"\x30\x81\x80", 0x80)), Some(0x80));
        assert_eq!(content(&long(b"\x30\x82\x01\x00", 0x100)), Some(0x100));
        assert_eq!(content(&long(b"\x30\x83\x01\x00\x00", 0x1_0000)), Some(0x1_0000));
        for (head, length) in [
            (&b"\x30\x81\x7f"[..], 0x7f),
            (b"\x30\x82\x00\x80", 0x80),
            (b"\x30\x84\x00\x00\x00\x05", 5),
            (b"\x30\x80", 2),
            (b"\x3f\x02", 2),
            (b"\x30\x02", 1),
            (b"\x30\x02", 3),
            (b"\x31\x02", 2),
        ] {
            assert_eq!(content(&long(head, length)), None, "{head:x?}");
        }
    }

    #[test]
    fn times_are_read() {
        let seconds = |tag: u8, text: &str| {
            let time = Element { tag, content: text.as_bytes(), rest: &[] }.time();
            time.map(|time| time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs())
        };
        for (tag, text, expected) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "000229235959Z", Some(951_868_799)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (GENERALIZED_TIME, "20500301000000Z", Some(2_529_705_600)),
            (GENERALIZED_TIME, "99991231235959Z", Some(253_402_300_799)),
            (UTC_TIME, "501231235959Z", None),
            (UTC_TIME, "20500301000000Z", None),
            (UTC_TIME, "700101000000", None),
            (UTC_TIME, "701301000000Z", None),
            (UTC_TIME, "7001+1000000Z", None),
            (GENERALIZED_TIME, "00000101000000Z", None),
            (SEQUENCE, "700101000000Z", None),
        ] {
            assert_eq!(seconds(tag, text), expected, "{text}");
        }
    }
}
