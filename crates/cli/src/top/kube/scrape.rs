//! `Scrape`: the metrics of flow control in a scrape of `/metrics` (OB-1 to OB-8), by level and schema.

use std::collections::BTreeMap;

use super::exposition::{Sample, parse_number};
use super::histogram::Histogram;

/// The metrics of a moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Scrape {
    pub(super) levels: BTreeMap<String, LevelMetrics>,
    /// When the process started, in seconds since 1970: another value is another process.
    pub(super) process_start: Option<f64>,
    /// The series that were left out since there are too many.
    pub(super) left_out: u64,
}

/// The metrics of a level.
#[derive(Debug, Clone, Default)]
pub(super) struct LevelMetrics {
    pub(super) nominal: f64,
    pub(super) floor: f64,
    pub(super) limit: f64,
    pub(super) current: f64,
    pub(super) seat_utilisation: Histogram,
    /// How long those waited that were started or gave up, of all schemas together.
    pub(super) wait: Histogram,
    pub(super) execution: Histogram,
    pub(super) schemas: BTreeMap<String, SchemaMetrics>,
}

/// The metrics of a schema in a level.
#[derive(Debug, Clone, Default)]
pub(super) struct SchemaMetrics {
    pub(super) waiting: f64,
    pub(super) seats: f64,
    pub(super) dispatched: f64,
    pub(super) rejected: BTreeMap<String, f64>,
}

/// The part of a histogram that a series is.
enum Part {
    Bucket,
    Sum,
    Count,
}

const LEVELS_MAX: usize = 1000;
const SCHEMAS_MAX: usize = 1000;
const REASONS_MAX: usize = 16;
const PREFIX: &str = "apiserver_flowcontrol_";

// === impl Scrape ===

impl Scrape {
    /// Takes in a line of the exposition.
    pub(super) fn line(&mut self, line: &str) {
        // Most lines of a kube-apiserver are about something else.
        if line.starts_with("process_start_time_seconds") {
            self.process_start = Sample::parse(line).map(|sample| sample.value);
            return;
        }
        if !line.starts_with(PREFIX) {
            return;
        }
        if let Some(sample) = Sample::parse(line).filter(|sample| sample.value.is_finite()) {
            self.sample(&sample);
        }
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        let level = sample.label("priority_level");
        let name = sample.name.strip_prefix(PREFIX).unwrap_or_default();
        if level.is_empty() || !is_wanted(name) {
            return;
        }
        if !self.levels.contains_key(level) && self.levels.len() >= LEVELS_MAX {
            self.left_out += 1;
            return;
        }
        let level = self.levels.entry(level.to_owned()).or_default();
        match name {
            "nominal_limit_seats" => level.nominal = sample.value,
            "lower_limit_seats" => level.floor = sample.value,
            "upper_limit_seats" => level.limit = sample.value,
            "current_limit_seats" => level.current = sample.value,
            _ => {
                if level.histogram(name, sample).is_none() && level.schema(name, sample).is_none() {
                    self.left_out += 1;
                }
            }
        }
    }

    /// Adds what another server of the same cluster shows.
    pub(super) fn add(&mut self, other: Self) {
        // Another sum is another process somewhere.
        self.process_start = match (self.process_start, other.process_start) {
            (Some(own), Some(other)) => Some(own + other),
            (own, other) => own.or(other),
        };
        self.left_out += other.left_out;
        for (name, level) in other.levels {
            self.levels.entry(name).or_default().add(level);
        }
    }

    /// Whether there is anything about flow control.
    pub(super) fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }
}

// === impl LevelMetrics ===

impl LevelMetrics {
    fn add(&mut self, other: Self) {
        self.nominal += other.nominal;
        self.floor += other.floor;
        self.limit += other.limit;
        self.current += other.current;
        self.seat_utilisation.add(&other.seat_utilisation);
        self.wait.add(&other.wait);
        self.execution.add(&other.execution);
        for (name, schema) in other.schemas {
            let own = self.schemas.entry(name).or_default();
            own.waiting += schema.waiting;
            own.seats += schema.seats;
            own.dispatched += schema.dispatched;
            for (reason, count) in schema.rejected {
                *own.rejected.entry(reason).or_default() += count;
            }
        }
    }
}

fn is_wanted(name: &str) -> bool {
    let histograms = ["priority_level_seat_utilization", "request_wait_duration_seconds", "request_execution_seconds"];
    let others = [
        "nominal_limit_seats",
        "lower_limit_seats",
        "upper_limit_seats",
        "current_limit_seats",
        "current_inqueue_requests",
        "current_executing_seats",
        "dispatched_requests_total",
        "rejected_requests_total",
    ];
    others.contains(&name) || histograms.iter().any(|histogram| part_of(name, histogram).is_some())
}

fn part_of(name: &str, histogram: &str) -> Option<Part> {
    match name.strip_prefix(histogram)? {
        "_bucket" => Some(Part::Bucket),
        "_sum" => Some(Part::Sum),
        "_count" => Some(Part::Count),
        _ => None,
    }
}

// === impl LevelMetrics ===

impl LevelMetrics {
    /// Takes in a series of a histogram. `None` if it is none.
    fn histogram(&mut self, name: &str, sample: &Sample<'_>) -> Option<()> {
        let (histogram, part) = if let Some(part) = part_of(name, "priority_level_seat_utilization") {
            (&mut self.seat_utilisation, part)
        } else if let Some(part) = part_of(name, "request_wait_duration_seconds") {
            // Requests that were rejected on arrival did not wait.
            if sample.label("execute") == "false" {
                return Some(());
            }
            (&mut self.wait, part)
        } else if let Some(part) = part_of(name, "request_execution_seconds") {
            (&mut self.execution, part)
        } else {
            return None;
        };
        match part {
            Part::Bucket => histogram.add_bucket(parse_number(sample.label("le"))?, sample.value),
            Part::Sum => histogram.sum += sample.value,
            Part::Count => histogram.count += sample.value,
        }
        Some(())
    }

    fn schema(&mut self, name: &str, sample: &Sample<'_>) -> Option<()> {
        let schema = sample.label("flow_schema");
        if !self.schemas.contains_key(schema) && self.schemas.len() >= SCHEMAS_MAX {
            return None;
        }
        let schema = self.schemas.entry(schema.to_owned()).or_default();
        match name {
            "current_inqueue_requests" => schema.waiting = sample.value,
            "current_executing_seats" => schema.seats = sample.value,
            "dispatched_requests_total" => schema.dispatched = sample.value,
            "rejected_requests_total" => {
                let reason = sample.label("reason");
                if schema.rejected.len() >= REASONS_MAX && !schema.rejected.contains_key(reason) {
                    return None;
                }
                schema.rejected.insert(reason.to_owned(), sample.value);
            }
            _ => return None,
        }
        Some(())
    }
}

// === impl SchemaMetrics ===

impl SchemaMetrics {
    /// The requests that the schema has matched: those that started, wait or were rejected.
    pub(super) fn hits(&self) -> f64 {
        self.dispatched + self.waiting + self.rejected.values().sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::kube::recorded;

    #[test]
    fn ob_2_to_5_recorded_metrics() {
        let mut scrape = Scrape::default();
        recorded("metrics").lines().for_each(|line| scrape.line(line));
        assert_eq!((scrape.levels.len(), scrape.left_out, scrape.process_start), (10, 0, None));
        let batch = &scrape.levels["batch"];
        let seats = [batch.nominal, batch.floor, batch.limit, batch.current];
        assert_eq!(seats.map(f64::to_bits), [1.0_f64; 4].map(f64::to_bits));
        let schema = &batch.schemas["batch"];
        let figures = [schema.waiting, schema.seats, schema.dispatched];
        assert_eq!(figures.map(f64::to_bits), [12.0_f64, 1.0, 301.0].map(f64::to_bits));
        assert_eq!(schema.rejected, BTreeMap::from([("queue-full".to_owned(), 31522.0)]));
        assert_eq!(batch.wait.count.to_bits(), 303.0_f64.to_bits());
        // 85 waited from 1 to 2 s.
        assert_eq!(batch.wait.buckets().1, [0, 2, 0, 1, 1, 3, 29, 84, 85, 64, 32, 2, 0, 0]);
        assert_eq!(batch.seat_utilisation.count.to_bits(), 7.711_233_547_6e10_f64.to_bits());
        assert_eq!(scrape.levels["teams"].schemas.keys().collect::<Vec<_>>(), ["jobs", "teams"]);
    }

    #[test]
    fn the_number_of_levels_schemas_and_reasons_is_bounded() {
        let mut scrape = Scrape::default();
        for number in 0..3 * LEVELS_MAX {
            scrape.line(&format!("{PREFIX}nominal_limit_seats{{priority_level=\"l{number}\"}} 1"));
            scrape.line(&format!(
                "{PREFIX}rejected_requests_total{{priority_level=\"l1\",flow_schema=\"s{number}\",reason=\"r\"}} 1"
            ));
            scrape.line(&format!(
                "{PREFIX}rejected_requests_total{{priority_level=\"l1\",flow_schema=\"s1\",reason=\"r{number}\"}} 1"
            ));
        }
        assert_eq!(scrape.levels.len(), LEVELS_MAX);
        assert_eq!(scrape.levels["l1"].schemas.len(), SCHEMAS_MAX);
        assert_eq!(scrape.levels["l1"].schemas["s1"].rejected.len(), REASONS_MAX);
        assert!(scrape.left_out > 0);
    }

    #[test]
    fn open_metrics_and_other_processes() {
        let mut scrape = Scrape::default();
        for line in [
            "# TYPE apiserver_flowcontrol_dispatched_requests counter",
            "apiserver_flowcontrol_dispatched_requests_total{priority_level=\"a\",flow_schema=\"b\"} 3.0 1700000000.5",
            "apiserver_flowcontrol_dispatched_requests_created{priority_level=\"a\",flow_schema=\"b\"} 1700000000.5",
            "apiserver_flowcontrol_current_executing_seats{priority_level=\"a\",flow_schema=\"b\"} NaN",
            "process_start_time_seconds 1.7e+09",
            "# EOF",
        ] {
            scrape.line(line);
        }
        assert_eq!(scrape.levels["a"].schemas["b"].dispatched.to_bits(), 3.0_f64.to_bits());
        assert_eq!(scrape.process_start, Some(1.7e9));
    }
}
