//! The preset for language models: what it sets, and what it leaves to the operator (LM-1, LM-2, LM-6).

use std::time::Duration;

use evenkeel_api::Preset;
use evenkeel_gateway::Config;
use evenkeel_gateway::config::{ResponseFormat, WhenClientLeaves};

fn parse(text: &str) -> Config {
    Config::parse("evenkeel.yaml", text).unwrap()
}

#[test]
fn the_preset_sets_what_nobody_has_said() {
    let config = parse("preset: llm\nupstreams: [{url: http://127.0.0.1:8000}]");
    assert_eq!(config.preset, Preset::Llm);
    assert_eq!((config.timeouts.queue, config.timeouts.response), (Duration::from_secs(120), Duration::from_secs(600)));
    assert_eq!(config.timeouts.stall, Duration::from_secs(600), "a stream may be silent before its first token");
    assert_eq!(config.responses.format(config.preset), ResponseFormat::Llm);
    assert_eq!(config.requests.when_client_leaves, Some(WhenClientLeaves::Cancel));
    for path in
        ["/v1/chat/completions", "/v1/responses", "/v1/embeddings", "/v1/messages", "/api/chat", "/api/generate"]
    {
        assert!(config.requests.routes.iter().any(|route| route.path == path), "{path}");
    }
    assert_eq!(config.check_without_files(), []);
    // What is printed says all of it, and is read back as the same.
    assert_eq!(parse(&config.to_yaml()).requests, config.requests);
    assert_eq!(Config::for_preset(Preset::Llm).requests, config.requests);
    assert_eq!(Config::for_preset(Preset::Plain), Config::default());
}

#[test]
fn what_the_file_says_goes_before_the_preset() {
    let config = parse(
        "preset: llm\ntimeouts: {queue: 15s}\nresponses: {format: openai}\nlimits: {requestBuffer: 1000}\n\
         requests: {whenClientLeaves: wait, routes: [{path: /v1/messages, seats: 3}]}",
    );
    assert_eq!((config.timeouts.queue, config.timeouts.response), (Duration::from_secs(15), Duration::from_secs(600)));
    assert_eq!(config.responses.format, Some(ResponseFormat::OpenAi));
    assert_eq!(config.limits.request_buffer, 1000);
    assert_eq!(config.requests.when_client_leaves, Some(WhenClientLeaves::Wait));
    let messages: Vec<_> = config.requests.routes.iter().filter(|route| route.path == "/v1/messages").collect();
    assert_eq!((messages.len(), messages[0].seats, &messages[0].cost), (1, 3, &None));
}

#[test]
fn matches_know_models_and_no_paths_of_theirs() {
    let settings = |rule: &str| {
        let config = parse(&format!("preset: llm\nlevels: {{a: {{share: 1}}}}\nmatch: [{rule}, {{level: a}}]"));
        config.check_short_form().iter().map(ToString::to_string).collect::<Vec<String>>()
    };
    assert_eq!(settings("{model: [org/Big-1, small], level: a}"), Vec::<String>::new());
    assert_eq!(settings("{path: /v1/models, level: a}"), Vec::<String>::new());
    let problems = settings("{path: /v1/*, level: a}");
    assert!(
        problems[0].contains("match[0].path: requests for /v1/chat/completions are known by their model"),
        "{problems:?}"
    );
    let objects = parse("preset: llm\nlevels: {a: {share: 1}}\nmatch: [{model: org/Big-1, level: a}]").short_objects();
    let schemas = objects.unwrap().flow_schemas;
    assert_eq!(schemas[0].spec.rules[0].resource_rules[0].namespaces, ["org-big-1"]);
    assert!(schemas[0].spec.rules[0].non_resource_rules.is_empty());
}

#[test]
fn weights_of_cached_tokens_are_parts_of_one() {
    let config = parse("preset: llm\nupstreams: [{url: http://127.0.0.1:8000}]\nllm: {cachedTokenWeight: 1.5}");
    let problems = config.check_without_files();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].field, "llm.cachedTokenWeight");
}
