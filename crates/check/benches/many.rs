//! A large configuration, as YAML.

const SCHEMAS: u32 = 1000;
const RULES_OF_EACH: u32 = 5;
const LEVELS: u32 = 40;

/// Objects as a company with many teams would have them: most schemas are for a team's group or service accounts, some for all.
pub(crate) fn objects() -> String {
    let mut text = String::new();
    for level in 0..LEVELS {
        text += &format!(
            "---\napiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nmetadata:\n  name: level-{level}\n\
             spec:\n  type: Limited\n  limited:\n    nominalConcurrencyShares: 30\n    lendablePercent: 50\n    limitResponse:\n\
             \x20     type: Queue\n      queuing:\n        queues: 64\n        handSize: 6\n        queueLengthLimit: 50\n"
        );
    }
    for schema in 0..SCHEMAS {
        let precedence = 2 + schema * 9;
        text += &format!(
            "---\napiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata:\n  name: schema-{schema:04}\nspec:\n\
             \x20 priorityLevelConfiguration:\n    name: level-{}\n  matchingPrecedence: {precedence}\n  distinguisherMethod:\n\
             \x20   type: ByUser\n  rules:\n",
            schema % LEVELS
        );
        for rule in 0..RULES_OF_EACH {
            let team = (schema * 7 + rule) % 300;
            let subject = match (schema + rule) % 4 {
                0 => format!("kind: Group\n      group:\n        name: team-{team}"),
                1 => format!(
                    "kind: ServiceAccount\n      serviceAccount:\n        namespace: ns-{team}\n        name: \"*\""
                ),
                2 => format!("kind: User\n      user:\n        name: user-{team}"),
                _ => "kind: Group\n      group:\n        name: system:authenticated".to_owned(),
            };
            text += &format!("  - subjects:\n    - {subject}\n");
            if rule == 4 {
                text += &format!(
                    "    nonResourceRules:\n    - verbs: [\"get\"]\n      nonResourceURLs: [\"/team/{team}/*\", \"/v/{schema}\"]\n"
                );
            } else {
                let (verb, resource) = (["get", "list", "watch", "create"][rule as usize], (schema * 3 + rule) % 200);
                text += &format!(
                    "    resourceRules:\n    - verbs: [\"{verb}\", \"update\"]\n      apiGroups: [\"group-{}\", \"\"]\n      resources: \
                     [\"things-{resource}\", \"things-{resource}/status\"]\n      namespaces: [\"ns-{team}\", \"ns-{}\"]\n",
                    schema % 30,
                    (team + 1) % 300
                );
            }
        }
    }
    text
}
