//! `FlowSchemaBuilder`: builds a flow schema.

use std::marker::PhantomData;

use super::state::{
    HasPriorityLevel, HasRequests, HasSubject, NoPriorityLevel, NoRequests, NoSubject, WithPriorityLevel,
};
use super::{Name, RuleBuilder};
use crate::v1::{self, FlowDistinguisherMethod, FlowDistinguisherMethodType, FlowSchemaSpec};
use crate::{Defaulted, Wire};

/// Builds a flow schema. It can be built into an `Output` once it names a priority level.
///
/// See the [module](super) for an example.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct FlowSchemaBuilder<Output, Level> {
    pub(super) schema: v1::FlowSchema,
    state: PhantomData<fn(Level) -> Output>,
}

// === impl FlowSchema ===

impl v1::FlowSchema {
    /// Starts a flow schema of that name, or one whose name the server makes up
    /// ([`generate_name`](super::generate_name)).
    ///
    /// ```
    /// use evenkeel_api::v1::FlowSchema;
    ///
    /// let schema = FlowSchema::builder("batch")
    ///     .priority_level("workload-low")
    ///     .by_namespace()
    ///     .rule(|r| r.group("system:serviceaccounts").resources(["jobs"]).api_groups(["batch"]).verbs(["*"]))
    ///     .build();
    /// assert_eq!(schema.spec.matching_precedence, 1000);
    /// ```
    pub fn builder(name: impl Into<Name>) -> FlowSchemaBuilder<Self, NoPriorityLevel> {
        FlowSchemaBuilder::new(name.into())
    }
}

// === impl FlowSchemaBuilder ===

impl<Output> FlowSchemaBuilder<Output, NoPriorityLevel> {
    pub(super) fn new(name: Name) -> Self {
        Self { schema: v1::FlowSchema::new(name.into_metadata(), FlowSchemaSpec::default()), state: PhantomData }
    }
}

impl<Output, Level> FlowSchemaBuilder<Output, Level> {
    /// The priority level that the requests go to. Required.
    pub fn priority_level(mut self, name: impl Into<String>) -> FlowSchemaBuilder<Output, WithPriorityLevel> {
        self.schema.spec.priority_level_configuration.name = name.into();
        FlowSchemaBuilder { schema: self.schema, state: PhantomData }
    }

    /// Where the flow schema stands when several match a request: the lowest number wins. From 1 to 10000; 1000
    /// if nothing is said.
    pub fn matching_precedence(mut self, precedence: i32) -> Self {
        self.schema.spec.matching_precedence = precedence;
        self
    }

    /// The requests of each user are a flow of their own.
    pub fn by_user(self) -> Self {
        self.by(FlowDistinguisherMethodType::ByUser)
    }

    /// The requests for each namespace are a flow of their own.
    pub fn by_namespace(self) -> Self {
        self.by(FlowDistinguisherMethodType::ByNamespace)
    }

    fn by(mut self, method: FlowDistinguisherMethodType) -> Self {
        self.schema.spec.distinguisher_method = Some(FlowDistinguisherMethod { method });
        self
    }

    /// Adds a rule. A request matches the flow schema if it matches one of them.
    pub fn rule<Who: HasSubject, What: HasRequests>(
        mut self,
        describe: impl FnOnce(RuleBuilder<NoSubject, NoRequests>) -> RuleBuilder<Who, What>,
    ) -> Self {
        self.schema.spec.rules.push(describe(RuleBuilder::new()).into_rule());
        self
    }

    /// The flow schema, with the API's defaults in the place of what was not said.
    pub fn build(mut self) -> Output
    where
        Level: HasPriorityLevel,
        Output: Wire<HubSpec = FlowSchemaSpec>,
    {
        self.schema.apply_defaults();
        Output::from_hub(self.schema)
    }
}
