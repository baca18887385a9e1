//! Server-side apply (API-126 to API-133, API-140, API-143).

use evenkeel_api::meta::Time;
use evenkeel_api::v1::V1;
use evenkeel_api::{HubSpec, Object};
use serde_json::Value;

use super::apply_body::ApplyBody;
use super::compare::Comparison;
use super::conflict::{Conflict, refuse};
use super::difference::Differences;
use super::last_applied::{self, KUBECTL};
use super::merge::merge;
use super::owned::owned_fields;
use super::owned_parts::OwnedParts;
use super::owner::{Operation, Owner, read, write};
use super::prune::{Claims, prune};
use super::translate::translate;
use super::update::track;
use super::view::{self, Defaults, view};
use super::writer::{WriteTarget, Writer, strip};
use crate::failure::Failure;

/// An apply patch: what to apply, and as whom.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, Copy)]
pub struct ApplyRequest<'a> {
    /// The object to apply.
    pub body: &'a ApplyBody,
    /// The name in the URL.
    pub name: &'a str,
    /// The treatment of fields that others own.
    pub on_conflict: OnConflict,
    /// The manager that applies.
    pub writer: Writer<'a>,
}

/// The treatment of fields that an apply wants to change and that others own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnConflict {
    /// The request is refused (API-129).
    Refuse,
    /// The applier takes the fields.
    Force,
}

/// The manager to whom everything belongs that was there before the first apply (API-140).
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The state before an apply.
struct Live<'a, S: HubSpec> {
    object: &'a Object<V1, S>,
    /// The object in the version of the request.
    value: Value,
    owners: Vec<Owner>,
}

/// The state after an apply that met no conflict, or was forced.
struct Merged<S: HubSpec> {
    object: Object<V1, S>,
    owners: Vec<Owner>,
}

/// Why an apply did not go through.
enum Refusal {
    Conflicts(Vec<Conflict>),
    Other(Failure),
}

/// The object after an apply, its defaults filled in and its managed fields set.
///
/// `live` is the stored object. Without one, the result is to be created; `/status` of an object that does not exist is
/// rejected with 404 before this is called. What the endpoint cannot change is that of the stored object; what else the server
/// sets or checks in an update, the preconditions included, is left to the caller. Whether anything is to be written
/// is for [`differs`](super::differs) to say.
pub fn apply<S: HubSpec>(
    live: Option<&Object<V1, S>>,
    request: ApplyRequest<'_>,
    now: Time,
) -> Result<Object<V1, S>, Failure> {
    let nothing = Object::default();
    let before = Live::new(live.unwrap_or(&nothing), request.writer, now);
    let Merged { mut object, owners } = match before.attempt(request, request.on_conflict, now) {
        Ok(merged) => merged,
        Err(Refusal::Other(failure)) => return Err(failure),
        Err(Refusal::Conflicts(conflicts)) => before.take_over(request, conflicts, now)?,
    };
    object.metadata.managed_fields = write(owners);
    if request.writer.manager == KUBECTL {
        last_applied::refresh(&mut object, request.body);
    }
    reset(&mut object, before.object, request.writer.endpoint);
    check_identity(&object, live, request.name)?;
    Ok(object)
}

// === impl Live ===

impl<'a, S: HubSpec> Live<'a, S> {
    fn new(object: &'a Object<V1, S>, writer: Writer<'_>, now: Time) -> Self {
        let mut owners = read(&object.metadata.managed_fields).unwrap_or_default();
        if owners.is_empty() {
            let before = Writer { manager: BEFORE_FIRST_APPLY, ..writer };
            owners = track(owners, &Object::default(), object, before, now);
        }
        Self { object, value: view(object, writer.version), owners }
    }

    /// Applies, or finds the conflicts.
    fn attempt(&self, request: ApplyRequest<'_>, on_conflict: OnConflict, now: Time) -> Result<Merged<S>, Refusal> {
        let writer = request.writer;
        let parts = OwnedParts::of_object(S::KIND, writer.version);
        let mut fields = owned_fields(&request.body.value, parts);
        writer.endpoint.reset(&mut fields);
        let mut own = Owner::new(writer, Operation::Apply, fields);
        let mut others = self.owners.clone();
        let last = others.iter().position(|owner| owner.identity() == own.identity()).map(|place| others.remove(place));

        let mut value = merge(Some(&self.value), &request.body.value, parts);
        if let Some(last) = &last {
            take_away::<S>(&mut value, last, &own, &others);
        }
        let undefaulted = read_back(&value, request, Defaults::LeaveOut)?;
        let mut differences = Differences::new(self.object, &undefaulted, writer.endpoint)
            .knowing(writer.version, Comparison::of(&self.value, &value, parts));
        if on_conflict == OnConflict::Refuse {
            refuse_conflicts(&others, &mut differences)?;
        }
        differences.take_from(&mut others);

        let is_changed = value != self.value;
        own.time = if is_changed { Some(now) } else { last.and_then(|last| last.time) };
        strip(&mut own.fields);
        others.push(own);
        let object = if is_changed { read_back(&value, request, Defaults::FillIn)? } else { self.object.clone() };
        Ok(Merged { object, owners: others })
    }

    /// Forces an apply of kubectl whose conflicts are all about what kubectl itself had set on the client's side (API-143).
    fn take_over(
        &self,
        request: ApplyRequest<'_>,
        mut conflicts: Vec<Conflict>,
        now: Time,
    ) -> Result<Merged<S>, Failure> {
        let own = match request.writer.manager {
            KUBECTL => last_applied::fields_to_take_over(self.object, &self.value, request.body),
            _ => None,
        };
        let Some(own) = own else { return Err(refuse(conflicts)) };
        for conflict in &mut conflicts {
            conflict.fields.subtract(&own);
        }
        conflicts.retain(|conflict| !conflict.fields.is_empty());
        if !conflicts.is_empty() {
            return Err(refuse(conflicts));
        }
        self.attempt(request, OnConflict::Force, now).map_err(|refusal| match refusal {
            Refusal::Other(failure) => failure,
            Refusal::Conflicts(conflicts) => refuse(conflicts),
        })
    }
}

/// Takes away what the manager no longer applies and nobody else owns.
fn take_away<S: HubSpec>(value: &mut Value, last: &Owner, own: &Owner, others: &[Owner]) {
    let parts = OwnedParts::of_object(S::KIND, own.version);
    let in_own_version = |owner: &Owner| translate(&owner.fields, OwnedParts::of_object(S::KIND, owner.version), parts);
    let mut last_fields = in_own_version(last);
    strip(&mut last_fields);
    let mut current = own.fields.clone();
    for owner in others {
        current.unite(in_own_version(owner));
    }
    prune(value, parts, Claims { last: &last_fields, current: &current });
}

fn refuse_conflicts<S: HubSpec>(others: &[Owner], differences: &mut Differences<'_, S>) -> Result<(), Refusal> {
    let mut conflicts = Vec::new();
    for owner in others {
        let fields = differences.conflicts_with(owner);
        if !fields.is_empty() {
            conflicts.push(Conflict::new(owner, fields));
        }
    }
    if conflicts.is_empty() { Ok(()) } else { Err(Refusal::Conflicts(conflicts)) }
}

/// The merged object. Both of its parts fit the schema, and so does the whole.
fn read_back<S: HubSpec>(
    value: &Value,
    request: ApplyRequest<'_>,
    defaults: Defaults,
) -> Result<Object<V1, S>, Refusal> {
    view::read(value, request.writer.version, defaults).map_err(|error| {
        let (name, version, kind) = (request.name, request.writer.version.api_version(), S::KIND);
        let problem = format!("failed to create typed patch object (/{name}; {version}, Kind={kind}): {error}");
        Refusal::Other(Failure::plain(problem))
    })
}

/// Gives back what requests to this endpoint cannot change (API-115). What is needed to check preconditions stays.
fn reset<S: HubSpec>(object: &mut Object<V1, S>, live: &Object<V1, S>, endpoint: WriteTarget) {
    match endpoint {
        WriteTarget::Object => object.status = live.status.clone(),
        WriteTarget::Status => {
            object.spec = live.spec.clone();
            let metadata = std::mem::replace(&mut object.metadata, live.metadata.clone());
            object.metadata.name = metadata.name;
            object.metadata.uid = metadata.uid;
            object.metadata.resource_version = metadata.resource_version;
            object.metadata.managed_fields = metadata.managed_fields;
        }
    }
}

/// The name must be that of the URL (API-105), and what is to be created has no identity yet (API-126).
fn check_identity<S: HubSpec>(object: &Object<V1, S>, live: Option<&Object<V1, S>>, name: &str) -> Result<(), Failure> {
    Failure::check_name(object.name(), name)?;
    let uid = &object.metadata.uid;
    if live.is_none() && !uid.is_empty() {
        let why = format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
        return Err(Failure::conflict(S::KIND, name, why));
    }
    Ok(())
}
