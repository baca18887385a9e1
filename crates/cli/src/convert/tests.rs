//! Texts in and out: what changes, what stays, and what is refused.

use std::collections::BTreeSet;

use evenkeel_api::Version;
use evenkeel_recorded::{Body, compared, transcripts};
use serde_json::Value;

use super::joined;
use super::rewrite::rewrite;

const ALL: [Version; 4] = Version::ALL;

fn converted(text: &str, to: Version) -> String {
    rewrite("a.yaml", text, to).unwrap_or_else(|problems| panic!("{problems}\n{text}")).text
}

fn refused(text: &str, to: Version) -> String {
    rewrite("a.yaml", text, to).unwrap_err().to_string()
}

/// Comments, quotes, blank lines, flow and block style, objects of other kinds.
const MIXED: &str = "\
# The levels of the shop.
apiVersion: \"flowcontrol.apiserver.k8s.io/v1\" # the latest
kind: PriorityLevelConfiguration
metadata:

  name: tenants   # everybody
spec:
  type: Limited
  limited:
    # A third of the seats.
    nominalConcurrencyShares:   30
    limitResponse: {type: Queue, queuing: {queues: 64, handSize: 6, queueLengthLimit: 50}}
--- # a schema
{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, metadata: {name: \"é\", annotations: {a: '{b}'}},
 spec: {priorityLevelConfiguration: {name: tenants}}}
---
# Not ours, but it says so: flowcontrol.apiserver.k8s.io/v1
apiVersion: v1
kind: ConfigMap
data: {note: \"{{ .Values.note }} flowcontrol.apiserver.k8s.io/v1 nominalConcurrencyShares\"}
---
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
- kind: PriorityLevelConfiguration
  apiVersion: 'flowcontrol.apiserver.k8s.io/v1'
  metadata: {name: small}
  spec: {type: Limited, limited: {'nominalConcurrencyShares': 5, limitResponse: {type: Reject}}}
";

/// TL-23
#[test]
fn only_what_must_change_changes() {
    let older = converted(MIXED, Version::V1beta2);
    let changed: Vec<(&str, &str)> = MIXED.lines().zip(older.lines()).filter(|(old, new)| old != new).collect();
    assert_eq!(
        changed,
        [
            (
                "apiVersion: \"flowcontrol.apiserver.k8s.io/v1\" # the latest",
                "apiVersion: \"flowcontrol.apiserver.k8s.io/v1beta2\" # the latest"
            ),
            ("    nominalConcurrencyShares:   30", "    assuredConcurrencyShares:   30"),
            (
                "{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, metadata: {name: \"é\", annotations: {a: '{b}'}},",
                "{apiVersion: flowcontrol.apiserver.k8s.io/v1beta2, kind: FlowSchema, metadata: {name: \"é\", annotations: {a: '{b}'}},"
            ),
            ("  apiVersion: 'flowcontrol.apiserver.k8s.io/v1'", "  apiVersion: 'flowcontrol.apiserver.k8s.io/v1beta2'"),
            (
                "  spec: {type: Limited, limited: {'nominalConcurrencyShares': 5, limitResponse: {type: Reject}}}",
                "  spec: {type: Limited, limited: {'assuredConcurrencyShares': 5, limitResponse: {type: Reject}}}"
            ),
        ]
    );
    assert_eq!(converted(&older, Version::V1), MIXED);
}

/// TL-24
#[test]
fn every_round_trip_gives_the_same_text() {
    for ending in ["\n", "\r\n"] {
        for mark in ["", "\u{feff}"] {
            let text = format!("{mark}{}", MIXED.replace('\n', ending));
            for (one, other) in ALL.into_iter().flat_map(|one| ALL.map(|other| (one, other))) {
                let there = converted(&converted(&text, one), other);
                assert_eq!(converted(&there, Version::V1), text, "{one} {other}");
            }
        }
    }
}

#[test]
fn a_text_without_objects_or_in_that_version_already_stays_as_it_is() {
    for text in
        ["", "# nothing\n", "a: 1", "- 1\n", MIXED, "x: *y", "apiVersion: v1\nkind: ConfigMap\ndata: {a: '{{ b }}'}\n"]
    {
        let result = rewrite("a.yaml", text, Version::V1);
        match result {
            Ok(result) => assert_eq!((result.text.as_str(), result.converted), (text, 0)),
            Err(problems) => assert_eq!(text, "x: *y", "{problems}"),
        }
    }
}

/// A level of zero shares whose metadata is written like this.
fn jail(version: &str, metadata: &str, shares: &str) -> String {
    format!(
        "apiVersion: flowcontrol.apiserver.k8s.io/{version}\nkind: PriorityLevelConfiguration\nmetadata:{metadata}\nspec:\n  \
         type: Limited\n  limited:\n    {shares}\n    limitResponse: {{type: Reject}}\n"
    )
}

const KEPT: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

#[test]
fn api_63_zero_shares_are_kept_by_the_annotation() {
    for (before, after) in [
        ("\n  name: jail", format!("\n  annotations:\n    {KEPT}: ''\n  name: jail")),
        (" {name: jail}", format!(" {{annotations: {{{KEPT}: ''}}, name: jail}}")),
        (
            "\n  name: jail\n  annotations:\n    # of ours\n    a: b",
            format!("\n  name: jail\n  annotations:\n    # of ours\n    {KEPT}: ''\n    a: b"),
        ),
        ("\n  name: jail\n  annotations: {a: b}", format!("\n  name: jail\n  annotations: {{{KEPT}: '', a: b}}")),
        (" {name: jail, annotations: {}}", format!(" {{name: jail, annotations: {{{KEPT}: ''}}}}")),
    ] {
        let text = jail("v1", before, "nominalConcurrencyShares: 0 # nobody");
        let older = converted(&text, Version::V1beta3);
        assert_eq!(older, jail("v1beta3", &after, "nominalConcurrencyShares: 0 # nobody"));
        assert_eq!(converted(&older, Version::V1beta3), older);
        let back = converted(&older, Version::V1);
        assert!(back == text || before.contains("{}") || before.contains("jail}"), "{back}");
        assert!(!back.contains(KEPT));
    }
}

#[test]
fn api_63_versions_that_cannot_say_zero_are_refused() {
    for to in [Version::V1beta2, Version::V1beta1] {
        let problem = refused(&jail("v1", " {name: jail}", "nominalConcurrencyShares: 0"), to);
        let name = to.name();
        assert_eq!(
            problem,
            format!(
                "a.yaml:7:5: PriorityLevelConfiguration \"jail\": spec.limited.nominalConcurrencyShares: {name} cannot \
                 express zero shares: it reads 0 as 30; convert to v1beta3 or v1"
            )
        );
    }
}

#[test]
fn api_63_a_zero_that_stands_for_the_default_becomes_the_default() {
    for (version, name) in [("v1beta3", "nominal"), ("v1beta2", "assured"), ("v1beta1", "assured")] {
        for zero in ["0", "-0", "00"] {
            let text = jail(version, " {name: x}", &format!("{name}ConcurrencyShares: {zero}   # default"));
            if let Ok(result) = rewrite("a.yaml", &text, Version::V1) {
                assert_eq!(result.text, jail("v1", " {name: x}", "nominalConcurrencyShares: 30   # default"));
            } else {
                assert_ne!(zero, "0");
            }
        }
    }
    // Elsewhere the annotation says nothing, and it must not begin to.
    let stray = jail("v1", &format!(" {{name: x, annotations: {{{KEPT}: '', a: b}}}}"), "lendablePercent: 0");
    let older = converted(&stray, Version::V1beta3);
    assert_eq!(older, jail("v1beta3", " {name: x, annotations: {a: b}}", "lendablePercent: 0"));
    assert!(converted(&stray, Version::V1beta2).contains(KEPT));
    // Without the field, v1beta3 and the annotation say zero.
    let metadata = format!("\n  name: x\n  annotations: # of Kubernetes\n    {KEPT}: ''");
    let text = jail("v1beta3", &metadata, "lendablePercent: 0");
    let newer = converted(&text, Version::V1);
    let metadata = "\n  name: x\n  annotations: {} # of Kubernetes";
    assert_eq!(newer, jail("v1", metadata, "nominalConcurrencyShares: 0\n    lendablePercent: 0"));
}

#[test]
fn the_annotation_goes_wherever_it_is_written() {
    for (before, after) in [
        (format!("\n  name: x\n  annotations:\n    {KEPT}: ''"), "\n  name: x".to_owned()),
        (
            format!("\n  annotations:\n    a: b\n    {KEPT}: \"\" # keep\n    c: d\n  name: x"),
            "\n  annotations:\n    a: b\n    c: d\n  name: x".to_owned(),
        ),
        (
            format!("\n  annotations:\n    {KEPT}:\n    c: d\n  name: x"),
            "\n  annotations:\n    c: d\n  name: x".to_owned(),
        ),
        (format!(" {{name: x, annotations: {{{KEPT}: ''}}}}"), " {name: x, annotations: {}}".to_owned()),
        (format!(" {{name: x, annotations: {{a: b, {KEPT}: 'yes'}}}}"), " {name: x, annotations: {a: b}}".to_owned()),
        (format!(" {{name: x, annotations: {{{KEPT}: '', a: b}}}}"), " {name: x, annotations: {a: b}}".to_owned()),
        (
            format!("\n  name: x\n  annotations:\n    # why\n    {KEPT}: ''"),
            "\n  name: x\n  annotations: {}\n    # why".to_owned(),
        ),
    ] {
        let text = jail("v1beta3", &before, "nominalConcurrencyShares: 0");
        assert_eq!(converted(&text, Version::V1), jail("v1", &after, "nominalConcurrencyShares: 0"));
    }
}

#[test]
fn templates_are_refused_with_their_line() {
    let template = jail("v1", "\n  name: {{ .Release.Name }}", "nominalConcurrencyShares: 5");
    let told = refused(&template, Version::V1beta3);
    assert!(told.starts_with("a.yaml:4:9: this is a template (it has \"{{\")"), "{told}");
    assert!(told.contains("helm template"), "{told}");
    // This one is YAML too.
    let quoted = jail("v1", "\n  name: \"{{ .Release.Name }}\"", "nominalConcurrencyShares: 5");
    assert!(refused(&quoted, Version::V1beta3).starts_with("a.yaml:4:10: this is a template"));
    let guarded = format!(
        "{{{{- if .Values.flowcontrol }}}}\n{}{{{{- end }}}}\n",
        jail("v1", " {name: x}", "lendablePercent: 0")
    );
    assert!(refused(&guarded, Version::V1beta3).starts_with("a.yaml:1:1: this is a template"));
    assert!(refused("a: b: c", Version::V1).starts_with("a.yaml:1:"), "syntax errors are told as such");
}

#[test]
fn what_cannot_be_changed_in_place_is_refused_and_named() {
    let aliased = "apiVersion: flowcontrol.apiserver.k8s.io/v1beta3\nkind: FlowSchema\n\
                   metadata: {name: a, labels: {v: &v flowcontrol.apiserver.k8s.io/v1beta3}}\nspec: {}\n---\n\
                   apiVersion: &w flowcontrol.apiserver.k8s.io/v1beta3\nkind: FlowSchema\nmetadata: {name: b, labels: {w: *w}}\n";
    let told = refused(aliased, Version::V1);
    assert!(
        told.starts_with("a.yaml:6:") && told.contains("is not written literally here, so the object cannot be edited"),
        "{told}"
    );
    let other = jail("v1", " {name: a}", "assuredConcurrencyShares: 7");
    assert!(refused(&other, Version::V1beta2).contains("does it have fields of another version?"));
    let unknown = "apiVersion: flowcontrol.apiserver.k8s.io/v1alpha1\nkind: FlowSchema\n";
    assert!(
        refused(unknown, Version::V1)
            .contains("a.yaml:1:1: apiVersion \"flowcontrol.apiserver.k8s.io/v1alpha1\" is not known")
    );
    let wrong = jail("v1beta3", " {name: a}", "nominalConcurrencyShares: many");
    assert!(refused(&wrong, Version::V1).starts_with("a.yaml:7:31: PriorityLevelConfiguration \"a\": spec.limited"));
}

#[test]
fn json_in_one_line_is_converted_in_linear_time() {
    let one = |n: usize| {
        format!(
            r#"{{"metadata":{{"name":"é{n}"}},"spec":{{"type":"Limited","limited":{{"nominalConcurrencyShares":{},"limitResponse":{{"type":"Reject"}}}}}}}}"#,
            n % 3
        )
    };
    let items: Vec<String> = (0..3000).map(one).collect();
    let text = format!(
        r#"{{"kind":"PriorityLevelConfigurationList","apiVersion":"flowcontrol.apiserver.k8s.io/v1","items":[{}]}}"#,
        items.join(",")
    );
    let older = converted(&text, Version::V1beta3);
    assert_eq!(older.matches(KEPT).count(), 1000);
    assert_eq!(converted(&older, Version::V1).replace(r#""annotations": {}, "#, ""), text);
}

#[test]
fn columns_are_characters() {
    let text =
        "{metadata: {name: 日本-é}, kind: FlowSchema, apiVersion: flowcontrol.apiserver.k8s.io/v1beta3, spec: {}}\n";
    assert_eq!(converted(text, Version::V1), text.replace("v1beta3", "v1"));
}

#[test]
fn damaged_texts_are_converted_or_refused() {
    const ROUNDS: usize = 100;
    let seed = 7;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut refusals = 0;
    for round in 0..ROUNDS {
        let mut text: Vec<char> = MIXED.chars().collect();
        for _ in 0..random.usize(1..4) {
            let from = random.usize(..text.len());
            let to = (from + random.usize(..12)).min(text.len());
            let moved: Vec<char> = text.drain(from..to).collect();
            let place = random.usize(..=text.len());
            let kept = if random.bool() { moved } else { Vec::new() };
            text.splice(place..place, kept);
        }
        let text: String = text.into_iter().collect();
        for to in ALL {
            match rewrite("a", &text, to) {
                Ok(there) => {
                    let again = rewrite("a", &there.text, to)
                        .unwrap_or_else(|problems| panic!("seed {seed}, {round}: {problems}"));
                    assert_eq!((again.text, again.converted), (there.text, 0), "seed {seed}, {round}");
                }
                Err(_) => refusals += 1,
            }
        }
    }
    assert!(refusals > 0 && refusals < 4 * ROUNDS, "{refusals}");
}

/// The objects in everything that was sent to a kube-apiserver and that it has sent.
fn recorded() -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    let is_object = |value: &Value| {
        let kind = value["kind"].as_str().unwrap_or_default();
        let version = value["apiVersion"].as_str().unwrap_or_default();
        kind.starts_with("FlowSchema") || kind.starts_with("PriorityLevel") || version == "v1" && kind == "List"
    };
    for transcript in transcripts(&[""]).unwrap_or_default() {
        for step in transcript.steps {
            match step.request.as_ref().and_then(evenkeel_recorded::Request::body) {
                Some(Body::Json(value)) if is_object(&value) => {
                    texts.insert(value.to_string());
                }
                Some(Body::Raw(text)) if text.contains("kind: ") => {
                    texts.insert(text);
                }
                _ => {}
            }
            let body = step.response.and_then(|response| response.body);
            texts.extend(body.filter(is_object).map(|value| serde_json::to_string_pretty(&value).unwrap()));
        }
    }
    texts
}

/// The version that all objects of a text are in, if that is one.
fn version_of(text: &str) -> Option<Version> {
    let mut versions = ALL.into_iter().filter(|version| text.contains(&format!("{}\"", version.api_version())));
    versions.next().filter(|_| versions.next().is_none())
}

/// TL-24
#[test]
fn round_trips_of_all_recorded_objects_are_equal() {
    let (mut equal, mut zeros) = (0, 0);
    for text in recorded() {
        let own = version_of(&text);
        // A zero stands for something else in another version, and may be written in another way when it comes back.
        let has_zero = ["ConcurrencyShares\":0", "ConcurrencyShares\": 0", KEPT].iter().any(|zero| text.contains(zero));
        for to in ALL {
            // Much of what was sent is wrong on purpose.
            let Ok(there) = rewrite("a", &text, to) else {
                zeros += usize::from(refused(&text, to).contains("cannot express zero shares"));
                continue;
            };
            match rewrite("a", &there.text, own.unwrap_or(Version::V1)) {
                Ok(again) if own.is_some() && !has_zero => {
                    assert_eq!(again.text, text, "by way of {to}");
                    equal += again.converted;
                }
                // That the objects are the same was checked on both ways.
                Ok(_) => {}
                Err(problems) => assert!(problems.to_string().contains("cannot express zero shares"), "{problems}"),
            }
        }
    }
    assert!(equal > 1000 && zeros > 0, "{equal} objects are equal, {zeros} have zero shares");
    compared("objects converted and back", equal);
}

#[test]
fn only_the_first_of_several_texts_keeps_its_byte_order_mark() {
    let texts = ["\u{feff}a: 1", "\u{feff}b: 2\n", "\u{feff}---\nc: 3\n", "d: 4"];
    assert_eq!(joined(&texts), "\u{feff}a: 1\n---\nb: 2\n---\nc: 3\n---\nd: 4");
}

#[test]
fn json_stays_json_where_a_member_is_added_to_an_empty_map() {
    const ANNOTATED: &str = r#"{"apiVersion":"flowcontrol.apiserver.k8s.io/v1","kind":"PriorityLevelConfiguration","metadata":{"annotations":{},"name":"jail"},"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":0,"limitResponse":{"type":"Queue"}}}}"#;
    let annotation = r#""flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares": """#;
    let expected = ANNOTATED.replace("/v1\"", "/v1beta3\"").replace("{},", &format!("{{{annotation}}},"));
    let older = converted(ANNOTATED, Version::V1beta3);
    assert_eq!(older, expected);
    serde_json::from_str::<Value>(&older).unwrap();
    // And back: `limited` has no members.
    let bare = r#"{"apiVersion":"flowcontrol.apiserver.k8s.io/v1beta3","kind":"PriorityLevelConfiguration","metadata":{"annotations":{"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares":""},"name":"jail"},"spec":{"type":"Limited","limited":{}}}"#;
    let newer: Value = serde_json::from_str(&converted(bare, Version::V1)).unwrap();
    assert_eq!(newer["spec"]["limited"]["nominalConcurrencyShares"], 0);
}
