//! `ListMeta`: what every list says of itself.

use crate::schema::{TypeName, declare_type};

declare_type! {
    /// What a list says of itself.
    pub struct ListMeta(TypeName::Fixed("ListMeta"), Meta) {
        /// The version of the state that the list shows. A watch from here on misses nothing.
        resource_version "resourceVersion" = 2: String [read_only],
        /// There are more objects: send this text in the parameter of the same name to get the next page.
        continue_token "continue" = 3: String [read_only],
        /// How many objects come after this page. Not told when a selector was given.
        remaining_item_count "remainingItemCount" = 4: Option<i64> [read_only],
    }
    accepted_and_dropped {
        /// No longer in use.
        "selfLink" = 1: String,
    }
}
