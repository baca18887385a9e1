//! The short form: what is wrong with it is told with line and advice (SF-3), and what it stands for (SF-1, SF-2).

use evenkeel_api::Preset;
use evenkeel_api::decode::{Manifest, Strictness};
use evenkeel_api::short::ShortForm;

/// A form without mistakes. Each mistake replaces a part of it.
const SOUND: &str = "\
levels:
  interactive: {share: 70, lend: 50%}
  batch:
    share: 30
    queue: 500
    perClient: 50
    wait: 30s
  blocked: {share: 0}
match:
- {path: /healthz, exempt: true}
- {user: mallory, level: blocked}
- {group: paying, level: interactive, weight: 4}
- method: POST
  path: [/reports/*, /exports/*]
  level: batch
  per: user
- {header: {X-Plan: gold}, level: interactive}
- {level: interactive}
";

/// The part of the sound form, what stands in its place, and the whole message.
const MISTAKES: [(&str, &str, &str); 62] = [
    ("level: batch", "level: bach", "15:3: match[3].level: unknown level `bach`; did you mean `batch`?"),
    (
        "level: batch",
        "level: reports",
        "15:3: match[3].level: unknown level `reports`; add it to `levels`, or use one of interactive, batch, blocked",
    ),
    ("level: batch", "level: exempt", "15:3: match[3].level: write `exempt: true` instead of `level: exempt`"),
    (
        "level: batch",
        "level: 7",
        "15:3: match[3].level: is the number 7, but must be text; write it in quotes, as \"7\"",
    ),
    ("level: batch", "levle: batch", "15:3: match[3].levle: unknown key `levle`; did you mean `level`?"),
    ("per: user", "per: usr", "16:3: match[3].per: unknown word `usr`; did you mean `user`?"),
    (
        "per: user",
        "per: cookie",
        "16:3: match[3].per: unknown word `cookie`; use `user`, `address`, `path`, `header:NAME` or `nobody`",
    ),
    (
        "per: user",
        "per: 'header:X Y'",
        "16:3: match[3].per: unknown word `header:X Y`; use `user`, `address`, `path`, `header:NAME` or `nobody`",
    ),
    (
        "per: user",
        "rate: 10/d",
        "16:3: match[3].rate: \"10/d\": must be a rate such as 100/s, 100/m or 100/h, and perhaps ;burst=50, ;unit=requests|bytes|tokens and ;excess=wait|reject",
    ),
    ("per: user", "rate: 10", "16:3: match[3].rate: is 10, but must be text, as `100/s`"),
    ("per: user", "cost: 4", "16:3: match[3].cost: is 4, but must be text, as `bytes`"),
    (
        "per: user",
        "cost: byte",
        "16:3: match[3].cost: \"byte\": must be time, bytes, tokens, header:NAME or header:NAME;keep",
    ),
    (
        "per: user",
        "seats: learnt",
        "16:3: match[3].seats: learnt seats need the cost of one seat; add `costPerSeat: 1000`, in the unit of `cost`",
    ),
    ("per: user", "seats: learned", "16:3: match[3].seats: unknown word `learned`; did you mean `learnt`?"),
    ("per: user", "seats: some", "16:3: match[3].seats: unknown word `some`; write a whole number, or `learnt`"),
    (
        "per: user",
        "costPerSeat: 9",
        "16:3: match[3].costPerSeat: has no effect without `seats: learnt`; add that, or remove it",
    ),
    (
        "per: user",
        "seatsMax: 9",
        "16:3: match[3].seatsMax: has no effect without `seats: learnt`; add that, or remove it",
    ),
    (
        "per: user",
        "seats: learnt\n  costPerSeat: 0",
        "17:3: match[3].costPerSeat: is 0, but must be a number above 0, as `1000` or `0.5`",
    ),
    (
        "per: user",
        "cost: tokens\n  rate: 9/s;unit=bytes",
        "17:3: match[3].rate: is a rate of bytes, but `cost` is tokens; write `cost: bytes`, or leave one of them out",
    ),
    (
        "exempt: true}",
        "exempt: true, rate: 9/s}",
        "10:34: match[0].rate: has no effect: exempt requests never wait; remove it",
    ),
    (
        "per: user",
        "model: large",
        "16:3: match[3].model: requests to a model are known by it, and not by method and path; leave those out",
    ),
    ("per: user", "weigth: 4", "16:3: match[3].weigth: unknown key `weigth`; did you mean `weight`?"),
    (
        "per: user",
        "color: red",
        "16:3: match[3].color: unknown key `color`; known ones are user, group, method, path, model, header, level, exempt, weight, per, seats, rate, cost, costPerSeat, seatsMax",
    ),
    ("per: user", "seats: -1", "16:3: match[3].seats: is -1, but must be a whole number from 0 to 1000000"),
    ("method: POST", "method: post", "13:3: match[3].method: unknown method \"post\"; did you mean `POST`?"),
    (
        "method: POST",
        "method: [POST, FETCH]",
        "13:18: match[3].method[1]: unknown method \"FETCH\"; did you mean `PATCH`?",
    ),
    (
        "method: POST",
        "method: BREW",
        "13:3: match[3].method: unknown method \"BREW\"; use one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, CONNECT, TRACE",
    ),
    ("method: POST", "method: '*'", "13:3: match[3].method: leave `method` out to match every method"),
    (
        "method: POST",
        "method: []",
        "13:3: match[3].method: is an empty list, which nothing matches; leave it out to match everything",
    ),
    (
        "/reports/*, ",
        "reports/*, ",
        "14:10: match[3].path[0]: \"reports/*\" does not begin with a slash; write `/reports/*`",
    ),
    (
        "/reports/*, ",
        "/rep*, ",
        "14:10: match[3].path[0]: \"/rep*\": `*` stands only at the end, after a slash; write for example `/*`",
    ),
    (
        "/reports/*, ",
        "/a/*/b, ",
        "14:10: match[3].path[0]: \"/a/*/b\": `*` stands only at the end, after a slash; write for example `/a/*`",
    ),
    ("/reports/*, ", "/a?b=c, ", "14:10: match[3].path[0]: \"/a?b=c\" has a query, which is not matched; write `/a`"),
    (
        "/reports/*, ",
        "/a/../b, ",
        "14:10: match[3].path[0]: \"/a/../b\" is never the path of a request: paths are matched without `//`, `/./` and `/../`; remove these",
    ),
    (
        "/reports/*, ",
        "/caf%C3%A9, ",
        "14:10: match[3].path[0]: \"/caf%C3%A9\": write the path as the service reads it, decoded and without spaces and fragments",
    ),
    ("path: /healthz", "path: '*'", "10:4: match[0].path: leave `path` out to match every path"),
    (
        "exempt: true}",
        "exempt: yes please}",
        "10:20: match[0].exempt: is \"yes please\", but must be `true`, or left out",
    ),
    (
        "exempt: true}",
        "exempt: true, weight: 4}",
        "10:34: match[0].weight: has no effect: exempt requests never wait; remove it",
    ),
    (", exempt: true}", "}", "10:3: match[0]: does not say where requests go; add `level: NAME` or `exempt: true`"),
    (
        "exempt: true}",
        "exempt: true, level: batch}",
        "10:20: match[0].exempt: the match names a level too; keep one of `level` and `exempt`",
    ),
    (
        "user: mallory",
        "user: 1234",
        "11:4: match[1].user: is the number 1234, but must be text; write it in quotes, as \"1234\"",
    ),
    ("user: mallory", "user: '*'", "11:4: match[1].user: leave `user` out to match everybody"),
    ("user: mallory", "user: ''", "11:4: match[1].user: is empty; name a user, or leave `user` out to match everybody"),
    (
        "user: mallory",
        "user: mallory, group: free",
        "11:19: match[1].group: a match names users or groups, not both; write a match for each",
    ),
    ("weight: 4", "weight: 0", "12:39: match[2].weight: is 0, but must be a whole number from 1 to 10000"),
    ("weight: 4", "weight: high", "12:39: match[2].weight: is \"high\", but must be a whole number, as `40`"),
    (
        "{X-Plan: gold}",
        "X-Plan",
        "17:4: match[4].header: is \"X-Plan\", but must be headers with their values; write `{X-Plan: gold}`",
    ),
    (
        "{X-Plan: gold}",
        "{X Plan: gold}",
        "17:13: match[4].header.X Plan: \"X Plan\" is not the name of a header; write one as X-Plan",
    ),
    (
        "{X-Plan: gold}",
        "{X-Plan: 1}",
        "17:13: match[4].header.X-Plan: is the number 1, but must be text; write it in quotes, as \"1\"",
    ),
    (
        "share: 70",
        "share: 70%",
        "2:17: levels.interactive.share: shares are relative to those of the other levels and have no `%`; write `70`",
    ),
    ("share: 70", "share: -5", "2:17: levels.interactive.share: is -5, but must be a whole number from 0 to 10000"),
    ("share: 70", "shares: 70", "2:17: levels.interactive.shares: unknown key `shares`; did you mean `share`?"),
    (
        "share: 70",
        "revocable: sometimes",
        "2:17: levels.interactive.revocable: is \"sometimes\", but must be `true`, or left out",
    ),
    ("lend: 50%", "lend: 150%", "2:28: levels.interactive.lend: is 150%, but must be from 0% to 100%, or `all`"),
    (
        "lend: 50%",
        "lend: half",
        "2:28: levels.interactive.lend: is \"half\", but must be a percentage or `all`; write for example `50%`",
    ),
    ("queue: 500", "queue: 0", "5:5: levels.batch.queue: is 0, so nothing could wait; write `reject: true` instead"),
    (
        "perClient: 50",
        "perClient: 60",
        "6:5: levels.batch.perClient: the queue of 500 is not a multiple of 60; write `queue: 480` or `queue: 540`, or `perClient: 50`",
    ),
    (
        "perClient: 50",
        "reject: true",
        "5:5: levels.batch.queue: has no effect: nothing waits in a level with `reject: true`; remove one of the two\n7:5: levels.batch.wait: has no effect: nothing waits in a level with `reject: true`; remove one of the two",
    ),
    ("wait: 30s", "wait: 30", "7:5: levels.batch.wait: 30 has no unit; write `30s` for seconds"),
    ("wait: 30s", "wait: 2h", "7:5: levels.batch.wait: is 2h, but must be longer than zero and at most 1h"),
    (
        "blocked: {share: 0}",
        "blocked: {share: 0, queue: 10}",
        "8:23: levels.blocked.queue: has no effect: a level with `share: 0` rejects everything; remove it, or raise the share",
    ),
    (
        "  interactive:",
        "  Interactive:",
        "2:3: levels.Interactive: \"Interactive\" cannot be the name of a level; use lower-case letters, digits and `-`, as `interactive`\n12:19: match[2].level: unknown level `interactive`; did you mean `Interactive`?\n17:28: match[4].level: unknown level `interactive`; did you mean `Interactive`?\n18:4: match[5].level: unknown level `interactive`; did you mean `Interactive`?",
    ),
];

fn told(text: &str) -> String {
    let problems = ShortForm::parse("f", text.as_bytes()).expect_err(text).to_string();
    problems.lines().map(|line| line.trim_start_matches("f:")).collect::<Vec<_>>().join("\n")
}

#[test]
fn sf_3_every_mistake_is_told_with_its_line_and_what_to_do() {
    ShortForm::parse("f", SOUND.as_bytes()).unwrap();
    let mut wrong = Vec::new();
    for (part, mistake, expected) in MISTAKES {
        assert!(SOUND.contains(part), "{part}");
        let found = told(&SOUND.replacen(part, mistake, 1));
        if found != expected {
            wrong.push(format!("{mistake}\n  expected {expected}\n  found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sf_3_mistakes_of_the_whole() {
    for (text, expected) in [
        ("levels: {a: {share: 1}}\nmach: [{level: a}]\n", "2:1: unknown key `mach`; did you mean `match`?"),
        ("levels: {a: {share: 1}}\n", "1:1: match: there is no match; end with one for everybody, `- {level: a}`"),
        ("match: [{level: a}]\n", "1:10: match[0].level: unknown level `a`; define it, as `levels: {a: {share: 100}}`"),
        (
            "match: [{path: /a, exempt: true}]\n",
            "1:1: levels: there is no level; name one, as `levels: {everyone: {share: 100}}`",
        ),
        (
            "levels: [a]\nmatch: [{level: a}]\n",
            "1:1: levels: is a list, but must be levels by name; write `interactive: {share: 70}` below it",
        ),
        (
            "levels: {a: 70}\nmatch: [{level: a}]\n",
            "1:10: levels.a: is 70, but must be what the level has; write `{share: 70}`",
        ),
        (
            "levels: {a: {share: 1}}\nmatch: {level: a}\n",
            "2:1: match: is a group of keys, but must be a list; begin each match with `- `, as `- {level: interactive}`",
        ),
        (
            "levels: {a: {share: 1}}\nmatch: [a]\n",
            "2:9: match[0]: is \"a\", but must be a match; write `- {group: paying, level: interactive}`",
        ),
        (
            "levels: {exempt: {share: 1}}\nmatch: [{exempt: true}]\n",
            "1:10: levels.exempt: is built in; write `exempt: true` in a match, and remove it here",
        ),
        (
            "levels: {catch-all: {share: 1}}\nmatch: [{level: catch-all}]\n",
            "1:10: levels.catch-all: is built in, for requests that nothing matches; give your level another name",
        ),
        (
            "levels: {a: {share: 1}, a: {share: 2}}\nmatch: [{level: a}]\n",
            "1:25: levels.a: is there twice; keep one of them",
        ),
        ("levels:\n\ta: {}\n", "2:1: YAML does not allow tabs; indent with spaces"),
        (
            "concurrency: 5\nlevels: {a: {share: 1}}\nmatch: [{level: a}]\n",
            "1:1: `concurrency` is neither `levels` nor `match`; if this is a settings file, pass it with --config",
        ),
        (
            "levels: {a: }\nmatch: [{level: a, header: {X: b, x: c}}]\n",
            "2:35: match[0].header.x: the header x is there twice; list its values: [one, two]",
        ),
    ] {
        assert_eq!(told(text), expected, "{text}");
    }
}

/// SF-2: the translation is what the documentation says it is.
#[test]
fn sf_2_the_example_becomes_these_objects() {
    let form = ShortForm::parse("f", SOUND.as_bytes()).unwrap();
    let objects = form.to_objects().unwrap();
    let texts = objects.to_objects().map(|object| match object {
        evenkeel_api::AnyObject::FlowSchema(schema) => serde_json::to_value(schema).unwrap(),
        evenkeel_api::AnyObject::PriorityLevelConfiguration(level) => serde_json::to_value(level).unwrap(),
    });
    insta::assert_snapshot!(serde_json::to_string_pretty(&texts.collect::<Vec<_>>()).unwrap());
}

/// A text of a short form is a manifest of its objects, each at the place of its line.
#[test]
fn co_and_rl_costs_and_rates_go_both_ways() {
    let text = "\
levels:
  api: {share: 100}
match:
- {path: /export, level: api, seats: learnt, cost: bytes, costPerSeat: 65536, seatsMax: 8}
- {path: /report, level: api, seats: learnt, costPerSeat: 0.5}
- {path: /query, level: api, rate: 50/m;burst=5;excess=reject, cost: header:X-Cost}
- {path: /dump, level: api, rate: 5000000/s;unit=bytes}
- {path: /chat, level: api, cost: time}
- {level: api, per: header:X-Api-Key, rate: 100/s}
";
    let form = ShortForm::parse("evenkeel.yaml", text.as_bytes()).unwrap();
    let objects = form.to_objects().unwrap();
    let noted = |index: usize| {
        let noted = &objects.flow_schemas[index].metadata.annotations;
        let ours = noted.iter().filter(|(name, _)| *name != "evenkeel.dev/match-paths");
        ours.map(|(name, value)| format!("{} {value}", name.trim_start_matches("evenkeel.dev/"))).collect::<Vec<_>>()
    };
    assert_eq!(noted(0), ["cost bytes", "cost-per-seat 65536", "seats learnt", "seats-max 8"]);
    assert_eq!(noted(1), ["cost-per-seat 0.5", "seats learnt"]);
    assert_eq!(noted(2), ["cost header:X-Cost", "rate 50/m;burst=5;excess=reject"]);
    // Said, although it is the default: the route of a request could say something else.
    assert_eq!(noted(4), ["cost time"]);
    assert_eq!(noted(5), ["flow-by header:X-Api-Key", "rate 100/s"]);
    let back = ShortForm::from_objects(&objects.priority_levels, &objects.flow_schemas).unwrap();
    assert_eq!(back, form.normal());
    assert_eq!(back.to_string(), text);
    let rule = evenkeel_api::short::ShortRule::default().level("api").rate("1/d").cost("kilos");
    let made = ShortForm::new(form.levels.clone(), vec![rule]);
    let problems: Vec<String> = made.problems().iter().map(ToString::to_string).collect();
    assert!(problems[0].starts_with("match[0].rate: \"1/d\": must be a rate"), "{problems:?}");
    assert!(problems[1].starts_with("match[0].cost: \"kilos\": must be time, bytes"), "{problems:?}");
}

#[test]
fn sf_4_a_short_form_is_read_where_manifests_are() {
    let manifest = Manifest::read_for(Preset::Plain, "f", SOUND.as_bytes(), Strictness::Strict).unwrap();
    let places: Vec<String> =
        manifest.entries.iter().map(|entry| format!("{} {}", entry.at, entry.object.name())).collect();
    assert_eq!(
        places,
        [
            "2:3 interactive",
            "3:3 batch",
            "8:3 blocked",
            "10:3 exempt-1",
            "11:3 blocked-1",
            "12:3 interactive-1",
            "13:3 batch-1",
            "17:3 interactive-2",
            "18:3 interactive-3",
        ]
    );
    let error = Manifest::read("f", SOUND.as_bytes(), Strictness::Strict).unwrap_err().to_string();
    assert_eq!(
        error,
        "f:1:1: `levels` and `match` are for ordinary services (preset `plain`); for a Kubernetes API, write objects"
    );
}

#[test]
fn sf_2_objects_that_cannot_be_said_in_short_are_named() {
    let refused = |text: &str| {
        let manifest = Manifest::read_for(Preset::Plain, "f", text.as_bytes(), Strictness::Strict).unwrap();
        let (mut levels, mut schemas) = (Vec::new(), Vec::new());
        for entry in manifest.entries {
            match entry.object {
                evenkeel_api::AnyObject::FlowSchema(schema) => schemas.push(schema),
                evenkeel_api::AnyObject::PriorityLevelConfiguration(level) => levels.push(level),
            }
        }
        let problems = ShortForm::from_objects(&levels, &schemas).unwrap_err();
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let level = |rest: &str| {
        format!(
            "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nmetadata: {{name: a{rest}}}\n\
             spec: {{type: Limited, limited: {{limitResponse: {{type: Queue, queuing: {{queues: 4, handSize: 1, queueLengthLimit: 5}}}}}}}}\n"
        )
    };
    let schema = |spec: &str| {
        format!(
            "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {{name: s}}\n\
             spec: {{priorityLevelConfiguration: {{name: exempt}}, matchingPrecedence: 5, {spec}}}\n"
        )
    };
    let rule = |subject: &str, verbs: &str| {
        format!("rules: [{{subjects: [{subject}], nonResourceRules: [{{verbs: [{verbs}], nonResourceURLs: [/a]}}]}}]")
    };
    for (text, part) in [
        (level(""), "PriorityLevelConfiguration \"a\" cannot be said in short: its clients share queues"),
        (
            level(", annotations: {evenkeel.dev/queuing: per-flow, evenkeel.dev/borrowing-weight: \"2\"}"),
            "there is no word for the annotation evenkeel.dev/borrowing-weight",
        ),
        (
            schema(&rule("{kind: User, user: {name: u}}", "get")),
            "FlowSchema \"s\" cannot be said in short: it matches GET without HEAD; add the verb head",
        ),
        (
            schema(&rule("{kind: User, user: {name: u}}, {kind: Group, group: {name: g}}", "post")),
            "it names users and groups",
        ),
        (
            schema(&rule("{kind: ServiceAccount, serviceAccount: {namespace: shop, name: jobs}}", "post")),
            "a subject is a service account",
        ),
        (
            schema(
                "rules: [{subjects: [{kind: User, user: {name: u}}], resourceRules: [{verbs: [get], apiGroups: [\"\"], resources: [pods], clusterScope: true}]}]",
            ),
            "it is about resources",
        ),
        (
            level(", annotations: {evenkeel.dev/queuing: per-flow}").replace("limited: {limit", "limited: {nominalConcurrencyShares: 0, limit"),
            "it has no shares and lets requests wait for borrowed seats; `share: 0` rejects them",
        ),
        (
            schema(&rule("{kind: User, user: {name: u}}", "'*'").replace(
                "nonResourceRules",
                "resourceRules: [{verbs: ['*'], apiGroups: ['*'], resources: ['*'], clusterScope: true, namespaces: ['*']}], nonResourceRules",
            )),
            "it is about resources beside methods and paths; remove its resourceRules",
        ),
        (
            schema(&rule("{kind: User, user: {name: u}}", "'*'").replace("[/a]", "['*']").replace(
                "nonResourceRules",
                "resourceRules: [{verbs: [get], apiGroups: ['*'], resources: ['*'], clusterScope: true}], nonResourceRules",
            )),
            "it is about every path but not about every resource",
        ),
    ] {
        assert!(refused(&text).contains(part), "{}", refused(&text));
    }
}
