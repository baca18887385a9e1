//! Delete of a collection: a list, and a delete of each of its items (API-72).

use evenkeel_api::HubSpec;
use evenkeel_api::meta::Time;
use http::StatusCode;

use super::{Deleted, Listed, delete, list};
use crate::failure::Failure;
use crate::in_flight::ConnectionInFlight;
use crate::options::{DeleteOptions, ListOptions};
use crate::registry::Registry;

/// Deletes the objects of a list, and returns the list as it was before.
pub(crate) async fn delete_collection<S: HubSpec>(
    registry: &Registry<S>,
    which: &ListOptions,
    options: &DeleteOptions,
    now: Time,
    in_flight: &ConnectionInFlight,
    told: impl Fn(&str, &Deleted<S>),
) -> Result<Listed<S>, Failure> {
    let listed = list(registry, which, in_flight).await?;
    for item in &listed.items {
        match delete(registry, item.object.name(), options, now).await {
            Ok(deleted) => told(item.object.name(), &deleted),
            // Another client deleted it first.
            Err(failure) if failure.status == StatusCode::NOT_FOUND => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(listed)
}
