//! `Encodings`: the encodings of large lists that are being sent, so that equal responses share one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use evenkeel_api::meta::Time;
use evenkeel_api::{HubSpec, Version};
use tokio::sync::OnceCell;

use super::Record;
use crate::failure::Failure;
use crate::in_flight::AllRoom;
use crate::negotiate::Wanted;
use crate::response_data::ResponseData;

/// The encodings that are being sent. Others are dropped.
#[derive(Debug)]
pub(crate) struct Encodings<S: HubSpec> {
    known: Mutex<EncodingsInUse<S>>,
}

#[derive(Debug)]
struct EncodingsInUse<S: HubSpec> {
    slots: HashMap<Key, Vec<Weak<SharedEncoding<S>>>>,
    /// At this many keys, those of dropped encodings are removed.
    prune_at: usize,
}

/// Narrows a search down: the revision, the number of items, and the address of the first one.
type Key = (u64, usize, usize);

/// Everything that the encoding of a list depends on, besides its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListForm {
    pub(crate) revision: u64,
    pub(crate) continue_token: Option<String>,
    pub(crate) remaining: Option<usize>,
    pub(crate) version: Version,
    pub(crate) wanted: Wanted,
    pub(crate) include_object: Option<String>,
    /// The time that the response shows, if it shows one.
    pub(crate) now: Option<Time>,
    pub(crate) is_packed: bool,
}

/// One encoding, made by the first request for it.
#[derive(Debug)]
struct SharedEncoding<S: HubSpec> {
    form: ListForm,
    /// Kept, so that no other record can have the same address.
    items: Vec<Arc<Record<S>>>,
    encoded: OnceCell<Encoded>,
}

#[derive(Debug)]
struct Encoded {
    response: ResponseData,
    _room: AllRoom,
}

/// The body of an encoding, which lives while it is being sent.
struct SharedBody<S: HubSpec>(Arc<SharedEncoding<S>>);

const PRUNE_MIN: usize = 64;

// === impl Encodings ===

impl<S: HubSpec> Default for Encodings<S> {
    fn default() -> Self {
        Self { known: Mutex::new(EncodingsInUse { slots: HashMap::new(), prune_at: PRUNE_MIN }) }
    }
}

impl<S: HubSpec> Encodings<S> {
    /// The list of these items in that form: the encoding that is being sent already, or a new one that `encode` makes.
    /// `room` is for a new one.
    pub(crate) async fn share<F>(
        &self,
        form: ListForm,
        items: &[Arc<Record<S>>],
        mut room: AllRoom,
        encode: impl FnOnce() -> F,
    ) -> Result<ResponseData, Failure>
    where
        F: Future<Output = Result<ResponseData, Failure>>,
    {
        let slot = self.slot(form, items);
        let encoded = slot.encoded.get_or_try_init(|| async {
            let response = encode().await?;
            room.shrink(response.body.len());
            Ok::<_, Failure>(Encoded { response, _room: room })
        });
        let response = encoded.await?.response.clone();
        Ok(ResponseData { body: Bytes::from_owner(SharedBody(slot)), ..response })
    }

    /// The entry of this encoding; a new one if there is none.
    fn slot(&self, form: ListForm, items: &[Arc<Record<S>>]) -> Arc<SharedEncoding<S>> {
        let first = items.first().map_or(0, |first| Arc::as_ptr(first).addr());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let slots = known.slots.entry((form.revision, items.len(), first)).or_default();
        slots.retain(|slot| slot.strong_count() > 0);
        if let Some(slot) = slots.iter().filter_map(Weak::upgrade).find(|slot| slot.is(&form, items)) {
            return slot;
        }
        let slot = Arc::new(SharedEncoding { form, items: items.to_vec(), encoded: OnceCell::new() });
        slots.push(Arc::downgrade(&slot));
        if known.slots.len() >= known.prune_at {
            known.slots.retain(|_, slots| slots.iter().any(|slot| slot.strong_count() > 0));
            known.prune_at = PRUNE_MIN.max(2 * known.slots.len());
        }
        slot
    }
}

// === impl SharedEncoding ===

impl<S: HubSpec> SharedEncoding<S> {
    fn is(&self, form: &ListForm, items: &[Arc<Record<S>>]) -> bool {
        let same = |(one, other): (&Arc<Record<S>>, &Arc<Record<S>>)| Arc::ptr_eq(one, other);
        self.form == *form && self.items.len() == items.len() && self.items.iter().zip(items).all(same)
    }
}

// === impl SharedBody ===

impl<S: HubSpec> AsRef<[u8]> for SharedBody<S> {
    fn as_ref(&self) -> &[u8] {
        self.0.encoded.get().map_or(&[], |encoded| &encoded.response.body)
    }
}
