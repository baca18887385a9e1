//! Flows of the last minute, and who delayed whom, from dumps of requests (AT-1, AT-2).
//!
//! A dump shows one moment: each request that waits is delayed by those that hold the seats of its level, each as much as it
//! holds. Summed over the dumps of a minute, weighted with the time between them, this estimates the integral of AT-2.

use std::collections::{BTreeMap, HashMap, VecDeque};

use evenkeel_gateway::observe::frame::{Delay, Flow, rounded};

use super::dump::Request;

/// The moments of the last minute.
#[derive(Debug, Default)]
pub(super) struct Attribution {
    moments: VecDeque<Moment>,
}

/// The content of a dump.
#[derive(Debug)]
struct Moment {
    seconds: f64,
    levels: HashMap<String, LevelMoment>,
}

/// A level as a dump showed it.
#[derive(Debug, Default)]
struct LevelMoment {
    flows: HashMap<FlowKey, Held>,
    /// All flows that are too light to be kept.
    others: Held,
}

/// Schema and distinguisher.
type FlowKey = (String, String);

/// The seats and waiting requests of a flow at a moment.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    seats: f64,
    waiting: f64,
}

/// The heaviest flows of a level, and who delays whom.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct LevelFlows {
    pub(super) flows: Vec<Flow>,
    pub(super) delays: Vec<Delay>,
}

const SECONDS_KEPT: f64 = 60.0;
const MOMENTS_MAX: usize = 120;
const FLOWS_SHOWN: usize = 20;
const DELAYS_SHOWN: usize = 40;
/// The most flows of all levels that are kept of a moment, the heaviest ones: clients can make up names.
const FLOWS_KEPT: usize = 2000;

// === impl Attribution ===

impl Attribution {
    /// Takes in a dump that stands for that many seconds.
    pub(super) fn push(&mut self, requests: &[Request], seconds: f64) {
        self.moments.push_back(Moment::new(requests, seconds.max(0.0)));
        while self.moments.len() > MOMENTS_MAX || (self.moments.len() > 1 && self.seconds() > SECONDS_KEPT) {
            self.moments.pop_front();
        }
    }

    /// Forgets everything: another server responds.
    pub(super) fn clear(&mut self) {
        self.moments.clear();
    }

    /// The flows of all levels that have any.
    pub(super) fn levels(&self) -> BTreeMap<String, LevelFlows> {
        let names: std::collections::BTreeSet<_> =
            self.moments.iter().flat_map(|moment| moment.levels.keys()).collect();
        names.into_iter().map(|name| (name.clone(), self.level(name))).collect()
    }

    fn level(&self, name: &str) -> LevelFlows {
        let moments = || self.moments.iter().filter_map(|moment| Some((moment.seconds, moment.levels.get(name)?)));
        let mut sums = HashMap::<&FlowKey, Held>::new();
        for (seconds, flows) in moments() {
            for (key, held) in &flows.flows {
                let sum = sums.entry(key).or_default();
                sum.seats += held.seats * seconds;
                sum.waiting += held.waiting * seconds;
            }
        }
        let mut sorted: Vec<_> = sums.into_iter().collect();
        sorted.sort_by(|(a_key, a), (b_key, b)| b.weight().total_cmp(&a.weight()).then_with(|| a_key.cmp(b_key)));
        sorted.truncate(FLOWS_SHOWN);
        let shown: HashMap<&FlowKey, usize> = sorted.iter().enumerate().map(|(at, (key, _))| (*key, at)).collect();
        let seconds = self.seconds().max(f64::MIN_POSITIVE);
        let flow = |(key, sum): &(&FlowKey, Held)| Flow {
            schema: key.0.clone(),
            distinguisher: key.1.clone(),
            seats: rounded(sum.seats / seconds),
            waiting: rounded(sum.waiting / seconds),
            ..Flow::default()
        };
        LevelFlows { flows: sorted.iter().map(flow).collect(), delays: delays(moments(), &shown) }
    }

    fn seconds(&self) -> f64 {
        self.moments.iter().map(|moment| moment.seconds).sum()
    }
}

/// Who delayed whom, the longest delay first.
fn delays<'a>(moments: impl Iterator<Item = (f64, &'a LevelMoment)>, shown: &HashMap<&FlowKey, usize>) -> Vec<Delay> {
    let mut sums = BTreeMap::<(usize, Option<usize>), f64>::new();
    let mut all = 0.0;
    for (seconds, LevelMoment { flows, others }) in moments {
        let seats = others.seats + flows.values().map(|held| held.seats).sum::<f64>();
        all += others.waiting * seconds;
        for (flow, held) in flows.iter().filter(|(_, held)| held.waiting > 0.0) {
            let wait_seconds = held.waiting * seconds;
            all += wait_seconds;
            let Some(waiter) = shown.get(flow).copied() else { continue };
            let mut blame = |by, part: f64| {
                if part > 0.0 {
                    *sums.entry((waiter, by)).or_default() += wait_seconds * part;
                }
            };
            // No flow is to blame where no seat is held: the seats may have changed hands while the dump was written.
            blame(None, if seats > 0.0 { others.seats / seats } else { 1.0 });
            for (by, holder) in flows {
                blame(shown.get(by).copied(), holder.seats / seats.max(f64::MIN_POSITIVE));
            }
        }
    }
    let share = |seconds: f64| if all > 0.0 { seconds / all } else { 0.0 };
    let mut delays: Vec<_> = sums
        .into_iter()
        .map(|((waiter, by), seconds)| Delay { waiter, by, seconds: rounded(seconds), share: rounded(share(seconds)) })
        .collect();
    delays.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    delays.truncate(DELAYS_SHOWN);
    delays
}

#[expect(clippy::cast_precision_loss, reason = "a request has few seats")]
fn seats(number: u64) -> f64 {
    number as f64
}

// === impl Moment ===

impl Moment {
    fn new(requests: &[Request], seconds: f64) -> Self {
        let mut flows = HashMap::<(&str, &str, &str), Held>::new();
        for request in requests {
            let held = flows.entry((&request.level, &request.schema, &request.flow)).or_default();
            if request.is_waiting {
                held.waiting += 1.0;
            } else {
                held.seats += seats(request.seats);
            }
        }
        let mut sorted: Vec<_> = flows.into_iter().collect();
        sorted.sort_by(|(a_key, a), (b_key, b)| b.weight().total_cmp(&a.weight()).then_with(|| a_key.cmp(b_key)));
        let mut levels = HashMap::<String, LevelMoment>::new();
        for (at, ((level, schema, flow), held)) in sorted.into_iter().enumerate() {
            let level = levels.entry(level.to_owned()).or_default();
            if at < FLOWS_KEPT {
                level.flows.insert((schema.to_owned(), flow.to_owned()), held);
            } else {
                level.others.seats += held.seats;
                level.others.waiting += held.waiting;
            }
        }
        Self { seconds, levels }
    }
}

// === impl Held ===

impl Held {
    fn weight(self) -> f64 {
        self.seats + self.waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(flow: &str, seats: u64) -> Request {
        let (level, schema) = ("low".to_owned(), "s".to_owned());
        Request { level, schema, flow: flow.to_owned(), seats, is_waiting: false }
    }

    fn waits(flow: &str) -> Request {
        Request { is_waiting: true, ..runs(flow, 1) }
    }

    #[test]
    fn at_2_those_who_hold_the_seats_delay_those_who_wait() {
        let mut attribution = Attribution::default();
        // For 3 s, `greedy` holds 3 of 4 seats and waits with two requests, `polite` with one.
        let requests = [runs("greedy", 3), runs("other", 1), waits("greedy"), waits("greedy"), waits("polite")];
        attribution.push(&requests, 3.0);
        // For 1 s, nobody waits.
        attribution.push(&[runs("other", 4)], 1.0);
        let LevelFlows { flows, delays } = attribution.levels().remove("low").unwrap();
        let named: Vec<_> = flows.iter().map(|flow| (flow.distinguisher.as_str(), flow.seats, flow.waiting)).collect();
        assert_eq!(named, [("greedy", 2.25, 1.5), ("other", 1.75, 0.0), ("polite", 0.0, 0.75)]);
        let delay = |waiter, by, seconds, share| Delay { waiter, by: Some(by), seconds, share };
        assert_eq!(
            delays,
            [delay(0, 0, 4.5, 0.5), delay(2, 0, 2.25, 0.25), delay(0, 1, 1.5, 0.167), delay(2, 1, 0.75, 0.0833),]
        );
    }

    #[test]
    fn a_minute_is_kept_and_flows_are_bounded() {
        let mut attribution = Attribution::default();
        attribution.push(&[runs("old", 5)], 5.0);
        let many: Vec<_> = (0..FLOWS_KEPT + 100).map(|number| runs(&format!("f{number}"), 1)).collect();
        attribution.push(&[many, vec![waits("old"), waits("old")]].concat(), 1.0);
        assert!(attribution.moments[1].levels["low"].flows.len() <= FLOWS_KEPT);
        let LevelFlows { flows, delays } = attribution.level("low");
        assert_eq!((flows.len(), flows[0].distinguisher.as_str()), (FLOWS_SHOWN, "old"));
        // It waits behind flows of which nearly all are not shown, and a hundred not even kept.
        assert_eq!((delays[0].waiter, delays[0].by), (0, None));
        assert!(delays[0].share > 0.98 && delays.iter().map(|delay| delay.seconds).sum::<f64>() <= 2.001, "{delays:?}");
        for _ in 0..60 {
            attribution.push(&[runs("new", 1), waits("new")], 1.0);
        }
        assert_eq!(attribution.moments.len(), 60);
        let LevelFlows { flows, delays } = attribution.level("low");
        assert_eq!((flows.len(), flows[0].distinguisher.as_str()), (1, "new"));
        assert_eq!(delays, [Delay { waiter: 0, by: Some(0), seconds: 60.0, share: 1.0 }]);
    }
}
