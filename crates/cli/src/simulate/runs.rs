//! Runs the simulations, several at a time, and finds medians and ranges.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use evenkeel_engine::time::SECOND;
use evenkeel_sim::{Run, run};
use serde_json::{Map, Value};

use super::inputs::Inputs;
use super::progress::Progress;

/// All runs: for each configuration, those of all seeds.
pub(super) struct Simulated {
    pub(super) runs: Vec<Vec<Run>>,
}

/// The figures of one configuration, in the form in which they are printed as JSON.
pub(super) struct Figures {
    pub(super) median: Value,
    pub(super) least: Value,
    pub(super) most: Value,
    pub(super) runs: usize,
}

// === impl Simulated ===

impl Simulated {
    /// Runs everything. The result does not depend on how many run at a time.
    pub(super) fn run(inputs: &Inputs, seed: u64, runs: u32) -> Self {
        let jobs: Vec<(usize, u64)> = (0..inputs.configurations.len())
            .flat_map(|configuration| (0..u64::from(runs)).map(move |run| (configuration, seed.wrapping_add(run))))
            .collect();
        let seconds = u64::try_from(inputs.workload.span / SECOND).unwrap_or(0);
        let progress = Progress::new(seconds * jobs.len() as u64);
        let done: Mutex<Vec<(usize, Run)>> = Mutex::default();
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some((index, (configuration, seed))) = take(&next, &jobs) {
                let scenario = &inputs.configurations[configuration].scenario;
                let result = run(&inputs.workload, scenario, seed, &mut |_| progress.advance());
                done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((index, result));
            }
        };
        let threads = thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
        thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
        progress.end();
        let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        done.sort_by_key(|(index, _)| *index);
        let mut all: Vec<Vec<Run>> = inputs.configurations.iter().map(|_| Vec::new()).collect();
        for (index, result) in done {
            all[jobs[index].0].push(result);
        }
        Self { runs: all }
    }

    /// The figures of each configuration.
    pub(super) fn figures(&self) -> Vec<Figures> {
        let of = |runs: &Vec<Run>| {
            let mut values: Vec<_> =
                runs.iter().map(|run| serde_json::to_value(&run.report).unwrap_or_default()).collect();
            if values.len() > 1 {
                // The limit's changes differ from run to run, and sentences have no median.
                for limit in values.iter_mut().filter_map(|value| value.get_mut("limit")?.as_object_mut()) {
                    limit.remove("changes");
                }
            }
            let values: Vec<_> = values.iter().collect();
            let [least, mut median, most] =
                [0, (values.len() - 1) / 2, values.len() - 1].map(|rank| nth(&values, rank));
            if let (Some(seed), Value::Object(members)) = (values[0].get("seed"), &mut median) {
                members.insert("seed".to_owned(), seed.clone());
            }
            Figures { median, least, most, runs: values.len() }
        };
        self.runs.iter().map(of).collect()
    }
}

fn take(next: &AtomicUsize, jobs: &[(usize, u64)]) -> Option<(usize, (usize, u64))> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    jobs.get(index).map(|job| (index, *job))
}

// === impl Figures ===

impl Figures {
    /// The medians, and beside them the ranges if there were several runs.
    pub(super) fn to_json(&self) -> Value {
        let mut value = self.median.clone();
        if let (true, Value::Object(members)) = (self.runs > 1, &mut value) {
            members.insert("runs".to_owned(), self.runs.into());
            let range = [("min".to_owned(), self.least.clone()), ("max".to_owned(), self.most.clone())];
            members.insert("range".to_owned(), Value::Object(range.into_iter().collect()));
        }
        value
    }
}

/// Trees of the same shape become one: each number is the one that comes at that place if all are sorted. A number that is absent
/// from a tree counts as 0 there.
fn nth(values: &[&Value], rank: usize) -> Value {
    match values.iter().find(|value| !value.is_null()) {
        Some(Value::Object(_)) => {
            let mut members = Map::new();
            let all = || values.iter().filter_map(|value| value.as_object());
            for name in all().flat_map(Map::keys) {
                if !members.contains_key(name) {
                    let zero = Value::from(0);
                    let own: Vec<&Value> = all().map(|object| object.get(name).unwrap_or(&zero)).collect();
                    let is_number = own.iter().all(|value| value.is_number());
                    let own: Vec<&Value> = own
                        .into_iter()
                        .filter(|value| is_number || !value.is_number() || value.as_i64() != Some(0))
                        .collect();
                    members.insert(name.clone(), nth(&own, rank.min(own.len().saturating_sub(1))));
                }
            }
            Value::Object(members)
        }
        Some(Value::Array(first)) => {
            let item = |index: usize| {
                let own: Vec<&Value> = values.iter().filter_map(|value| value.get(index)).collect();
                nth(&own, rank.min(own.len().saturating_sub(1)))
            };
            (0..first.len()).map(item).collect()
        }
        Some(Value::Number(_)) => {
            let mut numbers: Vec<&Value> = values.iter().copied().filter(|value| value.is_number()).collect();
            numbers
                .sort_by(|one, other| one.as_f64().unwrap_or_default().total_cmp(&other.as_f64().unwrap_or_default()));
            numbers[rank.min(numbers.len() - 1)].clone()
        }
        Some(other) => (*other).clone(),
        None => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_number_has_its_own_median() {
        let values = [
            json!({"name": "a", "p99": 3.5, "rejected": {"queue-full": 7}, "list": [1, null]}),
            json!({"name": "a", "p99": 1.0, "rejected": {}, "list": [5, null]}),
            json!({"name": "a", "p99": 2.0, "rejected": {"time-out": 1}, "list": [3, 9]}),
        ];
        let values: Vec<&Value> = values.iter().collect();
        let of = |rank| nth(&values, rank);
        assert_eq!(
            of(0),
            json!({"name": "a", "p99": 1.0, "rejected": {"queue-full": 0, "time-out": 0}, "list": [1, 9]})
        );
        assert_eq!(
            of(1),
            json!({"name": "a", "p99": 2.0, "rejected": {"queue-full": 0, "time-out": 0}, "list": [3, 9]})
        );
        assert_eq!(
            of(2),
            json!({"name": "a", "p99": 3.5, "rejected": {"queue-full": 7, "time-out": 1}, "list": [5, 9]})
        );
    }
}
