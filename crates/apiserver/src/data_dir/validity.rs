//! How long certificates are valid, and when they are to be made again.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::CertificateParams;

const DAY: Duration = Duration::from_secs(24 * 3600);
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// How long the server's certificate is valid. It is made again each [`RENEWAL_PERIOD`].
pub(super) const OF_SERVER: Duration = YEAR;
/// The server's certificate is made again at a start when less than this is left.
const OF_SERVER_MIN: Duration = DAY.saturating_mul(90);
/// How long the authority's certificate is valid. What is signed with it must not outlive it.
pub(super) const OF_AUTHORITY: Duration = YEAR.saturating_mul(10);
/// The authority's certificate is made again when less than this is left.
const OF_AUTHORITY_MIN: Duration = YEAR.saturating_mul(2);
/// How often the certificates of a server that runs are looked at.
pub(super) const RENEWAL_PERIOD: Duration = DAY.saturating_mul(30);

/// A day as `20361231`.
type Day = String;

/// Sets a period that starts now. It starts a little earlier, for clients whose clocks are behind.
pub(super) fn set(params: &mut CertificateParams, period: Duration) {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let start = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = start + since_1970.saturating_sub(DAY);
    params.not_after = start + since_1970 + period;
}

/// Whether the certificate of an authority has to be renewed: it ends soon, or only in the far future. `None` if it cannot be
/// parsed.
pub(super) fn is_due(pem: &str) -> Option<bool> {
    let last = last_day(&der(pem)?)?;
    Some(last < day_in(OF_AUTHORITY_MIN) || last > day_in(OF_AUTHORITY + DAY))
}

/// Whether the server's certificate need not be made again at a start.
pub(super) fn is_valid_for_long(pem: &str) -> bool {
    let last = der(pem).as_deref().and_then(last_day);
    last.is_some_and(|last| (day_in(OF_SERVER_MIN)..=day_in(OF_SERVER + DAY)).contains(&last))
}

fn day_in(time: Duration) -> Day {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let day = rcgen::date_time_ymd(1970, 1, 1) + since_1970 + time;
    format!("{:04}{:02}{:02}", day.year(), u8::from(day.month()), day.day())
}

fn der(pem: &str) -> Option<Vec<u8>> {
    let (_, rest) = pem.split_once("-----BEGIN CERTIFICATE-----")?;
    let (text, _) = rest.split_once("-----END CERTIFICATE-----")?;
    STANDARD.decode(text.split_ascii_whitespace().collect::<String>()).ok()
}

/// The day on which a certificate ends (RFC 5280, 4.1).
fn last_day(certificate: &[u8]) -> Option<Day> {
    const VERSION: u8 = 0xa0;
    const UTC_TIME: u8 = 0x17;
    let (_, signed, _) = element(certificate)?;
    let (_, mut rest, _) = element(signed)?;
    if rest.first() == Some(&VERSION) {
        rest = element(rest)?.2;
    }
    // The serial number, the algorithm and the issuer.
    for _ in 0..3 {
        rest = element(rest)?.2;
    }
    let (_, validity, _) = element(rest)?;
    let (_, _, rest) = element(validity)?;
    let (tag, time, _) = element(rest)?;
    let text = std::str::from_utf8(time).ok()?;
    // Two digits of a year are of this century until 2050.
    let text = match tag {
        UTC_TIME if text < "50" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        _ => text.to_owned(),
    };
    text.get(..8).filter(|day| day.bytes().all(|digit| digit.is_ascii_digit())).map(ToOwned::to_owned)
}

/// The tag and the content of the first value, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&length, rest) = rest.split_first()?;
    let (length, rest) = match length {
        ..=0x7f => (usize::from(length), rest),
        0x81 | 0x82 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(length & 3))?;
            (bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use rcgen::KeyPair;

    use super::*;

    fn certificate(change: impl FnOnce(&mut CertificateParams)) -> String {
        let mut params = CertificateParams::default();
        change(&mut params);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
    }

    #[test]
    fn the_last_day_is_read() {
        for (year, month, day, expected) in
            [(2034, 5, 6, "20340506"), (2050, 1, 2, "20500102"), (4096, 1, 1, "40960101")]
        {
            let pem = certificate(|params| params.not_after = rcgen::date_time_ymd(year, month, day));
            assert_eq!(last_day(&der(&pem).unwrap()).unwrap(), expected);
        }
        let whole = der(&certificate(|_| {})).unwrap();
        for length in 0..whole.len().min(200) {
            assert!(last_day(&whole[..length]).is_none());
        }
        assert_eq!(is_due("nonsense"), None);
    }

    #[test]
    fn an_authority_is_due_when_it_ends_soon_or_never() {
        for (period, expected) in
            [(OF_AUTHORITY, false), (YEAR * 3, false), (YEAR, true), (Duration::ZERO, true), (YEAR * 100, true)]
        {
            assert_eq!(is_due(&certificate(|params| set(params, period))), Some(expected), "{period:?}");
        }
        for (period, expected) in [(OF_SERVER, true), (DAY * 100, true), (DAY * 80, false), (Duration::ZERO, false)] {
            let pem = certificate(|params| set(params, period));
            assert_eq!(is_valid_for_long(&pem), expected, "{period:?}");
        }
        // As earlier versions made them.
        assert_eq!(is_due(&certificate(|_| {})), Some(true));
    }
}
