//! Puts the metrics of flow controls into a registry.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use super::catalogue;
use super::collector::{FlowCollector, Source};
use crate::control::flow_control::FlowControl;

/// Why the metrics of a flow control are not registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The registry has the metrics of a flow control already. Two would write the same series.
    #[error(
        "the registry already has the metrics of a flow control; \
         register all flow controls at once, each with a name: evenkeel::metrics::register_named"
    )]
    AlreadyRegistered,
    /// Two flow controls have the same name.
    #[error("two flow controls have the name {0:?}; their metrics need different names")]
    DuplicateName(String),
}

/// Looks for a metric on a page that is written, and keeps nothing of it.
struct Search {
    /// The end of the line that declares it. A registry may put a prefix in front.
    declaration: String,
    line: String,
    is_found: bool,
}

// === impl FlowControl ===

impl FlowControl {
    /// Registers all metrics of API Priority and Fairness, under the names that they have in Kubernetes. Needs the feature
    /// `metrics`, which is on by default.
    ///
    /// If a service has several flow controls, register them together with
    /// [`register_named`](crate::metrics::register_named). To find out whether the registry has such metrics already, this
    /// writes its metrics once.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    /// use prometheus_client::encoding::text;
    /// use prometheus_client::registry::Registry;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let flow = FlowControl::builder().server_concurrency(100).drive_by_hand().build();
    /// let mut registry = Registry::default();
    /// flow.register_metrics(&mut registry)?;
    ///
    /// let mut page = String::new();
    /// text::encode(&mut page, &registry)?;
    /// assert!(page.contains("apiserver_flowcontrol_nominal_limit_seats{priority_level=\"catch-all\"}"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn register_metrics(&self, registry: &mut Registry) -> Result<(), RegisterError> {
        register(registry, vec![Source { name: None, flow: Arc::downgrade(self.shared()) }])
    }
}

/// Registers the metrics of several flow controls of one process. Their series have a label `flow_control` with the name that
/// is given here.
///
/// ```
/// use evenkeel::{FlowControl, metrics};
/// use prometheus_client::encoding::text;
/// use prometheus_client::registry::Registry;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let [shop, admin] = [90, 10].map(|seats| FlowControl::builder().server_concurrency(seats).drive_by_hand().build());
/// let mut registry = Registry::default();
/// metrics::register_named(&mut registry, [("shop", &shop), ("admin", &admin)])?;
///
/// let mut page = String::new();
/// text::encode(&mut page, &registry)?;
/// assert!(page.contains("apiserver_flowcontrol_upper_limit_seats{flow_control=\"shop\",priority_level=\"everyone\"}"));
/// # Ok(())
/// # }
/// ```
pub fn register_named<'a, N: Into<String>>(
    registry: &mut Registry,
    flow_controls: impl IntoIterator<Item = (N, &'a FlowControl)>,
) -> Result<(), RegisterError> {
    register_labelled(registry, "flow_control", flow_controls)
}

/// The same with a label of this name in place of `flow_control`.
pub fn register_labelled<'a, N: Into<String>>(
    registry: &mut Registry,
    label: &'static str,
    flow_controls: impl IntoIterator<Item = (N, &'a FlowControl)>,
) -> Result<(), RegisterError> {
    let mut names = BTreeSet::new();
    let mut sources = Vec::new();
    for (name, flow) in flow_controls {
        let name = name.into();
        sources.push(Source { name: Some((label, (&*name).into())), flow: Arc::downgrade(flow.shared()) });
        if let Some(name) = names.replace(name) {
            return Err(RegisterError::DuplicateName(name));
        }
    }
    register(registry, sources)
}

fn register(registry: &mut Registry, sources: Vec<Source>) -> Result<(), RegisterError> {
    // A registry does not tell what is in it, except by writing it. A collector that fails has written nothing of ours.
    let mut search = Search::new(catalogue::NOMINAL_LIMIT.name);
    let _ = text::encode_registry(&mut search, registry);
    if search.is_found {
        return Err(RegisterError::AlreadyRegistered);
    }
    registry.register_collector(Box::new(FlowCollector(sources)));
    Ok(())
}

// === impl Search ===

impl Search {
    fn new(metric: &str) -> Self {
        Self { declaration: format!("{metric} gauge"), line: String::new(), is_found: false }
    }
}

impl fmt::Write for Search {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.split_inclusive('\n') {
            self.line.push_str(part);
            if let Some(line) = self.line.strip_suffix('\n') {
                self.is_found |= line.starts_with("# TYPE ") && line.ends_with(&self.declaration);
                self.line.clear();
            }
        }
        Ok(())
    }
}
