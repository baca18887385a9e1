//! `LearntModels`: figures of each model, learnt from responses: tokens for a byte of a prompt, tokens for an event, and tokens
//! of responses (LM-1, LM-3).

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The learnt figures of a service's models. Only responses add to them, so that requests cannot make the tables grow.
#[derive(Debug, Default)]
pub(crate) struct LearntModels(Mutex<Tables>);

#[derive(Debug, Default)]
struct Tables {
    models: Table<Box<str>, LearntModel>,
    /// The lengths of responses by model and user: some ask for summaries, others for books.
    outputs: Table<(Box<str>, Box<str>), Ratio>,
}

/// A map of bounded size. The entry that was taught longest ago makes room.
#[derive(Debug)]
struct Table<K, V> {
    entries: HashMap<K, (u64, V)>,
    /// Counts up with each lesson.
    clock: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct LearntModel {
    prompt: Ratio,
    event: Ratio,
    output: Ratio,
}

/// A ratio of sums in which older parts count less.
#[derive(Debug, Clone, Copy, Default)]
struct Ratio {
    tokens: f64,
    units: f64,
}

/// The assumed token rates of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TokenRates {
    pub(crate) per_prompt_byte: f64,
    pub(crate) per_event: f64,
    /// The length of its response, if something is known of that.
    pub(crate) output: Option<f64>,
}

/// More are not remembered.
const ENTRIES_MAX: usize = 1024;
/// How much a lesson counts after the next one: longest for events, whose number is all that is known of a stream without usage.
const KEPT: f64 = 31.0 / 32.0;
const OUTPUT_KEPT: f64 = 7.0 / 8.0;

// === impl TokenRates ===

impl TokenRates {
    /// The rates of an unknown model: four bytes a token, and a token an event.
    pub(super) const UNKNOWN: Self = Self { per_prompt_byte: 0.25, per_event: 1.0, output: None };
}

// === impl LearntModels ===

impl LearntModels {
    pub(super) fn rates(&self, model: &str, user: &str) -> TokenRates {
        let tables = self.tables();
        let Some(learnt) = tables.models.get(model) else { return TokenRates::UNKNOWN };
        let of_user = || tables.outputs.get(&(model.into(), user.into()));
        TokenRates {
            per_prompt_byte: learnt.prompt.value().unwrap_or(TokenRates::UNKNOWN.per_prompt_byte),
            per_event: learnt.event.value().unwrap_or(TokenRates::UNKNOWN.per_event),
            output: of_user().copied().and_then(Ratio::value).or(learnt.output.value()),
        }
    }

    /// A prompt of so many bytes had so many tokens.
    pub(super) fn learn_prompt(&self, model: &str, bytes: f64, tokens: f64) {
        self.tables().models.entry(model.into()).prompt.add(bytes, tokens, KEPT);
    }

    /// So many events had so many tokens.
    pub(super) fn learn_events(&self, model: &str, events: f64, tokens: f64) {
        self.tables().models.entry(model.into()).event.add(events, tokens, KEPT);
    }

    /// A response to this user had so many tokens.
    pub(super) fn learn_output(&self, model: &str, user: &str, tokens: f64) {
        let mut tables = self.tables();
        tables.models.entry(model.into()).output.add(1.0, tokens, OUTPUT_KEPT);
        tables.outputs.entry((model.into(), user.into())).add(1.0, tokens, OUTPUT_KEPT);
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Table ===

impl<K: Hash + Eq + Clone, V: Default> Table<K, V> {
    fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: std::borrow::Borrow<Q>,
    {
        self.entries.get(key).map(|(_, value)| value)
    }

    fn entry(&mut self, key: K) -> &mut V {
        if self.entries.len() >= ENTRIES_MAX && !self.entries.contains_key(&key) {
            let oldest = self.entries.iter().min_by_key(|(_, (taught_at, _))| *taught_at).map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                self.entries.remove(&oldest);
            }
        }
        self.clock += 1;
        let (taught_at, value) = self.entries.entry(key).or_default();
        *taught_at = self.clock;
        value
    }
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { entries: HashMap::new(), clock: 0 }
    }
}

// === impl Ratio ===

impl Ratio {
    fn add(&mut self, units: f64, tokens: f64, kept: f64) {
        if units > 0.0 && tokens > 0.0 {
            (self.tokens, self.units) = (self.tokens * kept + tokens, self.units * kept + units);
        }
    }

    fn value(self) -> Option<f64> {
        (self.units > 0.0).then(|| self.tokens / self.units)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_what_responses_tell() {
        let models = LearntModels::default();
        assert_eq!(models.rates("m", "u"), TokenRates::UNKNOWN);
        for _ in 0..100 {
            models.learn_prompt("m", 1000.0, 300.0);
            models.learn_events("m", 10.0, 35.0);
            models.learn_output("m", "long", 900.0);
            models.learn_output("m", "short", 100.0);
        }
        models.learn_events("m", 0.0, 5.0);
        let rates = models.rates("m", "short");
        assert!((rates.per_prompt_byte - 0.3).abs() < 1e-9 && (rates.per_event - 3.5).abs() < 1e-9, "{rates:?}");
        assert!((rates.output.unwrap() - 100.0).abs() < 1e-9, "{rates:?}");
        let of_others = models.rates("m", "somebody").output.unwrap();
        assert!((100.0..900.0).contains(&of_others), "{of_others}");
        // A model that changes its ways is followed within some hundred requests.
        for _ in 0..150 {
            models.learn_events("m", 10.0, 10.0);
        }
        assert!((models.rates("m", "u").per_event - 1.0).abs() < 0.05);
        assert_eq!(models.rates("other", "u"), TokenRates::UNKNOWN);
    }

    #[test]
    fn models_are_bounded_and_the_oldest_goes() {
        let models = LearntModels::default();
        for number in 0..5000 {
            models.learn_events(&number.to_string(), 1.0, 2.0);
            models.learn_events("used", 1.0, 3.0);
        }
        assert_eq!(models.tables().models.entries.len(), ENTRIES_MAX);
        assert!((models.rates("used", "").per_event - 3.0).abs() < 1e-9);
        assert_eq!(models.rates("1", ""), TokenRates::UNKNOWN);
    }
}
