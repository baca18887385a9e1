//! Dumps of levels, queues and requests, in the form in which Kubernetes gives them (section 9.2 of the specification).
//!
//! [`FlowControl::dump_priority_levels`](crate::FlowControl::dump_priority_levels) and its two companions give the
//! texts; with the feature `axum`, [`router`] serves them under the paths that they have in a kube-apiserver. Each
//! dump takes the lock of one level after the other, to copy what it shows, and makes the text without any.

mod duration;
mod levels;
mod queues;
mod requests;
#[cfg(feature = "axum")]
mod router;
mod table;
mod timestamp;

#[cfg(feature = "axum")]
pub use router::{PATH_PREFIX, router};

use std::sync::Arc;

use crate::control::flow_control::FlowControl;
use crate::control::level::Level;

/// The columns of a dump of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RequestColumns {
    /// The queue of the request, its times, and how much work it is.
    #[default]
    Basic,
    /// The same, and who asks for what.
    WithDetails,
}

// === impl FlowControl ===

impl FlowControl {
    /// The priority levels and how much goes on in each (OB-11).
    ///
    /// ```
    /// use evenkeel::FlowControl;
    ///
    /// let flow = FlowControl::builder().server_concurrency(100).build();
    /// assert!(flow.dump_priority_levels().starts_with("PriorityLevelName,"));
    /// ```
    pub fn dump_priority_levels(&self) -> String {
        levels::dump(&self.levels_in_play())
    }

    /// The queues of all priority levels (OB-12).
    ///
    /// ```
    /// use evenkeel::FlowControl;
    ///
    /// let flow = FlowControl::builder().server_concurrency(100).build();
    /// assert!(!flow.dump_queues().contains("\ncatch-all,")); // It has no queues.
    /// ```
    pub fn dump_queues(&self) -> String {
        queues::dump(&self.levels_in_play())
    }

    /// The requests that wait or execute (OB-13). More is known of those that came with
    /// [`Details`](crate::request::Details).
    ///
    /// ```
    /// use evenkeel::FlowControl;
    /// use evenkeel::debug::RequestColumns;
    ///
    /// let flow = FlowControl::builder().server_concurrency(100).build();
    /// let header = flow.dump_requests(RequestColumns::WithDetails);
    /// assert!(header.ends_with("Resource, SubResource\n"));
    /// ```
    pub fn dump_requests(&self, columns: RequestColumns) -> String {
        requests::dump(&self.levels_in_play(), self.shared(), columns)
    }

    /// The levels that there are now, by name.
    fn levels_in_play(&self) -> Vec<(Arc<str>, Arc<Level>)> {
        let mut levels = self.shared().known_levels.all();
        levels.retain(|(_, level)| !level.lock().is_removed);
        levels
    }
}
