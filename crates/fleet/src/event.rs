//! What happens to an instance of a fleet, for logs and metrics (FL-14).

use std::fmt;

use crate::ledger::InstanceId;

/// What has happened to an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemberEvent {
    /// The instance is registered.
    Registered {
        /// Its registration.
        id: InstanceId,
    },
    /// Its key or its ledger entry is gone: it starts on its floor only until it is registered again.
    RegistrationLost,
    /// Its grant has changed.
    Granted {
        /// The seats that it has now.
        seats: u64,
        /// The seats that it had before.
        before: u64,
    },
    /// Another instance has written the ledger first.
    Conflict,
    /// etcd has not answered in time.
    CallFailed,
}

// === impl MemberEvent ===

impl fmt::Display for MemberEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registered { id } => write!(f, "this instance is registered in the fleet as {:016x}", id.0),
            Self::RegistrationLost => f.write_str(
                "this instance has lost its registration in the fleet: it uses its floor only until it is registered again",
            ),
            Self::Granted { seats, before } if seats > before => {
                write!(f, "the fleet grants this instance {seats} seats, {} more than before", seats - before)
            }
            Self::Granted { seats, before } => {
                write!(f, "the fleet grants this instance {seats} seats, {} fewer than before", before - seats)
            }
            Self::Conflict => f.write_str("another instance of the fleet has written the ledger first"),
            Self::CallFailed => f.write_str("etcd has not answered the fleet in time"),
        }
    }
}
