//! `RateFields`: the response fields `RateLimit` and `RateLimit-Policy`, which tell a client how much of its rate is left (RL-5).

use evenkeel_api::annotations::RateUnit;
use evenkeel_engine::queue_set::Mode;
use evenkeel_engine::time::SECOND;
use evenkeel_engine::{Attributes, FlowRate};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::FlowControl;

/// The values of the two fields.
#[derive(Debug)]
pub(crate) struct RateFields {
    policy: HeaderValue,
    limit: HeaderValue,
}

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

// === impl FlowControl ===

impl FlowControl {
    /// The fields for a request: how much of its rate its flow has left, and how many seats its level has left. A policy is named
    /// after the flow schema or the level that it comes from.
    #[cold]
    pub(crate) fn rate_fields(&self, attributes: Attributes<'_>) -> Option<Box<RateFields>> {
        let snapshot = self.shared.snapshot.load();
        let class = snapshot.configuration.classify(attributes);
        let (schema, destination) = (class.schema, snapshot.destination(class.index));
        let (mut policies, mut limits) = (Vec::new(), Vec::new());
        let now = destination.upkeep.clock.now();
        let standing = |flow| destination.accounts.as_ref()?.standing(flow, now);
        if let Some((FlowRate { rate, .. }, standing)) = standing(schema.flow_key(attributes)) {
            let unit = match rate.unit {
                RateUnit::Requests => "",
                RateUnit::Bytes => ";qu=\"content-bytes\"",
                RateUnit::Tokens => ";qu=\"tokens\"",
            };
            let (name, window) = (&schema.name, rate.period.duration().as_secs());
            policies.push(format!("\"{name}\";q={}{unit};w={window}", rate.amount));
            limits.push(format!("\"{name}\";r={};t={}", standing.left, (standing.rests_in + SECOND - 1) / SECOND));
        }
        let core = destination.level.lock();
        let set = core.queue_set();
        if !matches!(set.mode(), Mode::Exempt) {
            let (seats, free) = (set.concurrency_limit(), set.concurrency_limit() - set.seats_in_use());
            let level = &schema.level.name;
            // Names tell policies apart.
            let suffix = if *level == schema.name { "-seats" } else { "" };
            policies.push(format!("\"{level}{suffix}\";q={};qu=\"concurrent-requests\"", seats.max(0)));
            limits.push(format!("\"{level}{suffix}\";r={}", free.max(0)));
        }
        drop(core);
        // Names that are no header values are not valid names of objects either.
        let policy = HeaderValue::try_from(policies.join(", ")).ok()?;
        let limit = HeaderValue::try_from(limits.join(", ")).ok()?;
        (!limits.is_empty()).then(|| Box::new(RateFields { policy, limit }))
    }
}

// === impl RateFields ===

impl RateFields {
    /// Adds both. Each is a list, which the service may have begun with limits of its own.
    pub(crate) fn set(self, headers: &mut HeaderMap) {
        headers.append(RATE_LIMIT_POLICY, self.policy);
        headers.append(RATE_LIMIT, self.limit);
    }
}
