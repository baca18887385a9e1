//! Who uses the levels and who delays whom: `FlowControl::flows`, and the metrics of it.

use crate::observed::schema;

use std::time::Duration;

use evenkeel::clock::ManualClock;
use evenkeel::objects::Objects;
use evenkeel::request::FlowRequest;
use evenkeel::status::LevelFlows;
use evenkeel::{Attributes, FlowControl, PriorityLevelConfiguration, RequestInfo, User, WorkEstimate};
use evenkeel_api::AnyObject;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

/// A flow control under a clock that is set by hand.
struct Attributed {
    flow: FlowControl,
    clock: ManualClock,
}

impl Attributed {
    fn new(seats: u32) -> Self {
        let clock = ManualClock::new();
        let flow =
            FlowControl::builder().server_concurrency(seats).attribute_flows().manual_clock(clock.clone()).build();
        Self { flow, clock }
    }

    fn arrive(&self, user: &str) -> evenkeel::request::Arrived {
        let (user, request) = (User::new(user, ["system:authenticated"]), RequestInfo::default());
        self.flow.arrive(Attributes { user: &user, request: &request }, WorkEstimate::ONE_SEAT)
    }

    fn seconds(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    fn everyone(&self) -> LevelFlows {
        self.flow.flows(20).into_iter().find(|level| level.level == "everyone").unwrap()
    }

    fn page(&self) -> String {
        let (mut registry, mut page) = (Registry::default(), String::new());
        self.flow.register_metrics(&mut registry).unwrap();
        text::encode(&mut page, &registry).unwrap();
        page
    }
}

#[test]
fn at_2_a_flow_that_waits_is_shown_with_the_one_it_waits_behind() {
    let attributed = Attributed::new(1);
    for _ in 0..2 {
        let batch = attributed.arrive("batch");
        let web = attributed.arrive("web");
        attributed.seconds(4);
        drop(batch);
        attributed.seconds(1);
        drop(web);
    }
    let usage = attributed.everyone();
    let named = |flow: &str| usage.flows.iter().find(|usage| usage.id.flow == flow).unwrap().figures;
    assert_eq!((usage.window_seconds, usage.total.seat_seconds), (10.0, 10.0));
    let batch = named("batch");
    assert_eq!((batch.seat_seconds, batch.wait_seconds, batch.delay_seconds), (8.0, 0.0, 8.0));
    assert_eq!((named("web").seat_seconds, named("web").wait_seconds), (2.0, 8.0));
    assert_eq!((usage.delays.len(), usage.delays[0].wait_seconds), (1, 8.0));
    assert_eq!((&*usage.delays[0].delayed.flow, &*usage.delays[0].behind.as_ref().unwrap().flow), ("web", "batch"));
    let page = attributed.page();
    for line in [
        "evenkeel_flow_seats{flow=\"batch\",flow_schema=\"everyone\",priority_level=\"everyone\"} 0.8\n",
        "evenkeel_flow_seats{flow=\"other\",flow_schema=\"\",priority_level=\"everyone\"} 0.0\n",
        "evenkeel_flow_waiting_requests{flow=\"web\",flow_schema=\"everyone\",priority_level=\"everyone\"} 0.8\n",
        "evenkeel_flow_delayed_requests{flow=\"batch\",flow_schema=\"everyone\",priority_level=\"everyone\"} 0.8\n",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
}

#[test]
fn at_1_long_running_requests_beyond_the_limit_are_rejections_of_their_flow() {
    let attributed = Attributed::new(10);
    let level = PriorityLevelConfiguration::builder("everyone").limited(|limited| limited.queue(|queue| queue));
    let level: AnyObject = level.annotation("evenkeel.dev/max-long-running", "1").build().into();
    attributed.flow.apply([level, schema("everyone", "everyone")].into_iter().collect::<Objects>()).unwrap();
    let watch = |user: &str| {
        let (user, request) = (User::new(user, ["system:authenticated"]), RequestInfo::default());
        attributed.flow.arrive_request(FlowRequest::new(Attributes { user: &user, request: &request }).watch())
    };
    let first = watch("web");
    for _ in 0..3 {
        drop(watch("batch"));
    }
    attributed.seconds(1);
    drop(first);
    let usage = attributed.everyone();
    let rejections: Vec<_> = usage
        .flows
        .iter()
        .map(|usage| (&*usage.id.flow, usage.figures.rejections))
        .filter(|found| found.1 > 0)
        .collect();
    assert_eq!((rejections, usage.total.rejections), (vec![("batch", 3)], 3));
    let line = "evenkeel_flow_rejections_per_second{flow=\"batch\",flow_schema=\"everyone\",priority_level=\"everyone\"} 3.0\n";
    assert!(attributed.page().contains(line), "{}", attributed.page());
}

#[test]
fn at_3_no_number_of_names_makes_more_than_21_series() {
    let attributed = Attributed::new(1000);
    for round in 0..3 {
        for number in 0..2000 {
            let name = format!("{number}\"\n{}", "n".repeat(if number % 2 == 0 { 300 } else { 0 }));
            drop((attributed.arrive(&name), round));
        }
        attributed.clock.advance(Duration::from_millis(10));
    }
    let held: Vec<_> = (0..100).map(|number| attributed.arrive(&number.to_string())).collect();
    attributed.seconds(1);
    // That they are heavy is known when somebody looks, or when they end; their names come with their next requests.
    attributed.page();
    let again: Vec<_> = (0..100).map(|number| attributed.arrive(&number.to_string())).collect();
    attributed.seconds(1);
    drop((held, again));
    let page = attributed.page();
    let series: Vec<_> = page.lines().filter(|line| line.starts_with("evenkeel_flow_seats{")).collect();
    assert!(series.len() <= 21 && series.len() > 5, "{series:#?}");
    let mut labels: Vec<_> = series.iter().map(|line| line.split("} ").next().unwrap()).collect();
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), series.len(), "no series is there twice");
}

#[test]
fn nothing_is_attributed_unless_that_is_asked_for() {
    let flow = FlowControl::builder().drive_by_hand().build();
    let (user, request) = (User::default(), RequestInfo::default());
    drop(flow.arrive(Attributes { user: &user, request: &request }, WorkEstimate::ONE_SEAT));
    assert_eq!(flow.flows(20), []);
}
