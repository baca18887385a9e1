//! The rates of flows: what an instance publishes of its demand for them, and the parts that follow from what all publish (RL-6).

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_engine::rate::{RateDemand, RatePart, rate_parts};
use evenkeel_engine::time::Instant;

use crate::ledger::InstanceId;
use crate::settings::FleetSettings;
use crate::silence::Silences;
use crate::view::FleetView;

/// How many flows an instance lists at most, of all flow schemas together. Others have an equal part of their rates.
pub const RATES_LISTED_MAX: usize = 64;

/// The demand of one instance for the rates of the flows of one flow schema.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RateLoad {
    /// The name of the flow schema.
    pub schema: String,
    /// Flows for which an equal part of the rate is too little here, or that others list, and their demands in 65,536ths of the rate.
    pub flows: BTreeMap<u64, u64>,
    /// Whether there are others like these, for which there was no place.
    pub is_cut_short: bool,
}

/// The parts of rates that an instance has.
///
/// Not `#[non_exhaustive]`: simulations and tests make it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateShares {
    /// How many instances have requests, this one among them. A flow that nobody lists has an equal part of its rate on each of them.
    pub instances: usize,
    /// Whether this instance cannot hear the others: no flow has more than an equal part then.
    pub is_apart: bool,
    /// By flow schemas, the flows that some instance lists, and the parts that they have here.
    pub parts: BTreeMap<String, BTreeMap<u64, RatePart>>,
}

/// A demand that is published anew at once differs by more than an eighth, and by more than this.
const SMALL_CHANGE: u64 = 65_536 / 64;

// === impl RateShares ===

impl RateShares {
    /// The parts of this instance by what is published. An instance that has been silent for so long that others have its grant does not
    /// count any more; who is cut off, as this one may be, cannot tell, and counts all.
    pub(crate) fn of(
        view: &FleetView,
        silences: &Silences,
        settings: &FleetSettings,
        me: Option<InstanceId>,
        is_apart: bool,
        now: Instant,
    ) -> Self {
        let is_lost = |id: InstanceId| silences.of(now, id) >= settings.terms.grant_reclaimed_after();
        let present: Vec<_> = view.ids().filter(|id| Some(*id) == me || is_apart || !is_lost(*id)).collect();
        let at = me.and_then(|me| present.iter().position(|id| *id == me));
        let (Some(at), false) = (at, is_apart) else {
            // If it is not registered, others do not know of it.
            let instances = present.len() + usize::from(at.is_none());
            return Self { instances, is_apart: true, parts: BTreeMap::new() };
        };
        let published: Vec<Option<&Arc<Vec<RateLoad>>>> = present
            .iter()
            .map(|id| view.live(*id).and_then(|live| live.publication.as_ref()).map(|publication| &publication.rates))
            .collect();
        let mut parts: BTreeMap<String, BTreeMap<u64, RatePart>> = BTreeMap::new();
        for load in published.iter().flatten().flat_map(|loads| loads.iter()) {
            for flow in load.flows.keys() {
                let known = parts.entry(load.schema.clone()).or_default();
                if !known.contains_key(flow) {
                    let demands: Vec<RateDemand> =
                        published.iter().map(|loads| demand_of(*loads, &load.schema, *flow)).collect();
                    known.insert(*flow, rate_parts(&demands)[at]);
                }
            }
        }
        Self { instances: present.len(), is_apart: false, parts }
    }
}

fn demand_of(loads: Option<&Arc<Vec<RateLoad>>>, schema: &str, flow: u64) -> RateDemand {
    let Some(loads) = loads else { return RateDemand::Unknown };
    let Some(load) = loads.iter().find(|load| load.schema == schema) else { return RateDemand::Known(0) };
    match load.flows.get(&flow) {
        Some(demand) => RateDemand::Known(*demand),
        None if load.is_cut_short => RateDemand::Unknown,
        None => RateDemand::Known(0),
    }
}

/// Keeps the greatest demands of all schemas, as many as are published.
pub(crate) fn keep_greatest(loads: &mut Vec<RateLoad>) {
    let listed: usize = loads.iter().map(|load| load.flows.len()).sum();
    if listed > RATES_LISTED_MAX {
        let mut all: Vec<(u64, usize, u64)> = loads
            .iter()
            .enumerate()
            .flat_map(|(at, load)| load.flows.iter().map(move |(flow, demand)| (*demand, at, *flow)))
            .collect();
        all.sort_unstable_by(|one, other| other.cmp(one));
        for (_, at, flow) in all.drain(RATES_LISTED_MAX..) {
            loads[at].flows.remove(&flow);
            loads[at].is_cut_short = true;
        }
    }
    loads.retain(|load| !load.flows.is_empty() || load.is_cut_short);
}

/// Whether demands differ from the published ones by so much that others should know.
pub(crate) fn differ(published: &[RateLoad], now: &[RateLoad]) -> bool {
    let is_like = |before: u64, after: u64| before.abs_diff(after) <= (after / 8).max(SMALL_CHANGE);
    published.len() != now.len()
        || published.iter().zip(now).any(|(before, after)| {
            (&before.schema, before.is_cut_short) != (&after.schema, after.is_cut_short)
                || !before.flows.keys().eq(after.flows.keys())
                || before.flows.iter().any(|(flow, demand)| !is_like(*demand, after.flows[flow]))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Ledger, LedgerEntry, ProcessNonce};
    use crate::publication::Publication;
    use crate::settings::Terms;
    use crate::view::{LedgerKey, LiveKey, WatchedChange};

    fn load(schema: &str, flows: &[(u64, u64)]) -> RateLoad {
        RateLoad { schema: schema.to_owned(), flows: flows.iter().copied().collect(), is_cut_short: false }
    }

    fn view(published: Vec<Option<Vec<RateLoad>>>) -> FleetView {
        let mut view = FleetView::default();
        for (id, rates) in (1..).zip(published) {
            let load = Arc::default();
            let publication = rates.map(|rates| Publication {
                ack: 0,
                hold: 0,
                is_draining: false,
                load,
                totals: None,
                is_held_down: false,
                rates: Arc::new(rates),
            });
            let live = LiveKey { id: InstanceId(id), create_revision: id, mod_revision: id, publication };
            view.change(WatchedChange::Live(live));
        }
        view
    }

    fn part(view: &FleetView, me: u64, flow: u64) -> Option<f64> {
        let shares = RateShares::of(
            view,
            &Silences::default(),
            &FleetSettings::default(),
            Some(InstanceId(me)),
            false,
            Instant::default(),
        );
        shares.parts.get("keys").and_then(|parts| parts.get(&flow)).map(|part| part.as_f64())
    }

    #[test]
    fn rl_6_every_instance_has_the_part_of_its_demand() {
        let one = vec![load("keys", &[(1, 90), (2, 7)]), load("other", &[(5, 1)])];
        let view = view(vec![Some(one), Some(vec![load("keys", &[(1, 10)])]), Some(Vec::new())]);
        let parts = |flow| [1, 2, 3].map(|me| part(&view, me, flow).map(|part| (part * 1000.0).round()));
        assert_eq!(parts(1), [Some(900.0), Some(100.0), Some(0.0)]);
        assert_eq!(parts(2), [Some(1000.0), Some(0.0), Some(0.0)], "the only one that sees it");
        assert_eq!(parts(3), [None; 3], "nobody lists it");
    }

    #[test]
    fn rl_6_an_instance_of_which_nothing_is_known_has_an_equal_part() {
        let crowded = RateLoad { is_cut_short: true, ..load("keys", &[(9, 1)]) };
        let view = view(vec![Some(vec![load("keys", &[(1, 90)])]), Some(vec![crowded]), None]);
        let parts = [1, 2, 3].map(|me| part(&view, me, 1).unwrap());
        assert!(parts.iter().all(|part| (part - 1.0 / 3.0).abs() < 1e-3), "{parts:?}");
        let shares =
            |me| RateShares::of(&view, &Silences::default(), &FleetSettings::default(), me, false, Instant::default());
        assert_eq!((shares(Some(InstanceId(1))).instances, shares(None).instances), (3, 4));
        assert!(shares(None).is_apart);
    }

    #[test]
    fn rl_6_who_is_silent_for_long_counts_no_more_but_for_one_that_is_cut_off() {
        let mut view = view(vec![Some(vec![load("keys", &[(1, 50)])]), Some(vec![load("keys", &[(1, 50)])])]);
        let mut ledger = Ledger::new(&FleetSettings::default());
        for number in [1, 2] {
            let (process, id, terms) = (ProcessNonce(number), InstanceId(number), Terms::default());
            ledger.entries.push(LedgerEntry { process, id, terms, grant: 9, hold: 9, floor: 0, floor_held: 0, low: 1 });
        }
        view.change(WatchedChange::Ledger(LedgerKey::Written { revision: 10, ledger: Arc::new(ledger) }));
        let (mut silences, start, me) = (Silences::default(), Instant::default(), Some(InstanceId(1)));
        silences.receive(start, &view, me, None);
        let shares = |is_apart, now| RateShares::of(&view, &silences, &FleetSettings::default(), me, is_apart, now);
        let late = start + Terms::default().grant_reclaimed_after();
        assert_eq!(shares(false, start).parts["keys"][&1], RatePart::one_of(2));
        assert_eq!((shares(false, late).instances, shares(false, late).parts["keys"][&1]), (1, RatePart::WHOLE));
        assert_eq!((shares(true, late).instances, shares(true, late).parts.len()), (2, 0));
    }

    #[test]
    fn rl_6_the_greatest_demands_are_published() {
        let flows: Vec<(u64, u64)> = (0..100).map(|flow| (flow, flow + 1)).collect();
        let mut loads = vec![load("keys", &flows), load("small", &[(7, 1)])];
        keep_greatest(&mut loads);
        assert_eq!((loads[0].flows.len(), loads[0].flows.first_key_value()), (64, Some((&36, &37))));
        assert!(loads.iter().all(|load| load.is_cut_short));
        assert!(loads[1].flows.is_empty());
    }

    #[test]
    fn rl_6_small_changes_are_not_published_at_once() {
        let before = [load("keys", &[(1, 65_536)])];
        assert!(!differ(&before, &[load("keys", &[(1, 70_000)])]));
        assert!(differ(&before, &[load("keys", &[(1, 80_000)])]));
        assert!(differ(&before, &[load("keys", &[(1, 65_536), (2, 1)])]));
        assert!(differ(&before, &[]));
    }
}
