//! `FlowSchemaSpec` and its parts, the same in all versions (API-6).

use crate::schema::{ListType, TypeName, Union, declare_choice, declare_type};
use crate::{Kind, Spec};

/// The place of a flow schema that names none (API-22).
pub const MATCHING_PRECEDENCE_DEFAULT: i32 = 1000;
/// The largest number, and so the last place, that a flow schema may have (API-37).
pub const MATCHING_PRECEDENCE_MAX: i32 = 10_000;

declare_type! {
    /// Says which requests belong together, into which flows they are split, and which priority level they go to.
    pub struct FlowSchemaSpec(TypeName::Fixed("FlowSchemaSpec"), Flowcontrol) {
        /// The priority level that the requests go to. While no level has that name, the flow schema is left aside
        /// and its status says so.
        priority_level_configuration "priorityLevelConfiguration" = 1: PriorityLevelConfigurationReference [required],
        /// Where the flow schema stands when several match a request: the lowest number wins, and among equals the
        /// name that sorts first. From 1 to 10000.
        matching_precedence "matchingPrecedence" = 2: i32 [always_written default(MATCHING_PRECEDENCE_DEFAULT)],
        /// How the requests of this flow schema are split into flows, which share the level's seats fairly. Without
        /// it, they are all one flow.
        distinguisher_method "distinguisherMethod" = 3: Option<FlowDistinguisherMethod> [],
        /// Which requests match: those that match at least one rule. Without rules, none.
        rules "rules" = 4: Vec<PolicyRulesWithSubjects> [list(ListType::Atomic)],
    }
}

declare_type! {
    /// Names a priority level.
    pub struct PriorityLevelConfigurationReference(
        TypeName::Fixed("PriorityLevelConfigurationReference"), Flowcontrol
    ) {
        /// The name of the priority level.
        name "name" = 1: String [required always_written],
    }
}

declare_type! {
    /// How requests are split into flows.
    pub struct FlowDistinguisherMethod(TypeName::Fixed("FlowDistinguisherMethod"), Flowcontrol) {
        /// What tells one flow from another: `ByUser` or `ByNamespace`.
        method "type" = 1: FlowDistinguisherMethodType [required always_written],
    }
}

declare_choice! {
    /// What tells one flow of a flow schema from another.
    pub enum FlowDistinguisherMethodType {
        /// The name of the user who asks.
        ByUser,
        /// The namespace of the object that is asked for; requests without one are one flow.
        ByNamespace,
    }
}

declare_type! {
    /// A rule: it matches a request when one of its subjects is asking and one of its resource rules or
    /// non-resource rules fits what is asked for.
    pub struct PolicyRulesWithSubjects(TypeName::Fixed("PolicyRulesWithSubjects"), Flowcontrol) {
        /// Who is asking: at least one.
        subjects "subjects" = 1: Vec<Subject> [required always_written list(ListType::Atomic)],
        /// Requests for resources, by verb, group, resource and namespace.
        resource_rules "resourceRules" = 2: Vec<ResourcePolicyRule> [list(ListType::Atomic)],
        /// Requests for other paths, by verb and path.
        non_resource_rules "nonResourceRules" = 3: Vec<NonResourcePolicyRule> [list(ListType::Atomic)],
    }
}

declare_type! {
    /// Somebody who asks: a user, a group of users or a service account, as `kind` says.
    pub struct Subject(TypeName::Fixed("Subject"), Flowcontrol, Union {
        discriminator: "kind",
        members: &[("group", "Group"), ("serviceAccount", "ServiceAccount"), ("user", "User")],
    }) {
        /// Which of the other members is set: `User`, `Group` or `ServiceAccount`.
        kind "kind" = 1: SubjectKind [required always_written],
        /// The user, if `kind` is `User`.
        user "user" = 2: Option<UserSubject> [],
        /// The group, if `kind` is `Group`.
        group "group" = 3: Option<GroupSubject> [],
        /// The service account, if `kind` is `ServiceAccount`.
        service_account "serviceAccount" = 4: Option<ServiceAccountSubject> [],
    }
}

declare_choice! {
    /// What a subject is.
    pub enum SubjectKind {
        /// A user, by name.
        User,
        /// All users of a group, by the group's name.
        Group,
        /// A service account, by namespace and name.
        ServiceAccount,
    }
}

declare_type! {
    /// A user.
    pub struct UserSubject(TypeName::Fixed("UserSubject"), Flowcontrol) {
        /// The user's name, or `*` for every user.
        name "name" = 1: String [required always_written],
    }
}

declare_type! {
    /// A group of users.
    pub struct GroupSubject(TypeName::Fixed("GroupSubject"), Flowcontrol) {
        /// The group's name, or `*` for every group.
        name "name" = 1: String [required always_written],
    }
}

declare_type! {
    /// A service account.
    pub struct ServiceAccountSubject(TypeName::Fixed("ServiceAccountSubject"), Flowcontrol) {
        /// The namespace of the service account.
        namespace "namespace" = 1: String [required always_written],
        /// The name of the service account, or `*` for all of the namespace.
        name "name" = 2: String [required always_written],
    }
}

declare_type! {
    /// Fits requests for resources: the verb, the API group, the resource and the namespace must each be listed.
    pub struct ResourcePolicyRule(TypeName::Fixed("ResourcePolicyRule"), Flowcontrol) {
        /// The verbs, or `*` alone for every verb.
        verbs "verbs" = 1: Vec<String> [required always_written list(ListType::Set)],
        /// The API groups, or `*` alone for every group. The empty text is the core group.
        api_groups "apiGroups" = 2: Vec<String> [required always_written list(ListType::Set)],
        /// The resources, with the subresource after a slash where one is meant, or `*` alone for every resource.
        resources "resources" = 3: Vec<String> [required always_written list(ListType::Set)],
        /// Whether requests that name no namespace fit.
        cluster_scope "clusterScope" = 4: bool [],
        /// The namespaces of which requests fit, or `*` alone for every namespace. May be empty only when
        /// `clusterScope` is true.
        namespaces "namespaces" = 5: Vec<String> [always_written list(ListType::Set)],
    }
}

declare_type! {
    /// Fits requests for paths that are no resources: the verb and the path must each be listed.
    pub struct NonResourcePolicyRule(TypeName::Fixed("NonResourcePolicyRule"), Flowcontrol) {
        /// The verbs, or `*` alone for every verb.
        verbs "verbs" = 1: Vec<String> [required always_written list(ListType::Set)],
        /// The paths. Each stands for itself and for everything below it, `/` and `*` for every path.
        non_resource_urls "nonResourceURLs" = 6: Vec<String> [required always_written list(ListType::Set)],
    }
}

impl Spec for FlowSchemaSpec {
    const KIND: Kind = Kind::FlowSchema;
}
