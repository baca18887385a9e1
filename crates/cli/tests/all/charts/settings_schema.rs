//! The schema of the chart's value `settings`: it is made from the reader of the settings, so that helm refuses what the gateway would
//! refuse.

use std::fmt::Write;
use std::fs;

use evenkeel_api::short::{ShortLevel, ShortRule};
use evenkeel_gateway::Config;
use serde_json::{Value, json};

use super::reader_shape::{Shape, Step, Wanted, wanted};
use super::rendered::{Helm, chart};

/// The schema of what the reader wants at the end of a path.
fn schema(path: &[Step]) -> Value {
    match path {
        // The short form has a reader of its own, which knows its words.
        [Step::Field("levels")] => {
            return json!({"type": "object", "additionalProperties": object(ShortLevel::KEYS, |_| json!({}))});
        }
        [Step::Field("match")] => return json!({"type": "array", "items": object(ShortRule::KEYS, |_| json!({}))}),
        // Its reader takes numbers and texts, and knows which.
        [.., Step::Field("concurrency")] => return concurrency(),
        _ => {}
    }
    let Wanted { shape, is_optional } = wanted::<Config>(path);
    let below = |step: Step| schema(&[path, &[step]].concat());
    let mut schema = match shape {
        Shape::Fields(names) => object(names.iter().copied(), |name| below(Step::Field(name))),
        Shape::Map => json!({"type": "object", "additionalProperties": below(Step::Member)}),
        Shape::List => json!({"type": "array", "items": below(Step::Item)}),
        Shape::Choice(names) => return choice(path, names, is_optional),
        Shape::Text => json!({"type": "string"}),
        Shape::Integer => json!({"type": "integer"}),
        Shape::Number => json!({"type": "number"}),
        Shape::Boolean => json!({"type": "boolean"}),
        Shape::Anything | Shape::Word => json!({}),
    };
    if let (true, Some(kind)) = (is_optional, schema.get_mut("type")) {
        *kind = json!([kind.clone(), "null"]);
    }
    schema
}

/// A number of seats, `auto`, or `auto` with bounds.
fn concurrency() -> Value {
    let pattern = r"^auto(:[1-9][0-9]*\.\.[1-9][0-9]*)?$";
    json!({"type": ["integer", "string"], "minimum": 1, "maximum": u32::MAX, "pattern": pattern})
}

/// An object with these fields and no others.
fn object(names: impl IntoIterator<Item = &'static str>, below: impl Fn(&'static str) -> Value) -> Value {
    let properties: serde_json::Map<_, _> = names.into_iter().map(|name| (name.to_owned(), below(name))).collect();
    json!({"type": "object", "additionalProperties": false, "properties": properties})
}

/// One of several words, or an object with one field, as YAML has choices.
fn choice(path: &[Step], names: &[&'static str], is_optional: bool) -> Value {
    let of = |name: &'static str| [path, &[Step::Variant(name)]].concat();
    let is_word = |name: &&'static str| wanted::<Config>(&of(name)).shape == Shape::Word;
    let (words, objects): (Vec<&'static str>, Vec<&'static str>) = names.iter().copied().partition(is_word);
    let mut words: Vec<Value> = words.into_iter().map(Value::from).collect();
    if objects.is_empty() {
        words.extend(is_optional.then_some(Value::Null));
        return json!({ "enum": words });
    }
    let mut one = object(objects, |name| schema(&of(name)));
    (one["minProperties"], one["maxProperties"]) = (1.into(), 1.into());
    if words.is_empty() { one } else { json!({"anyOf": [{ "enum": words }, one]}) }
}

/// JSON as the file has it: what fits into a line is on one.
fn pretty(value: &Value, indent: usize) -> String {
    let line = one_line(value);
    if line.len() + indent <= 130 {
        return line;
    }
    let (inner, outer) = (" ".repeat(indent + 2), " ".repeat(indent));
    let members: Vec<String> = match value {
        Value::Object(members) => {
            members.iter().map(|(name, value)| format!("{inner}\"{name}\": {}", pretty(value, indent + 2))).collect()
        }
        Value::Array(items) => items.iter().map(|item| format!("{inner}{}", pretty(item, indent + 2))).collect(),
        _ => return line,
    };
    let [open, close] = if value.is_object() { ['{', '}'] } else { ['[', ']'] };
    format!("{open}\n{}\n{outer}{close}", members.join(",\n"))
}

fn one_line(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<_> =
                members.iter().map(|(name, value)| format!("\"{name}\": {}", one_line(value))).collect();
            format!("{{{}}}", members.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(one_line).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

const BEGIN: &str = "    \"settings\": ";
const END: &str = ",\n    \"objects\": ";

#[test]
fn the_schema_has_every_setting_that_the_reader_knows() {
    let mut settings = schema(&[]);
    settings["description"] =
        "The settings of evenkeel.yaml. The templates refuse those that other values set, and say which.".into();
    // `settings: null` in a chart around this one removes them.
    settings["type"] = json!(["object", "null"]);
    let path = chart().join("values.schema.json");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (kept, after) = rest.split_once(END).unwrap();
    let made = pretty(&settings, 4);
    if std::env::var_os("EVENKEEL_UPDATE").is_some() {
        fs::write(&path, [before, BEGIN, &made, END, after].concat()).unwrap();
        return;
    }
    assert!(
        kept == made,
        "the schema of `settings` is not what the settings are; update it with\n\
         EVENKEEL_UPDATE=1 cargo test -p evenkeel-cli --test all charts"
    );
}

#[test]
fn helm_refuses_settings_that_the_gateway_would_refuse() {
    let Some(helm) = Helm::find() else { return };
    let mut missed = String::new();
    for wrong in [
        "settings.timeouts.qeue=5s",
        "settings.timeouts.queue=5",
        "settings.timeouts=5s",
        "settings.requests.routes[0].seat=3",
        "settings.requests.routes[0].seats=three",
        "settings.requests.routes.path=/a",
        "settings.identity.sources[0].apiKeys.file=a",
        "settings.identity.sources[0].apiKey.fil=a",
        "settings.identity.anonymous=maybe",
        "settings.log.access=xml",
        "settings.limits.connections=many",
        "settings.levels.paying.shares=50",
        "settings.levels.paying=50",
        "settings.match[0].levl=paying",
        "settings.health.consecutive=x",
        "settings.cors.origin=a",
        "settings.services.shop.concurrency=many",
        "settings.services.shop.concurrency=auto:10",
        "settings.services.shop.concurrency=0",
    ] {
        if helm.try_render("gateway", &[wrong]).is_ok() {
            writeln!(missed, "{wrong}").unwrap();
        }
    }
    assert_eq!(missed, "", "accepted");
    for right in [
        "settings.timeouts.queue=5s",
        "settings.requests.routes[0].path=/a,settings.requests.routes[0].seats=3",
        "settings.identity.anonymous=deny",
        "settings.levels.paying.share=100,settings.match[0].level=paying",
        "settings.services.shop.host=shop,settings.services.shop.upstream=http://a,settings.services.shop.concurrency=auto:10..400",
        "settings.services.shop.host=shop,settings.services.shop.upstream=http://a,settings.services.shop.concurrency=40",
    ] {
        helm.try_render("gateway", &[right]).unwrap_or_else(|error| panic!("{right}: {error}"));
    }
}
