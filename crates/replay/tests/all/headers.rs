//! Flow schemas that ask for headers and addresses (SF-2): logs tell them, or the report says what could not be decided.

use evenkeel_api::Preset;
use evenkeel_api::short::ShortForm;
use evenkeel_api::v1::FlowSchema;
use evenkeel_engine::controller::Objects;
use evenkeel_replay::{Format, Input, Replay, Report, Settings, Template};

/// Gold before all others, told apart by tenant; the rest by address.
fn objects() -> Objects {
    let form = "{levels: {gold: {share: 60}, rest: {share: 40}}, match: [{path: /health, exempt: true}, \
                {header: {X-Plan: gold}, level: gold, per: 'header:X-Tenant'}, {level: rest, per: address}]}";
    Objects::from(&ShortForm::parse("form", form.as_bytes()).unwrap().to_objects().unwrap())
}

fn replay(format: Option<Format>, text: &str) -> Report {
    let reader = Box::new(std::io::Cursor::new(text.to_owned().into_bytes()));
    let mut input = Input::new("test.log", reader, None, format).unwrap();
    let mut replay = Replay::new(Settings::new(Preset::Plain, 50), vec![objects()], None);
    replay.read(&mut input, |_, _| {});
    let report = replay.finish();
    assert_eq!(report.damaged.count(), 0);
    report
}

/// The flows as `schema level flow × requests`, in order.
fn flows(report: &Report) -> Vec<String> {
    let name = |flow: &evenkeel_replay::Flow| {
        let name = &flow.names[0];
        format!("{} {} × {}", name.level, name.distinguisher.as_deref().unwrap_or("*"), flow.requests)
    };
    let mut flows: Vec<_> = report.flows.iter().map(name).collect();
    flows.sort();
    flows
}

const GOLD: [&str; 3] = ["gold a × 2", "gold b × 1", "rest 192.0.2.7 × 1"];

/// The own log has what its flow schemas asked for, also that a header was not there.
#[test]
fn the_own_log_tells_headers_and_addresses() {
    let line = |headers: &str, class: &str| {
        format!(
            r#"{{"time":"2026-11-16T10:51:03.6Z","client":"192.0.2.7","user":"u","groups":[],"method":"GET","path":"/","headers":{headers},{class},"seats":1,"waitMs":0,"serviceMs":4}}"#
        ) + "\n"
    };
    let objects = objects();
    let class = |level: &str| {
        let of_level = |schema: &&std::sync::Arc<FlowSchema>| schema.spec.priority_level_configuration.name == level;
        let schema = objects.flow_schemas.iter().find(of_level).unwrap().name();
        format!(r#""schema":"{schema}","level":"{level}""#)
    };
    let (gold, rest) = (&*class("gold"), &*class("rest"));
    let text = [
        line(r#"{"x-plan":"gold","x-tenant":"a"}"#, gold),
        line(r#"{"x-tenant":"a","x-plan":"gold"}"#, gold),
        line(r#"{"x-plan":"gold","x-tenant":"b"}"#, gold),
        line(r#"{"x-plan":null,"x-tenant":"b"}"#, rest),
    ];
    let report = replay(None, &text.concat());
    assert_eq!(flows(&report), GOLD);
    assert_eq!((report.notes.untold_headers, report.notes.untold_addresses), (0, 0));
    assert_eq!((report.comparison.compared, report.comparison.agree), (4, 4));
}

/// Variables of nginx, operators of Envoy, and members of objects that are called as the header is.
#[test]
fn other_logs_tell_headers_that_they_have() {
    let nginx = "$msec|$remote_addr|$request|$request_time|$http_x_plan|$http_x_tenant";
    let envoy = "%START_TIME%|%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%|%REQ(:METHOD)% %REQ(:PATH)%|%DURATION%|%REQ(X-Plan)%|%REQ(X-TENANT):20%";
    let rows = [("gold", "a"), ("gold", "a"), ("gold", "b"), ("-", "b")];
    let lines = |start: &str, request: &str| -> String {
        let row = |(plan, tenant): &(&str, &str)| format!("{start}|192.0.2.7|{request}|4|{plan}|{tenant}\n");
        rows.iter().map(row).collect()
    };
    let json = |plan: &str, tenant: &str| -> String {
        let row = |(value, name): &(&str, &str)| {
            format!(
                r#"{{"msec":"1794826263.850","remote_addr":"192.0.2.7","request":"GET / HTTP/1.1","request_time":"0.004","{plan}":"{value}","{tenant}":"{name}"}}"#
            ) + "\n"
        };
        rows.iter().map(row).collect()
    };
    let template = |format| Some(Format::Template(Template::parse(format).unwrap()));
    for (format, text) in [
        (template(nginx), lines("1794826263.850", "GET / HTTP/1.1")),
        (template(envoy), lines("2026-11-16T10:51:03Z", "GET /")),
        (None, json("http_x_plan", "http_x_tenant")),
        (None, json("x_plan", "x-tenant")),
    ] {
        let report = replay(format, &text);
        assert_eq!(flows(&report), GOLD, "{text}");
        assert_eq!(report.notes.untold_headers, 0, "{text}");
    }
}

/// What cannot be decided is counted, and only that.
#[test]
fn headers_that_a_log_does_not_have_are_named() {
    let format = || Some(Format::Template(Template::parse("$msec|$remote_user|$request|$http_x_tenant").unwrap()));
    let text = "1794826263.850|u|GET / HTTP/1.1|a\n1794826263.850|u|GET /health HTTP/1.1|a\n";
    let report = replay(format(), text);
    assert_eq!(report.notes.untold_headers, 1, "the other request is exempt whatever its headers are");
    assert_eq!(report.notes.untold_header_names.iter().collect::<Vec<_>>(), ["x-plan"]);
    assert_eq!(report.notes.untold_addresses, 1);
}
