//! Dumps of a flight recorder: bytes that anybody may have changed.

use evenkeel::flight::{Flight, MAGIC};
use evenkeel_engine::time::{Nanos, SECOND};
use evenkeel_replay::{Incident, Replay, Settings, borrowing_of, objects_of, preset_of, workload_of};

/// A longer dump is read, but not decided about again: seats are divided too often in its time for a property that runs very often.
const REPLAYED_MAX: Nanos = 3600 * SECOND;
/// The bytes of the checksum.
const SUM: usize = 8;

/// A dump is refused with the place of its damage, or everything that tools do with it ends. Damage behind a checksum that is right is tried too.
///
/// # Panics
/// If that does not hold.
pub fn flight(input: &[u8]) {
    read(input);
    if let Some(end) = input.len().checked_sub(SUM) {
        let mut sealed = input.to_vec();
        let sum = checksum(&input[..end]);
        sealed[end..].copy_from_slice(&sum.to_le_bytes());
        read(&sealed);
    }
}

fn read(bytes: &[u8]) {
    let flight = match Flight::from_bytes(bytes) {
        Ok(flight) => flight,
        Err(damage) => {
            assert!(damage.at <= bytes.len() && !damage.to_string().is_empty());
            return;
        }
    };
    assert!(bytes.starts_with(&MAGIC));
    assert_eq!(Flight::from_bytes(&flight.to_bytes()).as_ref(), Ok(&flight));
    let workload = workload_of("a dump", &flight);
    assert!(workload.flows.len() <= flight.records.len());
    let times = flight.records.first().zip(flight.records.last());
    if times.is_some_and(|(first, last)| last.at - first.at > REPLAYED_MAX) {
        return;
    }
    let Ok(objects) = objects_of(&flight) else { return };
    if let Ok(Some(incident)) = Incident::new(&flight) {
        assert_eq!(incident.requests, flight.records.len() as u64);
        assert_eq!(incident.parts.iter().map(|part| part.arrived).sum::<u64>(), incident.requests);
        assert!(incident.agreement.same <= incident.agreement.requests);
    }
    let seats = u32::try_from(flight.header.seats).unwrap_or(u32::MAX);
    let mut settings = Settings::new(preset_of(&flight), seats);
    settings.borrowing = borrowing_of(&flight);
    let mut replay = Replay::new(settings, vec![objects], None);
    replay.read_flight(&flight);
    assert!(replay.finish().requests <= flight.records.len() as u64);
}

/// FNV-1a over words, as the format has it.
fn checksum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    for word in words {
        sum = (sum ^ u64::from_le_bytes(*word)).wrapping_mul(0x0000_0100_0000_01b3);
        sum ^= sum >> 32;
    }
    rest.iter().fold(sum, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
