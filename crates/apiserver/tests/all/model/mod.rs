//! A server of one kind in memory, as small as it can be: what a caller of `patch` and `managed_fields` has to do.

use std::collections::BTreeMap;

use evenkeel_api::decode::{Decoded, Document, parse_json};
use evenkeel_api::meta::Time;
use evenkeel_api::v1::V1;
use evenkeel_api::validate::{self, ValidSpec};
use evenkeel_api::{GROUP, HubSpec, Object, Version};
use evenkeel_apiserver::Failure;
use evenkeel_apiserver::managed_fields::{
    ApplyBody, ApplyRequest, OnConflict, SentManagers, WriteTarget, Writer, apply, created, differs, updated,
};
use evenkeel_apiserver::patch::{FieldValidation, Patched, json_patch, merge_patch, strategic_merge_patch};
use serde_json::{Value, json};

/// The objects of one kind.
pub(crate) struct Server<S: HubSpec> {
    pub(crate) objects: BTreeMap<String, Object<V1, S>>,
    last: u64,
    now: i64,
}

/// A request.
pub(crate) struct Call<'a> {
    pub(crate) method: &'a str,
    pub(crate) name: &'a str,
    pub(crate) endpoint: WriteTarget,
    pub(crate) version: Version,
    pub(crate) manager: &'a str,
    pub(crate) validation: FieldValidation,
    pub(crate) dry_run: bool,
    pub(crate) on_conflict: OnConflict,
    pub(crate) content_type: &'a str,
    pub(crate) body: &'a [u8],
}

/// The response to a request.
#[derive(Debug)]
pub(crate) struct ModelResponse {
    pub(crate) status: u16,
    pub(crate) body: Value,
    pub(crate) warnings: Vec<String>,
}

/// The outcome of a write.
struct Written<S: HubSpec> {
    status: u16,
    object: Object<V1, S>,
    warnings: Vec<String>,
}

/// Why there is no object.
enum Refusal {
    Failure(Failure, Vec<String>),
    NotFound,
}

// === impl Refusal ===

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure, Vec::new())
    }
}

// === impl Server ===

impl<S: HubSpec + ValidSpec> Server<S> {
    pub(crate) fn new() -> Self {
        Self { objects: BTreeMap::new(), last: 100, now: 1_700_000_000 }
    }

    /// Responds to a request; the clock advances by a second.
    pub(crate) fn respond(&mut self, call: &Call<'_>) -> ModelResponse {
        self.now += 1;
        let written = match call.method {
            "GET" => self.get(call),
            "POST" => self.post(call),
            "PUT" => self.put(call),
            "PATCH" if call.content_type.starts_with("application/apply-patch") => self.apply(call),
            "PATCH" => self.patch(call),
            "DELETE" => return self.delete(call),
            other => panic!("no such method: {other}"),
        };
        match written {
            Ok(Written { status, object, warnings }) => {
                ModelResponse { status, body: shown(&object, call.version), warnings }
            }
            Err(Refusal::NotFound) => not_found::<S>(call.name),
            Err(Refusal::Failure(failure, warnings)) => ModelResponse {
                status: failure.status.as_u16(),
                body: serde_json::to_value(&failure).unwrap(),
                warnings,
            },
        }
    }

    fn time(&self) -> Time {
        Time::from_unix_seconds(self.now)
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn stored(&self, name: &str) -> Result<Object<V1, S>, Refusal> {
        self.objects.get(name).cloned().ok_or(Refusal::NotFound)
    }

    fn get(&self, call: &Call<'_>) -> Result<Written<S>, Refusal> {
        Ok(Written { status: 200, object: self.stored(call.name)?, warnings: Vec::new() })
    }

    fn post(&mut self, call: &Call<'_>) -> Result<Written<S>, Refusal> {
        let (Decoded { mut object, .. }, warnings, _) = decode::<S>(call)?;
        if !object.metadata.resource_version.is_empty() {
            return Err(Failure::plain("resourceVersion should not be set on objects to be created").into());
        }
        self.prepare_new(&mut object);
        validate::create(&object, call.version).map_err(|errors| Failure::invalid(S::KIND, object.name(), &errors))?;
        created(&mut object, writer(call), self.time());
        Ok(self.create(object, call, warnings))
    }

    fn prepare_new(&mut self, object: &mut Object<V1, S>) {
        object.status = evenkeel_api::v1::Status::default();
        object.metadata.uid = format!("00000000-0000-4000-8000-{:012}", self.next());
        object.metadata.creation_timestamp = Some(self.time());
        object.metadata.generation = 1;
        object.metadata.resource_version = String::new();
        object.metadata.deletion_timestamp = None;
        object.metadata.deletion_grace_period_seconds = None;
    }

    fn create(&mut self, mut object: Object<V1, S>, call: &Call<'_>, warnings: Vec<String>) -> Written<S> {
        if !call.dry_run {
            object.metadata.resource_version = self.next().to_string();
            self.objects.insert(object.name().to_owned(), object.clone());
        }
        Written { status: 201, object, warnings }
    }

    fn put(&mut self, call: &Call<'_>) -> Result<Written<S>, Refusal> {
        let (Decoded { object: new, .. }, warnings, sent) = decode::<S>(call)?;
        Failure::check_name(new.name(), call.name)?;
        let old = self.stored(call.name)?;
        let uid = &new.metadata.uid;
        if !uid.is_empty() && *uid != old.metadata.uid {
            let (resource, name, found) = (S::KIND.resource(), call.name, &old.metadata.uid);
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: /registry/{resource}/{name}, ResourceVersion: 0, \
                 AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
            );
            return Err(Failure::conflict(S::KIND, call.name, why).into());
        }
        self.update(&old, new, sent, call, warnings)
    }

    fn patch(&mut self, call: &Call<'_>) -> Result<Written<S>, Refusal> {
        let old = self.stored(call.name)?;
        let document = serde_json::to_value(old.in_version(call.version)).unwrap();
        let patched = match call.content_type {
            "application/json-patch+json" => json_patch(document, call.body),
            "application/merge-patch+json" => merge_patch(document, call.body),
            _ => strategic_merge_patch(S::KIND, call.version, document, call.body),
        }?;
        let Patched { object, sent, warnings, .. } = patched.decode::<S>(call.version, call.validation)?;
        let refused = warnings.clone();
        Failure::check_name(object.name(), call.name)?;
        self.update(&old, object, sent, call, warnings).map_err(|refusal| match refusal {
            Refusal::Failure(failure, _) => Refusal::Failure(failure, refused),
            other @ Refusal::NotFound => other,
        })
    }

    fn update(
        &mut self,
        old: &Object<V1, S>,
        mut new: Object<V1, S>,
        sent: SentManagers,
        call: &Call<'_>,
        warnings: Vec<String>,
    ) -> Result<Written<S>, Refusal> {
        check_resource_version(&new, old, call.name)?;
        match call.endpoint {
            WriteTarget::Object => new.status = old.status.clone(),
            WriteTarget::Status => {
                let (status, uid) = (new.status, new.metadata.uid);
                let entries = new.metadata.managed_fields;
                new = Object::new(old.metadata.clone(), old.spec.clone());
                (new.status, new.metadata.uid, new.metadata.managed_fields) = (status, uid, entries);
            }
        }
        keep_what_the_server_owns(&mut new, old);
        updated(old, &mut new, sent, writer(call), self.time());
        self.finish(old, new, call, warnings)
    }

    fn apply(&mut self, call: &Call<'_>) -> Result<Written<S>, Refusal> {
        if call.endpoint == WriteTarget::Status {
            self.stored(call.name)?;
        }
        let body = ApplyBody::parse(call.body, S::KIND, call.version)?;
        let request =
            ApplyRequest { body: &body, name: call.name, on_conflict: call.on_conflict, writer: writer(call) };
        let old = self.objects.get(call.name).cloned();
        let mut new = apply(old.as_ref(), request, self.time())?;
        let warnings = body.duplicates(call.validation)?;
        let Some(old) = old else {
            self.prepare_new(&mut new);
            validate::create(&new, call.version).map_err(|errors| Failure::invalid(S::KIND, new.name(), &errors))?;
            return Ok(self.create(new, call, warnings));
        };
        check_resource_version(&new, &old, call.name)?;
        keep_what_the_server_owns(&mut new, &old);
        self.finish(&old, new, call, warnings)
    }

    /// Validates and writes an update whose managed fields are known.
    fn finish(
        &mut self,
        old: &Object<V1, S>,
        mut new: Object<V1, S>,
        call: &Call<'_>,
        warnings: Vec<String>,
    ) -> Result<Written<S>, Refusal> {
        if new.spec != old.spec {
            new.metadata.generation += 1;
        }
        let validate = match call.endpoint {
            WriteTarget::Object => validate::update,
            WriteTarget::Status => validate::status_update,
        };
        validate(&new, old, call.version).map_err(|errors| Failure::invalid(S::KIND, call.name, &errors))?;
        let changed = differs(old, &mut new);
        assert_eq!(changed, new != *old);
        if new.metadata.deletion_timestamp.is_some() && new.metadata.finalizers.is_empty() && !call.dry_run {
            self.objects.remove(call.name);
        } else if changed && !call.dry_run {
            new.metadata.resource_version = self.next().to_string();
            self.objects.insert(call.name.to_owned(), new.clone());
        }
        Ok(Written { status: 200, object: new, warnings })
    }

    fn delete(&mut self, call: &Call<'_>) -> ModelResponse {
        let Some(mut object) = self.objects.remove(call.name) else { return not_found::<S>(call.name) };
        if object.metadata.finalizers.is_empty() {
            let (resource, uid) = (S::KIND.resource(), &object.metadata.uid);
            let details = json!({"name": call.name, "group": GROUP, "kind": resource, "uid": uid});
            let body =
                json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
            return ModelResponse { status: 200, body, warnings: Vec::new() };
        }
        if object.metadata.deletion_timestamp.is_none() {
            object.metadata.deletion_timestamp = Some(self.time());
            object.metadata.deletion_grace_period_seconds = Some(0);
            object.metadata.generation += 1;
            object.metadata.resource_version = self.next().to_string();
        }
        let body = shown(&object, call.version);
        self.objects.insert(call.name.to_owned(), object);
        ModelResponse { status: 200, body, warnings: Vec::new() }
    }
}

type DecodedBody<S> = (Decoded<S>, Vec<String>, SentManagers);

fn decode<S: HubSpec>(call: &Call<'_>) -> Result<DecodedBody<S>, Refusal> {
    let (kind, version) = (S::KIND, call.version);
    let document = parse_json(call.body).map_err(|error| {
        let body = String::from_utf8_lossy(call.body);
        Failure::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: \
             {error} ({body})"
        ))
    })?;
    // Recordings lose the order in which members were sent. Where it does not matter, it is ignored.
    let unplaced = serde_json::from_slice(call.body).map(|value: Value| Document::from(&value).root);
    let document = Document { root: unplaced.unwrap_or(document.root), ..document };
    let unfit = |why: &str| {
        Failure::bad_request(format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"))
    };
    let decoded = document.decode::<S>(version).map_err(|error| unfit(&error.first().wire_message))?;
    if let (FieldValidation::Strict, Some(error)) = (call.validation, decoded.dropped.strict_error()) {
        return Err(unfit(&error).into());
    }
    let warnings = if call.validation == FieldValidation::Warn { decoded.dropped.warnings() } else { Vec::new() };
    Ok((decoded, warnings, SentManagers::of(&document.root)))
}

fn check_resource_version<S: HubSpec>(new: &Object<V1, S>, old: &Object<V1, S>, name: &str) -> Result<(), Failure> {
    let wanted = &new.metadata.resource_version;
    if wanted.is_empty() {
        return Ok(());
    }
    if wanted.parse::<u64>().is_err() {
        return Err(Failure::plain(format!("strconv.ParseUint: parsing \"{wanted}\": invalid syntax")));
    }
    if wanted == "0" || *wanted == old.metadata.resource_version {
        return Ok(());
    }
    let why = "the object has been modified; please apply your changes to the latest version and try again";
    Err(Failure::conflict(S::KIND, name, why))
}

fn keep_what_the_server_owns<S: HubSpec>(new: &mut Object<V1, S>, old: &Object<V1, S>) {
    let (new, old) = (&mut new.metadata, &old.metadata);
    new.resource_version.clone_from(&old.resource_version);
    new.generation = old.generation;
    new.creation_timestamp = old.creation_timestamp;
    new.deletion_timestamp = new.deletion_timestamp.or(old.deletion_timestamp);
    new.deletion_grace_period_seconds = new.deletion_grace_period_seconds.or(old.deletion_grace_period_seconds);
    if new.uid.is_empty() {
        new.uid.clone_from(&old.uid);
    }
}

fn writer<'a>(call: &Call<'a>) -> Writer<'a> {
    Writer { manager: call.manager, version: call.version, endpoint: call.endpoint }
}

fn shown<S: HubSpec>(object: &Object<V1, S>, version: Version) -> Value {
    serde_json::to_value(object.in_version(version)).unwrap()
}

fn not_found<S: HubSpec>(name: &str) -> ModelResponse {
    let resource = S::KIND.resource();
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("{resource}.{GROUP} \"{name}\" not found"), "reason": "NotFound",
        "details": {"name": name, "group": GROUP, "kind": resource}, "code": 404,
    });
    ModelResponse { status: 404, body, warnings: Vec::new() }
}
