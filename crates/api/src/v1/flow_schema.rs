//! `FlowSchemaSpec` and its parts, the same in all versions (API-6).

use crate::schema::{ListType, TypeName, Union, declare_choice, declare_type};
use crate::{Kind, Spec};

/// The place of a flow schema that names none (API-22).
pub const MATCHING_PRECEDENCE_DEFAULT: i32 = 1000;
/// The largest number, and so the last place, that a flow schema may have (API-37).
pub const MATCHING_PRECEDENCE_MAX: i32 = 10_000;

declare_type! {
    /// Defines which requests match, how they are divided into flows, and which priority level they go to.
    pub struct FlowSchemaSpec(TypeName::Fixed("FlowSchemaSpec"), Flowcontrol) {
        /// The priority level that the requests go to. While no level has that name, the flow schema is not used, and
        /// its status has the condition `Dangling`.
        priority_level_configuration "priorityLevelConfiguration" = 1: PriorityLevelConfigurationReference [required],
        /// Decides if several flow schemas match a request: the lowest number wins, and among equal numbers the name
        /// that sorts first. From 1 to 10000.
        matching_precedence "matchingPrecedence" = 2: i32 [always_written default(MATCHING_PRECEDENCE_DEFAULT)],
        /// How the requests of this flow schema are divided into flows, which share the level's seats fairly. Without
        /// it, they are all one flow.
        distinguisher_method "distinguisherMethod" = 3: Option<FlowDistinguisherMethod> [],
        /// The rules. The flow schema matches a request if at least one rule matches. Without rules, it matches no
        /// request.
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
    /// How requests are divided into flows.
    pub struct FlowDistinguisherMethod(TypeName::Fixed("FlowDistinguisherMethod"), Flowcontrol) {
        /// How flows are distinguished: `ByUser` or `ByNamespace`.
        method "type" = 1: FlowDistinguisherMethodType [required always_written],
    }
}

declare_choice! {
    /// How the flows of a flow schema are distinguished.
    pub enum FlowDistinguisherMethodType {
        /// By the name of the user.
        ByUser,
        /// By the namespace of the requested object; requests without a namespace are one flow.
        ByNamespace,
    }
}

declare_type! {
    /// A rule. It matches a request if one of its subjects sent the request, and one of its resource rules or
    /// non-resource rules matches it.
    pub struct PolicyRulesWithSubjects(TypeName::Fixed("PolicyRulesWithSubjects"), Flowcontrol) {
        /// Who sends the request. At least one subject is required.
        subjects "subjects" = 1: Vec<Subject> [required always_written list(ListType::Atomic)],
        /// Requests for resources, by verb, group, resource and namespace.
        resource_rules "resourceRules" = 2: Vec<ResourcePolicyRule> [list(ListType::Atomic)],
        /// Requests for other paths, by verb and path.
        non_resource_rules "nonResourceRules" = 3: Vec<NonResourcePolicyRule> [list(ListType::Atomic)],
    }
}

declare_type! {
    /// Who sends a request: a user, a group of users or a service account, depending on `kind`.
    pub struct Subject(TypeName::Fixed("Subject"), Flowcontrol, Union {
        discriminator: "kind",
        members: &[("group", "Group"), ("serviceAccount", "ServiceAccount"), ("user", "User")],
    }) {
        /// Which of the other fields is set: `User`, `Group` or `ServiceAccount`.
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
    /// The kind of a subject.
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
    /// Matches requests for resources: the verb, the API group, the resource and the namespace must each be listed.
    pub struct ResourcePolicyRule(TypeName::Fixed("ResourcePolicyRule"), Flowcontrol) {
        /// The verbs, or `*` alone for every verb.
        verbs "verbs" = 1: Vec<String> [required always_written list(ListType::Set)],
        /// The API groups, or `*` alone for every group. The empty string is the core group.
        api_groups "apiGroups" = 2: Vec<String> [required always_written list(ListType::Set)],
        /// The resources, such as `pods`, or `pods/status` for a subresource; `*` alone for every resource.
        resources "resources" = 3: Vec<String> [required always_written list(ListType::Set)],
        /// Whether requests without a namespace match.
        cluster_scope "clusterScope" = 4: bool [],
        /// The namespaces whose requests match, or `*` alone for every namespace. May be empty only if `clusterScope`
        /// is true.
        namespaces "namespaces" = 5: Vec<String> [always_written list(ListType::Set)],
    }
}

declare_type! {
    /// Matches requests for paths that are not resources: the verb and the path must each be listed.
    pub struct NonResourcePolicyRule(TypeName::Fixed("NonResourcePolicyRule"), Flowcontrol) {
        /// The verbs, or `*` alone for every verb.
        verbs "verbs" = 1: Vec<String> [required always_written list(ListType::Set)],
        /// The paths. `/a` matches `/a` and everything below it, `/a/*` only what is below it. `/` and `*` match
        /// every path.
        non_resource_urls "nonResourceURLs" = 6: Vec<String> [required always_written list(ListType::Set)],
    }
}

impl Spec for FlowSchemaSpec {
    const KIND: Kind = Kind::FlowSchema;
}
