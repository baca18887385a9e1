//! Keeps the mandatory and the suggested objects as they should be (API-74, API-75).

use std::collections::BTreeSet;
use std::time::Duration;

use evenkeel_api::bootstrap::{self, AUTO_UPDATE_ANNOTATION, EXEMPT};
use evenkeel_api::v1::{FlowSchemaSpec, PriorityLevelConfigurationSpec, V1};
use evenkeel_api::validate::ValidSpec;
use evenkeel_api::{HubSpec, Object, Preset, Version};
use http::StatusCode;

use crate::body::Sent;
use crate::clock::now;
use crate::failure::Failure;
use crate::managed_fields::{OnConflict, WriteTarget};
use crate::options::{DeleteOptions, Moment, Persistence, Propagation, WriteOptions};
use crate::patch::FieldValidation;
use crate::registry::{Registry, has_same_effect};
use crate::verbs::{self, Write};

/// The manager that writes the bootstrap objects.
const MANAGER: &str = "api-priority-and-fairness-config-producer-v1";

/// How often the objects are checked.
pub(crate) const PERIOD: Duration = Duration::from_secs(60);

/// The bootstrap objects of a kind, and which fields of the mandatory ones an operator may choose.
pub(crate) trait Bootstrap: HubSpec + ValidSpec {
    fn mandatory() -> &'static [Object<V1, Self>];
    fn suggested(preset: Preset) -> &'static [Object<V1, Self>];

    /// The fixed specification, with the fields that an operator may choose taken from the current one.
    fn fixed(name: &str, fixed: &Self, current: &Self) -> Self;
}

impl Bootstrap for FlowSchemaSpec {
    fn mandatory() -> &'static [Object<V1, Self>] {
        &bootstrap::mandatory().flow_schemas
    }

    fn suggested(preset: Preset) -> &'static [Object<V1, Self>] {
        &preset.suggested().flow_schemas
    }

    fn fixed(_name: &str, fixed: &Self, _current: &Self) -> Self {
        fixed.clone()
    }
}

impl Bootstrap for PriorityLevelConfigurationSpec {
    fn mandatory() -> &'static [Object<V1, Self>] {
        &bootstrap::mandatory().priority_levels
    }

    fn suggested(preset: Preset) -> &'static [Object<V1, Self>] {
        &preset.suggested().priority_levels
    }

    fn fixed(name: &str, fixed: &Self, current: &Self) -> Self {
        let exempt = if name == EXEMPT { &current.exempt } else { &None };
        Self { exempt: exempt.clone().or_else(|| fixed.exempt.clone()), ..fixed.clone() }
    }
}

/// Restores the bootstrap objects of one kind. Returns the first problem, and does everything else.
pub(crate) async fn tidy<S: Bootstrap>(registry: &Registry<S>) -> Result<(), Failure> {
    let present = registry.snapshot(Moment::Current).await?.objects;
    let find = |name: &str| present.iter().find(|object| object.name() == name);
    let mut first_failure = None;
    let mut note = |done: Result<(), Failure>| {
        if let Err(failure) = done {
            first_failure.get_or_insert(failure);
        }
    };
    for object in <S as Bootstrap>::mandatory() {
        note(match find(object.name()) {
            None => create(registry, object).await,
            Some(current) => keep_mandatory(registry, current, object).await,
        });
    }
    let suggested = S::suggested(registry.preset());
    for object in suggested {
        note(match find(object.name()) {
            None => create(registry, object).await,
            Some(current) => keep_suggested(registry, current, object).await,
        });
    }
    let known: BTreeSet<&str> = <S as Bootstrap>::mandatory().iter().chain(suggested).map(Object::name).collect();
    for object in present.iter().filter(|object| !known.contains(object.name())) {
        if auto_update(object) == Some(true) {
            note(remove(registry, object).await);
        }
    }
    first_failure.map_or(Ok(()), Err)
}

/// The value of the annotation, if it is valid.
fn auto_update<S: HubSpec>(object: &Object<V1, S>) -> Option<bool> {
    match object.metadata.annotations.get(AUTO_UPDATE_ANNOTATION)?.as_str() {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

async fn keep_mandatory<S: Bootstrap>(
    registry: &Registry<S>,
    current: &Object<V1, S>,
    wanted: &Object<V1, S>,
) -> Result<(), Failure> {
    let spec = S::fixed(wanted.name(), &wanted.spec, &current.spec);
    keep(registry, current, spec, "true").await
}

async fn keep_suggested<S: Bootstrap>(
    registry: &Registry<S>,
    current: &Object<V1, S>,
    wanted: &Object<V1, S>,
) -> Result<(), Failure> {
    // An object without the annotation is unchanged, or its specification was changed on purpose.
    let is_ours = auto_update(current).unwrap_or(current.metadata.generation == 1);
    if is_ours {
        keep(registry, current, wanted.spec.clone(), "true").await
    } else {
        keep(registry, current, current.spec.clone(), "false").await
    }
}

/// Writes specification and annotation unless they are right already.
async fn keep<S: Bootstrap>(
    registry: &Registry<S>,
    current: &Object<V1, S>,
    spec: S,
    annotation: &str,
) -> Result<(), Failure> {
    let is_marked = match auto_update(current) {
        Some(is_true) => is_true == (annotation == "true"),
        None => false,
    };
    if current.spec == spec && is_marked {
        return Ok(());
    }
    let Some(mut object) = unchanged(registry, current).await? else { return Ok(()) };
    object.spec = spec;
    object.metadata.annotations.insert(AUTO_UPDATE_ANNOTATION.to_owned(), annotation.to_owned());
    let options = write_options();
    match verbs::replace(registry, Sent::of(object), &write(current.name(), &options)).await {
        // Another writer was faster; the next round checks again.
        Err(failure) if matches!(failure.status, StatusCode::CONFLICT | StatusCode::NOT_FOUND) => Ok(()),
        replaced => replaced.map(|_| ()),
    }
}

/// The whole object, of which the snapshot has a part. None if it has changed since; the next round checks again.
async fn unchanged<S: Bootstrap>(
    registry: &Registry<S>,
    current: &Object<V1, S>,
) -> Result<Option<Object<V1, S>>, Failure> {
    match registry.get(current.name(), Moment::Current).await {
        Ok(record) if has_same_effect(current, &record.object) => {
            let mut object = Object::clone(&record.object);
            // What is sent says nothing about them.
            object.metadata.managed_fields.clear();
            Ok(Some(object))
        }
        Ok(_) => Ok(None),
        Err(failure) if failure.status == StatusCode::NOT_FOUND => Ok(None),
        Err(failure) => Err(failure),
    }
}

async fn create<S: Bootstrap>(registry: &Registry<S>, object: &Object<V1, S>) -> Result<(), Failure> {
    let options = write_options();
    match verbs::create(registry, Sent::of(object.clone()), &write("", &options)).await {
        Err(failure) if failure.status == StatusCode::CONFLICT => Ok(()),
        created => created.map(|_| ()),
    }
}

async fn remove<S: Bootstrap>(registry: &Registry<S>, current: &Object<V1, S>) -> Result<(), Failure> {
    let Some(current) = unchanged(registry, current).await? else { return Ok(()) };
    let options = DeleteOptions {
        persistence: Persistence::Stored,
        propagation: Propagation::Background,
        uid: Some(current.metadata.uid.clone()),
        resource_version: Some(current.metadata.resource_version.clone()),
    };
    match verbs::delete(registry, current.name(), &options, now()).await {
        Err(failure) if matches!(failure.status, StatusCode::CONFLICT | StatusCode::NOT_FOUND) => Ok(()),
        deleted => deleted.map(|_| ()),
    }
}

fn write_options() -> WriteOptions {
    WriteOptions {
        persistence: Persistence::Stored,
        validation: FieldValidation::Ignore,
        manager: MANAGER.to_owned(),
        on_conflict: OnConflict::Refuse,
    }
}

fn write<'a>(name: &'a str, options: &'a WriteOptions) -> Write<'a> {
    Write { version: Version::V1, name, endpoint: WriteTarget::Object, options, now: now(), weight: 0, seats: None }
}
