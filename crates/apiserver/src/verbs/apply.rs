//! Server-side apply: what the manager sent is what it wants the object to say (API-123 to API-133).

use evenkeel_api::HubSpec;
use evenkeel_api::validate::{EmptyRules, ValidSpec};
use http::StatusCode;

use super::attempts::Attempts;
use super::change::{Candidate, ManagedFields, attempt};
use super::{Write, Written, create, prepare};
use crate::failure::Failure;
use crate::managed_fields::{self, ApplyBody, ApplyRequest, WriteTarget};
use crate::offload::Offload;
use crate::options::Moment;
use crate::registry::{Managers, Registry, Unwritten};

/// Applies a body; creates the object if it is not there.
pub(crate) async fn apply<S: HubSpec + ValidSpec>(
    registry: &Registry<S>,
    body: &[u8],
    write: &Write<'_>,
    warnings: &mut Vec<String>,
) -> Result<Written<S>, Failure> {
    let body = Offload::of(write.weight).await.run(|| ApplyBody::parse(body, S::KIND, write.version))?;
    let request =
        ApplyRequest { body: &body, name: write.name, on_conflict: write.options.on_conflict, writer: write.writer() };
    let mut attempts = Attempts::begin(registry, write.name).await;
    loop {
        let written = match registry.get(write.name, Moment::Current).await {
            Ok(old) => {
                let changed = attempt(registry, old, write, |old| {
                    let object = managed_fields::apply(Some(&old.object), request, write.now)?;
                    *warnings = body.duplicates(write.options.validation)?;
                    Ok(Candidate { object, managed_fields: ManagedFields::Final, empty_rules: EmptyRules::Absent })
                });
                changed.await.map(|record| Written { status: StatusCode::OK, record })
            }
            Err(failure) if failure.status == StatusCode::NOT_FOUND && write.endpoint == WriteTarget::Object => {
                let place = Offload::of(write.weight).await;
                let mut object = place.run(|| managed_fields::apply(None, request, write.now))?;
                *warnings = body.duplicates(write.options.validation)?;
                prepare::for_create(&mut object, write.now);
                object.metadata.resource_version.clear();
                match create::store(registry, object, write, Managers::Needed, EmptyRules::Absent).await {
                    Err(failure) if failure.reason == Some("AlreadyExists") => Err(Unwritten::Changed),
                    created => Ok(Written { status: StatusCode::CREATED, record: created? }),
                }
            }
            Err(failure) => return Err(failure),
        };
        match written {
            Ok(written) => return Ok(written),
            Err(Unwritten::Changed) => attempts.again::<S>().await?,
            Err(Unwritten::Failed(failure)) => return Err(failure),
        }
    }
}
