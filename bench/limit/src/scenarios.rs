//! The scenarios that the limit is judged by.

use evenkeel_engine::auto_limit::Learnt;
use evenkeel_engine::elementary::ln;
use evenkeel_sim::AutoSettings;

use crate::environment::{Environment, Steps};
use crate::run::Seats;

/// A service under load, and where the limit starts.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// What it is called.
    pub name: &'static str,
    /// The service and its load.
    pub environment: Environment,
    /// How many seconds are simulated, and from when to when they count.
    pub span: f64,
    /// See `span`.
    pub from: f64,
    /// See `span`.
    pub to: f64,
    /// Where the limit starts, and whether an earlier run has found it there.
    pub start: f64,
    /// See `start`.
    pub is_learnt: bool,
    /// The best fixed limit.
    pub right: Steps,
}

/// A learnt limit, at 1.4, 3 and 10 times the capacity.
pub fn learnt() -> [Scenario; 3] {
    [("learnt, 1.4 x", 1.4), ("learnt, 3 x", 3.0), ("learnt, 10 x", 10.0)]
        .map(|(name, load)| Scenario::new(name, Environment::collapse().load(load), 60.0, 20.0).learnt())
}

/// A limit that starts at half of what is right, at the same loads.
pub fn learning() -> [Scenario; 3] {
    [("learning from 10, 1.4 x", 1.4), ("learning from 10, 3 x", 3.0), ("learning from 10, 10 x", 10.0)]
        .map(|(name, load)| Scenario::new(name, Environment::collapse().load(load), 60.0, 10.0))
}

/// A limit that starts at a tenth of what is right, at ten times the capacity.
pub fn from_low() -> Scenario {
    Scenario::new("from 2, 10 x", Environment::collapse().load(10.0), 30.0, 2.0)
}

/// A limit that starts at ten times what is right, at ten times the capacity.
pub fn from_high() -> Scenario {
    Scenario::new("from 200, 10 x", Environment::collapse().load(10.0), 30.0, 200.0)
}

/// A limit that an earlier run has learnt, of which a tenth would be right.
pub fn stale() -> Scenario {
    Scenario::new("stale: learnt 200, right 20", Environment::collapse(), 30.0, 200.0).learnt()
}

/// The capacity is halved after 20 s, and comes back after 40 s.
pub fn halved() -> [Scenario; 2] {
    let slots = Steps::new(&[(0.0, 20.0), (20.0, 10.0), (40.0, 20.0)]);
    let environment = Environment { slots: slots.clone(), ..Environment::collapse() };
    [("capacity halved", 20.0, 40.0), ("capacity back", 40.0, 60.0)].map(|(name, from, to)| {
        let scenario = Scenario::new(name, environment.clone(), 60.0, 20.0).learnt();
        Scenario { right: slots.clone(), from, to, ..scenario }
    })
}

/// Requests of 10 ms become requests of 100 ms, of which the service does 200 at a time.
pub fn dearer_mix() -> [Scenario; 2] {
    [("10 → 100 ms, 200 slots, 1.4 x", 1.4), ("10 → 100 ms, 200 slots, 3 x", 3.0)].map(|(name, load)| {
        let slots = Steps::new(&[(0.0, 20.0), (20.0, 200.0)]);
        let work = Steps::new(&[(0.0, 0.01), (20.0, 0.1)]);
        let environment = Environment { slots: slots.clone(), work, ..Environment::collapse() };
        Scenario { right: slots, from: 20.0, ..Scenario::new(name, environment.load(load), 60.0, 20.0).learnt() }
    })
}

/// Requests take 90 ms elsewhere in addition, after 20 s.
pub fn elsewhere() -> [Scenario; 2] {
    let elsewhere = Steps::new(&[(0.0, 0.0), (20.0, 0.09)]);
    let environments = [
        ("+90 ms elsewhere, k servers", Environment::servers(), 220.0),
        ("+90 ms elsewhere, collapse", Environment::collapse(), 150.0),
    ];
    environments.map(|(name, environment, right)| {
        let environment = Environment { elsewhere: elsewhere.clone(), ..environment };
        let scenario = Scenario::new(name, environment, 60.0, 20.0).learnt();
        Scenario { right: Steps::new(&[(0.0, 20.0), (20.0, right)]), from: 20.0, ..scenario }
    })
}

/// Half an hour at three times the capacity.
pub fn half_an_hour() -> Scenario {
    Scenario::new("30 minutes at 3 x", Environment::collapse(), 1800.0, 20.0).learnt()
}

/// The load goes from half of the capacity to ten times after 10 s.
pub fn step() -> Scenario {
    let load = Steps::new(&[(0.0, 0.5), (10.0, 10.0)]);
    let environment = Environment { load, ..Environment::collapse() };
    Scenario { from: 10.0, ..Scenario::new("0.5 → 10 x", environment, 20.0, 20.0).learnt() }
}

/// A light load with times that vary a lot, on a service that collapses and on one that does not.
pub fn light() -> [Scenario; 2] {
    let servers = Environment { curve: Environment::servers().curve, ..Environment::noisy() };
    [("light noisy load, collapse", Environment::noisy()), ("light noisy load, k servers", servers)].map(
        |(name, environment)| {
            let scenario = Scenario::new(name, environment.load(0.7), 150.0, 29.0).learnt();
            Scenario { right: Steps::constant(29.0), from: 30.0, ..scenario }
        },
    )
}

/// Other services, for which there are figures and no bars.
pub fn others() -> Vec<Scenario> {
    let wide = Environment {
        slots: Steps::constant(200.0),
        capacity: 100_000.0,
        work: Steps::constant(0.002),
        ..Environment::collapse().load(1.4)
    };
    let wide =
        |name, start| Scenario { right: Steps::constant(200.0), ..Scenario::new(name, wide.clone(), 12.0, start) };
    vec![
        scalability(2.0),
        scalability(200.0),
        Scenario::new("k servers from 2, 3 x", Environment::servers(), 60.0, 2.0),
        wide("200 slots of 2 ms from 2", 2.0),
        wide("200 slots of 2 ms from 2000", 2000.0),
        noisy(10.0),
        noisy(2.0),
        slow(),
    ]
}

/// A service as the universal scalability law has it.
pub fn scalability(start: f64) -> Scenario {
    let name = if start < 20.0 { "scalability law from 2, 3 x" } else { "scalability law from 200, 3 x" };
    Scenario::new(name, Environment::scalability(), 60.0, start)
}

/// Times that vary a lot.
pub fn noisy(start: f64) -> Scenario {
    let name = if start < 10.0 { "noisy from 2, 3 x" } else { "noisy from 10, 3 x" };
    Scenario { right: Steps::constant(29.0), ..Scenario::new(name, Environment::noisy(), 60.0, start) }
}

/// Two slots of a second: there are two responses a second to learn from, half an hour long.
pub fn slow() -> Scenario {
    let environment = Environment {
        slots: Steps::constant(2.0),
        capacity: 2.0,
        work: Steps::constant(1.0),
        ..Environment::collapse()
    };
    let right = Steps::constant(2.0);
    Scenario { right, ..Scenario::new("2 slots of 1 s from 2, half an hour", environment, 1800.0, 2.0) }
}

/// A service that refuses requests above 24 inside, and does no more than 20 at a time.
pub fn refusing() -> Scenario {
    let mut environment = Environment::servers();
    environment.curve.refuses_above = Some(24);
    Scenario { from: 30.0, ..Scenario::new("refuses above 24, 3 x", environment, 60.0, 20.0).learnt() }
}

/// All requests fail from 20 s to 25 s.
pub fn all_failing() -> Scenario {
    let failing = Steps::new(&[(0.0, 0.0), (20.0, 1.0), (25.0, 0.0)]);
    let environment = Environment { failing, ..Environment::collapse() };
    Scenario { from: 25.0, ..Scenario::new("all failing for 5 s, 3 x", environment, 45.0, 20.0).learnt() }
}

// === impl Scenario ===

impl Scenario {
    fn new(name: &'static str, environment: Environment, span: f64, start: f64) -> Self {
        let right = Steps::constant(20.0);
        Self { name, environment, span, from: 0.0, to: span, start, is_learnt: false, right }
    }

    fn learnt(self) -> Self {
        Self { is_learnt: true, ..self }
    }

    /// The fixed limit that is right.
    pub fn right(&self) -> Seats {
        Seats::Fixed(self.right.clone())
    }

    /// The limit that finds itself.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some seats")]
    pub fn seats(&self) -> Seats {
        let most = (20.0 * self.right.at(0.0)) as u32;
        let auto = AutoSettings::new(1..=most, self.start as u32);
        let Environment { work, slow_share, capacity, .. } = &self.environment;
        let usual = work.at(0.0) * (1.0 + 9.0 * slow_share);
        let learnt = Learnt { limit: self.start, ln_cost: Some(ln(usual)), peak: *capacity };
        Seats::Auto(if self.is_learnt { auto.learnt(learnt) } else { auto })
    }
}
