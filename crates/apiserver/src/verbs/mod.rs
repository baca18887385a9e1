//! The verbs that act on objects: one module for each, generic over the two kinds.

mod apply;
mod attempts;
mod change;
mod create;
mod delete;
mod delete_collection;
mod list;
mod prepare;
mod replace;

use std::sync::Arc;

use evenkeel_api::meta::Time;
use evenkeel_api::v1::V1;
use evenkeel_api::{HubSpec, Object};
use http::StatusCode;

use crate::failure::Failure;
use crate::managed_fields::{WriteTarget, Writer};
use crate::options::WriteOptions;
use crate::registry::Record;
use crate::seats::{SeatCheck, SeatsChecked};

pub(crate) use apply::apply;
pub(crate) use create::create;
pub(crate) use delete::{Deleted, collect, delete, is_of_the_collector};
pub(crate) use delete_collection::delete_collection;
pub(crate) use list::{Listed, list};
pub(crate) use replace::{Patch, patch, replace};

/// A write to one object: where it goes, and what it wants.
#[derive(Debug)]
pub(crate) struct Write<'a> {
    pub(crate) version: evenkeel_api::Version,
    /// The name in the URL; empty for a create.
    pub(crate) name: &'a str,
    pub(crate) endpoint: WriteTarget,
    pub(crate) options: &'a WriteOptions,
    pub(crate) now: Time,
    /// The size of what the request works on: a measure of how long it takes.
    pub(crate) weight: usize,
    /// Checks whether there are enough seats after the write; writes of controllers are not checked.
    pub(crate) seats: Option<SeatCheck<'a>>,
}

/// The outcome of a write.
#[derive(Debug)]
pub(crate) struct Written<S: HubSpec> {
    pub(crate) status: StatusCode,
    pub(crate) record: Arc<Record<S>>,
}

// === impl Write ===

impl Write<'_> {
    /// The writer of the request, for `managedFields`.
    fn writer(&self) -> Writer<'_> {
        Writer { manager: &self.options.manager, version: self.version, endpoint: self.endpoint }
    }

    /// Rejects an object that would leave too few seats. A status does not change seats.
    async fn check_seats<S: HubSpec>(&self, object: &Object<V1, S>) -> Result<Option<SeatsChecked>, Failure> {
        match self.seats.filter(|_| self.endpoint == WriteTarget::Object) {
            Some(seats) => seats.admit(object).await.map(Some),
            None => Ok(None),
        }
    }
}
