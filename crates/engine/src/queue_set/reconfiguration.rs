//! The configuration changes while there are requests (FQ-35, FQ-37).

use super::{Effects, Mode, QueueSet, QueueSetConfig};
use crate::time::Instant;

impl<T> QueueSet<T> {
    /// Changes the configuration. Nothing that runs is stopped and nothing that waits is rejected; queues that are no longer
    /// wanted go when they become empty.
    pub fn configure(&mut self, now: Instant, config: QueueSetConfig, effects: &mut impl Effects<T>) {
        self.advance(now, effects);
        let nominal = self.core.seats.nominal;
        self.core.seats.set_limit(config.concurrency_limit);
        // To configure a discipline costs some divisions, and every level is configured anew every ten seconds.
        if self.core.mode != config.mode {
            self.install(now, config.mode);
        } else if self.core.seats.nominal != nominal {
            self.discipline.resize(self.core.seats.nominal);
        }
        self.dispatch(now, effects);
    }

    pub(super) fn install(&mut self, now: Instant, mode: Mode) {
        self.core.mode = mode;
        let queuing = match mode {
            Mode::Queue(queuing) => Some(queuing),
            Mode::Exempt | Mode::Reject | Mode::Closed => None,
        };
        self.discipline.configure(now, queuing, &mut self.core.requests);
        self.discipline.resize(self.core.seats.nominal);
    }
}
