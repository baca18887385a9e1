//! The diagnosis: what the last frames mean, in one sentence.
//!
//! Failures come before slowness, and upstreams come before flow control: if requests wait because an upstream hangs, seats are
//! not the cause.

mod levels;
mod setup;
mod upstreams;
mod words;

use super::{Diagnosis, DiagnosisState, Frame};
use levels::Levels;

/// How many frames a diagnosis is about. One bad second in ten is worth a word, and a sentence that changes every second is not.
const FRAMES: usize = 10;
/// A trouble that has not occurred in so many frames is over.
const QUIET: usize = 3;
/// Fewer failed or rejected requests a second than this do not matter.
const RATE_MIN: f64 = 0.1;

/// The diagnosis of the last of these frames, given those before it. The last frame is the latest.
pub fn diagnose(frames: &[Frame]) -> Diagnosis {
    let frames = &frames[frames.len().saturating_sub(FRAMES)..];
    let Some(last) = frames.last() else { return Diagnosis::default() };
    let levels = Levels::new(frames, last);
    upstreams::failing(frames, last)
        .or_else(|| levels.failing())
        .or_else(|| setup::buffers(last))
        .or_else(|| upstreams::slower(last))
        .or_else(|| levels.slow())
        .or_else(|| setup::exempt(last))
        .or_else(|| setup::objects(last))
        .or_else(|| levels.recovering())
        .or_else(|| levels.limited())
        .or_else(|| levels::behind_its_own_requests(last))
        .unwrap_or_else(|| all_is_well(last))
}

fn all_is_well(last: &Frame) -> Diagnosis {
    let waiting: i64 = last.levels.iter().map(|level| level.waiting).sum();
    let server = &last.server;
    // How long they wait is known of those that have started, and of the flows that are listed.
    let is_known = last.levels.iter().all(|level| level.waiting == 0 || level.wait_ms.is_some());
    let is_long = last.levels.iter().flat_map(|level| &level.flows).any(levels::waits_long);
    let not_long = if is_known && !is_long { ", not for long" } else { "" };
    let waits = match waiting {
        0 => "no request waits".to_owned(),
        1 => format!("one request waits{not_long}"),
        many => format!("{many} requests wait{not_long}"),
    };
    let text = format!("all is well: {} of {} seats are in use, {waits}", server.in_use, server.concurrency);
    Diagnosis { state: DiagnosisState::Well, text, level: None }
}

#[cfg(test)]
mod tests;
