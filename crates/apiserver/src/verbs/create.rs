//! Create (API-54, API-55, API-61).

use std::sync::Arc;

use evenkeel_api::v1::V1;
use evenkeel_api::validate::{self, Context, EmptyRules, ValidSpec};
use evenkeel_api::{HubSpec, Object};
use http::StatusCode;

use super::{Write, Written, prepare};
use crate::body::Sent;
use crate::failure::Failure;
use crate::managed_fields;
use crate::options::{Moment, Persistence};
use crate::registry::{Managers, Record, Registry};

/// Creates the object that was sent.
pub(crate) async fn create<S: HubSpec + ValidSpec>(
    registry: &Registry<S>,
    sent: Sent<S>,
    write: &Write<'_>,
) -> Result<Written<S>, Failure> {
    let Sent { mut object, empty_rules, .. } = sent;
    prepare::for_create(&mut object, write.now);
    managed_fields::created(&mut object, write.writer(), write.now);
    let record = store(registry, object, write, Managers::Expendable, empty_rules).await?;
    Ok(Written { status: StatusCode::CREATED, record })
}

/// Checks and stores an object that is ready to be created.
pub(super) async fn store<S: HubSpec + ValidSpec>(
    registry: &Registry<S>,
    object: Object<V1, S>,
    write: &Write<'_>,
    managers: Managers,
    empty_rules: EmptyRules,
) -> Result<Arc<Record<S>>, Failure> {
    let context = Context { version: write.version, preset: registry.preset(), empty_rules };
    validate::create(&object, context).map_err(|errors| Failure::invalid(S::KIND, object.name(), &errors))?;
    if !object.metadata.resource_version.is_empty() {
        return Err(Failure::plain("resourceVersion should not be set on objects to be created"));
    }
    let _checked = write.check_seats(&object).await?;
    match write.options.persistence {
        Persistence::Stored => registry.create(object, managers).await,
        Persistence::DryRun => match registry.get(object.name(), Moment::Current).await {
            Ok(_) => Err(Failure::already_exists(S::KIND, object.name())),
            Err(failure) if failure.status == StatusCode::NOT_FOUND => Ok(Arc::new(Record::unstored(object))),
            Err(failure) => Err(failure),
        },
    }
}
