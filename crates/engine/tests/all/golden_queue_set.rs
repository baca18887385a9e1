//! Replays what the queue sets of a real Kubernetes decided, event by event (section 5 of the specification).

use crate::queue_set_trace;

use evenkeel_recorded::{Golden, compared, golden_documents};
use queue_set_trace::{Replay, Trace};

#[test]
fn every_recorded_trace_is_followed_event_by_event() {
    let traces = golden_documents::<Trace>(Golden::QueueSet);
    let (mut events, mut faults) = (0, Vec::new());
    for (file, trace) in &traces {
        events += trace.events.len();
        faults.extend(first_difference(trace).map(|fault| format!("{}, {fault}", file.display())));
    }
    assert!(faults.is_empty(), "{} of {} traces differ:\n{}", faults.len(), traces.len(), faults.join("\n"));
    compared("events of queue sets", events);
}

/// Where a trace is left first, and how. Everything after that would differ too.
fn first_difference(trace: &Trace) -> Option<String> {
    let mut replay = Replay::new(trace.config);
    for (number, event) in trace.events.iter().enumerate() {
        let comparison = replay.step(event);
        if !comparison.agrees() {
            return Some(format!("event {number}, {event}:\n{comparison}"));
        }
    }
    let comparison = trace.totals.as_ref().map(|totals| replay.compare_totals(totals))?;
    (!comparison.agrees()).then(|| format!("totals:\n{comparison}"))
}

/// Departs from FQ-36 as the reference has it: there, seats that are freed by a request whose queue is gone remove
/// whatever queue has its number now, or crash (KW-15). Here the queues stay as they are, since a queue that holds
/// requests must not vanish.
#[test]
fn kw_15_seats_freed_by_a_queue_that_is_gone_leave_the_queues_alone() {
    let traces = golden_documents::<Trace>(Golden::QueueSetDefects);
    let mut events = 0;
    for (file, trace) in &traces {
        let mut replay = Replay::new(trace.config);
        for (number, event) in trace.events.iter().enumerate() {
            let place = format!("{}, event {number}, {event}", file.display());
            let queues_before = replay.set().queues().len();
            let comparison = replay.step(event);
            events += 1;
            if event.is_defect() {
                assert_eq!(replay.set().queues().len(), queues_before, "{place}");
                let held: usize = replay.set().queues().map(|queue| queue.waiting + queue.executing).sum();
                let known = replay.set().waiting() + replay.set().executing();
                assert_eq!(held, known, "{place}: a request was lost");
                break;
            }
            comparison.assert(place);
        }
    }
    compared("events before defects of queue sets", events);
}
