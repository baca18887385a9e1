//! `TokenTotals`: how many tokens each user took of each model, for metrics (LM-8).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::token_count::Tokens;

/// Sums by model and user. Beyond a number of them, newcomers take the places of those that have been quiet for long, or else are counted
/// together.
#[derive(Debug, Default)]
pub(crate) struct TokenTotals(Mutex<Sums>);

#[derive(Debug, Default)]
struct Sums {
    by_pair: HashMap<ModelAndUser, Sum>,
    /// The sum of all that have none of their own, those that once had one included.
    others: Option<Tokens>,
}

#[derive(Debug)]
struct Sum {
    tokens: Tokens,
    added_at: Instant,
}

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
/// A user without a request for so long may lose the place to a newcomer.
const QUIET: Duration = Duration::from_secs(3600);
/// The name for all others together.
const OTHERS: &str = "(others)";

// === impl TokenTotals ===

impl TokenTotals {
    /// A request has ended.
    pub(super) fn add(&self, model: &str, user: &str, tokens: Tokens) {
        self.add_at(Instant::now(), model, user, tokens);
    }

    fn add_at(&self, now: Instant, model: &str, user: &str, tokens: Tokens) {
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (model.into(), user.into());
        if let Some(sum) = sums.by_pair.get_mut(&key) {
            sum.added_at = now;
            sum.tokens.add(tokens);
        } else if sums.by_pair.len() < SERIES_MAX || sums.make_room(now) {
            sums.by_pair.insert(key, Sum { tokens, added_at: now });
        } else {
            sums.others.get_or_insert_default().add(tokens);
        }
    }

    /// All sums, in the order of models and users.
    pub(crate) fn rows(&self) -> Vec<TokenSeries> {
        let sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let row = |((model, user), sum): (&ModelAndUser, &Sum)| TokenSeries {
            model: model.clone(),
            user: user.clone(),
            tokens: sum.tokens,
        };
        let others = sums.others.map(|tokens| TokenSeries { model: OTHERS.into(), user: OTHERS.into(), tokens });
        let mut rows: Vec<TokenSeries> = sums.by_pair.iter().map(row).chain(others).collect();
        drop(sums);
        rows.sort_by(|one, other| (&one.model, &one.user).cmp(&(&other.model, &other.user)));
        rows
    }
}

// === impl Sums ===

impl Sums {
    /// Adds the sum that has been quiet for longest to those of the others, if that was long enough.
    fn make_room(&mut self, now: Instant) -> bool {
        let quietest = self.by_pair.iter().min_by_key(|(_, sum)| sum.added_at);
        let Some((key, _)) = quietest.filter(|(_, sum)| now.saturating_duration_since(sum.added_at) >= QUIET) else {
            return false;
        };
        let key = key.clone();
        if let Some(sum) = self.by_pair.remove(&key) {
            self.others.get_or_insert_default().add(sum.tokens);
        }
        true
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

    #[test]
    fn whoever_was_quiet_for_long_makes_room() {
        let (totals, start) = (TokenTotals::default(), Instant::now());
        let tokens = Tokens { prompt: 3.0, cached: 1.0, output: 2.0 };
        for number in 0..SERIES_MAX {
            totals.add_at(start, "m", &format!("user-{number}"), tokens);
        }
        let has = |user: &str| totals.rows().iter().any(|row| &*row.user == user);
        totals.add_at(start + QUIET / 2, "m", "user-0", tokens);
        totals.add_at(start + QUIET / 2, "m", "early", tokens);
        assert!(!has("early") && has(OTHERS));
        totals.add_at(start + QUIET, "m", "late", tokens);
        assert!(has("late") && has("user-0"));
        assert_eq!(totals.rows().len(), SERIES_MAX + 1);
        let sum: f64 = totals.rows().iter().map(|row| row.tokens.prompt).sum();
        assert!((sum - 3.0 * 503.0).abs() < 1e-6, "{sum}");
    }
}
