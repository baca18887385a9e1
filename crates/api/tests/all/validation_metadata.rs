//! Metadata of both kinds: names, labels, annotations, finalizers and owners (API-30 to API-34).

use crate::validated;

use evenkeel_api::meta::{ObjectMeta, OwnerReference};
use evenkeel_api::v1::V1;
use evenkeel_api::validate::ValidSpec;
use evenkeel_api::{Object, Version, validate};
use validated::{SUBDOMAIN, level, problems, problems_of, schema};

const QUALIFIED_NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// What is found when the metadata of a valid object is spoilt: the same for both kinds, created or updated.
fn problems_after(spoil: impl Fn(&mut ObjectMeta)) -> Vec<String> {
    fn of<S: ValidSpec>(old: &Object<V1, S>, spoil: impl Fn(&mut ObjectMeta)) -> Vec<String> {
        let mut object = old.clone();
        spoil(&mut object.metadata);
        let created = problems_of(&object);
        assert_eq!(problems(validate::update(&object, old, Version::V1)), created);
        created
    }
    let found = of(&schema(), &spoil);
    assert_eq!(of(&level(), &spoil), found);
    found
}

#[test]
fn api_30_names_are_subdomains() {
    for name in ["a", "0", "a-b.c--d.9", &"a".repeat(253)] {
        assert_eq!(problems_after(|metadata| metadata.name = name.into()), [""; 0], "{name}");
    }
    for name in ["A", "-a", "a-", "a..b", ".", "a.", ".a", "a.-b", "a_b", "a/b", "a%b", "é", "a b"] {
        let expected = [format!("metadata.name: Invalid value: {name:?}: {SUBDOMAIN}")];
        assert_eq!(problems_after(|metadata| metadata.name = name.into()), expected);
    }
    let long = "a".repeat(254);
    let expected = [format!("metadata.name: Invalid value: {long:?}: must be no more than 253 characters")];
    assert_eq!(problems_after(|metadata| metadata.name = long.clone()), expected);
    let long = "A".repeat(254);
    let expected = [
        format!("metadata.name: Invalid value: {long:?}: must be no more than 253 characters"),
        format!("metadata.name: Invalid value: {long:?}: {SUBDOMAIN}"),
    ];
    assert_eq!(problems_after(|metadata| metadata.name = long.clone()), expected);
}

#[test]
fn api_30_a_prefix_may_end_in_a_dash_and_is_checked_beside_the_name() {
    for prefix in ["a", "a-", "a--", "a.b-"] {
        assert_eq!(problems_after(|metadata| metadata.generate_name = prefix.into()), [""; 0], "{prefix}");
    }
    for prefix in ["-", "a.", "a.-", "_"] {
        let expected = [format!("metadata.generateName: Invalid value: {prefix:?}: {SUBDOMAIN}")];
        assert_eq!(problems_after(|metadata| metadata.generate_name = prefix.into()), expected);
    }
    let spoil = |metadata: &mut ObjectMeta| {
        metadata.generate_name = "Bad_".into();
        metadata.name = "Bad_xxxxx".into();
    };
    let expected = [
        format!("metadata.generateName: Invalid value: \"Bad_\": {SUBDOMAIN}"),
        format!("metadata.name: Invalid value: \"Bad_xxxxx\": {SUBDOMAIN}"),
    ];
    assert_eq!(problems_after(spoil), expected);
}

#[test]
fn api_30_a_name_or_a_prefix_is_required() {
    let expected = ["metadata.name: Required value: name or generateName is required"];
    assert_eq!(problems_after(|metadata| metadata.name.clear()), expected);
}

#[test]
fn api_31_keys_are_qualified_names() {
    let long = "a".repeat(64);
    let table: [(&str, &[String]); 10] = [
        ("", &["name part must be non-empty".into(), format!("name part {QUALIFIED_NAME}")]),
        ("a/", &["name part must be non-empty".into(), format!("name part {QUALIFIED_NAME}")]),
        (&long, &["name part must be no more than 63 bytes".into()]),
        ("bad key!", &[format!("name part {QUALIFIED_NAME}")]),
        ("_a", &[format!("name part {QUALIFIED_NAME}")]),
        ("/name", &["prefix part must be non-empty".into()]),
        ("b_d/name", &[format!("prefix part {SUBDOMAIN}")]),
        (
            "a/b/c",
            &[format!(
                "a valid label key {QUALIFIED_NAME} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            )],
        ),
        ("a", &[]),
        ("example.com/My_name.0-1", &[]),
    ];
    for (key, details) in table {
        let expected = |field: &str| -> Vec<_> {
            details.iter().map(|detail| format!("metadata.{field}: Invalid value: {key:?}: {detail}")).collect()
        };
        let found = problems_after(|metadata| _ = metadata.labels.insert(key.into(), "v".into()));
        assert_eq!(found, expected("labels"));
        let found = problems_after(|metadata| _ = metadata.annotations.insert(key.into(), "!".into()));
        assert_eq!(found, expected("annotations"));
    }
    let long = format!("{}/a", "a".repeat(254));
    let expected =
        [format!("metadata.labels: Invalid value: {long:?}: prefix part must be no more than 253 characters")];
    assert_eq!(problems_after(|metadata| _ = metadata.labels.insert(long.clone(), String::new())), expected);
}

#[test]
fn api_31_prefixes_may_be_upper_case_in_annotations_only() {
    let key = "Example.COM/name";
    assert_eq!(problems_after(|metadata| _ = metadata.annotations.insert(key.into(), String::new())), [""; 0]);
    let expected = [format!("metadata.labels: Invalid value: {key:?}: prefix part {SUBDOMAIN}")];
    assert_eq!(problems_after(|metadata| _ = metadata.labels.insert(key.into(), String::new())), expected);
    let expected = [format!("metadata.annotations: Invalid value: \"A B\": name part {QUALIFIED_NAME}")];
    assert_eq!(problems_after(|metadata| _ = metadata.annotations.insert("A B".into(), String::new())), expected);
}

#[test]
fn api_32_label_values_are_short_names() {
    for value in ["", "a", "A_b.c-9", &"x".repeat(63)] {
        assert_eq!(problems_after(|metadata| _ = metadata.labels.insert("k".into(), value.into())), [""; 0]);
    }
    let expected = |value: &str, detail: &str| [format!("metadata.labels: Invalid value: {value:?}: {detail}")];
    for value in ["bad value!", "-a", "a_", ".", "é"] {
        let found = problems_after(|metadata| _ = metadata.labels.insert("k".into(), value.into()));
        assert_eq!(found, expected(value, LABEL_VALUE));
    }
    let long = "x".repeat(64);
    let found = problems_after(|metadata| _ = metadata.labels.insert("k".into(), long.clone()));
    assert_eq!(found, expected(&long, "must be no more than 63 bytes"));
}

#[test]
fn api_32_annotations_have_room_for_so_much() {
    let fill = |bytes: usize| {
        problems_after(|metadata| {
            metadata.annotations.insert("a".into(), "x".repeat(1000));
            metadata.annotations.insert("key".into(), "x".repeat(bytes - 1004));
        })
    };
    assert_eq!(fill(262_144), [""; 0]);
    assert_eq!(fill(262_145), ["metadata.annotations: Too long: may not be more than 262144 bytes"]);
}

#[test]
fn api_33_finalizers_say_whose_they_are() {
    let found_in = |finalizers: &[&str]| {
        problems_after(|metadata| metadata.finalizers = finalizers.iter().map(ToString::to_string).collect())
    };
    assert_eq!(found_in(&["orphan", "kubernetes", "example.com/a"]), [""; 0]);
    assert_eq!(found_in(&["foregroundDeletion"]), [""; 0]);
    let unknown = "name is neither a standard finalizer name nor is it fully qualified";
    assert_eq!(
        found_in(&["a.b/c", "noslash"]),
        [format!("metadata.finalizers[1]: Invalid value: \"noslash\": {unknown}")]
    );
    assert_eq!(
        found_in(&["b d/c", "!"]),
        [
            format!("metadata.finalizers: Invalid value: \"b d/c\": prefix part {SUBDOMAIN}"),
            format!("metadata.finalizers: Invalid value: \"!\": name part {QUALIFIED_NAME}"),
            format!("metadata.finalizers[1]: Invalid value: \"!\": {unknown}"),
        ]
    );
    assert_eq!(
        found_in(&["foregroundDeletion", "orphan"]),
        [
            r#"metadata.finalizers: Invalid value: ["foregroundDeletion","orphan"]: finalizer orphan and foregroundDeletion cannot be both set"#
        ]
    );
}

fn owner(api_version: &str, kind: &str) -> OwnerReference {
    let (name, uid) = ("x".into(), "u".into());
    OwnerReference { api_version: api_version.into(), kind: kind.into(), name, uid, ..Default::default() }
}

#[test]
fn api_34_owner_references_are_complete() {
    let found_in = |owners: &[OwnerReference]| problems_after(|metadata| metadata.owner_references = owners.to_vec());
    assert_eq!(found_in(&[owner("v1", "Namespace"), owner("apps/v1", "Event")]), [""; 0]);
    assert_eq!(
        found_in(&[owner("v1", "Namespace"), OwnerReference::default()]),
        [
            "metadata.ownerReferences[1].apiVersion: Required value: must not be empty",
            "metadata.ownerReferences[1].kind: Required value: must not be empty",
            "metadata.ownerReferences[1].name: Required value: must not be empty",
            "metadata.ownerReferences[1].uid: Required value: must not be empty",
        ]
    );
    assert_eq!(
        found_in(&[owner("a/b/c", "K")]),
        [r#"metadata.ownerReferences[0].apiVersion: Invalid value: "a/b/c": must be <group>/<version> or <version>"#]
    );
    assert_eq!(
        found_in(&[owner("v1", "Event")]),
        [
            r#"metadata.ownerReferences[0]: Invalid value: {"apiVersion":"v1","kind":"Event","name":"x","uid":"u"}: /v1, Kind=Event is disallowed from being an owner"#
        ]
    );
}

#[test]
fn api_34_one_owner_is_the_controller() {
    let controller = |kind| OwnerReference { controller: Some(true), ..owner("v1", kind) };
    let found_in = |owners: &[OwnerReference]| problems_after(|metadata| metadata.owner_references = owners.to_vec());
    let idle = OwnerReference { controller: Some(false), ..owner("v1", "C") };
    assert_eq!(found_in(&[controller("A"), idle.clone()]), [""; 0]);
    assert_eq!(
        found_in(&[idle, controller("A"), controller("B")]),
        [
            r#"metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"C","name":"x","uid":"u","controller":false},{"apiVersion":"v1","kind":"A","name":"x","uid":"u","controller":true},{"apiVersion":"v1","kind":"B","name":"x","uid":"u","controller":true}]: Only one reference can have Controller set to true. Found "true" in references for A/x and B/x"#
        ]
    );
}
