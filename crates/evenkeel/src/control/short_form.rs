//! Levels and rules in a few words, for [`FlowControlBuilder`] (SF-5).

use evenkeel_api::Preset;
use evenkeel_api::short::{ShortLevel, ShortRule};
use evenkeel_engine::controller::Objects;

use crate::control::builder::FlowControlBuilder;
use crate::control::object_problems::ObjectProblem;

// === impl FlowControlBuilder ===

impl FlowControlBuilder {
    /// A level: a share of the seats, in which clients take turns. [`rule`](Self::rule)s say which requests go there.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    ///
    /// let flow = FlowControl::builder()
    ///     .server_concurrency(50)
    ///     .level("interactive", |l| l.share(70).lend(50))
    ///     .level("batch", |l| l.share(30))
    ///     .rule(|r| r.path("/healthz").exempt())
    ///     .rule(|r| r.group("paying").level("interactive").weight(4))
    ///     .rule(|r| r.level("batch"))
    ///     .drive_by_hand()
    ///     .build();
    /// assert!(flow.status().iter().any(|level| level.name == "interactive"));
    /// ```
    ///
    /// Problems are reported when the flow control is [built](Self::try_build). Levels and rules stand for objects, so
    /// [`objects`](Self::objects) are not given beside them; see [`evenkeel_api::short`].
    pub fn level(mut self, name: impl Into<String>, level: impl FnOnce(ShortLevel) -> ShortLevel) -> Self {
        self.short.levels.0.push((name.into(), level(ShortLevel::default())));
        self
    }

    /// A rule that sends some requests to a level. The first rule that fits a request counts, so end with one for everybody.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    ///
    /// let invalid = FlowControl::builder()
    ///     .level("interactive", |l| l.share(70))
    ///     .rule(|r| r.header("X-Plan", "gold").level("interactiv"))
    ///     .drive_by_hand()
    ///     .try_build()
    ///     .unwrap_err();
    /// assert!(invalid.to_string().ends_with("match[0].level: unknown level `interactiv`; did you mean `interactive`?"));
    /// ```
    pub fn rule(mut self, rule: impl FnOnce(ShortRule) -> ShortRule) -> Self {
        self.short.rules.push(rule(ShortRule::default()));
        self
    }

    /// The objects that levels and rules stand for, if there are any, or everything that is wrong with them.
    pub(super) fn short_objects(&self, has_objects: bool) -> Result<Option<Objects>, Vec<ObjectProblem>> {
        if self.short.is_empty() {
            return Ok(None);
        }
        let beside = [
            (has_objects, "there are objects and levels or rules, which stand for objects; use one of the two"),
            (
                self.preset == Preset::Kubernetes,
                "levels and rules are for ordinary services; give a Kubernetes API objects",
            ),
        ];
        let mut problems: Vec<ObjectProblem> = beside
            .iter()
            .filter(|(is_wrong, _)| *is_wrong)
            .map(|(_, message)| ObjectProblem::of_short_form("", message))
            .collect();
        let told = self.short.problems();
        problems.extend(told.iter().map(|problem| ObjectProblem::of_short_form(&problem.field, &problem.message)));
        match self.short.to_objects() {
            Ok(objects) if problems.is_empty() => Ok(Some(objects.to_objects().collect())),
            _ => Err(problems),
        }
    }
}
