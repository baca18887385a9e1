//! The parts that both kinds have: metadata and conditions, with the same methods on both builders.

use super::state::{HasOwner, NoObject};
use super::{ConditionBuilder, FlowSchemaBuilder, ManagedFieldsBuilder, OwnerBuilder, PriorityLevelBuilder};

macro_rules! object_parts {
    ($Builder:ident.$object:ident) => {
        /// The metadata that every object has.
        impl<Output, State> $Builder<Output, State> {
            /// Adds a label.
            pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
                self.$object.metadata.labels.insert(key.into(), value.into());
                self
            }

            /// Adds an annotation.
            pub fn annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
                self.$object.metadata.annotations.insert(key.into(), value.into());
                self
            }

            /// Adds a finalizer: a deleted object stays until the program that added the finalizer removes it.
            pub fn finalizer(mut self, name: impl Into<String>) -> Self {
                self.$object.metadata.finalizers.push(name.into());
                self
            }

            /// Adds an object that this one depends on.
            pub fn owned_by<Owner: HasOwner>(
                mut self,
                describe: impl FnOnce(OwnerBuilder<NoObject>) -> OwnerBuilder<Owner>,
            ) -> Self {
                self.$object.metadata.owner_references.push(describe(OwnerBuilder::new()).into_reference());
                self
            }

            /// Adds the fields that a manager owns. A server maintains them by itself; this is for code that stands in for a
            /// server.
            pub fn managed_by(
                mut self,
                manager: impl Into<String>,
                describe: impl FnOnce(ManagedFieldsBuilder) -> ManagedFieldsBuilder,
            ) -> Self {
                let entry = describe(ManagedFieldsBuilder::new(manager.into())).into_entry();
                self.$object.metadata.managed_fields.push(entry);
                self
            }

            /// Adds a condition of that type to the status. Its status is `Unknown` unless the closure sets it.
            pub fn condition(
                mut self,
                condition: impl Into<String>,
                describe: impl FnOnce(ConditionBuilder) -> ConditionBuilder,
            ) -> Self {
                let condition = describe(ConditionBuilder::new(condition.into())).into_condition();
                self.$object.status.conditions.push(condition);
                self
            }
        }
    };
}

object_parts!(FlowSchemaBuilder.schema);
object_parts!(PriorityLevelBuilder.level);
