//! The bars of costs and rates in the simulator: what learning what requests cost is good for, with one seed.

#[path = "../tests/costed_objects/mod.rs"]
mod costed_objects;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use evenkeel_api::Preset;
use evenkeel_bars::{Bar, Bars};
use evenkeel_engine::time::{MILLISECOND, Nanos, SECOND};
use evenkeel_engine::{Attributes, RequestInfo, User, WorkEstimate};
use evenkeel_sim::workload::{Draws, Workload};
use evenkeel_sim::{AccountKey, Class, End, NewRequest, Outcome, Outcomes, ServerSettings, Simulator, jain};

use costed_objects::costed_objects;

const SEED: u64 = 29;
/// Dear requests cost this much, and all others 1.
const DEAR: f64 = 40.0;

const LEARNT: &str = "evenkeel.dev/cost: 'header:X-Cost', evenkeel.dev/seats: learnt, evenkeel.dev/cost-per-seat: '1', \
                      evenkeel.dev/seats-max: '100'";

/// Who sends requests: the part of them that is dear, and so many a second or always so many under way.
#[derive(Clone, Copy)]
struct Client {
    dear: f64,
    load: Load,
}

#[derive(Clone, Copy)]
enum Load {
    PerSecond(f64),
    UnderWay(u32),
}

#[derive(Debug, Clone, Copy)]
struct Token {
    client: usize,
    cost: f64,
}

/// The clients, and what came of their requests.
struct Crowd {
    clients: Vec<Client>,
    draws: Vec<Draws>,
    workload: Workload,
    arrivals: BinaryHeap<Reverse<(Nanos, u64, usize)>>,
    sequence: u64,
    units: f64,
    /// Each change of the units in flight.
    units_at: Vec<(Nanos, f64)>,
    /// When each request ended, of whom, its cost and how long it took.
    ended: Vec<(Nanos, usize, f64, Nanos)>,
}

fn main() {
    let mut bars = Bars::filtered(std::env::args().skip(1));
    let overload = |annotations| {
        // 1.3 times what 100 units can do in 100 ms each, at 2.95 units a request.
        let clients = vec![Client { dear: 0.05, load: Load::PerSecond(1.3 * 1000.0 / 8.0 / 2.95) }; 8];
        100.0 * run(annotations, clients, 90).time_above(110.0, 30 * SECOND)
    };
    let name = "cost: time with more than 110 of 100 units in flight, nothing learnt";
    bars.measure(name, "%", || (overload(""), Bar::None));
    bars.measure("cost: the same, learnt, after 30 s", "%", || (overload(LEARNT), Bar::AtMost(1.0, "%")));
    let fairness = |annotations| {
        let client = |index: u32| Client { dear: 0.02 * f64::from(index), load: Load::UnderWay(60) };
        run(annotations, (0..8).map(client).collect(), 130).jain_min(30 * SECOND, 10 * SECOND)
    };
    let name = "cost: fairness of cost among 8 flows of different mixes (Jain, worst window of 10 s), nothing learnt";
    bars.measure(name, "", || (fairness(""), Bar::None));
    bars.measure("cost: the same, learnt", "", || (fairness(LEARNT), Bar::AtLeast(0.99, "")));
    let cheap_p99 = |dear: usize| {
        let mut clients = vec![Client { dear: 0.0, load: Load::PerSecond(50.0) }; 4];
        clients.extend(vec![Client { dear: 1.0, load: Load::UnderWay(20) }; dear]);
        run(LEARNT, clients, 120).latency(4, 30 * SECOND, 0.99)
    };
    bars.measure("cost: p99 of cheap flows alone", "ms", || (cheap_p99(0), Bar::None));
    bars.measure("cost: the same beside 4 dear flows that always have more", "ms", || {
        (cheap_p99(4), Bar::AtMost(1.5 * cheap_p99(0), "ms"))
    });
    bars.measure("cost: a rate of 100/s at 1.2 × Poisson for 60 s: off the rate, nothing rejected", "%", || {
        let clients = vec![Client { dear: 0.0, load: Load::PerSecond(120.0) }];
        let crowd = run("evenkeel.dev/rate: 100/s;burst=10, evenkeel.dev/cost: time", clients, 60);
        #[expect(clippy::cast_precision_loss, reason = "some thousand")]
        let completed = crowd.ended.len() as f64;
        (100.0 * (completed / 6000.0 - 1.0).abs(), Bar::AtMost(0.5, "%"))
    });
    bars.print("Costs and rates in the simulator");
}

/// Lets the clients send requests for so many seconds, to a service that can hold 100 units.
fn run(annotations: &str, clients: Vec<Client>, seconds: i64) -> Crowd {
    let mut settings = ServerSettings::new(100);
    settings.preset = Preset::Plain;
    let mut simulator =
        Simulator::new(settings, costed_objects(annotations, "{type: ByUser}", "{queueLengthLimit: 200}"));
    let mut crowd = Crowd::new(clients);
    let classes: Vec<[(Class, AccountKey); 2]> = (0..crowd.clients.len())
        .map(|client| ["/row", "/report"].map(|path| classify(&simulator, client, path)))
        .collect();
    let until = seconds * SECOND;
    loop {
        let arrival = crowd.arrivals.peek().map_or(Nanos::MAX, |Reverse((at, ..))| *at);
        if simulator.step(arrival.min(until), &mut crowd) {
            continue;
        }
        let Some(Reverse((at, _, client))) = crowd.arrivals.pop().filter(|Reverse((at, ..))| *at < until) else {
            break;
        };
        let (service, is_dear) = crowd.arrive(at, client);
        let ((class, key), cost) = (classes[client][usize::from(is_dear)], if is_dear { DEAR } else { 1.0 });
        let new = NewRequest::new(Token { client, cost }, service, WorkEstimate::ONE_SEAT);
        simulator.arrive(at, class, new.patience(60 * SECOND).cost(Some(cost), key), &mut crowd);
    }
    simulator.run_until(until, &mut crowd);
    crowd.units_at.push((until, crowd.units));
    crowd
}

fn classify(simulator: &Simulator<Token>, client: usize, path: &'static str) -> (Class, AccountKey) {
    let (user, request) = (User::new(format!("client-{client}"), ["tenants"]), RequestInfo::for_path("get", path));
    let attributes = Attributes { user: &user, request: &request };
    let class = simulator.classify(attributes);
    (class, simulator.account_key(attributes, class))
}

// === impl Crowd ===

/// What clients draw from: how long the service takes, and in thousandths whether a request is dear.
const DRAWN: &str = "
apiVersion: evenkeel.dev/v1
kind: Workload
metadata: {name: drawn}
spec:
  seconds: 1
  flows:
  - {name: client, arrivals: {poisson: {rate: 1}}, service: {lognormal: {median: 95ms, sigma: 0.3}, cost: {uniform: [0, 999]}}}
";

impl Crowd {
    fn new(clients: Vec<Client>) -> Self {
        let workload = Workload::parse("drawn", DRAWN.as_bytes(), Preset::Plain).expect("a workload");
        let draws = (0..).take(clients.len()).map(|client| Draws::new(SEED, &workload.flows[0], client)).collect();
        let (units_at, ended) = (Vec::new(), Vec::new());
        let mut crowd =
            Self { clients, draws, workload, arrivals: BinaryHeap::new(), sequence: 0, units: 0.0, units_at, ended };
        for client in 0..crowd.clients.len() {
            match crowd.clients[client].load {
                Load::PerSecond(_) => crowd.schedule_next(0, client),
                Load::UnderWay(count) => (0..count).for_each(|_| crowd.schedule(0, client)),
            }
        }
        crowd
    }

    fn schedule(&mut self, at: Nanos, client: usize) {
        self.sequence += 1;
        self.arrivals.push(Reverse((at, self.sequence, client)));
    }

    fn schedule_next(&mut self, now: Nanos, client: usize) {
        if let Load::PerSecond(rate) = self.clients[client].load {
            let mut group = self.workload.flows[0].clone();
            (group.arrivals, group.to) = (evenkeel_sim::workload::Arrivals::Poisson { rate }, Nanos::MAX);
            if let Some(at) = self.draws[client].next_arrival(&group, now) {
                self.schedule(at, client);
            }
        }
    }

    /// A request of a client arrives: how long it takes, and whether it is dear.
    fn arrive(&mut self, now: Nanos, client: usize) -> (Nanos, bool) {
        self.schedule_next(now, client);
        let (draws, group) = (&mut self.draws[client], &self.workload.flows[0]);
        #[expect(clippy::cast_precision_loss, reason = "below a thousand")]
        let part = draws.cost(group) as f64 / 1000.0;
        (draws.service(group), part < self.clients[client].dear)
    }

    /// The part of the time after `from` with more units in flight.
    fn time_above(&self, units: f64, from: Nanos) -> f64 {
        let spans = self.units_at.windows(2).filter(|pair| pair[0].1 > units);
        let above: Nanos = spans.map(|pair| (pair[1].0 - pair[0].0.max(from)).max(0)).sum();
        let last = self.units_at.last().map_or(from, |(at, _)| *at);
        #[expect(clippy::cast_precision_loss, reason = "spans of seconds")]
        let part = above as f64 / (last - from) as f64;
        part
    }

    /// How evenly the clients were served by cost, in the least even window after `from`.
    fn jain_min(&self, from: Nanos, width: Nanos) -> f64 {
        let index = |at: Nanos| usize::try_from((at - from) / width).unwrap_or(0);
        let last = self.units_at.last().map_or(from, |(at, _)| *at);
        let mut windows = vec![vec![0.0; self.clients.len()]; index(last)];
        for (at, client, cost, _) in self.ended.iter().filter(|(at, ..)| *at >= from) {
            if let Some(window) = windows.get_mut(index(*at)) {
                window[*client] += cost;
            }
        }
        windows.iter().filter_map(|window| jain(window.iter().copied())).fold(1.0, f64::min)
    }

    /// The latency of the first clients after `from`, in milliseconds.
    fn latency(&self, clients: usize, from: Nanos, quantile: f64) -> f64 {
        let of_them = self.ended.iter().filter(|(at, client, ..)| *at >= from && *client < clients);
        let mut times: Vec<Nanos> = of_them.map(|(.., took)| *took).collect();
        times.sort_unstable();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a rank"
        )]
        let rank = (times.len() as f64 * quantile) as usize;
        #[expect(clippy::cast_precision_loss, reason = "milliseconds")]
        let took = times[rank.min(times.len() - 1)] as f64 / MILLISECOND as f64;
        took
    }
}

impl Outcomes<Token> for Crowd {
    fn started(&mut self, now: Nanos, token: &mut Token, _seats: u32) {
        self.units += token.cost;
        self.units_at.push((now, self.units));
    }

    fn ended(&mut self, outcome: Outcome<Token>) {
        let Outcome { token: Token { client, cost }, arrived, ended: now, .. } = outcome;
        let is_under_way = matches!(self.clients[client].load, Load::UnderWay(_));
        match outcome.end {
            End::Completed { .. } => {
                self.units -= cost;
                self.units_at.push((now, self.units));
                self.ended.push((now, client, cost, now - arrived));
                if is_under_way {
                    self.schedule(now, client);
                }
            }
            End::Rejected { .. } | End::TimedOut { .. } if is_under_way => self.schedule(now + SECOND / 10, client),
            End::Rejected { .. } | End::TimedOut { .. } => {}
        }
    }
}
