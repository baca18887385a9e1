//! `Servers`: the trait of whatever serves a workload: one server, or several.

use evenkeel_engine::time::Nanos;

use crate::level_record::LevelRecord;
use crate::simulator::Simulator;
use crate::traffic::{Token, Traffic};

/// One server, or several that serve the requests of one workload. Their times are the same at every call.
pub(crate) trait Servers {
    /// All servers.
    fn all(&self) -> &[Simulator<Token>];

    /// All servers, to be changed. Call [`changed`](Self::changed) afterwards.
    fn all_mut(&mut self) -> &mut [Simulator<Token>];

    /// Something has happened at one of them that was not a [`step`](Self::step).
    fn changed(&mut self, server: usize);

    /// Their objects may have changed.
    fn reconfigured(&mut self);

    /// The next event, if it is due by this time; returns whether there was one.
    fn step(&mut self, until: Nanos, traffic: &mut Traffic<'_>) -> bool;

    /// How many events there were.
    fn events(&self) -> u64;

    /// Counting begins now.
    fn reset_counts(&mut self, now: Nanos);

    /// The run is over.
    fn close_records(&mut self, now: Nanos);

    /// The levels, all servers together.
    fn levels(&self) -> &[LevelRecord];
}

// === impl Servers ===

impl Servers for Simulator<Token> {
    fn all(&self) -> &[Self] {
        std::slice::from_ref(self)
    }

    fn all_mut(&mut self) -> &mut [Self] {
        std::slice::from_mut(self)
    }

    #[inline]
    fn changed(&mut self, _server: usize) {}

    fn reconfigured(&mut self) {}

    #[inline]
    fn step(&mut self, until: Nanos, traffic: &mut Traffic<'_>) -> bool {
        self.step(until, traffic)
    }

    #[inline]
    fn events(&self) -> u64 {
        self.events()
    }

    fn reset_counts(&mut self, _now: Nanos) {
        self.reset_counts();
    }

    fn close_records(&mut self, _now: Nanos) {
        self.close_records();
    }

    fn levels(&self) -> &[LevelRecord] {
        self.levels()
    }
}
