//! `Throttle`: limits how often a repeated line is written.

use std::time::Duration;

use tokio::time::Instant;

/// Lets a line through, and no other for a while.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    quiet_until: Option<Instant>,
}

const PERIOD: Duration = Duration::from_secs(10);

// === impl Throttle ===

impl Throttle {
    /// Whether the line may be written now.
    pub(crate) fn may_log(&mut self) -> bool {
        let now = Instant::now();
        let may_log = self.quiet_until.is_none_or(|until| now >= until);
        if may_log {
            self.quiet_until = Some(now + PERIOD);
        }
        may_log
    }
}
