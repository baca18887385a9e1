//! Lists: selectors, pages and revisions (API-145 to API-157).

use std::sync::Arc;

use evenkeel_api::HubSpec;

use crate::continue_token::ContinueToken;
use crate::failure::Failure;
use crate::in_flight::{ConnectionInFlight, Room};
use crate::options::{ListOptions, Moment, Start};
use crate::registry::{Page, Record, Registry, Unlisted};

/// A list, or a page of one.
#[derive(Debug)]
pub(crate) struct Listed<S: HubSpec> {
    pub(crate) revision: u64,
    pub(crate) items: Vec<Arc<Record<S>>>,
    /// Where the next page begins, if there is one.
    pub(crate) continue_token: Option<String>,
    /// How many items the next pages have, where that is known.
    pub(crate) remaining: Option<usize>,
    /// The room for the response.
    pub(crate) room: Room,
}

const PAGE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can \
    start a new list without the continue parameter, or use the continue token in this response to retrieve the \
    remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were \
    created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// The requested objects, as soon as there is room on the connection for a response with them.
pub(crate) async fn list<S: HubSpec>(
    registry: &Registry<S>,
    options: &ListOptions,
    in_flight: &ConnectionInFlight,
) -> Result<Listed<S>, Failure> {
    let (moment, after) = match &options.start {
        Start::First(moment) => (*moment, None),
        Start::After(token) => (token.revision.map_or(Moment::Current, Moment::Exactly), Some(token.after.clone())),
    };
    // With a selector, the number of objects that make a page is not known beforehand.
    let limit = if options.selection.is_everything() { options.limit } else { 0 };
    let list = registry.stored(moment, limit, after).await.map_err(|error| match (error, &options.start) {
        (Unlisted::Failed(failure), _) => failure,
        (Unlisted::Expired, Start::First(_)) => {
            Failure::expired("The resourceVersion for the provided list is too old.")
        }
        (Unlisted::Expired, Start::After(token)) => {
            let rest = ContinueToken { revision: None, after: token.after.clone() };
            Failure { continue_token: Some(rest.encode()), ..Failure::expired(PAGE_EXPIRED) }
        }
    })?;
    let room = in_flight.take(list.items.iter().map(|object| object.payload.len()).sum()).await?;
    let page = registry.page(&list).await?;
    Ok(cut(page, options, room))
}

/// The selected objects of a page, and how it goes on.
fn cut<S: HubSpec>(page: Page<S>, options: &ListOptions, room: Room) -> Listed<S> {
    let Page { revision, items, remaining } = page;
    if options.selection.is_everything() {
        return Listed::new(revision, items, remaining, Some(remaining), room);
    }
    let limit = if options.limit == 0 { usize::MAX } else { options.limit };
    let mut selected = Vec::new();
    let mut rest = items.into_iter();
    while selected.len() < limit {
        let Some(item) = rest.next() else { break };
        if options.selection.matches(&item.object.metadata) {
            selected.push(item);
        }
    }
    // A list limited to one name ends with that name.
    let further = if options.selection.is_of_one_name() { 0 } else { rest.len() + remaining };
    Listed::new(revision, selected, further, None, room)
}

// === impl Listed ===

impl<S: HubSpec> Listed<S> {
    /// A page after which so many objects come, selected or not (API-149).
    fn new(revision: u64, items: Vec<Arc<Record<S>>>, further: usize, remaining: Option<usize>, room: Room) -> Self {
        let next = items
            .last()
            .filter(|_| further > 0)
            .map(|last| ContinueToken { revision: Some(revision), after: last.object.name().to_owned() }.encode());
        let remaining = remaining.filter(|_| next.is_some());
        Self { revision, items, continue_token: next, remaining, room }
    }
}
