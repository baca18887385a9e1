//! Problems beside upstreams and levels: buffers, exempt requests, objects and their store.

use super::super::{Diagnosis, DiagnosisState, Frame};
use super::words::mebibytes;

/// Buffers count as full from this part of their limit on: the next bytes may not fit.
const FULL: f64 = 0.9;

/// Buffers for slow clients are full.
#[expect(clippy::cast_precision_loss, reason = "numbers of bytes")]
pub(super) fn buffers(last: &Frame) -> Option<Diagnosis> {
    let (used, limit) = (last.server.buffered, last.server.buffer_limit);
    if limit == 0 || (used as f64) < FULL * limit as f64 {
        return None;
    }
    let text = format!(
        "not flow control: the buffers for slow clients are full ({} of {} MiB), the slowest requests are rejected; raise \
         limits.bufferBytes, or lower limits.requestBuffer and limits.responseBuffer",
        mebibytes(used),
        mebibytes(limit),
    );
    Some(Diagnosis { state: DiagnosisState::Failing, text, level: None })
}

/// Requests without a limit take more of the service than all others may.
pub(super) fn exempt(last: &Frame) -> Option<Diagnosis> {
    let server = &last.server;
    if server.exempt == 0 || server.exempt < server.concurrency {
        return None;
    }
    let most = last.levels.iter().filter(|level| level.is_exempt()).max_by_key(|level| level.in_use)?;
    let text = format!(
        "exempt requests use {} seats beside the {} of all other levels: nothing limits those of {}",
        server.exempt, server.concurrency, most.name,
    );
    Some(Diagnosis { state: DiagnosisState::Slow, text, level: Some(most.name.clone()) })
}

/// Objects that are not in effect as intended.
pub(super) fn objects(last: &Frame) -> Option<Diagnosis> {
    let objects = &last.objects;
    let serves = "requests are served by the objects in effect";
    let text = if let Some(problem) = &objects.store {
        format!("the store cannot be used: {problem}; {serves}")
    } else if let Some(stale) = &objects.stale {
        format!("the objects may be out of date: {stale}; {serves}")
    } else if objects.are_refused {
        "the latest objects have errors, and older ones are in effect; the log says which".to_owned()
    } else {
        let [schema, level] = objects.dangling.first()?;
        match objects.dangling_count {
            0 | 1 => format!("flow schema {schema} is not used: its level {level} does not exist"),
            many => format!("{many} flow schemas are not used: the level {level} of {schema} does not exist"),
        }
    };
    Some(Diagnosis { state: DiagnosisState::Slow, text, level: None })
}
