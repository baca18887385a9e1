//! A service for tests: levels, tenants, and the check that no seat was lost.

#![allow(dead_code, unreachable_pub, reason = "every test uses a part of it")]

use std::sync::Arc;

use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration};
use evenkeel_engine::controller::Objects;
use evenkeel_engine::{Attributes, RequestInfo, User};

use crate::FlowControl;

/// A level of that many shares whose requests wait in one of eight long queues.
pub fn queuing(name: &str, shares: i32) -> PriorityLevelConfiguration {
    queuing_up_to(name, shares, 10_000)
}

/// The same with a limit to the length of the queues, of which there is one if the limit is small.
pub fn queuing_up_to(name: &str, shares: i32, length: i32) -> PriorityLevelConfiguration {
    let (queues, hand) = if length < 100 { (1, 1) } else { (8, 1) };
    let queue = |q: evenkeel_api::build::QueueBuilder| q.queues(queues).hand_size(hand).queue_length_limit(length);
    PriorityLevelConfiguration::builder(name).limited(|l| l.shares(shares).queue(queue)).build()
}

/// The same level with a queue for each flow: each holds that many requests, the level four times as many.
pub fn per_flow(name: &str, shares: i32, length: i32) -> PriorityLevelConfiguration {
    let queue = |q: evenkeel_api::build::QueueBuilder| q.queues(4).hand_size(1).queue_length_limit(length);
    let level = PriorityLevelConfiguration::builder(name).limited(|l| l.shares(shares).queue(queue));
    level.annotation("evenkeel.dev/queuing", "per-flow").build()
}

/// A level of that many shares whose requests do not wait.
pub fn rejecting(name: &str, shares: i32) -> PriorityLevelConfiguration {
    PriorityLevelConfiguration::builder(name).limited(|l| l.shares(shares).reject()).build()
}

/// These levels, each for the users of the group of its name.
pub fn objects(levels: impl IntoIterator<Item = PriorityLevelConfiguration>) -> Objects {
    let mut objects = Objects::default();
    for level in levels {
        let name = level.metadata.name.clone();
        let rule = |r: evenkeel_api::build::RuleBuilder<_, _>| r.group(&name).non_resource_urls(["*"]).verbs(["*"]);
        let schema = FlowSchema::builder(name.as_str()).priority_level(name.as_str()).by_user().rule(rule).build();
        objects.flow_schemas.push(Arc::new(schema));
        objects.priority_levels.push(Arc::new(level));
    }
    objects
}

/// A user whose requests go to the level of that name.
pub fn user(name: &str, level: &str) -> User {
    User::new(name, [level])
}

/// A request of that user.
pub fn attributes(user: &User) -> Attributes<'_> {
    static REQUEST: std::sync::LazyLock<RequestInfo<'static>> =
        std::sync::LazyLock::new(|| RequestInfo { verb: "get".into(), path: "/".into(), ..RequestInfo::default() });
    Attributes { user, request: &REQUEST }
}

/// No request is left, and no seat was lost or counted twice.
#[track_caller]
pub fn assert_idle(flow: &FlowControl) {
    for level in flow.status() {
        assert!(level.is_idle() && level.seats_waiting == 0, "{level:?}");
    }
}

/// The names of the levels.
pub fn level_names(flow: &FlowControl) -> Vec<String> {
    flow.status().into_iter().map(|level| level.name).collect()
}

/// How many requests wait, and how many run.
pub fn totals(flow: &FlowControl) -> (usize, usize) {
    flow.status().iter().fold((0, 0), |(waiting, executing), l| (waiting + l.waiting, executing + l.executing))
}
