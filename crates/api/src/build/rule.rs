//! `RuleBuilder`: builds a rule of a flow schema.

use std::marker::PhantomData;

use super::state::{
    HasRequests, HasSubject, HasVerbs, NoRequests, NoSubject, ResourcesWithoutVerbs, UrlsWithoutVerbs, WithRequests,
    WithSubject,
};
use super::texts;
use crate::v1::{
    GroupSubject, NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule, ServiceAccountSubject, Subject,
    SubjectKind, UserSubject,
};

/// Builds a rule: first who asks, then what is asked for.
///
/// A rule may name several subjects, and several resources and paths, each with verbs of their own.
///
/// ```
/// use evenkeel_api::v1::FlowSchema;
///
/// let schema = FlowSchema::builder("nodes")
///     .priority_level("node-high")
///     .rule(|r| {
///         r.group("system:nodes")
///             .resources(["nodes", "nodes/status"]).api_groups([""]).verbs(["*"])
///             .resources(["leases"]).api_groups(["coordination.k8s.io"]).namespaces(["*"]).verbs(["get", "update"])
///             .non_resource_urls(["/healthz"]).verbs(["get"])
///     })
///     .build();
/// assert_eq!(schema.spec.rules[0].resource_rules.len(), 2);
/// ```
#[derive(Debug, Clone)]
#[must_use = "a rule does nothing unless it is returned from the closure"]
pub struct RuleBuilder<Who, What> {
    rule: PolicyRulesWithSubjects,
    who: PhantomData<fn() -> Who>,
    what: What,
}

const EVERY: &str = "*";

// === impl RuleBuilder ===

impl RuleBuilder<NoSubject, NoRequests> {
    pub(super) fn new() -> Self {
        Self { rule: PolicyRulesWithSubjects::default(), who: PhantomData, what: NoRequests }
    }
}

/// The sender of a request.
impl<Who, What> RuleBuilder<Who, What> {
    /// The user of that name asks; `*` is every user.
    pub fn user(self, name: impl Into<String>) -> RuleBuilder<WithSubject, What> {
        let user = Some(UserSubject { name: name.into() });
        self.subject(Subject { kind: SubjectKind::User, user, ..Subject::default() })
    }

    /// A member of that group asks; `*` is every group.
    pub fn group(self, name: impl Into<String>) -> RuleBuilder<WithSubject, What> {
        let group = Some(GroupSubject { name: name.into() });
        self.subject(Subject { kind: SubjectKind::Group, group, ..Subject::default() })
    }

    /// The service account of that namespace and name asks; the name `*` is every one of the namespace.
    pub fn service_account(
        self,
        namespace: impl Into<String>,
        name: impl Into<String>,
    ) -> RuleBuilder<WithSubject, What> {
        let service_account = Some(ServiceAccountSubject { namespace: namespace.into(), name: name.into() });
        self.subject(Subject { kind: SubjectKind::ServiceAccount, service_account, ..Subject::default() })
    }

    fn subject(mut self, subject: Subject) -> RuleBuilder<WithSubject, What> {
        self.rule.subjects.push(subject);
        RuleBuilder { rule: self.rule, who: PhantomData, what: self.what }
    }
}

/// The requests that the rule matches.
impl<Who, What> RuleBuilder<Who, What> {
    /// Requests for these resources, or `*` alone for every resource; the [`verbs`](RuleBuilder::verbs) come next.
    ///
    /// Where nothing narrower is said before the verbs, the widest is meant: every API group, and every namespace
    /// as well as what lies outside of namespaces (`apiGroups: ["*"], namespaces: ["*"], clusterScope: true`).
    ///
    /// ```
    /// use evenkeel_api::v1::FlowSchema;
    ///
    /// let schema = FlowSchema::builder("pods")
    ///     .priority_level("workload-low")
    ///     .rule(|r| r.user("alice").resources(["pods"]).verbs(["get"]))
    ///     .rule(|r| r.user("bob").resources(["pods"]).api_groups([""]).namespaces(["jobs"]).verbs(["get"]))
    ///     .build();
    /// let [wide, narrow] = [0, 1].map(|index| &schema.spec.rules[index].resource_rules[0]);
    /// assert_eq!((wide.api_groups[0].as_str(), wide.namespaces[0].as_str(), wide.cluster_scope), ("*", "*", true));
    /// assert_eq!((narrow.api_groups[0].as_str(), narrow.namespaces[0].as_str(), narrow.cluster_scope), ("", "jobs", false));
    /// ```
    pub fn resources(
        self,
        resources: impl IntoIterator<Item = impl Into<String>>,
    ) -> RuleBuilder<Who, ResourcesWithoutVerbs>
    where
        What: HasVerbs,
    {
        let resources = ResourcePolicyRule { resources: texts(resources), ..ResourcePolicyRule::default() };
        self.with(ResourcesWithoutVerbs(resources))
    }

    /// Requests for these paths, which are not resources; the [`verbs`](RuleBuilder::verbs) come next. `/a` matches
    /// `/a` and everything below it, `/a/*` only what is below it. `/` and `*` match every path.
    pub fn non_resource_urls(
        self,
        urls: impl IntoIterator<Item = impl Into<String>>,
    ) -> RuleBuilder<Who, UrlsWithoutVerbs>
    where
        What: HasVerbs,
    {
        let urls = NonResourcePolicyRule { non_resource_urls: texts(urls), ..NonResourcePolicyRule::default() };
        self.with(UrlsWithoutVerbs(urls))
    }

    /// All requests: every verb on every resource and on every path.
    pub fn everything(self) -> RuleBuilder<Who, WithRequests>
    where
        What: HasVerbs,
    {
        self.resources([EVERY]).verbs([EVERY]).non_resource_urls([EVERY]).verbs([EVERY])
    }
}

/// Which of the resources.
impl<Who> RuleBuilder<Who, ResourcesWithoutVerbs> {
    /// Only of these API groups; the empty text is the core group.
    pub fn api_groups(mut self, groups: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.what.0.api_groups.extend(texts(groups));
        self
    }

    /// Only in these namespaces, or `*` alone for every namespace, and not what lies outside of namespaces unless
    /// [`cluster_scope`](Self::cluster_scope) is called too.
    pub fn namespaces(mut self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.what.0.namespaces.extend(texts(namespaces));
        self
    }

    /// Only what lies outside of namespaces, and what is in the [`namespaces`](Self::namespaces) that are named.
    pub fn cluster_scope(mut self) -> Self {
        self.what.0.cluster_scope = true;
        self
    }

    /// The verbs with which the resources are asked for, or `*` alone for every verb.
    pub fn verbs(self, verbs: impl IntoIterator<Item = impl Into<String>>) -> RuleBuilder<Who, WithRequests> {
        let Self { mut rule, who, what: ResourcesWithoutVerbs(mut resources) } = self;
        resources.verbs = texts(verbs);
        if resources.api_groups.is_empty() {
            resources.api_groups = texts([EVERY]);
        }
        if resources.namespaces.is_empty() && !resources.cluster_scope {
            resources.namespaces = texts([EVERY]);
            resources.cluster_scope = true;
        }
        rule.resource_rules.push(resources);
        RuleBuilder { rule, who, what: WithRequests }
    }
}

impl<Who> RuleBuilder<Who, UrlsWithoutVerbs> {
    /// The verbs with which the paths are asked for, or `*` alone for every verb.
    pub fn verbs(self, verbs: impl IntoIterator<Item = impl Into<String>>) -> RuleBuilder<Who, WithRequests> {
        let Self { mut rule, who, what: UrlsWithoutVerbs(urls) } = self;
        rule.non_resource_rules.push(NonResourcePolicyRule { verbs: texts(verbs), ..urls });
        RuleBuilder { rule, who, what: WithRequests }
    }
}

impl<Who, What> RuleBuilder<Who, What> {
    fn with<Next>(self, what: Next) -> RuleBuilder<Who, Next> {
        RuleBuilder { rule: self.rule, who: self.who, what }
    }
}

impl<Who: HasSubject, What: HasRequests> RuleBuilder<Who, What> {
    pub(super) fn into_rule(self) -> PolicyRulesWithSubjects {
        self.rule
    }
}
