//! The objects that every server starts with (API-74).
//!
//! The *mandatory* ones have a fixed specification and always exist. The *suggested* ones are a starting point that
//! operators may change; the annotation [`AUTO_UPDATE_ANNOTATION`] says whether the server still looks after them.
//!
//! ```
//! use evenkeel_api::{Kind, bootstrap};
//!
//! let names: Vec<_> = bootstrap::mandatory().flow_schemas.iter().map(|schema| schema.name()).collect();
//! assert_eq!(names, ["exempt", "catch-all"]);
//! assert!(bootstrap::is_mandatory(Kind::PriorityLevelConfiguration, "exempt"));
//! assert!(!bootstrap::is_mandatory(Kind::PriorityLevelConfiguration, "system"));
//! ```

mod kubernetes_version;
mod mandatory;
mod plain;
mod suggested;

use std::sync::LazyLock;

use crate::v1::{FlowSchema, PriorityLevelConfiguration};
use crate::{AnyObject, Kind};

pub use kubernetes_version::{KubernetesVersion, UnknownKubernetesVersion};

/// The annotation that says whether the server keeps an object's specification as it is here: `true` or `false`.
pub const AUTO_UPDATE_ANNOTATION: &str = "apf.kubernetes.io/autoupdate-spec";

/// The name of the mandatory objects that let requests pass at once.
pub const EXEMPT: &str = "exempt";
/// The name of the mandatory objects that take what nothing else matches.
pub const CATCH_ALL: &str = "catch-all";

/// Some of the objects, by kind.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BootstrapObjects {
    /// The priority levels.
    pub priority_levels: Vec<PriorityLevelConfiguration>,
    /// The flow schemas.
    pub flow_schemas: Vec<FlowSchema>,
}

static MANDATORY: LazyLock<BootstrapObjects> = LazyLock::new(|| {
    BootstrapObjects { priority_levels: mandatory::priority_levels(), flow_schemas: mandatory::flow_schemas() }.marked()
});
static SUGGESTED: LazyLock<BootstrapObjects> = LazyLock::new(|| {
    BootstrapObjects { priority_levels: suggested::priority_levels(), flow_schemas: suggested::flow_schemas() }.marked()
});
static SUGGESTED_BEFORE_1_34: LazyLock<BootstrapObjects> = LazyLock::new(|| {
    let mut objects = BootstrapObjects {
        priority_levels: suggested::priority_levels(),
        flow_schemas: [suggested::flow_schemas(), suggested::flow_schemas_before_1_34()].concat(),
    };
    objects.flow_schemas.sort_by_key(|schema| schema.spec.matching_precedence);
    objects.marked()
});
static PLAIN: LazyLock<BootstrapObjects> = LazyLock::new(|| {
    BootstrapObjects { priority_levels: plain::priority_levels(), flow_schemas: plain::flow_schemas() }.marked()
});
static LLM: LazyLock<BootstrapObjects> = LazyLock::new(|| {
    BootstrapObjects { priority_levels: plain::priority_levels(), flow_schemas: plain::flow_schemas_by_cost() }.marked()
});
static ALL: LazyLock<BootstrapObjects> = LazyLock::new(|| BootstrapObjects {
    priority_levels: [&*MANDATORY, &*SUGGESTED].into_iter().flat_map(|group| group.priority_levels.clone()).collect(),
    flow_schemas: [&*MANDATORY, &*SUGGESTED].into_iter().flat_map(|group| group.flow_schemas.clone()).collect(),
});

/// The objects that always exist, with a specification that nobody can change.
pub fn mandatory() -> &'static BootstrapObjects {
    &MANDATORY
}

/// The objects that take the place of the suggested ones where the service is no Kubernetes API: see
/// [`Preset::Plain`](crate::Preset::Plain).
pub fn plain() -> &'static BootstrapObjects {
    &PLAIN
}

/// The built-in objects of a service of language models: see [`Preset::Llm`](crate::Preset::Llm). Requests that cost many tokens take more seats.
pub fn llm() -> &'static BootstrapObjects {
    &LLM
}

/// The objects that exist until an operator decides otherwise.
pub fn suggested() -> &'static BootstrapObjects {
    &SUGGESTED
}

/// The suggested objects of that version. Those of the newest are [`suggested`].
///
/// ```
/// use evenkeel_api::bootstrap::{self, KubernetesVersion};
///
/// let of = |version: &str| bootstrap::suggested_by(version.parse::<KubernetesVersion>().unwrap());
/// assert!(of("1.33").flow_schema("endpoint-controller").is_some());
/// assert_eq!(of("1.34"), bootstrap::suggested());
/// ```
pub fn suggested_by(version: KubernetesVersion) -> &'static BootstrapObjects {
    if version < KubernetesVersion::LEASES_ONLY { &SUGGESTED_BEFORE_1_34 } else { &SUGGESTED }
}

/// The mandatory objects and then the suggested ones.
pub fn all() -> &'static BootstrapObjects {
    &ALL
}

/// The flow schemas, the mandatory ones first.
pub fn flow_schemas() -> &'static [FlowSchema] {
    &ALL.flow_schemas
}

/// The priority levels, the mandatory ones first.
pub fn priority_levels() -> &'static [PriorityLevelConfiguration] {
    &ALL.priority_levels
}

/// The mandatory flow schema of that name.
pub fn mandatory_flow_schema(name: &str) -> Option<&'static FlowSchema> {
    MANDATORY.flow_schema(name)
}

/// The mandatory priority level of that name.
pub fn mandatory_priority_level(name: &str) -> Option<&'static PriorityLevelConfiguration> {
    MANDATORY.priority_level(name)
}

/// Whether the object of that kind and name is a mandatory one.
pub fn is_mandatory(kind: Kind, name: &str) -> bool {
    match kind {
        Kind::FlowSchema => mandatory_flow_schema(name).is_some(),
        Kind::PriorityLevelConfiguration => mandatory_priority_level(name).is_some(),
    }
}

// === impl BootstrapObjects ===

impl BootstrapObjects {
    /// The flow schema of that name.
    pub fn flow_schema(&self, name: &str) -> Option<&FlowSchema> {
        self.flow_schemas.iter().find(|schema| schema.name() == name)
    }

    /// The priority level of that name.
    pub fn priority_level(&self, name: &str) -> Option<&PriorityLevelConfiguration> {
        self.priority_levels.iter().find(|level| level.name() == name)
    }

    /// A copy of each object, in the order in which they are best created: the flow schemas refer to the levels.
    ///
    /// ```
    /// assert_eq!(evenkeel_api::bootstrap::all().to_objects().count(), 8 + 11);
    /// ```
    pub fn to_objects(&self) -> impl Iterator<Item = AnyObject> + '_ {
        let priority_levels = self.priority_levels.iter().cloned().map(AnyObject::from);
        priority_levels.chain(self.flow_schemas.iter().cloned().map(AnyObject::from))
    }

    /// All of them start out as looked after by the server.
    fn marked(mut self) -> Self {
        let levels = self.priority_levels.iter_mut().map(|level| &mut level.metadata);
        for metadata in levels.chain(self.flow_schemas.iter_mut().map(|schema| &mut schema.metadata)) {
            metadata.annotations.insert(AUTO_UPDATE_ANNOTATION.to_owned(), "true".to_owned());
        }
        self
    }
}
