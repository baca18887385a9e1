//! The dumps of a flight recorder (FR-2): what a server decided about its last requests, as a file.
//!
//! [`Flight`] is the content, [`Flight::to_bytes`] and [`Flight::from_bytes`] are the format: a magic number and a version, a header in JSON, records of
//! a fixed size, notes on some of them, and a checksum. Damage is refused with its place.
//!
//! ```
//! use evenkeel::flight::{Flight, FlightHeader};
//!
//! let flight = Flight { header: FlightHeader::default(), ..Flight::default() };
//! let bytes = flight.to_bytes();
//! assert_eq!(Flight::from_bytes(&bytes).unwrap(), flight);
//! assert!(Flight::from_bytes(&bytes[..bytes.len() - 1]).is_err());
//! ```

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

mod bytes;
mod header;
mod note;
mod record;

pub use bytes::{DamagedFlight, MAGIC, VERSION};
pub use header::{FlightChange, FlightHeader, FlightRequest};
pub use note::{FlightFact, FlightNote, FlightRate, RateOutcome};
pub use record::{FlightEnd, FlightRecord};

pub(crate) use bytes::{CHARGE_MAX, LENGTH_MAX};
pub(crate) use record::{reason_code, reason_of};

/// The content of a dump: the records of a flight recorder, and what they refer to.
///
/// Not `#[non_exhaustive]`: recorders make it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Flight {
    /// Settings, objects and names.
    pub header: FlightHeader,
    /// The requests, by the times of their arrival.
    pub records: Vec<FlightRecord>,
    /// What else is known of some of them, in the order of the records; of one request, in the order of time.
    pub notes: Vec<FlightNote>,
}

// === impl Flight ===

impl Flight {
    /// Puts hashes in the place of the names of users and flows: for operators who must not keep names.
    ///
    /// The hashes have a key that this process has drawn: a name has the same hash in all its dumps, and whoever has a list of names cannot
    /// compute them. The hashes of flows in the records stay, because flows are dealt their queues by them.
    pub fn hide_users(&mut self) {
        static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        self.header.hides_users = true;
        for FlightRequest { user, flow, .. } in &mut self.header.requests {
            for name in [user, flow] {
                if !name.is_empty() {
                    *name = format!("hidden-{:016x}", KEY.hash_one(&**name));
                }
            }
        }
    }
}
