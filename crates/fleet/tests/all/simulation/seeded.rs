//! Faults that are put into the protocol from outside, each of which the checker has to find.

use evenkeel_fleet::{Operation, Publication, Reply};

/// A mutation of the protocol: what an implementation could get wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SeededFault {
    /// A lowered grant is free for others at once (FL-6).
    GrowBeforeShrink,
    /// What an instance publishes counts whatever ledger it has seen (FL-6).
    AckWithoutRevision,
    /// A kept-alive lease renews the grant, although the key may be gone (FL-8).
    RenewalByKeepAlive,
    /// A grant is counted from the response of a write (FL-8).
    ExpiryFromResponse,
    /// The ledger that arrives last is obeyed, not the newest (FL-6).
    OlderLedgerApplied,
    /// The key of an instance that is taken for lost is not compared (FL-5).
    ReclaimWithoutCompare,
    /// Requests of a lost instance are not waited for (FL-10).
    GraceZero,
    /// A lowered floor is free for others at once (FL-9).
    FloorLoweredWithoutAck,
    /// Ledgers are written whatever has been written meanwhile (FL-5).
    NoCompareAndSwap,
    /// A clock that stands still while the process is stopped (FL-8).
    ClockThatStops,
}

// === impl SeededFault ===

impl SeededFault {
    pub(crate) const ALL: [Self; 10] = [
        Self::GrowBeforeShrink,
        Self::AckWithoutRevision,
        Self::RenewalByKeepAlive,
        Self::ExpiryFromResponse,
        Self::OlderLedgerApplied,
        Self::ReclaimWithoutCompare,
        Self::GraceZero,
        Self::FloorLoweredWithoutAck,
        Self::NoCompareAndSwap,
        Self::ClockThatStops,
    ];

    /// Changes what a process sends.
    pub(crate) fn change_operation(self, operation: &mut Operation) {
        if let Operation::Propose { write, reclaimed, .. } = operation {
            for entry in &mut write.ledger.entries {
                match self {
                    Self::GrowBeforeShrink => entry.hold = entry.grant,
                    Self::FloorLoweredWithoutAck => entry.floor_held = entry.floor,
                    _ => {}
                }
            }
            if self == Self::ReclaimWithoutCompare {
                reclaimed.clear();
            }
        }
    }

    /// Changes what a ledger is compared with when it is written.
    pub(crate) fn change_comparison(self, operation: &mut Operation, present: u64) {
        if self != Self::NoCompareAndSwap {
            return;
        }
        if let Operation::Register { write, .. } | Operation::Propose { write, .. } | Operation::Leave { write, .. } =
            operation
        {
            write.compared = present;
        }
    }

    /// Changes what a process sees of others.
    pub(crate) fn change_publication(self, publication: &mut Publication) {
        if self == Self::AckWithoutRevision {
            publication.ack = u64::MAX;
        }
    }

    /// Changes what a process receives.
    pub(crate) fn change_reply(self, reply: &mut Reply) {
        for live in &mut reply.snapshot.live {
            live.publication.iter_mut().for_each(|publication| self.change_publication(publication));
        }
    }
}
