//! What `evenkeel check` finds in the objects that a flow control follows.

use std::sync::Arc;

use evenkeel_api::AnyObject;
use evenkeel_check::{Assumptions, Finding, Located, Rule, Severity, check};

use crate::control::flow_control::FlowControl;

/// How many requests are classified at most to find out what is reachable.
const WORK_MAX: u64 = 200_000;

// === impl FlowControl ===

impl FlowControl {
    /// What `evenkeel check` finds in the objects that it follows, given its seats, its wait limit and how it borrows: flow schemas that
    /// no request can reach, levels that nothing leads to, flows that delay each other, and more. Each has a
    /// [page](https://evenkeel.dev/docs/checks/) of its own.
    ///
    /// These objects work, though perhaps not as they are meant. What does not work is an error of
    /// [`try_build`](crate::FlowControlBuilder::try_build) or in the [`report`](Self::report), and is not repeated here. Findings that
    /// depend on how long requests run are left out: nobody has said that.
    ///
    /// The search takes up to a fraction of a second where there are very many objects. [`build`](crate::FlowControlBuilder::build)
    /// logs the findings as warnings; a test of a service may insist that there are none:
    ///
    /// ```
    /// use evenkeel::{FlowControl, FlowSchema, PriorityLevelConfiguration};
    ///
    /// let level = PriorityLevelConfiguration::builder("gold").limited(|l| l.shares(10).reject()).build();
    /// let schema = |name, group, precedence| {
    ///     let schema = FlowSchema::builder(name).priority_level("gold").matching_precedence(precedence);
    ///     schema.rule(|r| r.group(group).everything()).build()
    /// };
    /// let schemas = [schema("staff", "staff", 100), schema("orders", "staff", 200), schema("everybody", "*", 300)];
    /// let flow = FlowControl::builder().objects(level).objects(schemas);
    /// let findings = flow.drive_by_hand().build().findings();
    /// let found: Vec<_> = findings.iter().map(|finding| (finding.rule.name(), &*finding.object.name)).collect();
    /// assert_eq!(found, [("unreachable-schema", "orders")]);
    /// ```
    pub fn findings(&self) -> Vec<Finding> {
        let assumptions = self.check_assumptions();
        let objects = self.shared().controlled().0.objects().clone();
        let schemas = objects.flow_schemas.into_iter().map(|schema| AnyObject::from(Arc::unwrap_or_clone(schema)));
        let levels = objects.priority_levels.into_iter().map(|level| AnyObject::from(Arc::unwrap_or_clone(level)));
        let located: Vec<Located<'_>> = schemas.chain(levels).map(Located::without_place).collect();
        check(&located, &assumptions).findings.into_iter().filter(is_news).collect()
    }

    /// What a check assumes of the server of this flow control: its preset, its seats, its wait limit and how it borrows. For those who check
    /// objects before they govern.
    pub fn check_assumptions(&self) -> Assumptions {
        // A limit that finds itself may become as high as this: a problem that remains even then is one.
        let seats = self.concurrency().most();
        let (controller, _) = self.shared().controlled();
        let preset = self.preset();
        Assumptions {
            preset,
            seats,
            wait_limit: self.shared().wait_limit(),
            borrowing: controller.borrowing(),
            // Requests of ordinary services take one seat unless the service says otherwise.
            widest: if preset.is_kubernetes() { Assumptions::default().widest } else { 1 },
            work_max: WORK_MAX,
            ..Assumptions::default()
        }
    }
}

/// Whether a finding is worth a line: it is not reported elsewhere, and it does not depend on how long requests run.
fn is_news(finding: &Finding) -> bool {
    let is_told = matches!(finding.rule, Rule::DanglingLevel | Rule::UnknownAnnotation | Rule::InvalidObject);
    finding.severity >= Severity::Warning && !is_told && finding.rule != Rule::Bufferbloat
}
