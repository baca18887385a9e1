//! Random flow schemas.

use evenkeel_api::v1::{
    FlowDistinguisherMethod, FlowDistinguisherMethodType, FlowSchema, FlowSchemaSpec, GroupSubject,
    MATCHING_PRECEDENCE_MAX, NonResourcePolicyRule, PolicyRulesWithSubjects, PriorityLevelConfigurationReference,
    ResourcePolicyRule, ServiceAccountSubject, Subject, SubjectKind, UserSubject,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::meta::{object_meta, sound_object_meta};
use super::{few, name, namespace, number, star_or, status, text};

/// A flow schema.
pub fn flow_schema() -> BoxedStrategy<FlowSchema> {
    prop_oneof![sound_flow_schema(), wild_flow_schema()].boxed()
}

/// A flow schema that makes sense, as a manifest has it.
pub fn sound_flow_schema() -> BoxedStrategy<FlowSchema> {
    let method = select(vec![FlowDistinguisherMethodType::ByUser, FlowDistinguisherMethodType::ByNamespace]);
    let spec = (name(), 2..=MATCHING_PRECEDENCE_MAX, option::of(method), few(sound_rule())).prop_map(spec);
    (sound_object_meta(), spec).prop_map(|(metadata, spec)| FlowSchema::new(metadata, spec)).boxed()
}

/// A flow schema in which any member may hold anything.
pub fn wild_flow_schema() -> BoxedStrategy<FlowSchema> {
    let method = prop_oneof![Just("ByUser".to_owned()), Just("ByNamespace".to_owned()), text()]
        .prop_map(FlowDistinguisherMethodType::from);
    let spec = (text(), number(), option::of(method), few(wild_rule())).prop_map(spec);
    (object_meta(), spec, status())
        .prop_map(|(metadata, spec, status)| {
            let mut schema = FlowSchema::new(metadata, spec);
            schema.status = status;
            schema
        })
        .boxed()
}

fn spec(
    (level, matching_precedence, method, rules): (
        String,
        i32,
        Option<FlowDistinguisherMethodType>,
        Vec<PolicyRulesWithSubjects>,
    ),
) -> FlowSchemaSpec {
    FlowSchemaSpec {
        priority_level_configuration: PriorityLevelConfigurationReference { name: level },
        matching_precedence,
        distinguisher_method: method.map(|method| FlowDistinguisherMethod { method }),
        rules,
    }
}

fn sound_rule() -> BoxedStrategy<PolicyRulesWithSubjects> {
    let either = prop_oneof![
        (vec(sound_resource_rule(), 1..=2), few(sound_non_resource_rule())),
        (few(sound_resource_rule()), vec(sound_non_resource_rule(), 1..=2)),
    ];
    (vec(sound_subject(), 1..=2), either)
        .prop_map(|(subjects, (resource_rules, non_resource_rules))| PolicyRulesWithSubjects {
            subjects,
            resource_rules,
            non_resource_rules,
        })
        .boxed()
}

fn wild_rule() -> BoxedStrategy<PolicyRulesWithSubjects> {
    (few(wild_subject()), few(wild_resource_rule()), few(wild_non_resource_rule()))
        .prop_map(|(subjects, resource_rules, non_resource_rules)| PolicyRulesWithSubjects {
            subjects,
            resource_rules,
            non_resource_rules,
        })
        .boxed()
}

fn sound_subject() -> BoxedStrategy<Subject> {
    let who = "(\\*|system:[a-z]{1,6}|[a-z]{1,6})";
    prop_oneof![
        who.prop_map(|name| Subject {
            kind: SubjectKind::User,
            user: Some(UserSubject { name }),
            ..Subject::default()
        }),
        who.prop_map(|name| Subject {
            kind: SubjectKind::Group,
            group: Some(GroupSubject { name }),
            ..Subject::default()
        }),
        (namespace(), prop_oneof![Just("*".to_owned()), name()]).prop_map(|(namespace, name)| Subject {
            kind: SubjectKind::ServiceAccount,
            service_account: Some(ServiceAccountSubject { namespace, name }),
            ..Subject::default()
        }),
    ]
    .boxed()
}

fn wild_subject() -> BoxedStrategy<Subject> {
    let kind = prop_oneof![select(vec!["User".to_owned(), "Group".into(), "ServiceAccount".into()]), text()]
        .prop_map(SubjectKind::from);
    let user = text().prop_map(|name| UserSubject { name });
    let group = text().prop_map(|name| GroupSubject { name });
    let service_account = (text(), text()).prop_map(|(namespace, name)| ServiceAccountSubject { namespace, name });
    (kind, option::of(user), option::of(group), option::of(service_account))
        .prop_map(|(kind, user, group, service_account)| Subject { kind, user, group, service_account })
        .boxed()
}

fn sound_resource_rule() -> BoxedStrategy<ResourcePolicyRule> {
    let api_group = select(vec![String::new(), "apps".into(), "coordination.k8s.io".into()]);
    let resource = select(vec!["pods".to_owned(), "pods/log".into(), "leases".into()]);
    let scope = prop_oneof![
        (any::<bool>(), star_or(namespace())),
        Just((true, Vec::new())), // only what has no namespace
    ];
    (verbs(), star_or(api_group), star_or(resource), scope)
        .prop_map(|(verbs, api_groups, resources, (cluster_scope, namespaces))| ResourcePolicyRule {
            verbs,
            api_groups,
            resources,
            cluster_scope,
            namespaces,
        })
        .boxed()
}

fn wild_resource_rule() -> BoxedStrategy<ResourcePolicyRule> {
    (few(text()), few(text()), few(text()), any::<bool>(), few(text()))
        .prop_map(|(verbs, api_groups, resources, cluster_scope, namespaces)| ResourcePolicyRule {
            verbs,
            api_groups,
            resources,
            cluster_scope,
            namespaces,
        })
        .boxed()
}

fn sound_non_resource_rule() -> BoxedStrategy<NonResourcePolicyRule> {
    (verbs(), star_or("(/|(/[a-z]{1,4}){1,2}(/\\*)?)".boxed()))
        .prop_map(|(verbs, non_resource_urls)| NonResourcePolicyRule { verbs, non_resource_urls })
        .boxed()
}

fn wild_non_resource_rule() -> BoxedStrategy<NonResourcePolicyRule> {
    (few(text()), few(text()))
        .prop_map(|(verbs, non_resource_urls)| NonResourcePolicyRule { verbs, non_resource_urls })
        .boxed()
}

fn verbs() -> BoxedStrategy<Vec<String>> {
    star_or(select(vec!["get".to_owned(), "list".into(), "watch".into(), "create".into(), "delete".into()])).boxed()
}
