//! Dumps of the flight recorder that nobody has asked for by HTTP: by a signal, and by triggers. They are kept in a folder (FR-2).

mod files;
mod triggers;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use evenkeel::FlowControl;
use evenkeel::fleet::Footing;
use evenkeel::flight::Flight;
use tokio::time::{Instant, MissedTickBehavior};

use crate::config::Config;
use crate::observe::ServiceFlow;
use crate::observe::dashboard::now_ms;
use files::FlightFiles;
use triggers::{FlightTriggers, TriggerReading};

/// How much is dumped.
const LENGTH: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_secs(1);

/// Looks at flow controls once a second, and takes a dump when a trigger fires. `flows` tells the settings in effect.
pub(crate) async fn watch_triggers(flows: impl Fn() -> (Arc<Config>, Vec<ServiceFlow>)) {
    let mut triggers: HashMap<Option<String>, FlightTriggers> = HashMap::new();
    let begin = Instant::now();
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let (config, flows) = flows();
        let settings = &config.flight_recorder;
        if settings.directory.is_none() || settings.bytes == 0 {
            triggers.clear();
            continue;
        }
        triggers.retain(|service, _| flows.iter().any(|one| one.service.as_deref() == service.as_deref()));
        for one in flows {
            let service = one.service.as_deref().map(ToOwned::to_owned);
            let looking = triggers.entry(service.clone()).or_default();
            if let Some(trigger) = looking.look(begin.elapsed(), reading_of(&one.flow), &settings.triggers) {
                let (cause, word) = (trigger.to_string(), trigger.word());
                let asked = FlightDump { flow: one.flow.clone(), service, cause, word };
                tell(asked.keep(Arc::clone(&config)).await);
            }
        }
    }
}

/// What a flow control has recorded of the given last time, with the settings of the gateway, and as far as these allow with names.
pub(crate) fn dump_of(flow: &FlowControl, last: Duration, cause: &str, config: &Config) -> Option<Flight> {
    let mut flight = flow.flight(last, cause)?;
    // They name files with secrets, but hold none.
    flight.header.settings = serde_json::to_value(config).ok();
    if !config.flight_recorder.users {
        flight.hide_users();
    }
    Some(flight)
}

/// Takes a dump of all flow controls, because a signal asks for it.
pub(crate) async fn dump_all(config: &Arc<Config>, flows: Vec<ServiceFlow>) {
    if config.flight_recorder.directory.is_none() {
        tracing::warn!("no dump was taken: there is no folder for it; set `flightRecorder.directory` or `--data-dir`");
        return;
    }
    for ServiceFlow { service, flow } in flows {
        let service = service.as_deref().map(ToOwned::to_owned);
        let asked = FlightDump { flow, service, cause: "asked for by SIGUSR1".to_owned(), word: "signal" };
        tell(asked.keep(Arc::clone(config)).await);
    }
}

/// A dump that is to be taken.
struct FlightDump {
    flow: FlowControl,
    service: Option<String>,
    cause: String,
    /// The cause in the name of the file.
    word: &'static str,
}

// === impl FlightDump ===

impl FlightDump {
    /// Takes the dump and writes it, on a thread that may wait for a disk.
    async fn keep(self, config: Arc<Config>) -> Result<(PathBuf, String), String> {
        let kept = tokio::task::spawn_blocking(move || {
            let Self { flow, service, cause, word } = self;
            let settings = &config.flight_recorder;
            let directory = settings.directory.clone();
            let directory = directory.ok_or("there is no folder for it; set `flightRecorder.directory`")?;
            let flight = dump_of(&flow, LENGTH, &cause, &config);
            let flight = flight.ok_or("nothing is recorded; set `flightRecorder.bytes`")?;
            let word = service.map_or_else(|| word.to_owned(), |service| format!("{word}-{}", file_name(&service)));
            let files = FlightFiles { directory, files: settings.files };
            let failed = |error| format!("cannot write to {}: {error}", files.directory.display());
            let path = files.keep(now_ms(), &word, &flight.to_bytes()).map_err(failed)?;
            Ok((path, cause))
        });
        kept.await.unwrap_or_else(|error| Err(error.to_string()))
    }
}

/// A name as a part of the name of a file.
fn file_name(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    name.chars().take(64).map(plain).collect()
}

fn tell(kept: Result<(PathBuf, String), String>) {
    match kept {
        Ok((path, cause)) => tracing::warn!("flight recorder: wrote {} ({cause})", path.display()),
        Err(error) => tracing::error!("flight recorder: no dump was taken: {error}"),
    }
}

fn reading_of(flow: &FlowControl) -> TriggerReading {
    let reading = flow.reading();
    let mut counted = TriggerReading {
        seats: reading.concurrency,
        is_on_floor: flow.fleet_state().is_some_and(|fleet| fleet.footing != Footing::Grant),
        ..TriggerReading::default()
    };
    for level in &reading.levels {
        counted.rejected += level.rejected.iter().map(|(_, requests)| requests).sum::<u64>();
        counted.waits.iter_mut().zip(level.waits.counts).for_each(|(sum, more)| *sum += more);
    }
    counted
}
