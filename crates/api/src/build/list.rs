//! `ListBuilder`: builds a list of objects.

#![expect(deprecated, reason = "the older versions are served as long as clients use them")]

use std::marker::PhantomData;

use super::state::{HasPriorityLevel, HasType, NoPriorityLevel, NoType};
use super::{FlowSchemaBuilder, Name, PriorityLevelBuilder};
use crate::meta::ListMeta;
use crate::v1::{self, FlowSchemaSpec, PriorityLevelConfigurationSpec};
use crate::{InVersion, List, Object, Spec, v1beta1, v1beta2, v1beta3};

/// Builds a list of objects.
///
/// See the [module](super) for an example.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct ListBuilder<V: InVersion, S: Spec>(List<V, S>);

/// A flow schema in a list that has no name yet.
#[derive(Debug, Clone)]
#[must_use = "an item does nothing unless it is returned from the closure"]
pub struct FlowSchemaItem<Output>(PhantomData<fn() -> Output>);

/// A priority level in a list that has no name yet.
#[derive(Debug, Clone)]
#[must_use = "an item does nothing unless it is returned from the closure"]
pub struct PriorityLevelItem<Output>(PhantomData<fn() -> Output>);

// === impl List ===

impl v1::FlowSchemaList {
    /// Starts a list of flow schemas.
    ///
    /// ```
    /// use evenkeel_api::v1::FlowSchemaList;
    ///
    /// let list = FlowSchemaList::builder().item(|s| s.name("batch").priority_level("workload-low").by_user()).build();
    /// assert_eq!(list.items[0].spec.matching_precedence, 1000);
    /// ```
    pub fn builder() -> ListBuilder<v1::V1, FlowSchemaSpec> {
        ListBuilder::new()
    }
}

impl v1::PriorityLevelConfigurationList {
    /// Starts a list of priority levels.
    ///
    /// ```
    /// use evenkeel_api::v1::PriorityLevelConfigurationList;
    ///
    /// let list = PriorityLevelConfigurationList::builder()
    ///     .item(|l| l.name("tenants").limited(|l| l.shares(40).reject()))
    ///     .build();
    /// assert_eq!(list.items[0].name(), "tenants");
    /// ```
    pub fn builder() -> ListBuilder<v1::V1, PriorityLevelConfigurationSpec> {
        ListBuilder::new()
    }
}

// === impl ListBuilder ===

impl<V: InVersion, S: Spec> ListBuilder<V, S> {
    pub(super) fn new() -> Self {
        Self(List::new(ListMeta::default(), Vec::new()))
    }

    /// The version of the state that the list shows.
    pub fn resource_version(mut self, version: impl Into<String>) -> Self {
        self.0.metadata.resource_version = version.into();
        self
    }

    /// There are more objects: the text that asks for the next page, and how many come after this one, if that is known.
    pub fn continued(mut self, token: impl Into<String>, remaining: Option<i64>) -> Self {
        self.0.metadata.continue_token = token.into();
        self.0.metadata.remaining_item_count = remaining;
        self
    }

    /// Adds an object that is there already.
    pub fn object(mut self, object: Object<V, S>) -> Self {
        self.0.items.push(object);
        self
    }

    /// The list, with its items in the order in which they were added.
    pub fn build(self) -> List<V, S> {
        self.0
    }
}

impl<V: InVersion> ListBuilder<V, FlowSchemaSpec> {
    /// Adds a flow schema: first its name, then the steps of [`v1::FlowSchema::builder`].
    pub fn item<Level: HasPriorityLevel>(
        self,
        describe: impl FnOnce(
            FlowSchemaItem<Object<V, FlowSchemaSpec>>,
        ) -> FlowSchemaBuilder<Object<V, FlowSchemaSpec>, Level>,
    ) -> Self {
        self.object(describe(FlowSchemaItem(PhantomData)).build())
    }
}

/// The specification of a priority level has a type of its own in some versions.
macro_rules! priority_level_items {
    ($($version:ty: $Spec:ty),+ $(,)?) => {$(
        impl ListBuilder<$version, $Spec> {
            /// Adds a priority level: first its name, then the steps of
            /// [`v1::PriorityLevelConfiguration::builder`](crate::v1::PriorityLevelConfiguration::builder).
            pub fn item<Type: HasType>(
                self,
                describe: impl FnOnce(
                    PriorityLevelItem<Object<$version, $Spec>>,
                ) -> PriorityLevelBuilder<Object<$version, $Spec>, Type>,
            ) -> Self {
                self.object(describe(PriorityLevelItem(PhantomData)).build())
            }
        }
    )+};
}

priority_level_items! {
    v1::V1: v1::PriorityLevelConfigurationSpec,
    v1beta3::V1beta3: v1beta3::PriorityLevelConfigurationSpec,
    v1beta2::V1beta2: v1beta2::PriorityLevelConfigurationSpec,
    v1beta1::V1beta1: v1beta2::PriorityLevelConfigurationSpec,
}

// === impl FlowSchemaItem ===

impl<Output> FlowSchemaItem<Output> {
    /// The name of the flow schema, or one that the server makes up ([`generate_name`](super::generate_name)).
    pub fn name(self, name: impl Into<Name>) -> FlowSchemaBuilder<Output, NoPriorityLevel> {
        FlowSchemaBuilder::new(name.into())
    }
}

// === impl PriorityLevelItem ===

impl<Output> PriorityLevelItem<Output> {
    /// The name of the priority level, or one that the server makes up ([`generate_name`](super::generate_name)).
    pub fn name(self, name: impl Into<Name>) -> PriorityLevelBuilder<Output, NoType> {
        PriorityLevelBuilder::new(name.into())
    }
}
