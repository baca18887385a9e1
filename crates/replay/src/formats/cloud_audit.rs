//! Entries of Google Cloud's audit log about a cluster (GKE): a `protoPayload` of `google.cloud.audit.AuditLog`.
//!
//! An entry names the user, the verb and the resource. It has neither groups nor durations: groups that follow from a name are added, and how
//! long requests take is assumed.

use std::borrow::Cow;

use super::Damage;
use crate::json::Scanner;
use crate::logged_head::LoggedHead;
use crate::record::{Action, Outcome, Record, Stage};
use crate::timestamp::rfc3339;
use crate::users::Users;

/// The members of an entry that are read.
#[derive(Default)]
pub(super) struct CloudEntry<'a> {
    payload: Option<Payload<'a>>,
    insert_id: Option<Cow<'a, str>>,
    time: Option<Cow<'a, str>>,
    operation: Operation<'a>,
    is_authorized: bool,
}

/// The members of its payload that are read.
#[derive(Default)]
struct Payload<'a> {
    service: Option<Cow<'a, str>>,
    method: Option<Cow<'a, str>>,
    resource: Option<Cow<'a, str>>,
    user: Option<Cow<'a, str>>,
    code: Option<Cow<'a, str>>,
}

/// The request that an entry belongs to. A long one has an entry at its start and another at its end.
#[derive(Default)]
struct Operation<'a> {
    id: Option<Cow<'a, str>>,
    is_first: bool,
    is_last: bool,
}

/// The API server of a cluster; other services write about clusters too.
const SERVICE: &str = "k8s.io";
/// `RESOURCE_EXHAUSTED`, which stands for the status 429.
const EXHAUSTED: &str = "8";
/// The user names of nodes begin so, and all nodes are in one group.
const NODE: &str = "system:node:";
const NODES: &str = "system:nodes";

/// The request of an entry. `Ok(None)`: it is not about a request, or only about its end.
pub(super) fn record<'a>(entry: CloudEntry<'a>, users: &mut Users) -> Result<Option<Record<'a>>, Damage> {
    let CloudEntry { payload, insert_id, time, operation, is_authorized } = entry;
    let payload = payload.ok_or(Damage::Missing("protoPayload"))?;
    if payload.service.as_deref() != Some(SERVICE) || operation.is_last && !operation.is_first {
        return Ok(None);
    }
    let arrived = rfc3339(&time.ok_or(Damage::Missing("timestamp"))?).ok_or(Damage::Invalid("timestamp"))?;
    let method = payload.method.ok_or(Damage::Missing("methodName"))?;
    let verb = method.rsplit('.').next().unwrap_or_default().to_owned();
    let user = payload.user.unwrap_or_default();
    let groups = if user.starts_with(NODE) { NODES } else { "" };
    let is_rejected = payload.code.as_deref() == Some(EXHAUSTED) && !is_authorized;
    Ok(Some(Record {
        head: LoggedHead::default(),
        id: operation.id.or(insert_id),
        stage: Stage::Whole,
        arrived,
        written: arrived,
        wait: None,
        service: None,
        user: Some(users.of_client(Some(&*user).filter(|name| !name.is_empty()), groups, None)),
        action: Action::Verb(verb.into()),
        target: target(&payload.resource.ok_or(Damage::Missing("resourceName"))?).into(),
        outcome: if is_rejected { Outcome::Rejected(None) } else { Outcome::Served },
        placed: None,
        seats: None,
        cost: None,
        bytes: None,
    }))
}

/// The path of a resource: `core/v1/namespaces/a/pods/b` is `/api/v1/namespaces/a/pods/b`.
fn target(resource: &str) -> String {
    let is_version = |part: &str| {
        let number = part.strip_prefix('v').unwrap_or_default();
        number.starts_with(|first: char| first.is_ascii_digit())
    };
    match resource.split_once('/') {
        Some(("core", rest)) if is_version(rest) => format!("/api/{rest}"),
        Some((_, rest)) if is_version(rest) => format!("/apis/{resource}"),
        _ => format!("/{}", resource.trim_start_matches('/')),
    }
}

// === impl CloudEntry ===

impl<'a> CloudEntry<'a> {
    /// Reads a member of the entry, or reads over it.
    pub(super) fn member(&mut self, name: &str, scanner: &mut Scanner<'a>) -> Result<(), Damage> {
        let is_object = scanner.peek() == Some(b'{');
        match name {
            "protoPayload" if is_object => self.payload = Some(Payload::scan(scanner)?),
            "operation" if is_object => self.operation = Operation::scan(scanner)?,
            "insertId" => self.insert_id = scanner.string_or_null()?,
            "timestamp" if scanner.peek() == Some(b'"') => self.time = Some(scanner.string()?),
            "labels" if is_object => scanner.object(|name, scanner| {
                self.is_authorized |= name == "authorization.k8s.io/decision";
                Ok::<_, Damage>(scanner.skip()?)
            })?,
            _ => scanner.skip()?,
        }
        Ok(())
    }
}

// === impl Payload ===

impl<'a> Payload<'a> {
    fn scan(scanner: &mut Scanner<'a>) -> Result<Self, Damage> {
        let mut payload = Self::default();
        scanner.object(|name, scanner| {
            let is_object = scanner.peek() == Some(b'{');
            match name {
                "serviceName" => payload.service = Some(scanner.string()?),
                "methodName" => payload.method = Some(scanner.string()?),
                "resourceName" => payload.resource = Some(scanner.string()?),
                "authenticationInfo" if is_object => payload.user = member(scanner, "principalEmail")?,
                "status" if is_object => payload.code = member(scanner, "code")?,
                _ => scanner.skip()?,
            }
            Ok::<_, Damage>(())
        })?;
        Ok(payload)
    }
}

// === impl Operation ===

impl<'a> Operation<'a> {
    fn scan(scanner: &mut Scanner<'a>) -> Result<Self, Damage> {
        let mut operation = Self::default();
        scanner.object(|name, scanner| {
            match name {
                "id" => operation.id = scanner.string_or_null()?,
                "first" => operation.is_first = scanner.scalar()? == "true",
                "last" => operation.is_last = scanner.scalar()? == "true",
                _ => scanner.skip()?,
            }
            Ok::<_, Damage>(())
        })?;
        Ok(operation)
    }
}

/// A member of an object, if it is there.
fn member<'a>(scanner: &mut Scanner<'a>, wanted: &str) -> Result<Option<Cow<'a, str>>, Damage> {
    let mut found = None;
    scanner.object(|name, scanner| {
        if name == wanted {
            found = Some(scanner.scalar()?);
            return Ok(());
        }
        Ok::<_, Damage>(scanner.skip()?)
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_become_paths() {
        for (resource, path) in [
            ("core/v1/namespaces/a/pods/b", "/api/v1/namespaces/a/pods/b"),
            ("core/v1/nodes/n/status", "/api/v1/nodes/n/status"),
            ("apps/v1/namespaces/a/deployments/web", "/apis/apps/v1/namespaces/a/deployments/web"),
            ("example.com/v1alpha1/widgets", "/apis/example.com/v1alpha1/widgets"),
            ("readyz", "/readyz"),
            ("metrics/cadvisor", "/metrics/cadvisor"),
        ] {
            assert_eq!(target(resource), path);
        }
    }
}
