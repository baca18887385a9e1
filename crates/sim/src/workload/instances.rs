//! The instances of a workload: how many share the seats of the service, and how their messages to etcd are delayed and lost.

use evenkeel_engine::time::{MILLISECOND, Nanos};
use evenkeel_fleet::Terms;

use super::fields::{Field, Fields};
use super::read_flow::{DEPTH_MAX, Quantity, read_distribution};
use super::{Change, Distribution, Event, FlowGroup};
use crate::service::{ServiceCurve, Sharing};

/// The most instances of a workload.
pub const INSTANCES_MAX: u32 = 32;

/// Several instances share the seats of one service, as a fleet does (FL).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Instances {
    /// How many.
    pub count: u32,
    /// How long what they are granted lasts.
    pub terms: Terms,
    /// The part of the seats that outlives a cut from etcd, in percent.
    pub floor_percent: u64,
    /// How long a message takes to etcd, or back.
    pub delay: Distribution,
    /// The part of all messages that are lost.
    pub loss: f64,
}

const FIELDS: [&str; 7] = ["count", "ttl", "grace", "floorPercent", "floorHold", "delay", "loss"];

const FLOOR_PERCENT: u32 = 50;

/// With more losses than this, nothing would be left to simulate.
const LOSS_MAX: f64 = 0.5;

/// The bounds of the spans of time.
const SPAN_MIN: Nanos = 100 * MILLISECOND;
const SPAN_MAX: Nanos = u32::MAX as Nanos * MILLISECOND;

/// `{count: 3, delay: {uniform: [1ms, 5ms]}, loss: 0.01}`, or the count alone.
pub(super) fn read_instances(fields: &mut Fields, field: &Field<'_>) -> Option<Instances> {
    let terms = Terms::default();
    let delay = Distribution::Uniform(MILLISECOND / 2, 2 * MILLISECOND);
    if !field.is_map() {
        let count = fields.whole(field, 2, INSTANCES_MAX)?;
        return Some(Instances { count, terms, floor_percent: FLOOR_PERCENT.into(), delay, loss: 0.0 });
    }
    let map = fields.map(field, &FIELDS)?;
    let Some(count) = map.get("count") else {
        fields.missing(&map, "count", "is missing; say how many instances there are, as `count: 3`");
        return None;
    };
    let count = fields.whole(&count, 2, INSTANCES_MAX);
    let mut milliseconds = |name: &str, default: u32| {
        let Some(field) = map.get(name) else { return Some(default) };
        let span = fields.duration(&field)?;
        let fits = (SPAN_MIN..=SPAN_MAX).contains(&span).then(|| u32::try_from(span / MILLISECOND).ok());
        fields.wanted(&field, fits.flatten(), "from 100ms to 1193h")
    };
    let ttl_ms = milliseconds("ttl", terms.ttl_ms)?;
    let (grace_ms, floor_hold_ms) = (milliseconds("grace", ttl_ms)?, milliseconds("floorHold", terms.floor_hold_ms)?);
    let floor_percent = map.get("floorPercent").map_or(Some(FLOOR_PERCENT), |field| fields.whole(&field, 0, 100));
    let delay =
        map.get("delay").map_or(Some(delay), |field| read_distribution(fields, &field, DEPTH_MAX, Quantity::Duration));
    let loss = map.get("loss").map_or(Some(0.0), |field| fields.number(&field, 0.0, LOSS_MAX));
    Some(Instances {
        count: count?,
        terms: Terms { ttl_ms, grace_ms, floor_hold_ms },
        floor_percent: floor_percent?.into(),
        delay: delay?,
        loss: loss?,
    })
}

/// Notes settings that a workload with instances cannot have, and flows of instances that do not exist.
pub(super) fn check_instances(
    fields: &mut Fields,
    spec: &Field<'_>,
    instances: Option<&Instances>,
    service: &ServiceCurve,
    flows: &[FlowGroup],
    events: &[Event],
) {
    let count = instances.map_or(0, |instances| instances.count);
    for flow in flows.iter().filter(|flow| flow.instances.iter().any(|instance| *instance >= count)) {
        let known = if count == 0 {
            "say how many there are, as `instances: 3` in spec".to_owned()
        } else {
            format!("use 0 to {}", count - 1)
        };
        fields.problem(spec, &format!("the flow {:?} names an instance that does not exist; {known}", flow.name));
    }
    if instances.is_none() {
        return;
    }
    // A queue inside of the service would have to be one for all instances.
    let is_shared = service.sharing == Sharing::Processor;
    if let Some(field) = spec.member("service").filter(|_| !is_shared) {
        fields.problem(&field, "needs `sharing: processor` with instances; set that, or leave it out");
    }
    if events.iter().any(|event| matches!(event.change, Change::Slots(_))) && !is_shared {
        fields.problem(
            spec,
            "events with slots need `service: {sharing: processor}` with instances; set that, or leave them out",
        );
    }
    if events.iter().any(|event| matches!(event.change, Change::Concurrency(_))) {
        fields.problem(spec, "events with concurrency cannot be combined with instances; leave out either");
    }
}
