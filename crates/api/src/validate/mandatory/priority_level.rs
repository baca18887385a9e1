//! The two mandatory priority levels (API-74).

use super::{CATCH_ALL, EXEMPT};
use crate::v1::{
    ExemptPriorityLevelConfiguration, LimitResponse, LimitResponseType, LimitedPriorityLevelConfiguration,
    PriorityLevelConfigurationSpec, PriorityLevelEnablement,
};

/// The specification of the mandatory priority level of that name.
pub(in crate::validate) fn fixed_spec(name: &str) -> Option<PriorityLevelConfigurationSpec> {
    match name {
        EXEMPT => Some(PriorityLevelConfigurationSpec {
            enablement: PriorityLevelEnablement::Exempt,
            exempt: Some(ExemptPriorityLevelConfiguration {
                nominal_concurrency_shares: Some(0),
                lendable_percent: Some(0),
            }),
            limited: None,
        }),
        CATCH_ALL => Some(PriorityLevelConfigurationSpec {
            enablement: PriorityLevelEnablement::Limited,
            limited: Some(LimitedPriorityLevelConfiguration {
                nominal_concurrency_shares: Some(5),
                limit_response: LimitResponse { response: LimitResponseType::Reject, queuing: None },
                lendable_percent: Some(0),
                borrowing_limit_percent: None,
            }),
            exempt: None,
        }),
        _ => None,
    }
}
