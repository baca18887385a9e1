//! Server-side apply: what the manager sent is what it wants the object to say (API-123 to API-133).

use evenkeel_api::HubSpec;
use evenkeel_api::validate::ValidSpec;
use http::StatusCode;

use super::change::{Candidate, Ownership, change};
use super::{Write, Written, create, prepare};
use crate::failure::Failure;
use crate::heavy::Place;
use crate::managed_fields::{self, ApplyBody, ApplyRequest, Endpoint};
use crate::options::Moment;
use crate::registry::Registry;

/// Applies a body; creates the object if it is not there.
pub(crate) async fn apply<S: HubSpec + ValidSpec>(
    registry: &Registry<S>,
    body: &[u8],
    write: &Write<'_>,
    warnings: &mut Vec<String>,
) -> Result<Written<S>, Failure> {
    let body = Place::of(write.weight).await.run(|| ApplyBody::parse(body, S::KIND, write.version))?;
    let request =
        ApplyRequest { body: &body, name: write.name, on_conflict: write.options.on_conflict, writer: write.writer() };
    loop {
        let is_missing = match registry.get(write.name, Moment::Current).await {
            Ok(_) => false,
            Err(failure) if failure.status == StatusCode::NOT_FOUND && write.endpoint == Endpoint::Object => true,
            Err(failure) => return Err(failure),
        };
        if is_missing {
            let place = Place::of(write.weight).await;
            let mut object = place.run(|| managed_fields::apply(None, request, write.now))?;
            *warnings = body.duplicates(write.options.validation)?;
            prepare::for_create(&mut object, write.now);
            object.metadata.resource_version.clear();
            match create::store(registry, object, write).await {
                Err(failure) if failure.reason == Some("AlreadyExists") => continue,
                created => return Ok(Written { status: StatusCode::CREATED, record: created? }),
            }
        }
        let changed = change(registry, write, |old| {
            let object = managed_fields::apply(Some(&old.object), request, write.now)?;
            *warnings = body.duplicates(write.options.validation)?;
            Ok(Candidate { object, ownership: Ownership::Settled })
        })
        .await;
        match changed {
            // Somebody deleted it in the meantime.
            Err(failure) if failure.status == StatusCode::NOT_FOUND && write.endpoint == Endpoint::Object => {}
            changed => return Ok(Written { status: StatusCode::OK, record: changed? }),
        }
    }
}
