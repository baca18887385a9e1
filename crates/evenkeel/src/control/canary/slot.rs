//! `CanarySlot`: holds the canary of a flow control, if it has one. Without one it costs a request a comparison.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;
use evenkeel_engine::{Attributes, Classification, Configuration};

use super::running::{Canary, CanaryControl};
use crate::control::flow_control::FlowControl;
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// The canary of a flow control.
#[derive(Debug, Default)]
pub(crate) struct CanarySlot {
    is_on: AtomicBool,
    running: ArcSwapOption<Canary>,
    /// Taken before the control plane of the flow control, and never by requests.
    control: Mutex<CanaryControl>,
}

// === impl CanarySlot ===

impl CanarySlot {
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// The canary that runs.
    pub(super) fn running(&self) -> Option<Arc<Canary>> {
        self.running.load_full()
    }

    pub(super) fn set(&self, canary: Option<Arc<Canary>>) {
        self.is_on.store(canary.is_some(), Ordering::Relaxed);
        self.running.store(canary);
    }

    pub(super) fn control(&self) -> MutexGuard<'_, CanaryControl> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The flow control of the canary, if the request belongs to one of its flows. `class` is where it belongs otherwise.
    #[inline(never)]
    pub(crate) fn of_flow(&self, class: &Classification<'_>, attributes: Attributes<'_>) -> Option<FlowControl> {
        let running = self.running.load();
        let canary = running.as_ref()?;
        // Exempt requests need no seat, and are the operator's own.
        if class.schema.level.is_exempt {
            return None;
        }
        canary.has_flow(class.schema.flow_key(attributes)).then(|| canary.flow.clone())
    }

    /// Asks the canary's configuration something, if there is a canary.
    #[inline]
    pub(crate) fn with_configuration<R>(&self, ask: impl FnOnce(&Configuration) -> R) -> Option<R> {
        if !self.is_on() {
            return None;
        }
        self.running.load().as_ref().map(|canary| ask(&canary.flow.shared().snapshot().configuration))
    }
}
