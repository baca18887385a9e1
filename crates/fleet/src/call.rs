//! Calls of a member to etcd, and their replies.

use evenkeel_engine::time::{Instant, MILLISECOND, Nanos};

use crate::ledger::{InstanceId, Ledger};
use crate::publication::Publication;
use crate::view::Snapshot;

/// How long a call to etcd takes at most (FL-12). A later response is ignored.
pub const CALL_TIMEOUT: Nanos = 400 * MILLISECOND;

/// A call to etcd. A member has one at a time.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Call {
    /// Tells its response from those of other calls.
    pub number: u64,
    /// The operation to carry out.
    pub operation: Operation,
}

/// A linearisable read of all keys of the fleet, alone or at the end of a transaction that writes.
///
/// Every operation is one transaction. If a comparison fails, nothing is written. The reply shows all keys in both cases.
///
/// Not `#[non_exhaustive]`: a driver has to do all of them.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Only reads.
    Read,
    /// Creates `live/<id>` under a new lease, and writes the ledger (FL-2).
    Register {
        /// The new registration. Compare: its key does not exist.
        id: InstanceId,
        /// The value of the key.
        publication: Publication,
        /// The ledger with this instance's entry.
        write: LedgerWrite,
        /// A former registration of this entry, whose key is deleted.
        replaced: Option<InstanceId>,
    },
    /// Writes `live/<id>`.
    Publish {
        /// The registration.
        id: InstanceId,
        /// Compare: the revision in which its key was created. A key of that name that was created later belongs to another
        /// instance.
        create_revision: u64,
        /// The value of the key.
        publication: Publication,
    },
    /// Writes the ledger.
    Propose {
        /// The registration of the one that proposes.
        id: InstanceId,
        /// Compare: the revision in which its key was created.
        create_revision: u64,
        /// The next ledger.
        write: LedgerWrite,
        /// Keys that are deleted. Compare: the revisions in which they were last written (FL-5).
        reclaimed: Vec<(InstanceId, u64)>,
    },
    /// Writes the ledger without this instance, and deletes `live/<id>` (FL-11).
    Leave {
        /// The registration.
        id: InstanceId,
        /// Compare: the revision in which its key was created.
        create_revision: u64,
        /// The ledger without this instance's entry.
        write: LedgerWrite,
    },
}

/// A ledger to be written, if the present one is still the one that was read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LedgerWrite {
    /// Compare: the revision of the present ledger, 0 if there is none.
    pub compared: u64,
    /// The next ledger.
    pub ledger: Ledger,
}

/// The reply of etcd.
///
/// Not `#[non_exhaustive]`: the driver makes it.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Whether all comparisons held, and everything was written.
    pub is_written: bool,
    /// All keys after that.
    pub snapshot: Snapshot,
}

/// A call that has not been answered.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) number: u64,
    pub(crate) sent: Instant,
    pub(crate) purpose: Purpose,
}

/// The purpose of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Read,
    Register(InstanceId),
    Publish(InstanceId),
    Propose,
    Leave,
}

// === impl LedgerWrite ===

impl LedgerWrite {
    /// Writes `ledger` if the present one is of this revision.
    pub(crate) fn new(compared: u64, ledger: Ledger) -> Self {
        Self { compared, ledger }
    }
}
