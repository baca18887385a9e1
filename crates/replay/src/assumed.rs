//! Service times of requests that never ran: those of the latest requests of the same kind that did.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use evenkeel_engine::RequestInfo;
use evenkeel_engine::time::{MILLISECOND, Nanos};

/// The latest service times of each kind of request.
#[derive(Debug, Default)]
pub(crate) struct ServiceTimes {
    by_kind: HashMap<RequestKind, Latest>,
    all: Latest,
}

/// Verb, resource and subresource, or verb and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RequestKind(u64);

/// A few service times. They are used in turn, so that assumed times vary as real ones do.
#[derive(Debug, Default)]
struct Latest {
    times: Vec<Nanos>,
    next_in: usize,
    next_out: usize,
}

const KEPT: usize = 32;
const KINDS_MAX: usize = 10_000;

/// Assumed while no request of the kind has run.
const UNKNOWN: Nanos = 100 * MILLISECOND;

// === impl RequestKind ===

impl RequestKind {
    pub(crate) fn of(request: &RequestInfo<'_>) -> Self {
        let mut hasher = DefaultHasher::new();
        (&*request.verb, &*request.api_group, &*request.resource, &*request.subresource).hash(&mut hasher);
        Self(hasher.finish())
    }
}

// === impl ServiceTimes ===

impl ServiceTimes {
    /// Notes the time of a request that ran.
    pub(crate) fn note(&mut self, kind: RequestKind, time: Nanos) {
        self.all.push(time);
        if self.by_kind.len() < KINDS_MAX || self.by_kind.contains_key(&kind) {
            self.by_kind.entry(kind).or_default().push(time);
        }
    }

    /// The assumed time of a request of that kind.
    pub(crate) fn assume(&mut self, kind: RequestKind) -> Nanos {
        let of_kind = self.by_kind.get_mut(&kind).and_then(Latest::next);
        of_kind.or_else(|| self.all.next()).unwrap_or(UNKNOWN)
    }
}

// === impl Latest ===

impl Latest {
    fn push(&mut self, time: Nanos) {
        if self.times.len() < KEPT {
            self.times.push(time);
        } else {
            self.times[self.next_in] = time;
            self.next_in = (self.next_in + 1) % KEPT;
        }
    }

    fn next(&mut self) -> Option<Nanos> {
        let time = *self.times.get(self.next_out % self.times.len().max(1))?;
        self.next_out = (self.next_out + 1) % self.times.len();
        Some(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_assumed_varies_as_the_real_ones_do() {
        let kind = |resource: &str| {
            let request =
                RequestInfo { verb: "list".into(), resource: resource.to_owned().into(), ..RequestInfo::default() };
            RequestKind::of(&request)
        };
        let mut times = ServiceTimes::default();
        assert_eq!(times.assume(kind("pods")), UNKNOWN);
        times.note(kind("pods"), 5);
        times.note(kind("pods"), 7);
        assert_eq!([0; 3].map(|_| times.assume(kind("pods"))), [5, 7, 5]);
        assert_eq!(times.assume(kind("nodes")), 5, "of all kinds");
        (0..100).for_each(|_| times.note(kind("pods"), 9));
        assert_eq!(times.assume(kind("pods")), 9);
    }
}
