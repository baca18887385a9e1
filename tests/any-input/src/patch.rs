//! Patches of all sorts: any bytes give an object or a refusal, never a panic, and never an answer that blames the server.

use std::sync::LazyLock;

use evenkeel_api::meta::{OwnerReference, Time};
use evenkeel_api::v1::{Condition, FlowSchemaSpec, PriorityLevelConfigurationSpec, V1};
use evenkeel_api::{AnyObject, HubSpec, Object, Version, bootstrap};
use evenkeel_apiserver::Failure;
use evenkeel_apiserver::managed_fields::{
    ApplyBody, ApplyRequest, OnConflict, SentManagers, WriteTarget, Writer, apply, created, differs, updated,
};
use evenkeel_apiserver::patch::{FieldValidation, PatchedDocument, json_patch, merge_patch, strategic_merge_patch};
use serde_json::Value;

/// The objects that are patched.
struct Targets {
    schema: Object<V1, FlowSchemaSpec>,
    level: Object<V1, PriorityLevelConfigurationSpec>,
}

static TARGETS: LazyLock<Targets> = LazyLock::new(Targets::new);
const NOW: i64 = 1_700_000_000;

/// Takes the first byte for the sort of patch and the endpoint, and the rest for its body. Patches both kinds in every
/// version.
///
/// # Panics
/// If a patch is answered 500 where the specification does not say so, if what comes out is not an object, or if the same
/// apply again changes anything.
pub fn patch(input: &[u8]) {
    let Some((sort, body)) = input.split_first() else { return };
    let endpoint = if sort & 4 == 0 { WriteTarget::Object } else { WriteTarget::Status };
    for version in Version::ALL {
        let writer = Writer { manager: if sort & 8 == 0 { "someone" } else { "kubectl" }, version, endpoint };
        match sort & 3 {
            0 => patch_both(writer, |_, document| json_patch(document, body)),
            1 => patch_both(writer, |_, document| merge_patch(document, body)),
            2 => patch_both(writer, |kind, document| strategic_merge_patch(kind, version, document, body)),
            _ => {
                apply_to(&TARGETS.schema, writer, body);
                apply_to(&TARGETS.level, writer, body);
            }
        }
    }
}

fn patch_both(writer: Writer<'_>, apply: impl Fn(evenkeel_api::Kind, Value) -> Result<PatchedDocument, Failure>) {
    patch_one(&TARGETS.schema, writer, &apply);
    patch_one(&TARGETS.level, writer, &apply);
}

fn patch_one<S: HubSpec>(
    old: &Object<V1, S>,
    writer: Writer<'_>,
    apply: &impl Fn(evenkeel_api::Kind, Value) -> Result<PatchedDocument, Failure>,
) {
    let document = serde_json::to_value(old.in_version(writer.version)).expect("an object is always written");
    let patched = match apply(S::KIND, document) {
        Ok(patched) => patched,
        Err(failure) => return check_failure(&failure),
    };
    if let Err(failure) = patched.decode::<S>(writer.version, FieldValidation::Strict) {
        check_failure(&failure);
    }
    let patched = match patched.decode::<S>(writer.version, FieldValidation::Warn) {
        Ok(patched) => patched,
        Err(failure) => return check_failure(&failure),
    };
    let mut new = patched.object;
    updated(old, &mut new, patched.sent, writer, Time::from_unix_seconds(NOW));
    differs(old, &mut new);
    check_object(&new, writer);
}

fn apply_to<S: HubSpec>(live: &Object<V1, S>, writer: Writer<'_>, body: &[u8]) {
    let body = match ApplyBody::parse(body, S::KIND, writer.version) {
        Ok(body) => body,
        Err(failure) => return check_failure(&failure),
    };
    let request = ApplyRequest { body: &body, name: live.name(), on_conflict: OnConflict::Refuse, writer };
    // The status of an object that does not exist is never written.
    let states = if writer.endpoint == WriteTarget::Object { vec![Some(live), None] } else { vec![Some(live)] };
    for live in states {
        let refusable = apply(live, request, Time::from_unix_seconds(NOW));
        let forced =
            apply(live, ApplyRequest { on_conflict: OnConflict::Force, ..request }, Time::from_unix_seconds(NOW));
        match (&refusable, &forced) {
            (Ok(one), Ok(other)) => assert_eq!(one, other, "force matters only where there is a conflict"),
            (Err(failure), _) => check_failure(failure),
            (_, Err(failure)) => panic!("only refused when forced: {failure}"),
        }
        let Ok(new) = forced else { continue };
        check_object(&new, writer);
        // Validation rejects it (API-51), so nobody ever applies to such an object.
        if new.status.conditions.iter().any(|condition| condition.condition.is_empty()) {
            continue;
        }
        let again = ApplyRequest { on_conflict: OnConflict::Force, ..request };
        let mut again = apply(Some(&new), again, Time::from_unix_seconds(NOW + 1)).expect("what could be applied once");
        assert!(!differs(&new, &mut again), "the same again changed\n{new:?}\ninto\n{again:?}");
    }
}

/// What comes out is an object that is the same when it is written and read again, and that an update of nothing leaves
/// alone.
fn check_object<S: HubSpec>(object: &Object<V1, S>, writer: Writer<'_>) {
    let document = serde_json::to_value(object.in_version(Version::V1)).expect("an object is always written");
    let patched = merge_patch(document, b"{}").expect("an empty patch");
    let again = patched.decode::<S>(Version::V1, FieldValidation::Strict).expect("what is written is an object");
    assert_eq!(again.object, *object);
    let mut new = again.object;
    updated(object, &mut new, SentManagers::AsDecoded, writer, Time::from_unix_seconds(NOW + 1));
    assert!(!differs(object, &mut new), "an update of nothing changed\n{object:?}\ninto\n{new:?}");
}

/// The specification has two answers that blame the server for a patch (API-122, API-125).
fn check_failure(failure: &Failure) {
    let message = &failure.message;
    let is_known = message.starts_with("failed to create typed patch object (")
        || (message.starts_with("map: ") && message.contains(" does not contain declared merge key: "));
    assert!(failure.status.is_client_error() || is_known, "{} {message}", failure.status);
    serde_json::to_value(failure).expect("a failure is always written");
}

// === impl Targets ===

impl Targets {
    fn new() -> Self {
        let mut targets = Self { schema: Object::default(), level: Object::default() };
        for object in bootstrap::all().to_objects() {
            match object {
                AnyObject::FlowSchema(object) if object.name() == "service-accounts" => targets.schema = object,
                AnyObject::PriorityLevelConfiguration(object) if object.name() == "workload-low" => {
                    targets.level = object;
                }
                _ => {}
            }
        }
        dress(&mut targets.schema);
        dress(&mut targets.level);
        targets
    }
}

/// Gives an object something of everything that can be patched.
fn dress<S: HubSpec>(object: &mut Object<V1, S>) {
    let metadata = &mut object.metadata;
    "target".clone_into(&mut metadata.name);
    metadata.labels.insert("a".to_owned(), "1".to_owned());
    metadata.finalizers = vec!["example.com/a".to_owned(), "example.com/b".to_owned()];
    let reference = OwnerReference { uid: "u-1".to_owned(), name: "x".to_owned(), ..OwnerReference::default() };
    metadata.owner_references = vec![reference];
    let last_applied = r#"{"apiVersion":"flowcontrol.apiserver.k8s.io/v1","metadata":{"labels":{"a":"1"}}}"#;
    let annotation = "kubectl.kubernetes.io/last-applied-configuration".to_owned();
    metadata.annotations.insert(annotation, last_applied.to_owned());
    let writer = Writer { manager: "creator", version: Version::V1, endpoint: WriteTarget::Object };
    created(object, writer, Time::from_unix_seconds(NOW - 2));
    let mut new = object.clone();
    let condition = |name: &str| Condition { condition: name.to_owned(), ..Condition::default() };
    new.status.conditions = vec![condition("A"), condition("B")];
    let writer = Writer { manager: "controller", version: Version::V1beta2, endpoint: WriteTarget::Status };
    updated(object, &mut new, SentManagers::AsDecoded, writer, Time::from_unix_seconds(NOW - 1));
    *object = new;
}
