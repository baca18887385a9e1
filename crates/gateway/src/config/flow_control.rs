//! How the flow control works where there is a choice.

use std::str::FromStr;
use std::time::Duration;

use evenkeel::division::{Borrowing, UnknownBorrowing};
use serde::{Deserialize, Serialize};

use super::duration;

/// How the flow control works where there is a choice.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct FlowControlConfig {
    /// When levels borrow seats from each other and give them back: `immediate`, at every event, or `periodic`, every ten
    /// seconds as in Kubernetes. The default is that of the preset.
    pub borrowing: Option<BorrowingConfig>,
    /// Levels that queue per flow keep seats for clients of which nothing runs, from clients whose requests hold their seats for so
    /// long that others would wait for longer than this for one of them.
    #[serde(with = "duration")]
    pub newcomer_wait: Duration,
    /// When requests have waited for this long although their level uses fewer seats than its own, the youngest requests of revocable levels end.
    #[serde(with = "duration")]
    pub revoke_after: Duration,
}

/// When levels borrow seats from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum BorrowingConfig {
    /// Every ten seconds.
    Periodic,
    /// At every event.
    Immediate,
}

// === impl FlowControlConfig ===

impl Default for FlowControlConfig {
    fn default() -> Self {
        Self { borrowing: None, newcomer_wait: Duration::from_millis(100), revoke_after: Duration::from_millis(500) }
    }
}

// === impl BorrowingConfig ===

impl From<BorrowingConfig> for Borrowing {
    fn from(borrowing: BorrowingConfig) -> Self {
        match borrowing {
            BorrowingConfig::Periodic => Self::Periodic,
            BorrowingConfig::Immediate => Self::Immediate,
        }
    }
}

impl FromStr for BorrowingConfig {
    type Err = UnknownBorrowing;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Borrowing::from_str(word).map(Self::from)
    }
}

impl From<Borrowing> for BorrowingConfig {
    fn from(borrowing: Borrowing) -> Self {
        match borrowing {
            Borrowing::Periodic => Self::Periodic,
            Borrowing::Immediate => Self::Immediate,
        }
    }
}
