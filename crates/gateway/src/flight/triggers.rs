//! `FlightTriggers`: decides when a dump is worth taking. It knows no clock and no files: time and counters are arguments (FR-2).

use std::collections::VecDeque;
use std::time::Duration;

use crate::config::FlightTriggersConfig;
use crate::observe::frame::percentiles;

/// The counters of a flow control at one moment. All but the last two only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TriggerReading {
    pub(crate) rejected: u64,
    /// How long requests waited, in the ranges of the metrics.
    pub(crate) waits: [u64; 14],
    pub(crate) seats: i64,
    /// Whether it is cut off from its fleet, and lives on its floor or on nothing.
    pub(crate) is_on_floor: bool,
}

/// Why a dump is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trigger {
    Rejections(u64),
    /// The 99th percentile.
    Wait(Duration),
    /// The seats before, and those that are left.
    LimitHalved(i64, i64),
    FleetFloor,
}

/// Looks at readings of one flow control.
///
/// A trigger fires when its condition begins to hold, and not again before it has ceased to. After any of them has fired, none fires during the pause.
#[derive(Debug, Default)]
pub(crate) struct FlightTriggers {
    /// The readings of the last [`WINDOW`], the oldest first.
    readings: VecDeque<(Duration, TriggerReading)>,
    /// Whether each condition held at the last look.
    held: [bool; 4],
    fired: Option<Duration>,
}

/// How long counters are compared for.
const WINDOW: Duration = Duration::from_secs(10);
/// With fewer requests than this, the 99th percentile says nothing.
const WAITS_MIN: u64 = 100;

// === impl FlightTriggers ===

impl FlightTriggers {
    /// Looks at a reading. `now` is a time since any fixed moment. Returns the trigger that fires, if one does.
    pub(crate) fn look(
        &mut self,
        at: Duration,
        reading: TriggerReading,
        settings: &FlightTriggersConfig,
    ) -> Option<Trigger> {
        while self.readings.front().is_some_and(|(then, _)| at.saturating_sub(*then) > WINDOW) {
            self.readings.pop_front();
        }
        let (_, oldest) = self.readings.front().copied().unwrap_or((at, reading));
        let most_seats = self.readings.iter().map(|(_, reading)| reading.seats).max().unwrap_or(reading.seats);
        self.readings.push_back((at, reading));
        let rejected = reading.rejected.saturating_sub(oldest.rejected);
        let wait = wait_p99(&oldest, &reading);
        let is_halved = reading.seats.saturating_mul(2) <= most_seats && most_seats > 1;
        let conditions = [
            (settings.rejections > 0 && rejected >= settings.rejections).then_some(Trigger::Rejections(rejected)),
            wait.filter(|wait| !settings.wait.is_zero() && *wait > settings.wait).map(Trigger::Wait),
            (settings.limit_halved && is_halved).then_some(Trigger::LimitHalved(most_seats, reading.seats)),
            (settings.fleet_floor && reading.is_on_floor).then_some(Trigger::FleetFloor),
        ];
        let is_paused = self.fired.is_some_and(|fired| at.saturating_sub(fired) < settings.pause);
        let mut fires = None;
        for (condition, held) in conditions.into_iter().zip(&mut self.held) {
            if !*held && fires.is_none() && !is_paused {
                fires = condition;
            }
            *held = condition.is_some();
        }
        if fires.is_some() {
            self.fired = Some(at);
        }
        fires
    }
}

fn wait_p99(before: &TriggerReading, now: &TriggerReading) -> Option<Duration> {
    let mut waits = now.waits;
    waits.iter_mut().zip(before.waits).for_each(|(now, before)| *now = now.saturating_sub(before));
    if waits.iter().sum::<u64>() < WAITS_MIN {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "bounds of seconds")]
    let bounds = evenkeel::status::DurationCounts::BOUNDS_NS.map(|bound| bound as f64 / 1e9);
    percentiles(&bounds, &waits).map(|found| Duration::from_secs_f64(found.p99.max(0.0)))
}

// === impl Trigger ===

impl Trigger {
    /// A word for the name of the file.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Rejections(_) => "rejections",
            Self::Wait(_) => "wait",
            Self::LimitHalved(..) => "limit-halved",
            Self::FleetFloor => "fleet-floor",
        }
    }
}

impl std::fmt::Display for Trigger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rejections(requests) => {
                write!(f, "{requests} requests were rejected within {} s", WINDOW.as_secs())
            }
            Self::Wait(wait) => write!(f, "the 99th percentile of waits was {:.1} s", wait.as_secs_f64()),
            Self::LimitHalved(before, after) => write!(f, "the limit fell from {before} seats to {after}"),
            Self::FleetFloor => f.write_str("the gateway was cut off from its fleet"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: TriggerReading = TriggerReading { rejected: 0, waits: [0; 14], seats: 40, is_on_floor: false };

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Looks at one reading a second, and tells what fires when.
    fn fired(
        readings: impl IntoIterator<Item = TriggerReading>,
        settings: &FlightTriggersConfig,
    ) -> Vec<(u64, Trigger)> {
        let mut triggers = FlightTriggers::default();
        let look = |(at, reading)| Some((at, triggers.look(seconds(at), reading, settings)?));
        (0..).zip(readings).filter_map(look).collect()
    }

    fn settings(pause: u64) -> FlightTriggersConfig {
        FlightTriggersConfig { pause: seconds(pause), ..FlightTriggersConfig::default() }
    }

    #[test]
    fn fr_2_a_burst_of_rejections_fires_once() {
        // 60 a second from the second 5 to 24, and nothing after that.
        let rejected = |at: u64| at.saturating_sub(4).min(20) * 60;
        let readings = || (0..100).map(|at| TriggerReading { rejected: rejected(at), ..QUIET });
        assert_eq!(fired(readings(), &settings(600)), [(6, Trigger::Rejections(120))]);
        // Rejections that were counted before the first look do not count.
        let old = (0..100).map(|_| TriggerReading { rejected: 1_000_000, ..QUIET });
        assert_eq!(fired(old, &settings(600)), []);
        let off = FlightTriggersConfig { rejections: 0, ..settings(600) };
        assert_eq!(fired(readings(), &off), []);
    }

    #[test]
    fn fr_2_there_is_a_pause_after_each() {
        // A burst every 50 seconds.
        let readings = || (0..300).map(|at: u64| TriggerReading { rejected: at.div_ceil(50) * 1000, ..QUIET });
        let at = |pause| fired(readings(), &settings(pause)).into_iter().map(|(at, _)| at).collect::<Vec<_>>();
        assert_eq!(at(10), [1, 51, 101, 151, 201, 251]);
        assert_eq!(at(120), [1, 151]);
        // A condition that holds all the time fires once, whatever the pause.
        let steady = (0..300).map(|at: u64| TriggerReading { rejected: at * 1000, ..QUIET });
        assert_eq!(fired(steady, &settings(10)).len(), 1);
    }

    #[test]
    fn fr_2_waits_limit_and_fleet_fire_too() {
        let with_waits = |count: u64, bucket: usize| {
            let mut reading = QUIET;
            reading.waits[bucket] = count;
            reading
        };
        // The last range has everything above the last bound, which is longer than the default.
        let found = fired([QUIET, with_waits(200, 13)], &settings(600));
        assert!(matches!(found[..], [(1, Trigger::Wait(wait))] if wait > seconds(5)), "{found:?}");
        assert_eq!(fired([QUIET, with_waits(200, 1)], &settings(600)), [], "short waits");
        assert_eq!(fired([QUIET, with_waits(50, 13)], &settings(600)), [], "too few requests");
        let seats = |seats| TriggerReading { seats, ..QUIET };
        assert_eq!(fired([40, 30, 21, 20, 20].map(seats), &settings(600)), [(3, Trigger::LimitHalved(40, 20))]);
        assert_eq!(fired([40, 30, 25, 21].map(seats), &settings(600)), []);
        let floor = TriggerReading { is_on_floor: true, ..QUIET };
        assert_eq!(fired([QUIET, floor, floor, QUIET], &settings(600)), [(1, Trigger::FleetFloor)]);
    }
}
