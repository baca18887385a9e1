//! The two mandatory flow schemas (API-74).

use super::{CATCH_ALL, EXEMPT};
use crate::v1::{
    FlowDistinguisherMethod, FlowDistinguisherMethodType, FlowSchemaSpec, GroupSubject, MATCHING_PRECEDENCE_MAX,
    NonResourcePolicyRule, PolicyRulesWithSubjects, PriorityLevelConfigurationReference, ResourcePolicyRule, Subject,
    SubjectKind,
};

/// The specification of the mandatory flow schema of that name.
pub(in crate::validate) fn fixed_spec(name: &str) -> Option<FlowSchemaSpec> {
    let (matching_precedence, method, groups): (_, _, &[_]) = match name {
        EXEMPT => (1, None, &["system:masters"]),
        CATCH_ALL => {
            let groups = &["system:unauthenticated", "system:authenticated"];
            (MATCHING_PRECEDENCE_MAX, Some(FlowDistinguisherMethodType::ByUser), groups)
        }
        _ => return None,
    };
    Some(FlowSchemaSpec {
        priority_level_configuration: PriorityLevelConfigurationReference { name: name.to_owned() },
        matching_precedence,
        distinguisher_method: method.map(|method| FlowDistinguisherMethod { method }),
        rules: vec![everything_of(groups)],
    })
}

fn everything_of(groups: &[&str]) -> PolicyRulesWithSubjects {
    let all = || vec!["*".to_owned()];
    let subjects = groups.iter().map(|group| Subject {
        kind: SubjectKind::Group,
        group: Some(GroupSubject { name: (*group).to_owned() }),
        ..Subject::default()
    });
    PolicyRulesWithSubjects {
        subjects: subjects.collect(),
        resource_rules: vec![ResourcePolicyRule {
            verbs: all(),
            api_groups: all(),
            resources: all(),
            cluster_scope: true,
            namespaces: all(),
        }],
        non_resource_rules: vec![NonResourcePolicyRule { verbs: all(), non_resource_urls: all() }],
    }
}
