//! `LevelAccounts`: costs and rates, which are kept for as long as their flow schema exists, whatever happens to other objects.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_api::annotations::CostUnit;
use evenkeel_engine::Schema;
use evenkeel_engine::cost::{ClassPlace, CostClass, Expectation, LearntCosts, SeatTimePrice, Settlement};

use super::flow_rates::FlowRates;
use super::schema_accounts::SchemaAccounts;
use crate::control::retry::seed;
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, PoisonError};

/// The costs and rates of the flow schemas that lead to a level.
#[derive(Debug)]
pub(crate) struct LevelAccounts {
    costs: Arc<Mutex<LevelCosts>>,
    ledgers: Mutex<Ledgers>,
}

/// The costs of all requests of a level. One lock is around all of them: a request that ends takes it once.
#[derive(Debug)]
struct LevelCosts {
    learnt: LearntCosts,
    /// The books of the ledgers, by their places; `None` for a ledger that is gone.
    books: Vec<Option<CostBooks>>,
}

/// The ledgers by the names of flow schemas. Costs also by their units: a number of bytes says nothing of tokens.
#[derive(Debug, Default)]
struct Ledgers {
    rates: HashMap<Box<str>, Arc<RateLedger>>,
    costs: HashMap<Box<str>, Vec<(CostUnit, Arc<CostLedger>)>>,
}

/// The rates of the flows of a schema.
#[derive(Debug, Default)]
pub(crate) struct RateLedger {
    pub(crate) stamps: FlowRates,
    counts: Mutex<RateCounts>,
}

/// The costs of the requests of a schema that are counted in one unit.
#[derive(Debug)]
pub(crate) struct CostLedger {
    level: Arc<Mutex<LevelCosts>>,
    /// The place of its books among those of the level.
    place: usize,
    /// The bits of the seat-nanoseconds that a unit costs; those of NaN as long as that is unknown. Requests that arrive read it
    /// without the lock.
    per_unit: AtomicU64,
}

/// Costs of requests that have ended, and the averages that follow from them.
#[derive(Debug, Clone, Copy, Default)]
struct CostBooks {
    price: SeatTimePrice,
    counts: CostCounts,
}

/// Counts of requests that waited for the rate of their flow, for one flow schema.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RateCounts {
    /// How many requests waited for their rate.
    pub(crate) delayed: u64,
    /// How long these requests waited for it, in all.
    pub(crate) delay: Duration,
    /// How many requests wait for their rate now.
    pub(crate) waiting: u64,
}

/// Sums of the costs of one flow schema.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CostCounts {
    /// The cost of all requests that have ended.
    pub(crate) cost: f64,
    /// The cost that was expected of these requests.
    pub(crate) expected: f64,
}

/// The counts and sums of the flow schemas of one level.
#[derive(Debug, Clone, Default)]
#[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "metrics alone show it"))]
pub(crate) struct AccountSample {
    pub(crate) level: Box<str>,
    /// The counts of schemas whose flows have a rate, with their names.
    pub(crate) rates: Vec<(Box<str>, RateCounts)>,
    /// The sums of schemas whose costs count, with their names and the words for their units.
    pub(crate) costs: Vec<(Box<str>, &'static str, CostCounts)>,
    /// How many classes the level has learnt the costs of.
    pub(crate) classes: usize,
}

// === impl LevelAccounts ===

impl LevelAccounts {
    /// The accounts of a schema that leads to the level, for requests whose routes do not say what their cost is counted in; `None` if it
    /// has none.
    pub(crate) fn of(&self, schema: &Schema) -> Option<Arc<SchemaAccounts>> {
        let terms = schema.terms.as_deref().filter(|terms| terms.needs_accounts())?;
        Some(self.in_unit(schema, terms.counts()))
    }

    /// The accounts of a schema for requests whose route says what their cost is counted in; `None` if the schema says it itself, or if
    /// nothing depends on it.
    #[cold]
    pub(crate) fn of_route(&self, schema: &Schema, unit: &CostUnit) -> Option<Arc<SchemaAccounts>> {
        let terms = schema.terms.as_deref();
        let has_own = terms.is_some_and(|terms| terms.own_unit().is_some());
        // Charging by the time is the default, so it needs no account.
        let is_usual = *unit == CostUnit::Time;
        (!has_own && !is_usual).then(|| self.in_unit(schema, Some(unit.clone())))
    }

    fn in_unit(&self, schema: &Schema, unit: Option<CostUnit>) -> Arc<SchemaAccounts> {
        let mut ledgers = self.ledgers();
        let has_rate = schema.terms.as_deref().is_some_and(|terms| terms.rate.is_some());
        let rates = has_rate.then(|| Arc::clone(ledgers.rates.entry(schema.name.clone()).or_default()));
        let costs = unit.map(|unit| {
            let kept = ledgers.costs.entry(schema.name.clone()).or_default();
            let ledger = match kept.iter().find(|(kept, _)| *kept == unit) {
                Some((_, ledger)) => Arc::clone(ledger),
                None => {
                    let ledger = Arc::new(CostLedger::new(&self.costs));
                    kept.push((unit.clone(), Arc::clone(&ledger)));
                    ledger
                }
            };
            (unit, ledger)
        });
        drop(ledgers);
        Arc::new(SchemaAccounts::new(schema, rates, costs))
    }

    /// Forgets what was kept for flow schemas that are not among these, and for units that they do not count in any more.
    pub(crate) fn keep_only<'a>(&self, schemas: impl FnOnce() -> Vec<&'a Schema>) {
        let mut ledgers = self.ledgers();
        if ledgers.rates.is_empty() && ledgers.costs.is_empty() {
            return;
        }
        let schemas = schemas();
        let found = |name: &str| schemas.iter().find(|schema| *schema.name == *name);
        let has_rate = |schema: &&Schema| schema.terms.as_deref().is_some_and(|terms| terms.rate.is_some());
        ledgers.rates.retain(|name, _| found(name).is_some_and(has_rate));
        ledgers.costs.retain(|name, kept| {
            let Some(schema) = found(name) else { return false };
            if let Some(own) = schema.terms.as_deref().and_then(evenkeel_engine::Terms::own_unit) {
                kept.retain(|(unit, _)| *unit == own);
            }
            !kept.is_empty()
        });
    }

    /// The counts of a flow schema; zeros if its flows have no rate.
    pub(crate) fn rate_counts(&self, schema: &str) -> RateCounts {
        self.ledgers().rates.get(schema).map(|ledger| *ledger.counts()).unwrap_or_default()
    }

    /// The rates of the flow schemas that have some.
    #[cfg(feature = "fleet")]
    pub(crate) fn rate_ledgers(&self) -> Vec<(Box<str>, Arc<RateLedger>)> {
        self.ledgers().rates.iter().map(|(name, ledger)| (name.clone(), Arc::clone(ledger))).collect()
    }

    /// What is counted of all of them; `None` if nothing is.
    pub(crate) fn sample(&self, level: &str) -> Option<AccountSample> {
        let ledgers = self.ledgers();
        if ledgers.rates.is_empty() && ledgers.costs.is_empty() {
            return None;
        }
        let rates = ledgers.rates.iter().map(|(name, ledger)| (name.clone(), *ledger.counts()));
        let costs = ledgers.costs.iter().flat_map(|(name, kept)| {
            // Services may report their costs in several headers.
            let mut sums: Vec<(&'static str, CostCounts)> = Vec::new();
            for (unit, ledger) in kept {
                let (noun, counts) = (unit.noun(), ledger.counts());
                match sums.iter_mut().find(|(kept, _)| *kept == noun) {
                    Some((_, sum)) => {
                        sum.cost += counts.cost;
                        sum.expected += counts.expected;
                    }
                    None => sums.push((noun, counts)),
                }
            }
            sums.into_iter().map(|(noun, counts)| (name.clone(), noun, counts))
        });
        let mut sample = AccountSample {
            level: level.into(),
            rates: rates.collect(),
            costs: costs.collect(),
            classes: lock(&self.costs).learnt.len(),
        };
        sample.rates.sort_by(|(one, _), (other, _)| one.cmp(other));
        sample.costs.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        Some(sample)
    }

    fn ledgers(&self) -> MutexGuard<'_, Ledgers> {
        self.ledgers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for LevelAccounts {
    fn default() -> Self {
        let costs = LevelCosts { learnt: LearntCosts::new(seed(0)), books: Vec::new() };
        Self { costs: Arc::new(Mutex::new(costs)), ledgers: Mutex::default() }
    }
}

// === impl RateLedger ===

impl RateLedger {
    pub(crate) fn counts(&self) -> MutexGuard<'_, RateCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl CostLedger ===

impl CostLedger {
    fn new(level: &Arc<Mutex<LevelCosts>>) -> Self {
        let mut costs = lock(level);
        let free = costs.books.iter().position(Option::is_none);
        let place = free.unwrap_or_else(|| {
            costs.books.push(None);
            costs.books.len() - 1
        });
        costs.books[place] = Some(CostBooks::default());
        drop(costs);
        Self { level: Arc::clone(level), place, per_unit: AtomicU64::new(f64::NAN.to_bits()) }
    }

    fn counts(&self) -> CostCounts {
        let costs = lock(&self.level);
        costs.books.get(self.place).copied().flatten().unwrap_or_default().counts
    }

    /// What requests of a class are expected to cost, if anything is known of them.
    pub(super) fn expected(&self, class: &CostClass) -> Option<Expectation> {
        lock(&self.level).learnt.expected(class)
    }

    /// The same for explanations: it does not count as a use of the class.
    pub(super) fn peek(&self, class: &CostClass) -> Option<Expectation> {
        lock(&self.level).learnt.peek(class)
    }

    /// The seat-nanoseconds that a unit costs, if that is known.
    pub(super) fn per_unit(&self) -> Option<f64> {
        let per_unit = f64::from_bits(self.per_unit.load(Ordering::Relaxed));
        (!per_unit.is_nan()).then_some(per_unit)
    }

    /// Notes a request that has ended, with its expected cost. `learn`: its class and the place of that, if its cost is learnt. `has_price`:
    /// whether the price follows from such requests.
    pub(super) fn note(
        &self,
        ended: &Settlement,
        expected: f64,
        learn: Option<(&CostClass, Option<ClassPlace>)>,
        has_price: bool,
    ) {
        let mut costs = lock(&self.level);
        if let Some((class, place)) = learn {
            costs.learnt.learn_at(class, ended.cost, place);
        }
        let Some(books) = costs.books.get_mut(self.place).and_then(Option::as_mut) else { return };
        books.counts.cost += ended.cost;
        books.counts.expected += expected;
        if learn.is_some() && has_price {
            books.price.learn(ended.seat_time, ended.cost);
            self.per_unit.store(books.price.per_unit().unwrap_or(f64::NAN).to_bits(), Ordering::Relaxed);
        }
    }
}

impl Drop for CostLedger {
    /// Requests have the ledger for as long as they run, so nobody uses the place any more.
    fn drop(&mut self) {
        if let Some(books) = lock(&self.level).books.get_mut(self.place) {
            *books = None;
        }
    }
}

fn lock(costs: &Mutex<LevelCosts>) -> MutexGuard<'_, LevelCosts> {
    costs.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use evenkeel_engine::time::Instant;

    use super::*;
    use crate::sync::run_test;

    #[test]
    fn a_ledger_that_takes_the_place_of_another_begins_with_nothing() {
        run_test(|| {
            let accounts = LevelAccounts::default();
            let [first, second] = [(); 2].map(|()| CostLedger::new(&accounts.costs));
            let mut account = evenkeel_engine::cost::CostAccount::open(0.0, 1, None, None);
            account.end_with(7.0);
            let ended = account.settle(Instant::default(), Instant::default());
            for ledger in [&first, &second] {
                ledger.note(&ended, 3.0, None, false);
            }
            let place = first.place;
            drop(first);
            let third = CostLedger::new(&accounts.costs);
            assert_eq!((third.place, third.counts().cost), (place, 0.0));
            assert_eq!((second.counts().cost, second.counts().expected), (7.0, 3.0));
        });
    }
}
