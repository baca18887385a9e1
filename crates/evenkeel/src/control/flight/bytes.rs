//! The format of dumps as bytes, and the errors of reading them.

use super::note::{FlightFact, FlightNote};
use super::record::{FlightEnd, FlightRecord};
use super::{Flight, FlightHeader};
use evenkeel_engine::WorkEstimate;
use evenkeel_engine::time::{Nanos, SECOND};

/// What every dump begins with.
pub const MAGIC: [u8; 8] = *b"EVKFLT\r\n";
/// The version of the format. Version 1, which has no notes, is read too; others are refused.
pub const VERSION: u32 = 2;
/// The version without notes.
const WITHOUT_NOTES: u32 = 1;

/// A dump that cannot be read, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {problem}")]
pub struct DamagedFlight {
    /// The byte at which it begins.
    pub at: usize,
    problem: String,
}

/// The bytes of a record.
const RECORD: usize = 64;
/// The bytes of a note.
const NOTE: usize = 32;
/// Magic number, version, length of the header, number of records, number of notes.
const PREAMBLE: usize = 32;
/// The same without the number of notes.
const PREAMBLE_WITHOUT_NOTES: usize = 24;
/// The longest time in a dump, 31 days: sums of such times do not overflow, and a simulation of it ends.
pub(crate) const LENGTH_MAX: Nanos = 31 * 24 * 3600 * SECOND;
/// The latest moment of a record: some 70 years after the one that times count from.
const MOMENT_MAX: Nanos = i64::MAX / 4;
/// The most seats of a server.
const SEATS_MAX: i64 = u32::MAX as i64;
/// The largest charge of a request: a thousand seats for the longest time.
pub(crate) const CHARGE_MAX: Nanos = LENGTH_MAX << 10;
/// The longest header.
const HEADER_MAX: usize = 256 << 20;

/// Takes numbers off the bytes.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

// === impl Flight ===

impl Flight {
    /// The dump as a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Texts and numbers can always be written.
        let header = serde_json::to_vec(&self.header).unwrap_or_default();
        let mut bytes =
            Vec::with_capacity(PREAMBLE + header.len() + self.records.len() * RECORD + self.notes.len() * NOTE + 8);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(u32::try_from(header.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend((self.records.len() as u64).to_le_bytes());
        bytes.extend((self.notes.len() as u64).to_le_bytes());
        bytes.extend(header);
        self.records.iter().for_each(|record| record.write(&mut bytes));
        self.notes.iter().for_each(|note| note.write(&mut bytes));
        let sum = checksum(&bytes);
        bytes.extend(sum.to_le_bytes());
        bytes
    }

    /// Reads a dump.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DamagedFlight> {
        let mut reader = Reader { bytes, at: 0 };
        if reader.take::<8>()? != MAGIC {
            return Err(damaged(0, "this is not a dump of a flight recorder"));
        }
        let version = u32::from_le_bytes(reader.take()?);
        if ![WITHOUT_NOTES, VERSION].contains(&version) {
            let problem = format!("the dump has version {version}, and this program reads versions 1 to {VERSION}");
            return Err(damaged(8, problem));
        }
        let header_length = u32::from_le_bytes(reader.take()?) as usize;
        let count = u64::from_le_bytes(reader.take()?);
        let has_notes = version != WITHOUT_NOTES;
        let note_count = if has_notes { u64::from_le_bytes(reader.take()?) } else { 0 };
        let preamble = if has_notes { PREAMBLE } else { PREAMBLE_WITHOUT_NOTES };
        let length = |count: u64, each: usize| usize::try_from(count).ok()?.checked_mul(each);
        let expected = length(count, RECORD).zip(length(note_count, NOTE)).and_then(|(records, notes)| {
            records.checked_add(notes)?.checked_add(preamble + 8)?.checked_add(header_length)
        });
        if header_length > HEADER_MAX || expected != Some(bytes.len()) {
            let problem = format!(
                "{} bytes do not hold {count} records, {note_count} notes and a header of {header_length} bytes",
                bytes.len()
            );
            return Err(damaged(12, problem));
        }
        let end = bytes.len() - 8;
        let sum = bytes.get(..end).map(checksum);
        if bytes.get(end..).and_then(|last| last.try_into().ok()).map(u64::from_le_bytes) != sum {
            return Err(damaged(end, "the checksum is another one; the dump was changed or cut off"));
        }
        let header = bytes.get(preamble..preamble + header_length).unwrap_or_default();
        let header: FlightHeader = serde_json::from_slice(header)
            .map_err(|error| damaged(preamble + error.column(), format!("the header cannot be read: {error}")))?;
        header.check().map_err(|problem| damaged(preamble, problem))?;
        reader.at = preamble + header_length;
        // There are as many bytes as these need.
        let mut records = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
        let mut times = None;
        let end_of_records = reader.at + length(count, RECORD).unwrap_or(0);
        while reader.at < end_of_records {
            let record = FlightRecord::read(&mut reader, &header, times)?;
            times = Some((times.map_or(record.at, |(first, _)| first), record.at));
            records.push(record);
        }
        let mut notes = Vec::with_capacity(usize::try_from(note_count).unwrap_or(0));
        while reader.at < end {
            let note = FlightNote::read(&mut reader, &records, notes.last())?;
            notes.push(note);
        }
        Ok(Self { header, records, notes })
    }
}

fn damaged(at: usize, problem: impl Into<String>) -> DamagedFlight {
    DamagedFlight { at, problem: problem.into() }
}

/// FNV-1a over words: tells damage, not forgery.
fn checksum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    for word in words {
        sum = (sum ^ u64::from_le_bytes(*word)).wrapping_mul(0x0000_0100_0000_01b3);
        sum ^= sum >> 32;
    }
    rest.iter().fold(sum, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

// === impl FlightHeader ===

impl FlightHeader {
    /// Whether its numbers can be those of a server.
    fn check(&self) -> Result<(), &'static str> {
        let is_moment = |at: Nanos| (-MOMENT_MAX..=MOMENT_MAX).contains(&at);
        let is_time = |time: Nanos| (0..=LENGTH_MAX).contains(&time);
        let is_seats = |seats: i64| (0..=SEATS_MAX).contains(&seats);
        let changes = || self.changes.iter();
        if !is_seats(self.seats) || !changes().filter_map(|change| change.seats).all(is_seats) {
            return Err("the header has a number of seats that no server has");
        }
        let newcomer_waits = || changes().filter_map(|change| change.newcomer_wait).flatten();
        if !changes().filter_map(|change| change.seats_before).all(is_seats) {
            return Err("the header has a number of seats that no server had");
        }
        if ![self.wait_limit, self.length].into_iter().chain(self.newcomer_wait).chain(newcomer_waits()).all(is_time) {
            return Err("the header has a time that is below zero or longer than 31 days");
        }
        if !(0..=i64::MAX / 2).contains(&self.epoch) || !changes().all(|change| is_moment(change.at)) {
            return Err("the header has a moment that cannot be");
        }
        Ok(())
    }
}

// === impl FlightRecord ===

impl FlightRecord {
    fn write(&self, to: &mut Vec<u8>) {
        let (code, ran) = self.end.to_parts();
        for number in [self.at, self.waited, ran, self.wait_limit, self.work.additional_latency] {
            to.extend(number.to_le_bytes());
        }
        to.extend(self.flow_hash.to_le_bytes());
        to.extend(self.request.to_le_bytes());
        to.extend(self.level.to_le_bytes());
        to.extend([code, 0]);
        let seats = |seats: u32| u16::try_from(seats).unwrap_or(u16::MAX).to_le_bytes();
        to.extend(seats(self.work.initial_seats));
        to.extend(seats(self.work.final_seats));
        to.extend([0; 4]);
    }

    /// `times` are those of the first record and the one before.
    fn read(
        reader: &mut Reader<'_>,
        header: &FlightHeader,
        times: Option<(Nanos, Nanos)>,
    ) -> Result<Self, DamagedFlight> {
        let begin = reader.at;
        let [at, waited, ran, wait_limit, additional_latency] = reader.numbers::<5>()?;
        let flow_hash = u64::from_le_bytes(reader.take()?);
        let request = u32::from_le_bytes(reader.take()?);
        let level = u16::from_le_bytes(reader.take()?);
        let [code, _] = reader.take()?;
        let initial_seats = u16::from_le_bytes(reader.take()?).into();
        let final_seats = u16::from_le_bytes(reader.take()?).into();
        reader.take::<4>()?;
        let refused = |offset: usize, problem: &str| Err(damaged(begin + offset, problem));
        let (first, last) = times.unwrap_or((at, at));
        if at < last {
            return refused(0, "the request arrived before the one in front of it");
        }
        if !(-MOMENT_MAX..=MOMENT_MAX).contains(&at) || at - first > LENGTH_MAX {
            return refused(0, "the request arrived more than 31 days after the first one");
        }
        for (place, time) in [waited, ran, wait_limit, additional_latency].into_iter().enumerate() {
            if !(0..=LENGTH_MAX).contains(&time) {
                return refused(8 * (place + 1), "a time is below zero or longer than 31 days");
            }
        }
        if request as usize >= header.requests.len() {
            return refused(48, "the request is not in the header");
        }
        if usize::from(level) >= header.levels.len() {
            return refused(52, "the level is not in the header");
        }
        let Some(end) = FlightEnd::from_parts(code, ran) else { return refused(54, "there is no such end") };
        let work = WorkEstimate { initial_seats, final_seats, additional_latency };
        Ok(Self { at, waited, end, flow_hash, request, level, work, wait_limit })
    }
}

// === impl FlightNote ===

impl FlightNote {
    fn write(&self, to: &mut Vec<u8>) {
        let (kind, detail, numbers) = self.fact.to_parts();
        to.extend(self.record.to_le_bytes());
        to.extend([kind, detail, 0, 0]);
        for number in numbers {
            to.extend(number.to_le_bytes());
        }
    }

    fn read(reader: &mut Reader<'_>, records: &[FlightRecord], before: Option<&Self>) -> Result<Self, DamagedFlight> {
        let begin = reader.at;
        let record = u32::from_le_bytes(reader.take()?);
        let [kind, detail, ..] = reader.take::<4>()?;
        let numbers = reader.numbers::<3>()?.map(i64::cast_unsigned);
        let refused = |offset: usize, problem: &str| Err(damaged(begin + offset, problem));
        let Some(subject) = records.get(record as usize) else { return refused(0, "the note is about no record") };
        if before.is_some_and(|before| before.record > record) {
            return refused(0, "the note is about a request in front of that of the note before");
        }
        let Some(fact) = FlightFact::from_parts((kind, detail, numbers)) else {
            return refused(4, "there is no such note");
        };
        if fact.moment().is_some_and(|at| {
            at.checked_sub(subject.at).is_none_or(|apart| apart.unsigned_abs() > LENGTH_MAX.unsigned_abs())
        }) {
            return refused(8, "the note is about a time more than 31 days from that of its request");
        }
        if let FlightFact::Charge { seat_time, .. } = fact
            && seat_time.unsigned_abs() > CHARGE_MAX.unsigned_abs()
        {
            return refused(16, "the note has a charge that no request has");
        }
        Ok(Self { record, fact })
    }
}

// === impl Reader ===

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], DamagedFlight> {
        let taken = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>());
        let taken = taken.ok_or_else(|| damaged(self.bytes.len(), "the dump ends here"))?;
        self.at += N;
        Ok(*taken)
    }

    fn numbers<const N: usize>(&mut self) -> Result<[i64; N], DamagedFlight> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = i64::from_le_bytes(self.take()?);
        }
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::events::CostKind;
    use crate::control::flight::{FlightRate, FlightRequest, RateOutcome};
    use evenkeel_engine::queue_set::Rejection;

    fn flight() -> Flight {
        let request =
            FlightRequest { user: "alice".to_owned(), path: "/orders".to_owned(), ..FlightRequest::default() };
        let header = FlightHeader {
            levels: vec!["all".to_owned()],
            requests: vec![request],
            seats: 9,
            ..FlightHeader::default()
        };
        let record = |at, end| FlightRecord {
            at,
            waited: 5,
            end,
            flow_hash: 7,
            request: 0,
            level: 0,
            work: WorkEstimate { initial_seats: 2, final_seats: 1, additional_latency: 3 },
            wait_limit: 11,
        };
        let ends = [
            FlightEnd::Open { has_started: false },
            FlightEnd::Open { has_started: true },
            FlightEnd::Finished { ran: 8 },
            FlightEnd::Rejected(Rejection::TimeOut),
            FlightEnd::Rejected(Rejection::TooManyLongRunning),
        ];
        let rate = |outcome| FlightFact::Rate(FlightRate { at: -1, flow: 5, amount: 6, outcome });
        let facts = [
            (0, FlightFact::LongRunning { others: 3 }),
            (1, rate(RateOutcome::AtOnce)),
            (2, rate(RateOutcome::Waited)),
            (2, FlightFact::Seats { at: 4, seats: 7 }),
            (2, FlightFact::Charge { at: 5, seat_time: -9 }),
            (2, FlightFact::Cost { thousandths: 8, unit: CostKind::Tokens }),
            (3, rate(RateOutcome::Left)),
        ];
        let notes = facts.into_iter().map(|(record, fact)| FlightNote { record, fact }).collect();
        Flight { header, records: ends.into_iter().zip(0..).map(|(end, at)| record(at, end)).collect(), notes }
    }

    #[test]
    fn fr_2_a_dump_is_read_as_it_was_written() {
        let flight = flight();
        assert_eq!(Flight::from_bytes(&flight.to_bytes()).unwrap(), flight);
    }

    /// Every byte is part of the checksum. Where the checksum is right, damage inside is found and reported with its place.
    #[test]
    fn fr_2_damage_is_refused_with_its_place() {
        let good = flight().to_bytes();
        let seed = std::env::var("FLIGHT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7_u64);
        let rounds = std::env::var("FLIGHT_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(20_000_u32);
        let mut random = seed;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(random >> 33).unwrap_or(0) % below
        };
        let mut read = 0;
        for round in 0..rounds {
            let mut bytes = good.clone();
            for _ in 0..=next(3) {
                let place = next(bytes.len());
                bytes[place] ^= 1 << next(8);
            }
            match next(4) {
                0 => bytes.truncate(next(bytes.len())),
                1 => bytes.push(0),
                _ => {}
            }
            let is_sealed = next(2) == 0 && bytes.len() > 8;
            if is_sealed {
                let end = bytes.len() - 8;
                let sum = checksum(&bytes[..end]);
                bytes[end..].copy_from_slice(&sum.to_le_bytes());
            }
            match Flight::from_bytes(&bytes) {
                Ok(_) => read += 1,
                Err(error) => assert!(error.at <= bytes.len(), "seed {seed}, round {round}: {error}"),
            }
            assert!(is_sealed || bytes == good || Flight::from_bytes(&bytes).is_err(), "seed {seed}, round {round}");
        }
        assert!(read > 0, "some damage with a new checksum is another valid dump");
    }

    /// A dump of version 1 is one of today without notes, and without their number.
    #[test]
    fn fr_2_dumps_without_notes_are_read() {
        let flight = Flight { notes: Vec::new(), ..flight() };
        let mut old = flight.to_bytes();
        old[8] = 1;
        old.drain(24..32);
        let end = old.len() - 8;
        let sum = checksum(&old[..end]);
        old[end..].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(Flight::from_bytes(&old).unwrap(), flight);
    }

    #[test]
    fn a_dump_of_another_version_says_so() {
        let mut bytes = flight().to_bytes();
        bytes[8] = 9;
        let error = Flight::from_bytes(&bytes).unwrap_err().to_string();
        assert_eq!(error, "byte 8: the dump has version 9, and this program reads versions 1 to 2");
        assert!(Flight::from_bytes(b"{}").unwrap_err().to_string().contains("ends here"));
    }
}
