//! Validation: whether an object says something that makes sense, and every problem if it does not (API-28 to API-53).
//!
//! Objects are validated in the hub version, after defaulting and conversion. Both kinds go through the same three
//! functions; what is special to a kind is in [`ValidSpec`]. Paths and messages are only written out for a problem, so
//! that an object without any costs about a microsecond.
//!
//! ```
//! use evenkeel_api::{Version, v1::FlowSchema, validate};
//!
//! let mut schema = FlowSchema::default();
//! schema.metadata.name = "batch".into();
//! schema.spec.matching_precedence = 20_000;
//! let errors = validate::create(&schema, Version::V1).unwrap_err();
//! assert_eq!(
//!     errors.to_string(),
//!     "[spec.matchingPrecedence: Invalid value: 20000: must not be greater than 10000, \
//!      spec.priorityLevelConfiguration.name: Required value: must reference a priority level]",
//! );
//! ```

mod context;
mod error;
mod flow_schema;
mod internal;
mod mandatory;
mod metadata;
mod names;
mod priority_level;
mod queuing;
mod rules;
mod status;
mod value;

pub use context::{Context, EmptyRules};
pub use error::{FieldError, FieldErrors, Reason};
pub use names::{label_value, qualified_name};
pub use rules::ValidSpec;
pub use value::Value;

use crate::v1::V1;
use crate::{List, Object, Path};

/// Checks an object that is to be created by a request of that version.
///
/// The server has set its fields (API-54), and the name if it had to be generated (API-55).
pub fn create<S: ValidSpec>(object: &Object<V1, S>, context: impl Into<Context>) -> Result<(), FieldErrors> {
    let (context, mut errors) = (context.into(), Vec::new());
    metadata::check::<S>(&object.metadata, context.version, &mut errors);
    check_content(object, context, &mut errors);
    FieldErrors::none_in(errors)
}

/// Checks the object `new` that is to take the place of `old` by a request of that version.
///
/// The fields that an update may not touch (API-56) have been taken from `old`.
pub fn update<S: ValidSpec>(
    new: &Object<V1, S>,
    old: &Object<V1, S>,
    context: impl Into<Context>,
) -> Result<(), FieldErrors> {
    let (context, mut errors) = (context.into(), Vec::new());
    metadata::check::<S>(&new.metadata, context.version, &mut errors);
    metadata::check_changes(&new.metadata, &old.metadata, &mut errors);
    check_content(new, context, &mut errors);
    FieldErrors::none_in(errors)
}

/// Checks an object of which only the status is to be written, by a request to `/status`.
///
/// Everything else has been taken from `old` (API-59) and is not looked at (API-51), with one exception: a patch of
/// the status may name another `uid`. No rule here depends on the version; it is taken so that all three functions
/// are called alike.
pub fn status_update<S: ValidSpec>(
    new: &Object<V1, S>,
    old: &Object<V1, S>,
    _context: impl Into<Context>,
) -> Result<(), FieldErrors> {
    let mut errors = Vec::new();
    metadata::check_changes(&new.metadata, &old.metadata, &mut errors);
    status::check(&new.status, &mut errors);
    FieldErrors::none_in(errors)
}

/// Checks a list of objects that are to be created by requests of `version`, item by item.
///
/// ```
/// use evenkeel_api::{Version, v1::FlowSchemaList, validate};
///
/// let list = FlowSchemaList::builder()
///     .item(|s| s.name("batch").priority_level("workload-low"))
///     .item(|s| s.name("first").priority_level("workload-low").matching_precedence(-1))
///     .build();
/// let errors = validate::list(&list, Version::V1).unwrap_err();
/// assert_eq!(errors.to_string(), "items[1].spec.matchingPrecedence: Invalid value: -1: must be a positive value");
/// ```
pub fn list<S: ValidSpec>(list: &List<V1, S>, context: impl Into<Context>) -> Result<(), FieldErrors> {
    let (path, context) = (Path::new("items"), context.into());
    let mut errors = Vec::new();
    for (index, item) in list.items.iter().enumerate() {
        if let Err(found) = create(item, context) {
            errors.extend(found.into_iter().map(|error| error.below(&path.index(index))));
        }
    }
    FieldErrors::none_in(errors)
}

/// Checks specification and status, in the order of API-29.
fn check_content<S: ValidSpec>(object: &Object<V1, S>, context: Context, errors: &mut Vec<FieldError>) {
    let path = Path::new("spec");
    object.spec.check(object.name(), context, &path, errors);
    mandatory::check(object.name(), &object.spec, context.empty_rules, &path, errors);
    status::check(&object.status, errors);
    object.spec.check_union(&path, errors);
}
