//! What the gateway does for a limit that finds itself (`concurrency: auto`): keeps what it has learnt in a file (AL-3), and asks the service
//! whether the limit may rise (AL-10). The limit itself is the library's.

mod hold_while;
mod sample_value;
mod state_file;

use evenkeel::FlowControl;
use evenkeel::limit::{Concurrency, Learnt};

use crate::config::LimitConfig;
use hold_while::hold_while;
use state_file::StateFile;

/// The limit that an earlier run has learnt, if there is a file of it. A file that cannot be used is named in a warning, and the
/// limit starts anew.
pub(crate) fn learnt(concurrency: &Concurrency, limit: &LimitConfig) -> Option<Learnt> {
    concurrency.auto()?;
    StateFile::new(limit)?.read()
}

/// Looks after the limit of a flow control, until it is dropped.
pub(crate) async fn look_after(flow: FlowControl, limit: LimitConfig) {
    let held = async {
        match &limit.hold_while {
            Some(settings) => hold_while(&flow, settings).await,
            None => flow.hold_limit(false),
        }
    };
    let kept = async {
        if let Some(file) = StateFile::new(&limit) {
            file.keep(&flow).await;
        }
    };
    tokio::join!(held, kept);
}

/// Writes the learnt limit to its file, when the gateway stops.
pub(crate) fn keep_now(flow: &FlowControl, limit: &LimitConfig) {
    if let Some(file) = StateFile::new(limit) {
        file.write_or_warn(flow);
    }
}
