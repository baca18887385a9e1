//! Logs what `evenkeel check` finds in the objects that govern.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use evenkeel::FlowControl;
use evenkeel::check::{ObjectName, Rule};
use evenkeel_engine::controller::Objects;

/// With more objects than this, nothing is looked for.
const OBJECTS_MAX: usize = 2000;

/// The findings that have been logged.
#[derive(Debug, Clone, Default)]
pub(super) struct Findings {
    told: Arc<Mutex<HashSet<(Rule, ObjectName)>>>,
}

// === impl Findings ===

impl Findings {
    /// Looks at the objects that govern on another thread, and logs what was not found in the last ones.
    pub(super) fn look_for(&self, objects: &Objects, flow: &FlowControl) {
        if objects.flow_schemas.len() + objects.priority_levels.len() > OBJECTS_MAX {
            return;
        }
        let (this, flow) = (self.clone(), flow.clone());
        tokio::task::spawn_blocking(move || this.log(&flow));
    }

    fn log(&self, flow: &FlowControl) {
        let found = flow.findings();
        // One look at a time, so that the lines of one look stay together.
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
