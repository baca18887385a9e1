//! `ModelCounts`: what each model reads and generates at this moment, for the dashboard, and how fast it begins (LM-8).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::first_tokens::{FirstTokenSeries, FirstTokens};
use super::token_count::{Tokens, whole};

/// Counts by model, while tokens arise: `TokenTotals` gets the tokens of a request when it has ended, which may be minutes later. Only
/// responses add models. Beyond a number of them, newcomers take the places of those that have been quiet for long, or else are counted together.
#[derive(Debug, Default)]
pub(crate) struct ModelCounts(Mutex<KnownModels>);

#[derive(Debug, Default)]
struct KnownModels {
    by_model: HashMap<Box<str>, KnownModel>,
    others: Option<Arc<ModelCount>>,
}

#[derive(Debug)]
struct KnownModel {
    count: Arc<ModelCount>,
    began_at: Instant,
}

/// The tokens that one model has taken and given so far.
#[derive(Debug, Default)]
struct ModelCount {
    prompt: TokenSum,
    output: TokenSum,
    running: AtomicU64,
    first_tokens: FirstTokens,
}

/// The sum of what is known of all requests. Final usage may correct a request downwards.
#[derive(Debug, Default)]
struct TokenSum {
    now: AtomicU64,
    /// The highest sum that was read. Readers see no other: what was counted too much is made up for by what comes next.
    highest: AtomicU64,
}

/// A response that a model generates. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct RunningResponse {
    count: Arc<ModelCount>,
    prompt: u64,
    output: u64,
    has_first_token: bool,
}

/// The counts of one model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ModelReading {
    pub(crate) name: Box<str>,
    /// The tokens of prompts and of responses so far. They do not become less.
    pub(crate) prompt: u64,
    pub(crate) output: u64,
    /// How many responses it generates.
    pub(crate) running: u64,
}

/// How many models are told apart.
const MODELS_MAX: usize = 64;
/// A model without a response for so long may lose its place to a newcomer.
const QUIET: Duration = Duration::from_secs(3600);
/// The name of those that requests do not name.
const NOT_NAMED: &str = "(not named)";

// === impl ModelCounts ===

impl ModelCounts {
    /// A model begins a response.
    pub(super) fn begin(&self, model: &str) -> RunningResponse {
        self.begin_at(Instant::now(), model)
    }

    fn begin_at(&self, now: Instant, model: &str) -> RunningResponse {
        let count = self.0.lock().unwrap_or_else(PoisonError::into_inner).count_of(now, model);
        count.running.fetch_add(1, Ordering::Relaxed);
        RunningResponse { count, prompt: 0, output: 0, has_first_token: false }
    }

    /// The counts of all models.
    pub(crate) fn readings(&self) -> Vec<ModelReading> {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let others = table.others.iter().map(|count| (ModelReading::OTHERS, count));
        let models = table.by_model.iter().map(|(name, entry)| (&**name, &entry.count));
        let reading = |(name, count): (&str, &Arc<ModelCount>)| ModelReading {
            name: if name.is_empty() { NOT_NAMED.into() } else { name.into() },
            prompt: count.prompt.read(),
            output: count.output.read(),
            running: count.running.load(Ordering::Relaxed),
        };
        models.chain(others).map(reading).collect()
    }

    /// The waits for first tokens, in the order of models.
    pub(crate) fn first_tokens(&self) -> Vec<FirstTokenSeries> {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let others = table.others.iter().filter_map(|count| count.first_tokens.series(ModelReading::OTHERS));
        let models = table.by_model.iter().filter_map(|(name, entry)| entry.count.first_tokens.series(name));
        let mut all: Vec<FirstTokenSeries> = models.chain(others).collect();
        drop(table);
        all.sort_by(|one, other| one.model.cmp(&other.model));
        all
    }
}

// === impl KnownModels ===

impl KnownModels {
    fn count_of(&mut self, now: Instant, model: &str) -> Arc<ModelCount> {
        if let Some(entry) = self.by_model.get_mut(model) {
            entry.began_at = now;
            return Arc::clone(&entry.count);
        }
        if self.by_model.len() < MODELS_MAX || self.make_room(now) {
            let count = Arc::<ModelCount>::default();
            self.by_model.insert(model.into(), KnownModel { count: Arc::clone(&count), began_at: now });
            return count;
        }
        Arc::clone(self.others.get_or_insert_default())
    }

    /// Counts the model that has been quiet for longest among the others, if that was long enough.
    fn make_room(&mut self, now: Instant) -> bool {
        let is_quiet = |entry: &KnownModel| {
            entry.count.running.load(Ordering::Relaxed) == 0 && now.saturating_duration_since(entry.began_at) >= QUIET
        };
        let quiet = self.by_model.iter().filter(|(_, entry)| is_quiet(entry));
        let Some(name) = quiet.min_by_key(|(_, entry)| entry.began_at).map(|(name, _)| name.clone()) else {
            return false;
        };
        if let Some(entry) = self.by_model.remove(&name) {
            self.others.get_or_insert_default().first_tokens.add(&entry.count.first_tokens);
        }
        true
    }
}

// === impl TokenSum ===

impl TokenSum {
    /// What is known of a request has changed.
    fn change(&self, before: u64, after: u64) {
        if after != before {
            self.now.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
        }
    }

    fn read(&self) -> u64 {
        let now = self.now.load(Ordering::Relaxed);
        self.highest.fetch_max(now, Ordering::Relaxed).max(now)
    }
}

// === impl RunningResponse ===

impl RunningResponse {
    /// The request has taken so many tokens so far.
    pub(super) fn set(&mut self, tokens: Tokens) {
        let (prompt, output) = (whole(tokens.prompt), whole(tokens.output));
        self.count.prompt.change(self.prompt, prompt);
        self.count.output.change(self.output, output);
        (self.prompt, self.output) = (prompt, output);
    }

    pub(super) fn has_first_token(&self) -> bool {
        self.has_first_token
    }

    /// Its first token is there, after the client has waited for so long.
    pub(super) fn note_first_token(&mut self, wait: Duration) {
        self.has_first_token = true;
        self.count.first_tokens.observe(wait);
    }
}

impl Drop for RunningResponse {
    fn drop(&mut self) {
        self.count.running.fetch_sub(1, Ordering::Relaxed);
    }
}

// === impl ModelReading ===

impl ModelReading {
    /// The name for all others together.
    pub(crate) const OTHERS: &str = "(others)";

    /// The counts of models that several services may have, in the order of their names.
    pub(crate) fn by_name(readings: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut models: Vec<Self> = readings.into_iter().collect();
        models.sort_by(|one, other| one.name.cmp(&other.name));
        models.dedup_by(|later, kept| {
            let is_same = later.name == kept.name;
            if is_same {
                kept.prompt += later.prompt;
                kept.output += later.output;
                kept.running += later.running;
            }
            is_same
        });
        models
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(prompt: f64, output: f64) -> Tokens {
        Tokens { prompt, cached: 0.0, output }
    }

    fn reading(name: &str, prompt: u64, output: u64, running: u64) -> ModelReading {
        ModelReading { name: name.into(), prompt, output, running }
    }

    #[test]
    fn tokens_count_while_they_arise_and_never_go_back() {
        let counts = ModelCounts::default();
        assert_eq!(counts.readings(), []);
        let [mut one, mut other] = [counts.begin("m"), counts.begin("m")];
        one.set(tokens(100.0, 0.0));
        one.set(tokens(100.0, 3.4));
        other.set(tokens(10.0, 5.0));
        assert_eq!(counts.readings(), [reading("m", 110, 8, 2)]);
        // The prompt was shorter than its bytes said.
        one.set(tokens(40.0, 4.0));
        drop(one);
        assert_eq!(counts.readings(), [reading("m", 110, 9, 1)]);
        other.set(tokens(80.0, 5.0));
        assert_eq!(counts.readings(), [reading("m", 120, 9, 1)]);
        drop((other, counts.begin("")));
        let readings = ModelReading::by_name(counts.readings());
        assert_eq!(readings, [reading(NOT_NAMED, 0, 0, 0), reading("m", 120, 9, 0)]);
    }

    #[test]
    fn models_are_bounded_and_those_that_were_quiet_for_long_make_room() {
        let (counts, start) = (ModelCounts::default(), Instant::now());
        let begin = |at: Instant, name: &str| {
            let mut response = counts.begin_at(at, name);
            response.set(tokens(1.0, 2.0));
            response.note_first_token(Duration::ZERO);
            response
        };
        let running = begin(start, "busy");
        for number in 0..1000 {
            begin(start + Duration::from_secs(1), &format!("m-{number}"));
        }
        let find = |name: &str| counts.readings().into_iter().find(|one| &*one.name == name);
        assert_eq!(counts.readings().len(), MODELS_MAX + 1);
        assert_eq!(find(ModelReading::OTHERS), Some(reading(ModelReading::OTHERS, 937, 1874, 0)));
        begin(start + QUIET + Duration::from_secs(1), "late");
        assert!(find("late").is_some() && find("busy").is_some());
        assert_eq!(counts.readings().len(), MODELS_MAX + 1);
        let first_tokens = counts.first_tokens();
        assert_eq!(first_tokens.iter().map(|series| series.count).sum::<u64>(), 1002, "none is lost");
        assert_eq!((&*first_tokens[0].model, first_tokens[0].count), (ModelReading::OTHERS, 938));
        drop(running);
    }

    #[test]
    fn models_of_several_services_are_added() {
        let of_all = [reading("b", 1, 2, 3), reading("a", 1, 1, 1), reading("b", 10, 20, 30)];
        assert_eq!(ModelReading::by_name(of_all), [reading("a", 1, 1, 1), reading("b", 11, 22, 33)]);
    }
}
