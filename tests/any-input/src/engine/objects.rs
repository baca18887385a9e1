//! Objects for an engine, nonsense included: nobody has validated them.

use std::sync::Arc;

use evenkeel_api::v1::{
    ExemptPriorityLevelConfiguration, FlowDistinguisherMethod, FlowDistinguisherMethodType, FlowSchema, LimitResponse,
    LimitResponseType, LimitedPriorityLevelConfiguration, PriorityLevelConfiguration, PriorityLevelConfigurationSpec,
    PriorityLevelEnablement, QueuingConfiguration,
};
use evenkeel_engine::controller::Objects;

use super::bytes::Bytes;

const LEVELS: [&str; 8] = ["a", "b", "c", "d", "a", "exempt", "catch-all", ""];
const SCHEMAS: [&str; 6] = ["s", "t", "u", "exempt", "catch-all", ""];

/// A few objects, some of which share a name.
pub(super) fn objects(input: &mut Bytes<'_>) -> Objects {
    if input.byte().is_multiple_of(8) {
        return Objects::bootstrap();
    }
    let levels = input.byte() % 6;
    let schemas = input.byte() % 5;
    Objects {
        priority_levels: (0..levels).map(|_| Arc::new(level(input))).collect(),
        flow_schemas: (0..schemas).map(|_| Arc::new(schema(input))).collect(),
    }
}

fn level(input: &mut Bytes<'_>) -> PriorityLevelConfiguration {
    let mut level = PriorityLevelConfiguration::default();
    pick(input, &LEVELS).clone_into(&mut level.metadata.name);
    level.spec = match input.byte() % 8 {
        // Anything, whether it goes together or not.
        0 => PriorityLevelConfigurationSpec {
            enablement: match input.byte() % 3 {
                0 => PriorityLevelEnablement::Exempt,
                1 => PriorityLevelEnablement::Limited,
                _ => PriorityLevelEnablement::Other("Unlimited".to_owned()),
            },
            limited: input.perhaps(limited),
            exempt: input.perhaps(exempt),
        },
        _ if level.metadata.name == "exempt" => PriorityLevelConfigurationSpec {
            enablement: PriorityLevelEnablement::Exempt,
            exempt: Some(exempt(input)),
            ..PriorityLevelConfigurationSpec::default()
        },
        _ => PriorityLevelConfigurationSpec {
            enablement: PriorityLevelEnablement::Limited,
            limited: Some(limited(input)),
            ..PriorityLevelConfigurationSpec::default()
        },
    };
    level
}

fn limited(input: &mut Bytes<'_>) -> LimitedPriorityLevelConfiguration {
    LimitedPriorityLevelConfiguration {
        nominal_concurrency_shares: input.perhaps(Bytes::small_number),
        lendable_percent: input.perhaps(Bytes::small_number),
        borrowing_limit_percent: input.perhaps(Bytes::small_number),
        limit_response: match input.byte() % 8 {
            0 => LimitResponse { response: LimitResponseType::Other(String::new()), queuing: input.perhaps(queuing) },
            1 | 2 => LimitResponse { response: LimitResponseType::Reject, queuing: None },
            _ => LimitResponse { response: LimitResponseType::Queue, queuing: Some(queuing(input)) },
        },
    }
}

fn exempt(input: &mut Bytes<'_>) -> ExemptPriorityLevelConfiguration {
    ExemptPriorityLevelConfiguration {
        nominal_concurrency_shares: input.perhaps(Bytes::small_number),
        lendable_percent: input.perhaps(Bytes::small_number),
    }
}

/// Few queues, or a number of them that cannot be: millions would be valid, and take all the memory there is.
fn queuing(input: &mut Bytes<'_>) -> QueuingConfiguration {
    let queues = match input.byte() {
        few @ 0..=239 => i32::from(few % 20),
        240..=243 => i32::MIN,
        244..=247 => i32::MAX,
        _ => -1,
    };
    let hand_size = match input.byte() {
        small @ 0..=239 => i32::from(small % 5),
        _ => input.small_number(),
    };
    QueuingConfiguration { queues, hand_size, queue_length_limit: input.small_number() }
}

fn schema(input: &mut Bytes<'_>) -> FlowSchema {
    let distinguisher = input.perhaps(|input| match input.byte() % 3 {
        0 => FlowDistinguisherMethodType::ByUser,
        1 => FlowDistinguisherMethodType::ByNamespace,
        _ => FlowDistinguisherMethodType::Other("ByMoon".to_owned()),
    });
    let (user, url) = (input.text(), input.text());
    let mut schema = FlowSchema::builder(pick(input, &SCHEMAS))
        .priority_level(pick(input, &LEVELS))
        .matching_precedence(input.small_number())
        .rule(|rule| rule.user(user).non_resource_urls([url]).verbs(["*"]))
        .build();
    schema.spec.distinguisher_method = distinguisher.map(|method| FlowDistinguisherMethod { method });
    schema
}

fn pick(input: &mut Bytes<'_>, names: &[&'static str]) -> &'static str {
    names[usize::from(input.byte()) % names.len()]
}
