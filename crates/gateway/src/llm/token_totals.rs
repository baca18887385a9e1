//! `TokenTotals`: how many tokens each user took of each model, for metrics (LM-8).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::token_count::Tokens;

/// Sums by model and user. Beyond a number of them, newcomers are counted together.
#[derive(Debug, Default)]
pub(crate) struct TokenTotals(Mutex<HashMap<ModelAndUser, Tokens>>);

type ModelAndUser = (Box<str>, Box<str>);

/// The totals of one tenant and model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TokenSeries {
    pub(crate) model: Box<str>,
    pub(crate) user: Box<str>,
    pub(crate) tokens: Tokens,
}

/// How many pairs of model and user are told apart.
const SERIES_MAX: usize = 500;
/// What all others are called.
const OTHERS: &str = "(others)";

// === impl TokenTotals ===

impl TokenTotals {
    /// A request has ended.
    pub(super) fn add(&self, model: &str, user: &str, tokens: Tokens) {
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (model.into(), user.into());
        let key = if sums.len() < SERIES_MAX || sums.contains_key(&key) { key } else { (OTHERS.into(), OTHERS.into()) };
        let sum = sums.entry(key).or_default();
        sum.prompt += tokens.prompt;
        sum.cached += tokens.cached;
        sum.output += tokens.output;
    }

    /// All sums, in the order of models and users.
    pub(crate) fn rows(&self) -> Vec<TokenSeries> {
        let sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let row = |((model, user), tokens): (&ModelAndUser, &Tokens)| TokenSeries {
            model: model.clone(),
            user: user.clone(),
            tokens: *tokens,
        };
        let mut rows: Vec<TokenSeries> = sums.iter().map(row).collect();
        drop(sums);
        rows.sort_by(|one, other| (&one.model, &one.user).cmp(&(&other.model, &other.user)));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_bounded_and_nothing_is_lost() {
        let totals = TokenTotals::default();
        let tokens = Tokens { prompt: 3.0, cached: 1.0, output: 2.0 };
        for number in 0..2000 {
            totals.add("m", &format!("user-{number}"), tokens);
        }
        let rows = totals.rows();
        assert_eq!(rows.len(), SERIES_MAX + 1);
        let sum: f64 = rows.iter().map(|row| row.tokens.prompt + row.tokens.output).sum();
        assert!((sum - 10_000.0).abs() < 1e-6, "{sum}");
        assert!(rows.iter().any(|row| &*row.user == OTHERS));
    }
}
