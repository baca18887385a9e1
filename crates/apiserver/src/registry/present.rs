//! `Present`: the objects that there are, for those who look at all of them again and again.

use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_api::v1::V1;
use evenkeel_api::{HubSpec, Object};
use evenkeel_store::List;

use super::Record;
use crate::failure::Failure;

/// The objects that there were the last time somebody looked, in the order of their names. Only what has changed since is
/// decoded.
///
/// They are without their managed fields, which are the larger part of most objects and of no use here.
#[derive(Debug)]
pub(crate) struct Present<S: HubSpec> {
    known: Mutex<Vec<Known<S>>>,
}

#[derive(Debug)]
struct Known<S: HubSpec> {
    revision: u64,
    object: Arc<Object<V1, S>>,
}

// === impl Present ===

impl<S: HubSpec> Default for Present<S> {
    fn default() -> Self {
        Self { known: Mutex::default() }
    }
}

impl<S: HubSpec> Present<S> {
    /// The objects of a whole list.
    pub(crate) fn show(&self, list: &List) -> Result<Vec<Arc<Object<V1, S>>>, Failure> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rest = known.as_slice();
        let mut present = Vec::with_capacity(list.items.len());
        for stored in &list.items {
            let (_, from_here) = rest.split_at(rest.partition_point(|known| known.object.name() < &*stored.name));
            rest = from_here;
            let object = match rest.first() {
                Some(known) if known.revision == stored.revision => Arc::clone(&known.object),
                _ => {
                    let mut object = Record::read(&stored.payload, stored.revision)?;
                    object.metadata.resource_version = stored.revision.to_string();
                    object.metadata.managed_fields = Vec::new();
                    Arc::new(object)
                }
            };
            present.push(Known { revision: stored.revision, object });
        }
        let objects = present.iter().map(|known| Arc::clone(&known.object)).collect();
        *known = present;
        Ok(objects)
    }
}
