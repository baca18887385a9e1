//! A flow control under a clock that is set by hand, and a reader of its metrics.
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use evenkeel::clock::ManualClock;
use evenkeel::request::{Details, FlowRequest};
use evenkeel::{FlowControl, Permit, Rejected};
use evenkeel_api::AnyObject;
use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration};
use evenkeel_engine::deal::{DealSize, Dealer};
use evenkeel_engine::digest::Kubernetes;
use evenkeel_engine::{Attributes, RequestInfo, User, WorkEstimate, flow_hash};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

/// A flow control and its clock.
pub(crate) struct Observed {
    pub(crate) flow: FlowControl,
    pub(crate) clock: ManualClock,
    registry: Registry,
}

/// A request that has arrived.
pub(crate) type Arrived = Pin<Box<evenkeel::request::Arrived>>;

/// What one scrape says: by name and labels.
pub(crate) struct Scrape(pub(crate) BTreeMap<String, f64>);

// === impl Observed ===

impl Observed {
    pub(crate) fn new(server_concurrency: u32, objects: Vec<AnyObject>) -> Self {
        let clock = ManualClock::new();
        let flow = FlowControl::builder()
            .kubernetes()
            .server_concurrency(server_concurrency)
            .manual_clock(clock.clone())
            .stored_objects(objects.into_iter().collect())
            .build();
        let mut registry = Registry::default();
        flow.register_metrics(&mut registry).unwrap();
        Self { flow, clock, registry }
    }

    pub(crate) fn apply(&self, objects: Vec<AnyObject>) {
        self.flow.apply(objects.into_iter().collect::<evenkeel::objects::Objects>()).unwrap();
    }

    pub(crate) fn millis(&self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
    }

    /// A request of the user for a path arrives.
    pub(crate) fn arrive(&self, user: &str, work: WorkEstimate) -> Arrived {
        self.arrive_as(user, "GET", "/orders", work, |request| request)
    }

    pub(crate) fn arrive_as(
        &self,
        user: &str,
        method: &str,
        target: &'static str,
        work: WorkEstimate,
        more: impl FnOnce(FlowRequest<'_>) -> FlowRequest<'_>,
    ) -> Arrived {
        let groups = match user {
            "root" => vec!["system:masters"],
            "nobody" => vec![],
            _ => vec!["system:authenticated"],
        };
        let user = Arc::new(User::new(user, groups));
        let request: RequestInfo<'_> = Kubernetes::default().digest(method, target).unwrap();
        let details = Details::new(Arc::clone(&user), method.parse().unwrap(), http::Uri::from_static(target));
        let request = more(FlowRequest::new(Attributes { user: &user, request: &request }).work(work).details(details));
        Box::pin(self.flow.arrive_request(request))
    }

    /// What a scraper gets.
    pub(crate) fn page(&self) -> String {
        let mut page = String::new();
        text::encode(&mut page, &self.registry).unwrap();
        page
    }

    pub(crate) fn scrape(&self) -> Scrape {
        let page = self.page();
        let lines = page.lines().filter(|line| !line.starts_with('#'));
        let numbers = lines.map(|line| {
            let (series, number) = line.rsplit_once(' ').unwrap();
            (series.trim_start_matches("apiserver_flowcontrol_").to_owned(), number.parse().unwrap())
        });
        Scrape(numbers.collect())
    }
}

// === impl Scrape ===

impl Scrape {
    /// The value of a series; NaN if there is none.
    pub(crate) fn get(&self, series: &str) -> f64 {
        self.0.get(series).copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn assert(&self, expected: &[(&str, f64)]) {
        for (series, value) in expected {
            let found = self.get(series);
            assert!((found - value).abs() < 1e-9, "{series} is {found}, not {value}");
        }
    }
}

/// Asks once.
pub(crate) fn poll(admit: &mut Arrived) -> Poll<Result<Permit, Box<Rejected>>> {
    admit.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// The permit of a request that was let in at once.
pub(crate) fn started(mut admit: Arrived) -> Permit {
    match poll(&mut admit) {
        Poll::Ready(Ok(permit)) => permit,
        other => panic!("not started: {other:?}"),
    }
}

/// A level of so many shares that neither lends nor borrows.
pub(crate) fn queuing_level(name: &str, shares: i32, queues: i32, hand: i32, length: i32) -> AnyObject {
    let level = PriorityLevelConfiguration::builder(name).limited(|limited| {
        limited
            .shares(shares)
            .borrowing_limit_percent(0)
            .queue(|queue| queue.queues(queues).hand_size(hand).queue_length_limit(length))
    });
    level.build().into()
}

pub(crate) fn rejecting_level(name: &str, shares: i32) -> AnyObject {
    let level = PriorityLevelConfiguration::builder(name)
        .limited(|limited| limited.shares(shares).borrowing_limit_percent(0).reject());
    level.build().into()
}

/// A schema for everything that authenticated users ask.
pub(crate) fn schema(name: &str, level: &str) -> AnyObject {
    let schema = FlowSchema::builder(name).priority_level(level).matching_precedence(100).by_user();
    schema.rule(|rule| rule.group("system:authenticated").everything()).build().into()
}

/// A user whose flow of the schema is dealt this hand.
pub(crate) fn user_with_hand(schema: &str, queues: i64, hand: &[u32]) -> String {
    let dealer = Dealer::from(DealSize::new(queues, i64::try_from(hand.len()).unwrap()).unwrap());
    let has_hand = |user: &String| dealer.deal(flow_hash(schema, user)).cards().iter().eq(hand);
    (0..100_000).map(|number| format!("user-{number}")).find(has_hand).unwrap()
}
