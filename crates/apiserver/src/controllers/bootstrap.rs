//! Keeps the mandatory and the suggested objects as they should be (API-74, API-75).

use std::collections::BTreeSet;
use std::time::Duration;

use evenkeel_api::bootstrap::{self, AUTO_UPDATE_ANNOTATION, EXEMPT};
use evenkeel_api::v1::{FlowSchemaSpec, PriorityLevelConfigurationSpec, V1};
use evenkeel_api::validate::ValidSpec;
use evenkeel_api::{HubSpec, Object, Version};
use http::StatusCode;

use crate::body::Sent;
use crate::clock::now;
use crate::failure::Failure;
use crate::managed_fields::{Endpoint, OnConflict};
use crate::options::{DeleteOptions, Moment, Persistence, Propagation, WriteOptions};
use crate::patch::FieldValidation;
use crate::registry::{Record, Registry, Unlisted};
use crate::verbs::{self, Write};

/// Who writes the bootstrap objects.
const MANAGER: &str = "api-priority-and-fairness-config-producer-v1";

/// How often they are looked at.
pub(crate) const PERIOD: Duration = Duration::from_secs(60);

/// What a kind has of bootstrap objects, and what an operator may choose in a mandatory one.
pub(crate) trait Bootstrap: HubSpec + ValidSpec {
    fn mandatory() -> &'static [Object<V1, Self>];
    fn suggested() -> &'static [Object<V1, Self>];

    /// What the fixed specification is where an operator has chosen what may be chosen.
    fn fixed(name: &str, fixed: &Self, current: &Self) -> Self;
}

impl Bootstrap for FlowSchemaSpec {
    fn mandatory() -> &'static [Object<V1, Self>] {
        &bootstrap::mandatory().flow_schemas
    }

    fn suggested() -> &'static [Object<V1, Self>] {
        &bootstrap::suggested().flow_schemas
    }

    fn fixed(_name: &str, fixed: &Self, _current: &Self) -> Self {
        fixed.clone()
    }
}

impl Bootstrap for PriorityLevelConfigurationSpec {
    fn mandatory() -> &'static [Object<V1, Self>] {
        &bootstrap::mandatory().priority_levels
    }

    fn suggested() -> &'static [Object<V1, Self>] {
        &bootstrap::suggested().priority_levels
    }

    fn fixed(name: &str, fixed: &Self, current: &Self) -> Self {
        let exempt = if name == EXEMPT { &current.exempt } else { &None };
        Self { exempt: exempt.clone().or_else(|| fixed.exempt.clone()), ..fixed.clone() }
    }
}

/// Puts the objects of one kind in order. Says what could not be done, and does the rest.
pub(crate) async fn tidy<S: Bootstrap>(registry: &Registry<S>) -> Result<(), Failure> {
    let page = registry.list(Moment::Current, 0, None).await.map_err(|error| match error {
        Unlisted::Expired => Failure::expired("the present state is gone"),
        Unlisted::Failed(failure) => failure,
    })?;
    let find = |name: &str| page.items.iter().find(|record| record.object.name() == name);
    let mut first_failure = None;
    let mut note = |done: Result<(), Failure>| {
        if let Err(failure) = done {
            first_failure.get_or_insert(failure);
        }
    };
    for object in <S as Bootstrap>::mandatory() {
        note(match find(object.name()) {
            None => create(registry, object).await,
            Some(record) => keep_mandatory(registry, record, object).await,
        });
    }
    for object in S::suggested() {
        note(match find(object.name()) {
            None => create(registry, object).await,
            Some(record) => keep_suggested(registry, record, object).await,
        });
    }
    let known: BTreeSet<&str> = <S as Bootstrap>::mandatory().iter().chain(S::suggested()).map(Object::name).collect();
    for record in page.items.iter().filter(|record| !known.contains(record.object.name())) {
        if auto_update(&record.object) == Some(true) {
            note(remove(registry, record).await);
        }
    }
    first_failure.map_or(Ok(()), Err)
}

/// What the annotation says, if it says anything that makes sense.
fn auto_update<S: HubSpec>(object: &Object<V1, S>) -> Option<bool> {
    match object.metadata.annotations.get(AUTO_UPDATE_ANNOTATION)?.as_str() {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

async fn keep_mandatory<S: Bootstrap>(
    registry: &Registry<S>,
    record: &Record<S>,
    wanted: &Object<V1, S>,
) -> Result<(), Failure> {
    let spec = S::fixed(wanted.name(), &wanted.spec, &record.object.spec);
    keep(registry, record, spec, "true").await
}

async fn keep_suggested<S: Bootstrap>(
    registry: &Registry<S>,
    record: &Record<S>,
    wanted: &Object<V1, S>,
) -> Result<(), Failure> {
    // Who says nothing has changed nothing, or has changed the specification and means it.
    let is_ours = auto_update(&record.object).unwrap_or(record.object.metadata.generation == 1);
    if is_ours {
        keep(registry, record, wanted.spec.clone(), "true").await
    } else {
        keep(registry, record, record.object.spec.clone(), "false").await
    }
}

/// Writes specification and annotation unless they are so already.
async fn keep<S: Bootstrap>(
    registry: &Registry<S>,
    record: &Record<S>,
    spec: S,
    annotation: &str,
) -> Result<(), Failure> {
    let is_marked = match auto_update(&record.object) {
        Some(is_true) => is_true == (annotation == "true"),
        None => false,
    };
    if record.object.spec == spec && is_marked {
        return Ok(());
    }
    let mut object = Object::clone(&record.object);
    object.spec = spec;
    object.metadata.annotations.insert(AUTO_UPDATE_ANNOTATION.to_owned(), annotation.to_owned());
    object.metadata.managed_fields.clear();
    let options = write_options();
    match verbs::replace(registry, Sent::of(object), &write(record.object.name(), &options)).await {
        // Somebody else was faster; the next time will tell.
        Err(failure) if matches!(failure.status, StatusCode::CONFLICT | StatusCode::NOT_FOUND) => Ok(()),
        replaced => replaced.map(|_| ()),
    }
}

async fn create<S: Bootstrap>(registry: &Registry<S>, object: &Object<V1, S>) -> Result<(), Failure> {
    let options = write_options();
    match verbs::create(registry, Sent::of(object.clone()), &write("", &options)).await {
        Err(failure) if failure.status == StatusCode::CONFLICT => Ok(()),
        created => created.map(|_| ()),
    }
}

async fn remove<S: Bootstrap>(registry: &Registry<S>, record: &Record<S>) -> Result<(), Failure> {
    let options = DeleteOptions {
        persistence: Persistence::Stored,
        propagation: Propagation::Background,
        uid: Some(record.object.metadata.uid.clone()),
        resource_version: Some(record.object.metadata.resource_version.clone()),
    };
    match verbs::delete(registry, record.object.name(), &options, now()).await {
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
    Write { version: Version::V1, name, endpoint: Endpoint::Object, options, now: now() }
}
