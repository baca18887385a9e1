//! The values that are filled in where an object says nothing (API-22 to API-26).
//!
//! Defaults belong to the version in which an object was written: they are filled in before it is converted.

#![expect(deprecated, reason = "the older versions are served as long as clients use them")]

use crate::v1::{
    self, CONCURRENCY_SHARES_DEFAULT, EXEMPT_CONCURRENCY_SHARES_DEFAULT, ExemptPriorityLevelConfiguration,
    FlowSchemaSpec, HAND_SIZE_DEFAULT, LENDABLE_PERCENT_DEFAULT, LimitResponse, MATCHING_PRECEDENCE_DEFAULT,
    QUEUE_LENGTH_LIMIT_DEFAULT, QUEUES_DEFAULT,
};
use crate::v1beta3::PRESERVE_ZERO_ANNOTATION;
use crate::{InVersion, Object, v1beta2, v1beta3};

/// An object that knows the values of what it does not say.
pub trait Defaulted {
    /// Fills in every value that the object leaves out and that has a default.
    fn apply_defaults(&mut self);
}

impl<V: InVersion> Defaulted for Object<V, FlowSchemaSpec> {
    fn apply_defaults(&mut self) {
        default_if_zero(&mut self.spec.matching_precedence, MATCHING_PRECEDENCE_DEFAULT);
    }
}

impl Defaulted for v1::PriorityLevelConfiguration {
    fn apply_defaults(&mut self) {
        if let Some(limited) = &mut self.spec.limited {
            limited.nominal_concurrency_shares.get_or_insert(CONCURRENCY_SHARES_DEFAULT);
            limited.lendable_percent.get_or_insert(LENDABLE_PERCENT_DEFAULT);
            default_queuing(&mut limited.limit_response);
        }
        default_exempt(self.spec.exempt.as_mut());
    }
}

impl Defaulted for v1beta3::PriorityLevelConfiguration {
    fn apply_defaults(&mut self) {
        let zero_is_meant = self.metadata.annotations.contains_key(PRESERVE_ZERO_ANNOTATION);
        if let Some(limited) = &mut self.spec.limited {
            if !zero_is_meant {
                default_if_zero(&mut limited.nominal_concurrency_shares, CONCURRENCY_SHARES_DEFAULT);
            }
            limited.lendable_percent.get_or_insert(LENDABLE_PERCENT_DEFAULT);
            default_queuing(&mut limited.limit_response);
        }
        default_exempt(self.spec.exempt.as_mut());
    }
}

/// `v1beta2` and `v1beta1`, whose priority levels are of the same type.
impl<V: InVersion> Defaulted for Object<V, v1beta2::PriorityLevelConfigurationSpec> {
    fn apply_defaults(&mut self) {
        if let Some(limited) = &mut self.spec.limited {
            default_if_zero(&mut limited.assured_concurrency_shares, CONCURRENCY_SHARES_DEFAULT);
            limited.lendable_percent.get_or_insert(LENDABLE_PERCENT_DEFAULT);
            default_queuing(&mut limited.limit_response);
        }
        default_exempt(self.spec.exempt.as_mut());
    }
}

fn default_queuing(response: &mut LimitResponse) {
    if let Some(queuing) = &mut response.queuing {
        default_if_zero(&mut queuing.queues, QUEUES_DEFAULT);
        default_if_zero(&mut queuing.hand_size, HAND_SIZE_DEFAULT);
        default_if_zero(&mut queuing.queue_length_limit, QUEUE_LENGTH_LIMIT_DEFAULT);
    }
}

fn default_exempt(exempt: Option<&mut ExemptPriorityLevelConfiguration>) {
    if let Some(exempt) = exempt {
        exempt.nominal_concurrency_shares.get_or_insert(EXEMPT_CONCURRENCY_SHARES_DEFAULT);
        exempt.lendable_percent.get_or_insert(LENDABLE_PERCENT_DEFAULT);
    }
}

fn default_if_zero(value: &mut i32, default: i32) {
    if *value == 0 {
        *value = default;
    }
}
