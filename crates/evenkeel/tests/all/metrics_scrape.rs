//! A scrape holds up nobody, however slow its reader is.
use crate::observed;

use std::fmt;
use std::sync::mpsc;
use std::thread;

use evenkeel_engine::WorkEstimate;
use observed::{Observed, poll, queuing_level, schema, started};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

/// A reader that takes nothing until it is told to.
struct SlowReader {
    has_begun: mpsc::Sender<()>,
    go_on: mpsc::Receiver<()>,
    is_blocked: bool,
}

// === impl SlowReader ===

impl fmt::Write for SlowReader {
    fn write_str(&mut self, _text: &str) -> fmt::Result {
        if self.is_blocked {
            self.has_begun.send(()).unwrap();
            self.go_on.recv().unwrap();
            self.is_blocked = false;
        }
        Ok(())
    }
}

#[test]
fn a_scrape_that_waits_for_its_reader_holds_no_lock() {
    let observed = Observed::new(2, vec![queuing_level("demo", 5, 1, 1, 2), schema("fs", "demo")]);
    let first = started(observed.arrive("a", WorkEstimate::ONE_SEAT));
    let mut registry = Registry::default();
    observed.flow.register_metrics(&mut registry).unwrap();
    let (has_begun, begun) = mpsc::channel();
    let (resume, go_on) = mpsc::channel();
    thread::scope(|scope| {
        let scrape = scope.spawn(move || {
            text::encode(&mut SlowReader { has_begun, go_on, is_blocked: true }, &registry).unwrap();
        });
        begun.recv().unwrap();
        // Everything goes on meanwhile: requests, dumps, another scrape, new objects.
        let mut second = observed.arrive("a", WorkEstimate::ONE_SEAT);
        assert!(poll(&mut second).is_pending());
        drop(first);
        drop(started(second));
        assert!(observed.page().contains(r#"dispatched_requests_total{flow_schema="fs",priority_level="demo"} 2"#));
        assert!(observed.flow.dump_queues().contains("demo"));
        observed.apply(Vec::new());
        observed.flow.tick();
        assert!(!scrape.is_finished());
        resume.send(()).unwrap();
    });
}

#[test]
fn metrics_end_with_the_flow_control() {
    let mut registry = Registry::default();
    evenkeel::FlowControl::builder().kubernetes().drive_by_hand().build().register_metrics(&mut registry).unwrap();
    let mut page = String::new();
    text::encode(&mut page, &registry).unwrap();
    assert_eq!(page, "# EOF\n");
}
