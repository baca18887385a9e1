//! Objects that are made in Rust are validated as those of a manifest are, and every problem is told at once.

use evenkeel::api::build::generate_name;
use evenkeel::objects::{InvalidObjects, Objects};
use evenkeel::{FlowControl, FlowControlBuilder, FlowSchema, Preset, PriorityLevelConfiguration};

use crate::service::level_names;

fn builder() -> FlowControlBuilder {
    FlowControl::builder().server_concurrency(10).drive_by_hand()
}

fn level(name: &str) -> PriorityLevelConfiguration {
    PriorityLevelConfiguration::builder(name).limited(|l| l.shares(10).reject()).build()
}

fn schema(name: &str, level: &str) -> FlowSchema {
    FlowSchema::builder(name).priority_level(level).rule(|r| r.user("*").everything()).build()
}

fn texts(invalid: &InvalidObjects) -> Vec<String> {
    invalid.iter().map(ToString::to_string).collect()
}

#[test]
fn every_problem_of_every_object_is_told() {
    let bad_level = PriorityLevelConfiguration::builder("Gold_x").limited(|l| l.shares(-5).reject()).build();
    let rule = |url: &'static str, verb: &'static str| {
        let schema = FlowSchema::builder(verb.to_lowercase()).priority_level("gold");
        schema.rule(|r| r.user("*").non_resource_urls([url]).verbs([verb])).build()
    };
    let invalid = builder().objects(bad_level).objects([rule("orders", "get"), rule("/orders", "FETCH")]).try_build();
    let invalid = invalid.unwrap_err();
    let lines = texts(&invalid);
    let gold = "there is no priority level \"gold\": correct the name, or add the level; \
                there are \"Gold_x\", \"catch-all\", \"exempt\"";
    let level = "PriorityLevelConfiguration \"Gold_x\": ";
    assert!(lines[0].starts_with(&format!("{level}metadata.name: Invalid value: \"Gold_x\": a lowercase RFC 1123")));
    assert!(lines[0].ends_with(": use lower-case letters, digits and '-'"), "{}", lines[0]);
    let shares = "spec.limited.nominalConcurrencyShares: Invalid value: -5: must be a non-negative integer";
    assert_eq!(lines[1], format!("{level}{shares}"));
    let path = "spec.rules[0].nonResourceRules[0]";
    assert_eq!(
        lines[2],
        format!(
            "FlowSchema \"get\": {path}.nonResourceURLs[0]: Invalid value: \"orders\": must start with slash: begin paths \
             with a slash; '*' stands alone or after the last slash, as in '/orders/*'"
        )
    );
    assert!(lines[3].starts_with(&format!("FlowSchema \"fetch\": {path}.verbs: Unsupported value: [\"FETCH\"]: ")));
    assert!(
        lines[3].ends_with(": use methods in lower case; Kubernetes' verbs are for `kubernetes()`"),
        "{}",
        lines[3]
    );
    for (line, name) in [(4, "get"), (5, "fetch")] {
        assert_eq!(lines[line], format!("FlowSchema \"{name}\": spec.priorityLevelConfiguration.name: {gold}"));
    }
    let text = invalid.to_string();
    assert_eq!(text.lines().count(), 7, "{text}");
    assert!(
        text.starts_with("the objects of the flow control have 6 problems:\n  PriorityLevelConfiguration"),
        "{text}"
    );
}

#[test]
#[should_panic(
    expected = "FlowSchema \"orders\": spec.priorityLevelConfiguration.name: there is no priority level \"gold\""
)]
fn build_panics_with_the_problems() {
    builder().objects(schema("orders", "gold")).build();
}

#[test]
fn what_is_wrong_changes_nothing_in_a_flow_control_that_runs() {
    let flow = builder().objects(level("gold")).objects(schema("orders", "gold")).build();
    let before = level_names(&flow);
    let invalid = flow.apply([schema("orders", "silver")]).unwrap_err();
    assert!(texts(&invalid)[0].contains("there is no priority level \"silver\""));
    assert_eq!(level_names(&flow), before);
    assert!(flow.report().dangling.is_empty());

    let objects: Objects = [level("silver").into(), schema("orders", "silver").into()].into_iter().collect();
    flow.apply(objects).unwrap();
    assert!(level_names(&flow).contains(&"silver".to_owned()));
}

#[test]
fn two_objects_of_one_name_are_a_problem() {
    let invalid = builder().objects([level("gold"), level("gold")]).objects(schema("gold", "gold")).try_build();
    assert_eq!(texts(&invalid.unwrap_err()), ["PriorityLevelConfiguration \"gold\": is there twice: keep one of them"]);
    let own = builder().exempt_paths(["/healthz"]).objects(schema("exempt-paths", "catch-all"));
    assert_eq!(texts(&own.try_build().unwrap_err()), ["FlowSchema \"exempt-paths\": is there twice: keep one of them"]);
    let flow = builder().exempt_paths(["/healthz"]).build();
    assert!(flow.apply(schema("exempt-paths", "catch-all")).is_err());
}

#[test]
fn nobody_makes_up_a_name() {
    let unnamed = PriorityLevelConfiguration::builder(generate_name("gold-")).limited(|l| l.shares(1).reject()).build();
    let invalid = builder().objects(unnamed).try_build().unwrap_err();
    let text = "metadata.name: the object has no name: name it: only an API server makes up names";
    assert_eq!(texts(&invalid), [format!("PriorityLevelConfiguration \"\": {text}")]);
}

/// A level may be in the text that cannot be read, so that nothing is said of those that are missing.
#[test]
fn problems_of_texts_and_of_objects_are_told_together() {
    let invalid = builder().objects("kind: FlowSchema").objects(schema("Orders", "gold")).try_build().unwrap_err();
    let lines = texts(&invalid);
    assert!(lines[0].starts_with("manifest:1:1: apiVersion is missing"), "{lines:?}");
    assert!(lines[1].starts_with("FlowSchema \"Orders\": metadata.name: "), "{lines:?}");
    assert_eq!(lines.len(), 2);
    assert_eq!(invalid.iter().map(|problem| problem.at.is_some()).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn a_flow_schema_of_a_text_needs_its_level_too() {
    let text = "
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: orders}
spec: {priorityLevelConfiguration: {name: gold}}
";
    let invalid = builder().objects(text).try_build().unwrap_err();
    assert!(texts(&invalid)[0].contains("there is no priority level \"gold\""), "{invalid}");
    builder().objects(text).objects(level("gold")).build();
}

#[test]
fn objects_are_checked_by_the_rules_of_the_preset() {
    let post = || {
        let schema = FlowSchema::builder("uploads").priority_level("catch-all");
        schema.rule(|r| r.user("*").non_resource_urls(["/files/*"]).verbs(["post"])).build()
    };
    builder().objects(post()).build();
    let invalid = builder().kubernetes().objects(post()).try_build().unwrap_err();
    assert!(texts(&invalid)[0].ends_with("methods are for services other than Kubernetes APIs"), "{invalid}");
}

#[test]
fn the_objects_of_the_presets_are_valid() {
    for preset in Preset::ALL {
        builder().preset(preset).objects(Objects::from(preset)).build();
    }
}

#[test]
fn stored_objects_are_used_as_they_are() {
    let stored: Objects = [schema("orders", "gold").into()].into_iter().collect();
    let flow = builder().stored_objects(stored.clone()).build();
    assert!(flow.report().dangling[0].is_dangling);
    assert!(flow.apply_stored(stored.clone()).dangling[0].is_dangling);
    assert!(flow.apply(stored).is_err());
}
