//! The tenants of the demo, and how each of them behaves.

use std::time::Duration;

/// The header that says which tenant a request comes from.
pub(crate) const HEADER: &str = "X-Tenant";

/// Somebody who uses the sample service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tenant {
    pub(crate) name: &'static str,
    pub(crate) manner: Manner,
}

/// How a tenant asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// A request now and then, whether or not the ones before have been served.
    Polite {
        /// When the first one is sent.
        first: Duration,
        /// The time from one to the next.
        every: Duration,
    },
    /// On all of its connections the next request as soon as the last one has been served.
    Greedy {
        connections: usize,
        /// How long it waits after a rejection, whatever it was told: it would only heat the machine otherwise.
        after_rejection: Duration,
    },
}

const POLITE: [&str; 5] = ["polite-1", "polite-2", "polite-3", "polite-4", "polite-5"];

/// The tenants of the demo, in the order in which they are shown.
pub(crate) fn all() -> Vec<Tenant> {
    let polite = (0..).zip(POLITE).map(|(place, name)| {
        let every = Duration::from_millis(100);
        // They are not all of one heartbeat.
        Tenant { name, manner: Manner::Polite { first: every / 5 * place, every } }
    });
    let greedy = Manner::Greedy { connections: 100, after_rejection: Duration::from_millis(100) };
    polite.chain([Tenant { name: "greedy", manner: greedy }]).collect()
}

// === impl Tenant ===

impl Tenant {
    pub(crate) fn is_polite(&self) -> bool {
        matches!(self.manner, Manner::Polite { .. })
    }
}
