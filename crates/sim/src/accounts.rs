//! Costs and rates of simulated requests, with the parts of the engine that the library uses (CO-6).

use std::collections::{BTreeMap, HashMap};

use evenkeel_api::annotations::{CostUnit, Excess, RateUnit};
use evenkeel_engine::cost::{CostAccount, CostClass, LearntCosts, SeatRule, SeatTimePrice, Settlement, unit_key};
use evenkeel_engine::rate::{OverRate, RateTicket, SharedStamps};
use evenkeel_engine::time::{Instant, Nanos, SECOND};
use evenkeel_engine::{Configuration, FlowRate, Schema, Terms};
use evenkeel_fleet::{RateLoad, RateShares};

/// The key of requests whose costs are learnt together: their flow, and what they ask for. See [`Schema::flow_key`] and
/// [`route_key`](evenkeel_engine::cost::route_key).
///
/// Not `#[non_exhaustive]`: it is two numbers with names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccountKey {
    /// The hash of the flow.
    pub flow: u64,
    /// The number of the route.
    pub route: u64,
}

/// The costs and rates of all flow schemas, and the accounts of requests under way.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    /// The places of accounts, by the places of flow schemas in the configuration.
    of_schemas: Vec<Option<usize>>,
    schemas: Vec<SchemaAccounts>,
    /// The learnt costs, by the names of levels.
    learnt: HashMap<Box<str>, LearntCosts>,
    requests: Vec<RequestAccount>,
    free: Vec<u32>,
}

/// The number of a request's account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AccountId(u32);

#[derive(Debug)]
struct SchemaAccounts {
    name: Box<str>,
    level: Box<str>,
    unit: Option<CostUnit>,
    seat_rule: Option<SeatRule>,
    rate: Option<FlowRate>,
    charges: bool,
    key: u64,
    stamps: SharedStamps,
    price: SeatTimePrice,
}

#[derive(Debug, Clone, Copy)]
struct RequestAccount {
    schema: usize,
    flow: u64,
    class: CostClass,
    state: CostAccount,
    /// The cost that it will have; `None`: the expected one.
    cost: Option<f64>,
    /// The part of the rate that it took.
    taken: u64,
    /// Its place, while it waits for a rate that other servers share.
    ticket: Option<RateTicket>,
}

/// How many flows of a schema are remembered that are not at rest.
const FLOWS_MAX: usize = 1 << 20;

// === impl Accounts ===

impl Accounts {
    /// Takes over what a configuration says. What was learnt under the one before stays, as far as it counts in the same unit.
    pub(crate) fn follow(&mut self, configuration: &Configuration) {
        self.of_schemas.clear();
        let needs_accounts = |schema: &Schema| schema.terms.as_deref().is_some_and(Terms::needs_accounts);
        if configuration.schemas().iter().any(needs_accounts) {
            self.of_schemas = configuration.schemas().iter().map(|schema| self.place_of(schema)).collect();
        }
    }

    fn place_of(&mut self, schema: &Schema) -> Option<usize> {
        let terms = schema.terms.as_deref().filter(|terms| terms.needs_accounts())?;
        let mut made = SchemaAccounts {
            name: schema.name.clone(),
            level: schema.level.name.clone(),
            unit: terms.counts(),
            seat_rule: terms.seats,
            rate: terms.rate,
            charges: terms.charges(),
            key: schema.key() ^ terms.counts().as_ref().map_or(0, unit_key),
            stamps: SharedStamps::new(FLOWS_MAX),
            price: SeatTimePrice::default(),
        };
        // Any seed will do: names in a simulation are not chosen by attackers.
        self.learnt.entry(made.level.clone()).or_insert_with(|| LearntCosts::new(1));
        let is_same = |known: &SchemaAccounts| known.name == made.name && known.unit == made.unit;
        match self.schemas.iter().position(is_same) {
            Some(place) => {
                let known = &mut self.schemas[place];
                made.stamps = std::mem::replace(&mut known.stamps, SharedStamps::new(1));
                made.price = known.price;
                *known = made;
                Some(place)
            }
            None => {
                self.schemas.push(made);
                Some(self.schemas.len() - 1)
            }
        }
    }

    /// Whether the costs or rates of a flow schema count.
    #[inline]
    pub(crate) fn count(&self, schema: usize) -> bool {
        self.of_schemas.get(schema).is_some_and(Option::is_some)
    }

    /// The account of a request that will have cost so much. Tells how many seats it takes, if that depends on costs.
    pub(crate) fn open(
        &mut self,
        schema: usize,
        key: AccountKey,
        cost: Option<f64>,
        seats: u32,
    ) -> Option<(AccountId, u32)> {
        let place = self.of_schemas.get(schema).copied().flatten()?;
        let accounts = &self.schemas[place];
        let class = CostClass::new(accounts.key, key.route, key.flow);
        let learnt = accounts.unit.as_ref().and_then(|_| self.learnt.get_mut(&accounts.level)?.expected(&class));
        let expected = learnt.map_or(0.0, |learnt| learnt.cost);
        let seats = match accounts.seat_rule {
            Some(_) if learnt.is_none() => 1,
            Some(rule) => rule.seats(expected),
            None => seats,
        };
        let state = CostAccount::open(expected, seats, accounts.seat_rule, accounts.price_per_unit());
        let account = RequestAccount { schema: place, flow: key.flow, class, state, cost, taken: 0, ticket: None };
        let id = match self.free.pop() {
            Some(id) => {
                self.requests[id as usize] = account;
                id
            }
            None => {
                self.requests.push(account);
                u32::try_from(self.requests.len() - 1).ok()?
            }
        };
        Some((AccountId(id), seats))
    }

    /// The request takes its part of the rate of its flow: tells when it may go on.
    pub(crate) fn take(&mut self, id: AccountId, now: Instant, latest: Instant) -> Result<Instant, OverRate> {
        let account = &mut self.requests[id.0 as usize];
        let SchemaAccounts { rate: Some(flow_rate), stamps, .. } = &mut self.schemas[account.schema] else {
            return Ok(now);
        };
        let latest = if flow_rate.rate.excess == Excess::Reject { now } else { latest };
        let taken = flow_rate.taken_by(account.state.expected());
        let passage = stamps.take(&flow_rate.limit, account.flow, taken, now, latest)?;
        (account.taken, account.ticket) = (taken, passage.ticket);
        Ok(passage.at)
    }

    /// When a request that waits for its rate should look again, because other servers share it; `None`: it may go on.
    pub(crate) fn look_again(&self, id: AccountId, now: Instant) -> Option<Instant> {
        let account = &self.requests[id.0 as usize];
        let SchemaAccounts { rate: Some(flow_rate), stamps, .. } = &self.schemas[account.schema] else { return None };
        stamps.look_again(&flow_rate.limit, account.flow, account.ticket.as_ref()?, now)
    }

    /// A request has waited for its rate, and passes.
    pub(crate) fn end_wait(&mut self, id: AccountId) {
        let account = &mut self.requests[id.0 as usize];
        if let Some(ticket) = account.ticket.take() {
            self.schemas[account.schema].stamps.end_wait(account.flow, &ticket);
        }
    }

    /// The demand for rates that other servers may share (RL-6).
    pub(crate) fn rates(&mut self, now: Instant) -> Vec<RateLoad> {
        let mut loads = Vec::new();
        for accounts in self.schemas.iter_mut().filter(|accounts| accounts.rate.is_some()) {
            let mut flows = Vec::new();
            let is_cut_short = !accounts.stamps.demands(now, &mut flows);
            if !flows.is_empty() || is_cut_short {
                let flows = flows.into_iter().collect();
                loads.push(RateLoad { schema: accounts.name.to_string(), flows, is_cut_short });
            }
        }
        loads.sort_by(|one, other| one.schema.cmp(&other.schema));
        loads
    }

    /// From now on flows have these parts of their rates.
    pub(crate) fn share_rates(&mut self, shares: &RateShares, now: Instant) {
        let nothing = BTreeMap::new();
        for accounts in self.schemas.iter_mut().filter(|accounts| accounts.rate.is_some()) {
            accounts.stamps.share(shares.instances, now);
            if shares.is_apart {
                accounts.stamps.keep_apart(now);
            } else {
                accounts.stamps.set_parts(shares.parts.get(&*accounts.name).unwrap_or(&nothing), now);
            }
        }
    }

    /// The request has waited for seats, and starts: how many it should have by what is known by now, if they are others.
    pub(crate) fn expect_anew(&mut self, id: AccountId) -> Option<u32> {
        let account = &mut self.requests[id.0 as usize];
        let accounts = &self.schemas[account.schema];
        accounts.unit.as_ref()?;
        account.state.set_price(accounts.price_per_unit());
        let expected = self.learnt.get_mut(&accounts.level)?.expected(&account.class)?;
        account.state.expect_anew(expected.cost)
    }

    /// The request has got so many seats when it started.
    pub(crate) fn set_seats(&mut self, id: AccountId, now: Instant, seats: u32) {
        self.requests[id.0 as usize].state.set_seats(now, now, seats);
    }

    /// The request has ended: what remains to be charged.
    pub(crate) fn settle(&mut self, id: AccountId, started: Instant, now: Instant) -> Settlement {
        let account = &mut self.requests[id.0 as usize];
        let accounts = &self.schemas[account.schema];
        account.state.set_price(accounts.price_per_unit());
        let cost = match accounts.unit {
            #[expect(clippy::cast_precision_loss, reason = "a time")]
            Some(CostUnit::Time) => (now - started).max(0) as f64 / SECOND as f64,
            _ => account.cost.unwrap_or(account.state.expected()),
        };
        account.state.end_with(cost);
        account.state.settle(started, now)
    }

    /// The actual cost replaces the assumed one (CO-5, RL-3).
    pub(crate) fn close(&mut self, id: AccountId, settlement: &Settlement, has_failed: bool, now: Instant) {
        let account = self.requests[id.0 as usize];
        let accounts = &mut self.schemas[account.schema];
        let is_known = account.cost.is_some() || accounts.unit == Some(CostUnit::Time);
        if !has_failed && is_known && accounts.unit.is_some() {
            if let Some(learnt) = self.learnt.get_mut(&accounts.level) {
                learnt.learn(&account.class, settlement.cost);
            }
            if accounts.charges {
                accounts.price.learn(settlement.seat_time, settlement.cost);
            }
        }
        #[expect(clippy::cast_possible_truncation, reason = "such a cast stays within bounds")]
        let cost = settlement.cost.round() as i64;
        accounts.correct_cost(&account, cost, now);
        self.free.push(id.0);
    }

    /// The request never ran, but had waited for seats: it gives back what it took of a rate of costs.
    pub(crate) fn abandon(&mut self, id: AccountId, now: Instant) {
        let account = self.requests[id.0 as usize];
        self.schemas[account.schema].correct_cost(&account, 0, now);
        self.free.push(id.0);
    }

    /// The request was rejected when it arrived or while it waited for its rate, and gives back what it took of that.
    pub(crate) fn refuse(&mut self, id: AccountId, now: Instant) {
        let account = self.requests[id.0 as usize];
        if let SchemaAccounts { rate: Some(flow_rate), stamps, .. } = &mut self.schemas[account.schema] {
            match &account.ticket {
                Some(ticket) => stamps.leave_wait(&flow_rate.limit, account.flow, account.taken, ticket, now),
                None if account.taken > 0 => {
                    let taken = i64::try_from(account.taken).unwrap_or(i64::MAX);
                    stamps.correct(&flow_rate.limit, account.flow, -taken, now);
                }
                None => {}
            }
        }
        self.free.push(id.0);
    }
}

// === impl SchemaAccounts ===

impl SchemaAccounts {
    /// The seat-nanoseconds that a flow is charged for each unit, if it is charged by the cost and that is known.
    fn price_per_unit(&self) -> Option<f64> {
        if self.charges { self.price.per_unit() } else { None }
    }

    /// Replaces the assumed cost that a request took of the rate by the actual one.
    fn correct_cost(&mut self, account: &RequestAccount, cost: i64, now: Instant) {
        if let Some(flow_rate) = self.rate.filter(|flow_rate| flow_rate.rate.unit != RateUnit::Requests) {
            let taken = i64::try_from(account.taken).unwrap_or(i64::MAX);
            self.stamps.correct(&flow_rate.limit, account.flow, cost.saturating_sub(taken), now);
        }
    }
}

/// The `Retry-After` for a client whose request would conform after that time.
pub(crate) fn retry_after(wait: Nanos) -> Nanos {
    ((wait + SECOND - 1) / SECOND).max(1) * SECOND
}
