//! Several instances in front of one service share its seats, with etcd as their engine (rules FL).
//!
//! A [`Member`] is one instance of a fleet: a state machine without I/O. Responses and watches of etcd come in, transactions for
//! etcd go out, and [`Member::allowance`] says how many seats the instance may use, and until when. At no time may all
//! instances together use more than the service has: whatever is lost or delayed, whoever stops or dies.
//!
//! | module | what it does |
//! |---|---|
//! | `ledger`, `publication` | the values of the keys in etcd: who may use how many seats; what an instance could use |
//! | `rates` | the demand for the rates of flows, and the parts of them that follow from what all publish |
//! | `level_load` | what a level could use, in the form in which it is published |
//! | `encoding` | both as JSON |
//! | `call` | the transactions, and their replies |
//! | `view` | what an instance knows of the keys, from responses and watches together |
//! | `silence` | how long other instances have been silent |
//! | `proposal` | the ledger that should be |
//! | `found_seats`, `seat_finder`, `seat_search` | how many seats the service should have, if nobody has said so |
//! | `member` | what an instance does when |
//! | `allowance` | how many seats may be used, and until when |
//! | `fleet`, `etcd_keys`, `boot_time`, `process_lock` | the driver (feature `driver`): a member that runs in a task, with an etcd and a clock |
//! | `simulated_etcd` | an etcd for simulations (feature `simulation`) |
//!
#![cfg_attr(feature = "driver", doc = "[`Fleet::join`] runs a member in a task, with a real etcd.")]
//!
//! How the seats are divided is a decision of the engine: [`evenkeel_engine::fleet_division`].
//!
//! ```
//! use evenkeel_engine::time::Instant;
//! use evenkeel_fleet::{CurrentLoad, FleetSettings, Member, Operation, ProcessNonce};
//!
//! let mut member = Member::new(FleetSettings { seats: 100, ..FleetSettings::default() }, ProcessNonce(1), None, 7);
//! // First of all it reads what is there.
//! let call = member.poll(Instant::default(), &CurrentLoad::default()).unwrap();
//! assert!(matches!(call.operation, Operation::Read));
//! // It starts nothing before it is in the ledger.
//! assert_eq!(member.allowance().seats(Instant::default()), 0);
//! ```

mod allowance;
#[cfg(feature = "driver")]
mod boot_time;
mod call;
mod encoding;
#[cfg(feature = "driver")]
mod etcd_keys;
mod event;
#[cfg(feature = "driver")]
mod fleet;
mod found_seats;
mod ledger;
mod level_load;
mod member;
#[cfg(feature = "driver")]
mod process_lock;
mod proposal;
mod publication;
mod rates;
mod seat_finder;
mod seat_search;
mod settings;
mod silence;
#[cfg(feature = "simulation")]
mod simulated_etcd;
mod view;

pub use allowance::{Allowance, Footing};
#[cfg(feature = "driver")]
pub use boot_time::boot_time;
pub use call::{CALL_TIMEOUT, Call, LedgerWrite, Operation, Reply};
pub use encoding::{UnreadableValue, decode_ledger, decode_publication, encode_ledger, encode_publication};
pub use event::MemberEvent;
#[cfg(feature = "driver")]
pub use fleet::{Fleet, FleetConfig, FleetInstance, FleetStatus, JoinError};
pub use found_seats::FoundSeats;
pub use ledger::{FORMAT_VERSION, InstanceId, Ledger, LedgerEntry, ProcessNonce};
pub use level_load::SeenLevel;
pub use member::{Member, POLL_PERIOD};
pub use publication::{CurrentLoad, CurrentUsage, FLOWS_LISTED_MAX, LimitInput, LoadSource, Publication};
pub use rates::{RATES_LISTED_MAX, RateLoad, RateShares};
pub use seat_search::FoundLimit;
pub use settings::{FleetSettings, Terms};
#[cfg(feature = "simulation")]
pub use simulated_etcd::{EtcdCounts, SimulatedEtcd};
pub use view::{LedgerKey, LiveKey, Snapshot, WatchedChange};

/// Tests the example of the page.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
