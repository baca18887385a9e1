//! Parameters of lists and watches: selectors, pages, and which state is meant (API-145 to API-170).

use evenkeel_api::meta::ObjectMeta;
use evenkeel_api::validate::{FieldError, FieldErrors, Value};
use evenkeel_engine::digest::{FieldOperator, FieldSelector, LabelSelector, Query};

use super::non_empty;
use crate::continue_token::ContinueToken;
use crate::failure::Failure;
use crate::strconv::{is_true, parse_int, parse_uint};

/// The options of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListOptions {
    pub(crate) selection: Selection,
    /// At most so many; zero for no limit.
    pub(crate) limit: usize,
    pub(crate) start: Start,
}

/// Where a list begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Start {
    /// At the first name.
    First(Moment),
    /// After a page.
    After(ContinueToken),
}

/// Which state is meant (API-154, API-158).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Everything that was written before the request.
    Current,
    /// Whatever the cache has.
    Any,
    /// This revision or a later one.
    NotOlderThan(u64),
    /// Exactly this revision.
    Exactly(u64),
}

/// The first events of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WatchOptions {
    pub(crate) selection: Selection,
    /// The revision to go on from; none for "now".
    pub(crate) after: Option<u64>,
    /// Whether the present objects come first, and if they do, whether a bookmark says when they have all come.
    pub(crate) initial: Initial,
    pub(crate) wants_bookmarks: bool,
    /// When the stream ends.
    pub(crate) timeout_seconds: Option<u64>,
}

/// Whether a watch begins with the present objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Initial {
    /// Only changes.
    None,
    /// The present objects, without a bookmark (API-161).
    Objects,
    /// The present objects, and a bookmark after them (API-164).
    ObjectsAndBookmark,
}

/// Which objects are meant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Selection {
    labels: LabelSelector,
    /// A condition on the name.
    names: Vec<(FieldOperator, String)>,
    /// A term about the namespace, which is always empty, that does not hold.
    is_impossible: bool,
    has_field_terms: bool,
}

/// The parameters as they were sent, before they are checked together.
struct Raw {
    selection: Selection,
    limit: i64,
    timeout_seconds: Option<i64>,
    revision: String,
    revision_match: String,
    continue_token: String,
    sends_initial_events: Option<bool>,
    wants_bookmarks: bool,
}

const MATCH: &str = "resourceVersionMatch";
const EXACT: &str = "Exact";
const NOT_OLDER_THAN: &str = "NotOlderThan";

// === impl ListOptions ===

impl ListOptions {
    pub(crate) fn read(query: Query<'_>) -> Result<Self, Failure> {
        let raw = Raw::read(query)?;
        raw.check_list()?;
        let limit = usize::try_from(raw.limit).unwrap_or(0);
        let revision = raw
            .revision_number()
            .map_err(|problem| Failure::bad_request(format!("invalid resource version: {problem}")));
        if !raw.continue_token.is_empty() {
            let token = ContinueToken::decode(&raw.continue_token)?;
            if !matches!(raw.revision.as_str(), "" | "0") {
                return Err(Failure::bad_request("specifying resource version is not allowed when using continue"));
            }
            // A list from the cache is never cut, not even a continued one (API-149).
            let limit = if raw.revision == "0" { 0 } else { limit };
            return Ok(Self { selection: raw.selection, limit, start: Start::After(token) });
        }
        let moment = match (revision?, raw.revision_match.as_str()) {
            (None, _) => Moment::Current,
            (Some(0), _) => Moment::Any,
            (Some(revision), EXACT) => Moment::Exactly(revision),
            (Some(revision), NOT_OLDER_THAN) => Moment::NotOlderThan(revision),
            (Some(revision), _) if limit > 0 => Moment::Exactly(revision),
            (Some(revision), _) => Moment::NotOlderThan(revision),
        };
        let limit = if moment == Moment::Any { 0 } else { limit };
        Ok(Self { selection: raw.selection, limit, start: Start::First(moment) })
    }
}

// === impl Moment ===

impl Moment {
    /// The state that a get is to show (API-158).
    pub(crate) fn of_get(query: Query<'_>) -> Result<Self, Failure> {
        let Some(text) = non_empty(query, "resourceVersion") else { return Ok(Self::Current) };
        Ok(match parse_uint(&text).map_err(|problem| Failure::plain(invalid_revision(&text, &problem)))? {
            0 => Self::Any,
            revision => Self::NotOlderThan(revision),
        })
    }
}

// === impl WatchOptions ===

impl WatchOptions {
    pub(crate) fn read(query: Query<'_>) -> Result<Self, Failure> {
        let mut raw = Raw::read(query)?;
        raw.default_watch();
        raw.check_watch()?;
        let revision = raw.revision_number().map_err(Failure::plain)?;
        let (after, initial) = match (raw.sends_initial_events, revision) {
            (Some(true), revision) if raw.wants_bookmarks => (revision, Initial::ObjectsAndBookmark),
            (Some(true), revision) => (revision, Initial::Objects),
            (Some(false), None | Some(0)) => (None, Initial::None),
            // A zero that is written in another way.
            (None, None | Some(0)) => (None, Initial::Objects),
            (_, Some(revision)) => (Some(revision), Initial::None),
        };
        let timeout_seconds = raw.timeout_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        Ok(Self {
            selection: raw.selection,
            after: after.filter(|revision| *revision > 0),
            initial,
            wants_bookmarks: raw.wants_bookmarks,
            timeout_seconds: timeout_seconds.filter(|seconds| *seconds > 0),
        })
    }
}

// === impl Raw ===

impl Raw {
    fn read(query: Query<'_>) -> Result<Self, Failure> {
        let text = |name: &str| query.first(name).unwrap_or_default().into_owned();
        let number =
            |name: &str| query.first(name).map(|text| parse_int(&text)).transpose().map_err(Failure::bad_request);
        let limit = number("limit")?.unwrap_or(0);
        let timeout_seconds = number("timeoutSeconds")?;
        Ok(Self {
            selection: Selection::read(&text("labelSelector"), &text("fieldSelector"))?,
            limit,
            timeout_seconds,
            revision: text("resourceVersion"),
            revision_match: text(MATCH),
            continue_token: text("continue"),
            sends_initial_events: query.first("sendInitialEvents").map(|value| is_true(&value)),
            wants_bookmarks: query.first("allowWatchBookmarks").is_some_and(|value| is_true(&value)),
        })
    }

    /// The revision, if one is named; otherwise what is wrong with it.
    fn revision_number(&self) -> Result<Option<u64>, String> {
        if self.revision.is_empty() {
            return Ok(None);
        }
        parse_uint(&self.revision).map(Some).map_err(|problem| invalid_revision(&self.revision, &problem))
    }

    /// Rejects options that a list does not allow (API-155).
    fn check_list(&self) -> Result<(), Failure> {
        let mut errors = Vec::new();
        if !self.revision_match.is_empty() {
            if self.revision.is_empty() {
                let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                errors.push(FieldError::forbidden(MATCH, detail));
            }
            if !self.continue_token.is_empty() {
                let detail = "resourceVersionMatch is forbidden when continue is provided";
                errors.push(FieldError::forbidden(MATCH, detail));
            }
            if !matches!(self.revision_match.as_str(), EXACT | NOT_OLDER_THAN) {
                let supported = [EXACT, NOT_OLDER_THAN, ""];
                errors.push(FieldError::not_supported(MATCH, &Value::text(&self.revision_match), &supported));
            }
            if self.revision_match == EXACT && self.revision == "0" {
                let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                errors.push(FieldError::forbidden(MATCH, detail));
            }
        }
        if self.sends_initial_events.is_some() {
            errors.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
        FieldErrors::none_in(errors).map_err(|errors| Failure::invalid_options("ListOptions", &errors))
    }

    /// A watch that names no revision begins with the present objects, as if it had asked for that (API-161, API-164).
    fn default_watch(&mut self) {
        let is_from_now = matches!(self.revision.as_str(), "" | "0");
        if is_from_now && self.sends_initial_events.is_none() && self.revision_match.is_empty() {
            self.sends_initial_events = Some(true);
            NOT_OLDER_THAN.clone_into(&mut self.revision_match);
        }
    }

    /// Rejects options that a watch does not allow (API-165).
    fn check_watch(&self) -> Result<(), Failure> {
        let mut errors = Vec::new();
        if self.sends_initial_events.is_some() {
            if self.revision_match != NOT_OLDER_THAN {
                let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                errors.push(FieldError::forbidden(MATCH, detail));
            }
        } else if !self.revision_match.is_empty() {
            let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(FieldError::forbidden(MATCH, detail));
        }
        if !matches!(self.revision_match.as_str(), "" | NOT_OLDER_THAN) {
            errors.push(FieldError::not_supported(MATCH, &Value::text(&self.revision_match), &[NOT_OLDER_THAN]));
        }
        if !self.revision_match.is_empty() && !self.continue_token.is_empty() {
            let detail = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(FieldError::forbidden(MATCH, detail));
        }
        FieldErrors::none_in(errors).map_err(|errors| Failure::invalid_options("ListOptions", &errors))
    }
}

fn invalid_revision(text: &str, problem: &str) -> String {
    format!("resourceVersion: Invalid value: {}: {problem}", Value::text(text))
}

// === impl Selection ===

impl Selection {
    /// The objects that both selectors select (API-146 to API-148).
    pub(crate) fn read(labels: &str, fields: &str) -> Result<Self, Failure> {
        let labels = LabelSelector::parse(labels).map_err(|error| Failure::bad_request(error.to_string()))?;
        let terms = FieldSelector::parse(fields).map_err(|error| Failure::bad_request(error.to_string()))?;
        let mut selection = Self { labels, ..Self::default() };
        for term in terms.terms() {
            // `fieldSelector==` compares nothing with nothing, and selects everything.
            if term.key.is_empty() && term.value.is_empty() {
                continue;
            }
            selection.has_field_terms = true;
            match term.key {
                "metadata.name" => selection.names.push((term.operator, term.value.into_owned())),
                "metadata.namespace" => {
                    let holds = term.value.is_empty() == (term.operator == FieldOperator::Equal);
                    selection.is_impossible |= !holds;
                }
                other => {
                    let message = format!(
                        "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                        Value::text(other)
                    );
                    return Err(Failure::bad_request(message));
                }
            }
        }
        Ok(selection)
    }

    /// The object of this name.
    pub(crate) fn only(mut self, name: String) -> Self {
        self.has_field_terms = true;
        self.names.push((FieldOperator::Equal, name));
        self
    }

    /// Whether there is any selector, even one that selects everything.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && !self.has_field_terms
    }

    /// Whether an object of this metadata is meant.
    pub(crate) fn matches(&self, metadata: &ObjectMeta) -> bool {
        let is_named = |(operator, name): &(FieldOperator, String)| {
            (metadata.name == *name) == (*operator == FieldOperator::Equal)
        };
        !self.is_impossible && self.names.iter().all(is_named) && self.labels.matches(&metadata.labels)
    }

    /// Whether at most one object can be meant, because its name is given.
    pub(crate) fn is_of_one_name(&self) -> bool {
        self.names.iter().any(|(operator, _)| *operator == FieldOperator::Equal)
    }
}
