//! Random priority levels.

use evenkeel_api::v1::{
    ExemptPriorityLevelConfiguration, LimitResponse, LimitResponseType, LimitedPriorityLevelConfiguration,
    PriorityLevelConfiguration, PriorityLevelConfigurationSpec, PriorityLevelEnablement, QueuingConfiguration,
};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::meta::{object_meta, sound_object_meta};
use super::{number, status, text};

/// A priority level.
pub fn priority_level() -> BoxedStrategy<PriorityLevelConfiguration> {
    prop_oneof![sound_priority_level(), wild_priority_level()].boxed()
}

/// A priority level that makes sense, as a manifest has it: members that have a default may be left out.
pub fn sound_priority_level() -> BoxedStrategy<PriorityLevelConfiguration> {
    let exempt = option::of(exempt(0..=100, 0..=100)).prop_map(|exempt| PriorityLevelConfigurationSpec {
        enablement: PriorityLevelEnablement::Exempt,
        limited: None,
        exempt,
    });
    let queue = (1..=4096, 1..=5_i32, 0..=100).prop_map(|(queues, hand_size, queue_length_limit)| LimitResponse {
        response: LimitResponseType::Queue,
        queuing: Some(QueuingConfiguration { queues, hand_size: hand_size.min(queues), queue_length_limit }),
    });
    let reject = Just(LimitResponse { response: LimitResponseType::Reject, queuing: None });
    let limited = limited(0..=100, prop_oneof![queue, reject], 0..=100, 0..=200).prop_map(|limited| {
        PriorityLevelConfigurationSpec {
            enablement: PriorityLevelEnablement::Limited,
            limited: Some(limited),
            exempt: None,
        }
    });
    (sound_object_meta(), prop_oneof![1 => exempt, 4 => limited])
        .prop_map(|(mut metadata, spec)| {
            // The type is `Exempt` if and only if the name is `exempt` (API-46).
            let is_exempt = spec.enablement == PriorityLevelEnablement::Exempt;
            if is_exempt || metadata.name == "exempt" {
                metadata.name = if is_exempt { "exempt" } else { "tenants" }.into();
            }
            PriorityLevelConfiguration::new(metadata, spec)
        })
        .boxed()
}

/// A priority level in which any member may hold anything.
pub fn wild_priority_level() -> BoxedStrategy<PriorityLevelConfiguration> {
    let enablement = prop_oneof![select(vec!["Exempt".to_owned(), "Limited".into()]), text()]
        .prop_map(PriorityLevelEnablement::from);
    let response =
        prop_oneof![select(vec!["Queue".to_owned(), "Reject".into()]), text()].prop_map(LimitResponseType::from);
    let queuing = (number(), number(), number()).prop_map(|(queues, hand_size, queue_length_limit)| {
        QueuingConfiguration { queues, hand_size, queue_length_limit }
    });
    let limit_response =
        (response, option::of(queuing)).prop_map(|(response, queuing)| LimitResponse { response, queuing });
    let limited = limited(number(), limit_response, number(), number());
    let spec = (enablement, option::of(limited), option::of(exempt(number(), number())))
        .prop_map(|(enablement, limited, exempt)| PriorityLevelConfigurationSpec { enablement, limited, exempt });
    (object_meta(), spec, status())
        .prop_map(|(metadata, spec, status)| {
            let mut level = PriorityLevelConfiguration::new(metadata, spec);
            level.status = status;
            level
        })
        .boxed()
}

fn limited(
    shares: impl Strategy<Value = i32> + 'static,
    limit_response: impl Strategy<Value = LimitResponse> + 'static,
    lendable_percent: impl Strategy<Value = i32> + 'static,
    borrowing_limit_percent: impl Strategy<Value = i32> + 'static,
) -> BoxedStrategy<LimitedPriorityLevelConfiguration> {
    // Zero shares are where the versions differ, so they come up often.
    let shares = prop_oneof![1 => Just(0), 3 => shares];
    (option::of(shares), limit_response, option::of(lendable_percent), option::of(borrowing_limit_percent))
        .prop_map(|(nominal_concurrency_shares, limit_response, lendable_percent, borrowing_limit_percent)| {
            LimitedPriorityLevelConfiguration {
                nominal_concurrency_shares,
                limit_response,
                lendable_percent,
                borrowing_limit_percent,
            }
        })
        .boxed()
}

fn exempt(
    shares: impl Strategy<Value = i32> + 'static,
    lendable_percent: impl Strategy<Value = i32> + 'static,
) -> BoxedStrategy<ExemptPriorityLevelConfiguration> {
    (option::of(shares), option::of(lendable_percent))
        .prop_map(|(nominal_concurrency_shares, lendable_percent)| ExemptPriorityLevelConfiguration {
            nominal_concurrency_shares,
            lendable_percent,
        })
        .boxed()
}
