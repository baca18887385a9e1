//! Checks the claims of a token whose signature is valid.

use std::sync::Arc;

use evenkeel_engine::User;
use evenkeel_engine::implied_groups::{service_account, service_account_groups};
use serde_json::{Map, Value};

use crate::Denial;
use crate::config::JwtIdentity;
use crate::sources::naming::Naming;

/// The requirements on the claims of a token.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    issuer: Option<String>,
    audiences: Vec<String>,
    user_claim: String,
    groups_claim: String,
    naming: Naming,
    leeway: u64,
}

/// Clocks that differ by more than this are wrong, not inexact.
const LEEWAY_MAX: u64 = 600;

// === impl Rules ===

impl Rules {
    pub(super) fn new(config: &JwtIdentity) -> Self {
        Self {
            issuer: config.issuer.clone(),
            audiences: config.audiences.clone(),
            user_claim: config.user_claim.clone(),
            groups_claim: config.groups_claim.clone(),
            naming: super::naming(config),
            leeway: config.leeway_seconds.min(LEEWAY_MAX),
        }
    }

    /// The user of this token, and until when it is good, in seconds since 1970; or why it is not good now.
    pub(super) fn judge(&self, claims: &Map<String, Value>, now: u64) -> Result<(Arc<User>, u64), Denial> {
        let until = claims.get("exp").and_then(seconds).ok_or(Denial::Claims)?.saturating_add(self.leeway);
        let from = claims.get("nbf").map_or(Some(0), seconds).ok_or(Denial::Claims)?.saturating_sub(self.leeway);
        // The issuer first: whether a token of another issuer has expired does not matter.
        if !self.is_from_issuer(claims) {
            return Err(Denial::Issuer);
        }
        if !self.is_for_us(claims) {
            return Err(Denial::Audience);
        }
        if now >= until {
            return Err(Denial::Expired);
        }
        if now < from {
            return Err(Denial::NotYetValid);
        }
        let name = claims.get(&self.user_claim).and_then(Value::as_str).ok_or(Denial::Claims)?;
        let mut groups = match claims.get(&self.groups_claim) {
            Some(groups) => texts(groups).ok_or(Denial::Claims)?,
            None => Vec::new(),
        };
        // Tokens of service accounts name no groups: every API server knows them by the name.
        let account = service_account(name).filter(|_| self.naming.user_prefix.is_empty());
        let account = account.map(|(namespace, _)| service_account_groups(namespace));
        groups.extend(account.iter().flatten().map(String::as_str));
        Ok((self.naming.user(name, groups).ok_or(Denial::Name)?, until))
    }

    fn is_from_issuer(&self, claims: &Map<String, Value>) -> bool {
        self.issuer.as_deref().is_none_or(|issuer| claims.get("iss").and_then(Value::as_str) == Some(issuer))
    }

    fn is_for_us(&self, claims: &Map<String, Value>) -> bool {
        let named = claims.get("aud").and_then(texts).unwrap_or_default();
        self.audiences.is_empty() || named.iter().any(|name| self.audiences.iter().any(|own| own == name))
    }
}

/// A text, or a list of texts.
fn texts(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::String(text) => Some(vec![text]),
        Value::Array(items) => items.iter().map(Value::as_str).collect(),
        Value::Null => Some(Vec::new()),
        _ => None,
    }
}

/// A time of a token: a number that is not negative and may have a fraction.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the value is in range, and rounded down")]
fn seconds(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_f64().filter(|time| (0.0..1e15).contains(time)).map(|time| time as u64))
}
