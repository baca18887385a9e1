//! The specification of a priority level (API-36, API-46, API-47, API-49, API-50).

use std::collections::BTreeMap;

use super::rules::{Mandatory, Rules};
use super::{Context, FieldError, Path, Value, queuing};
use crate::Version;
use crate::bootstrap::{self, EXEMPT};
use crate::v1::{
    ExemptPriorityLevelConfiguration, LimitResponse, LimitResponseType, LimitedPriorityLevelConfiguration,
    PriorityLevelConfigurationSpec, PriorityLevelEnablement,
};
use crate::v1beta3::PRESERVE_ZERO_ANNOTATION;

impl Rules for PriorityLevelConfigurationSpec {
    fn check(&self, name: &str, context: Context, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        check_enablement(&self.enablement, name, &path.child("type"), errors);
        // A member that the type does not ask for is none to look into: that it is there is the problem.
        match (&self.enablement, &self.limited, &self.exempt) {
            (PriorityLevelEnablement::Limited, Some(limited), _) => {
                check_limited(limited, context.version, &path.child("limited"), errors);
            }
            (PriorityLevelEnablement::Exempt, _, Some(exempt)) => {
                check_exempt(exempt, &path.child("exempt"), errors);
            }
            _ => {}
        }
    }

    fn mandatory(&self, name: &str) -> Option<Mandatory<Self>> {
        let spec = bootstrap::mandatory_priority_level(name)?.spec.clone();
        if name == EXEMPT {
            let spec = Self { exempt: self.exempt.clone(), ..spec };
            return Some(Mandatory { spec, except: " except the 'spec.exempt' field" });
        }
        Some(Mandatory { spec, except: "" })
    }

    fn check_union(&self, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        let is = |enablement| self.enablement == enablement;
        if self.exempt.is_some() && !is(PriorityLevelEnablement::Exempt) {
            errors.push(FieldError::forbidden(path.child("exempt"), ""));
        }
        match (self.limited.is_some(), is(PriorityLevelEnablement::Limited)) {
            (true, false) => errors.push(FieldError::forbidden(path.child("limited"), "")),
            (false, true) => errors.push(FieldError::required(path.child("limited"), "")),
            _ => {}
        }
        if self.enablement.as_str().is_empty() {
            errors.push(FieldError::required(path.child("type"), ""));
        }
        if let Some(limited) = &self.limited {
            check_response_union(&limited.limit_response, &path.child("limited").child("limitResponse"), errors);
        }
    }

    fn check_annotations(
        annotations: &BTreeMap<String, String>,
        version: Version,
        path: &Path<'_>,
        errors: &mut Vec<FieldError>,
    ) {
        // In v1beta3 the annotation has a meaning, and conversion has taken it away.
        if version != Version::V1beta3 && annotations.contains_key(PRESERVE_ZERO_ANNOTATION) {
            let detail = format!("annotation '{PRESERVE_ZERO_ANNOTATION}' is forbidden");
            errors.push(FieldError::forbidden(path, &detail));
        }
    }
}

fn check_enablement(enablement: &PriorityLevelEnablement, name: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if (*enablement == PriorityLevelEnablement::Exempt) != (name == EXEMPT) {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.push(FieldError::invalid(path, &Value::json(enablement), detail));
    }
    if let PriorityLevelEnablement::Other(other) = enablement
        && !other.is_empty()
    {
        errors.push(FieldError::no_choice(path, &Value::json(enablement), &PriorityLevelEnablement::CHOICE));
    }
}

fn check_limited(
    limited: &LimitedPriorityLevelConfiguration,
    version: Version,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let shares = match version {
        Version::V1 | Version::V1beta3 => "nominalConcurrencyShares",
        Version::V1beta2 | Version::V1beta1 => "assuredConcurrencyShares",
    };
    check_shares(limited.nominal_concurrency_shares, &path.child(shares), errors);
    check_response(&limited.limit_response, &path.child("limitResponse"), errors);
    check_lendable(limited.lendable_percent, &path.child("lendablePercent"), errors);
    if let Some(percent @ ..0) = limited.borrowing_limit_percent {
        let detail = "if specified, must be a non-negative integer";
        errors.push(FieldError::invalid(path.child("borrowingLimitPercent"), &Value::json(&percent), detail));
    }
}

fn check_exempt(exempt: &ExemptPriorityLevelConfiguration, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    check_shares(exempt.nominal_concurrency_shares, &path.child("nominalConcurrencyShares"), errors);
    check_lendable(exempt.lendable_percent, &path.child("lendablePercent"), errors);
}

fn check_shares(shares: Option<i32>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(shares @ ..0) = shares {
        errors.push(FieldError::invalid(path, &Value::json(&shares), "must be a non-negative integer"));
    }
}

fn check_lendable(percent: Option<i32>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(percent @ (..0 | 101..)) = percent {
        errors.push(FieldError::invalid(path, &Value::json(&percent), "must be between 0 and 100, inclusive"));
    }
}

fn check_response(response: &LimitResponse, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match (&response.response, &response.queuing) {
        (LimitResponseType::Other(other), _) if !other.is_empty() => {
            errors.push(FieldError::no_choice(path.child("type"), &Value::json(other), &LimitResponseType::CHOICE));
        }
        (LimitResponseType::Queue, Some(queuing)) => queuing::check(queuing, &path.child("queuing"), errors),
        _ => {}
    }
}

fn check_response_union(response: &LimitResponse, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match (response.queuing.is_some(), response.response == LimitResponseType::Queue) {
        (true, false) => errors.push(FieldError::forbidden(path.child("queuing"), "")),
        (false, true) => errors.push(FieldError::required(path.child("queuing"), "")),
        _ => {}
    }
    if response.response.as_str().is_empty() {
        errors.push(FieldError::required(path.child("type"), ""));
    }
}
