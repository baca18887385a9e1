//! Logs what `evenkeel check` finds in the objects that govern.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use evenkeel::division::Borrowing;
use evenkeel_api::Preset;
use evenkeel_check::{Assumptions, Finding, Located, ObjectName, Rule, Severity, check};
use evenkeel_engine::controller::Objects;

use crate::config::Config;

/// How many requests are classified at most to find out what is reachable.
const WORK_MAX: u64 = 200_000;
/// With more objects than this, nothing is looked for.
const OBJECTS_MAX: usize = 2000;

/// What has been logged.
#[derive(Debug, Clone)]
pub(super) struct Findings {
    assumptions: Arc<Assumptions>,
    told: Arc<Mutex<HashSet<(Rule, ObjectName)>>>,
}

// === impl Findings ===

impl Findings {
    pub(super) fn new(config: &Config) -> Self {
        let by_preset = match config.preset {
            Preset::Plain => Borrowing::Immediate,
            Preset::Kubernetes => Borrowing::Periodic,
        };
        let borrowing = config.flow_control.borrowing.map_or(by_preset, Borrowing::from);
        let assumptions = Assumptions {
            preset: config.preset,
            seats: config.concurrency,
            wait_limit: config.timeouts.queue,
            borrowing,
            // Requests of ordinary services take one seat unless a rule says otherwise.
            widest: if config.preset == Preset::Plain { 1 } else { Assumptions::default().widest },
            work_max: WORK_MAX,
            ..Assumptions::default()
        };
        Self { assumptions: Arc::new(assumptions), told: Arc::default() }
    }

    /// Looks at objects on another thread, and logs what was not found in the last ones.
    pub(super) fn look_for(&self, objects: Objects) {
        if objects.flow_schemas.len() + objects.priority_levels.len() > OBJECTS_MAX {
            return;
        }
        let this = self.clone();
        tokio::task::spawn_blocking(move || this.log(&objects));
    }

    fn log(&self, objects: &Objects) {
        let schemas = objects.flow_schemas.iter().map(|schema| Located::without_place((**schema).clone()));
        let levels = objects.priority_levels.iter().map(|level| Located::without_place((**level).clone()));
        let located: Vec<Located<'_>> = schemas.chain(levels).collect();
        let found = check(&located, &self.assumptions).findings.into_iter().filter(is_news);
        // One look at a time: what is logged belongs together.
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let mut now = HashSet::new();
        for finding in found {
            let key = (finding.rule, finding.object.clone());
            if !told.contains(&key) {
                let (rule, object) = (finding.rule.name(), &finding.object);
                tracing::warn!(
                    rule,
                    kind = %object.kind,
                    name = %object.name,
                    "{}; see `evenkeel check --explain {rule}`",
                    finding.message
                );
            }
            now.insert(key);
        }
        *told = now;
    }
}

/// Whether a finding is worth a line: the flow control does not warn of it anyway, and it does not depend on how long requests run,
/// which nobody has said.
fn is_news(finding: &Finding) -> bool {
    let is_told = matches!(finding.rule, Rule::DanglingLevel | Rule::UnknownAnnotation | Rule::InvalidObject);
    finding.severity >= Severity::Warning && !is_told && finding.rule != Rule::Bufferbloat
}
