//! The tenants of the demo, and how each of them behaves.

use std::time::Duration;

/// The header that says which tenant a request comes from.
pub(crate) const HEADER: &str = "X-Tenant";

/// A tenant of the sample service.
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
        /// How long it waits after a rejection, whatever the response says: without a pause it would only keep the machine busy.
        after_rejection: Duration,
    },
}

const POLITE: [&str; 5] = ["polite-1", "polite-2", "polite-3", "polite-4", "polite-5"];

const GREEDY: [&str; 16] = [
    "greedy-1",
    "greedy-2",
    "greedy-3",
    "greedy-4",
    "greedy-5",
    "greedy-6",
    "greedy-7",
    "greedy-8",
    "greedy-9",
    "greedy-10",
    "greedy-11",
    "greedy-12",
    "greedy-13",
    "greedy-14",
    "greedy-15",
    "greedy-16",
];

/// The polite tenants and a greedy one, in the order in which they are shown.
pub(crate) fn one_greedy() -> Vec<Tenant> {
    polite().chain([greedy("greedy", 100)]).collect()
}

/// The same polite tenants and many greedy ones. Both ends of each connection are in this process. Where it may
/// have only 1,024 open files, the gateway refuses connections beyond some 370.
pub(crate) fn many_greedy() -> Vec<Tenant> {
    polite().chain(only_greedy()).collect()
}

/// The greedy ones alone.
pub(crate) fn only_greedy() -> Vec<Tenant> {
    GREEDY.map(|name| greedy(name, 15)).to_vec()
}

fn polite() -> impl Iterator<Item = Tenant> {
    (0..).zip(POLITE).map(|(place, name)| {
        let every = Duration::from_millis(100);
        // They do not all send at the same time.
        Tenant { name, manner: Manner::Polite { first: every / 5 * place, every } }
    })
}

pub(crate) const fn greedy(name: &'static str, connections: usize) -> Tenant {
    Tenant { name, manner: Manner::Greedy { connections, after_rejection: Duration::from_millis(100) } }
}

// === impl Tenant ===

impl Tenant {
    pub(crate) fn is_polite(&self) -> bool {
        matches!(self.manner, Manner::Polite { .. })
    }
}
