//! `PriorityLevelBuilder`: builds a priority level.

use std::marker::PhantomData;

use super::state::{HasResponse, HasType, NoResponse, NoType, TypeIsOpen, WithType};
use super::{ExemptBuilder, LimitedBuilder, Name};
use crate::v1::{self, PriorityLevelConfigurationSpec, PriorityLevelEnablement};
use crate::{Defaulted, Wire};

/// Builds a priority level. It can be built into an `Output` once it is limited or exempt.
///
/// See the [module](super) for an example.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct PriorityLevelBuilder<Output, Type> {
    pub(super) level: v1::PriorityLevelConfiguration,
    state: PhantomData<fn(Type) -> Output>,
}

// === impl PriorityLevelConfiguration ===

impl v1::PriorityLevelConfiguration {
    /// Starts a priority level of that name, or one whose name the server makes up
    /// ([`generate_name`](super::generate_name)).
    ///
    /// ```
    /// use evenkeel_api::v1::PriorityLevelConfiguration;
    ///
    /// let level = PriorityLevelConfiguration::builder("tenants").limited(|l| l.shares(40).reject()).build();
    /// assert_eq!(level.spec.limited.unwrap().lendable_percent, Some(0));
    /// ```
    pub fn builder(name: impl Into<Name>) -> PriorityLevelBuilder<Self, NoType> {
        PriorityLevelBuilder::new(name.into())
    }
}

// === impl PriorityLevelBuilder ===

impl<Output> PriorityLevelBuilder<Output, NoType> {
    pub(super) fn new(name: Name) -> Self {
        let spec = PriorityLevelConfigurationSpec::default();
        Self { level: v1::PriorityLevelConfiguration::new(name.into_metadata(), spec), state: PhantomData }
    }
}

impl<Output, Type> PriorityLevelBuilder<Output, Type> {
    /// Requests run within the level's seats. The closure says how many those are, and what happens to a request
    /// that finds none.
    pub fn limited<Response: HasResponse>(
        self,
        describe: impl FnOnce(LimitedBuilder<NoResponse>) -> LimitedBuilder<Response>,
    ) -> PriorityLevelBuilder<Output, WithType>
    where
        Type: TypeIsOpen,
    {
        self.with_spec(PriorityLevelConfigurationSpec {
            enablement: PriorityLevelEnablement::Limited,
            limited: Some(describe(LimitedBuilder::new()).into_limited()),
            exempt: None,
        })
    }

    /// Every request starts at once. Only the level named `exempt` may be so.
    ///
    /// ```
    /// use evenkeel_api::v1::PriorityLevelConfiguration;
    ///
    /// let level = PriorityLevelConfiguration::builder("exempt").exempt(|e| e.shares(10).lendable_percent(50)).build();
    /// assert_eq!(level.spec.exempt.unwrap().lendable_percent, Some(50));
    /// ```
    pub fn exempt(self, describe: impl FnOnce(ExemptBuilder) -> ExemptBuilder) -> PriorityLevelBuilder<Output, WithType>
    where
        Type: TypeIsOpen,
    {
        self.with_spec(PriorityLevelConfigurationSpec {
            enablement: PriorityLevelEnablement::Exempt,
            limited: None,
            exempt: Some(describe(ExemptBuilder::new()).into_exempt()),
        })
    }

    fn with_spec(mut self, spec: PriorityLevelConfigurationSpec) -> PriorityLevelBuilder<Output, WithType> {
        self.level.spec = spec;
        PriorityLevelBuilder { level: self.level, state: PhantomData }
    }

    /// The priority level, with the API's defaults in the place of what was not said.
    pub fn build(mut self) -> Output
    where
        Type: HasType,
        Output: Wire<HubSpec = PriorityLevelConfigurationSpec> + Defaulted,
    {
        self.level.apply_defaults();
        let mut level = Output::from_hub(self.level);
        // Zero shares mean something else in the older versions, so their own defaults have a say as well.
        level.apply_defaults();
        level
    }
}
