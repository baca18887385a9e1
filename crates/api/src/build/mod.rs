//! Builders: objects written in Rust the way a manifest is written in YAML.
//!
//! Builders start from the type of the object and read from the general to the particular. What the API has a default for may be
//! left out: a built object is the one that the server would store.
//!
//! ```
//! use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration};
//!
//! let schema = FlowSchema::builder("batch")
//!     .priority_level("tenants")
//!     .matching_precedence(500)
//!     .by_user()
//!     .label("team", "data")
//!     .annotation("example.com/why", "nightly jobs list every pod")
//!     .rule(|r| r.user("alice").resources(["pods"]).verbs(["get", "list"]))
//!     .rule(|r| {
//!         r.group("system:authenticated")
//!             .service_account("jobs", "*")
//!             .resources(["leases"]).api_groups(["coordination.k8s.io"]).namespaces(["jobs"]).verbs(["*"])
//!             .non_resource_urls(["/healthz", "/readyz/*"]).verbs(["get"])
//!     })
//!     .build();
//!
//! let level = PriorityLevelConfiguration::builder("tenants")
//!     .limited(|l| l.shares(40).lendable_percent(25).queue(|q| q.queues(128).hand_size(6)))
//!     .build();
//!
//! assert_eq!(schema.spec.priority_level_configuration.name, level.name());
//! let queuing = level.spec.limited.unwrap().limit_response.queuing.unwrap();
//! assert_eq!((queuing.queues, queuing.hand_size, queuing.queue_length_limit), (128, 6, 50));
//! ```
//!
//! The parts that every object has come in the same way: labels, annotations, finalizers, owners, the conditions of a status, and
//! who manages which fields. Lists of objects have a builder too.
//!
//! ```
//! use evenkeel_api::v1::{FlowSchemaList, PriorityLevelConfigurationList};
//!
//! let schemas = FlowSchemaList::builder()
//!     .resource_version("7")
//!     .item(|s| s.name("batch").priority_level("tenants").finalizer("example.com/audit"))
//!     .item(|s| {
//!         s.name("lost")
//!             .priority_level("nowhere")
//!             .owned_by(|o| o.object("v1", "ConfigMap").name("tenants").uid("5e0a").controller())
//!             .condition("Dangling", |c| c.is_true().reason("NotFound").message("there is no such level"))
//!     })
//!     .build();
//! let levels = PriorityLevelConfigurationList::builder().item(|l| l.name("tenants").limited(|l| l.reject())).build();
//! assert_eq!((schemas.items.len(), levels.items[0].name()), (2, "tenants"));
//! ```
//!
//! # What cannot be left out
//!
//! The compiler requires the fields that the API requires, and names a missing one. Each of these pairs differs in that part
//! only.
//!
//! A flow schema names a priority level:
//!
//! ```compile_fail,E0277
//! # use evenkeel_api::v1::FlowSchema;
//! FlowSchema::builder("batch").build();
//! ```
//! ```
//! # use evenkeel_api::v1::FlowSchema;
//! FlowSchema::builder("batch").priority_level("workload-low").build();
//! ```
//!
//! A rule names at least one subject:
//!
//! ```compile_fail,E0277
//! # use evenkeel_api::v1::FlowSchema;
//! # let batch = FlowSchema::builder("batch").priority_level("workload-low");
//! batch.rule(|r| r.resources(["pods"]).verbs(["get"])).build();
//! ```
//! ```
//! # use evenkeel_api::v1::FlowSchema;
//! # let batch = FlowSchema::builder("batch").priority_level("workload-low");
//! batch.rule(|r| r.user("alice").resources(["pods"]).verbs(["get"])).build();
//! ```
//!
//! A flow schema names the requests that it is about:
//!
//! ```compile_fail,E0277
//! # use evenkeel_api::v1::FlowSchema;
//! # let batch = FlowSchema::builder("batch").priority_level("workload-low");
//! batch.rule(|r| r.user("alice")).build();
//! ```
//! ```
//! # use evenkeel_api::v1::FlowSchema;
//! # let batch = FlowSchema::builder("batch").priority_level("workload-low");
//! batch.rule(|r| r.user("alice").non_resource_urls(["/healthz"]).verbs(["get"])).build();
//! ```
//!
//! The resources and paths each have their verbs, the last ones:
//!
//! ```compile_fail,E0277
//! # use evenkeel_api::v1::FlowSchema;
//! # let batch = FlowSchema::builder("batch").priority_level("workload-low");
//! batch.rule(|r| r.user("alice").resources(["pods"])).build();
//! ```
//! ```
//! # use evenkeel_api::v1::FlowSchema;
//! # let batch = FlowSchema::builder("batch").priority_level("workload-low");
//! batch.rule(|r| r.user("alice").resources(["pods"]).verbs(["get"])).build();
//! ```
//! ```compile_fail,E0277
//! # use evenkeel_api::v1::FlowSchema;
//! # let batch = FlowSchema::builder("batch").priority_level("workload-low");
//! batch.rule(|r| r.user("alice").non_resource_urls(["/healthz"])).build();
//! ```
//! ```
//! # use evenkeel_api::v1::FlowSchema;
//! # let batch = FlowSchema::builder("batch").priority_level("workload-low");
//! batch.rule(|r| r.user("alice").non_resource_urls(["/healthz"]).verbs(["get"])).build();
//! ```
//!
//! and those in between:
//!
//! ```compile_fail,E0277
//! # use evenkeel_api::v1::FlowSchema;
//! # let batch = FlowSchema::builder("batch").priority_level("workload-low");
//! batch.rule(|r| r.user("alice").resources(["pods"]).resources(["nodes"]).verbs(["get"])).build();
//! ```
//! ```
//! # use evenkeel_api::v1::FlowSchema;
//! # let batch = FlowSchema::builder("batch").priority_level("workload-low");
//! batch.rule(|r| r.user("alice").resources(["pods"]).verbs(["get"]).resources(["nodes"]).verbs(["get"])).build();
//! ```
//!
//! A list in it holds something:
//!
//! ```compile_fail
//! # use evenkeel_api::v1::FlowSchema;
//! # let batch = FlowSchema::builder("batch").priority_level("workload-low");
//! batch.rule(|r| r.user("alice").resources([]).verbs(["get"])).build();
//! ```
//! ```
//! # use evenkeel_api::v1::FlowSchema;
//! # let batch = FlowSchema::builder("batch").priority_level("workload-low");
//! batch.rule(|r| r.user("alice").resources(["pods"]).verbs(["get"])).build();
//! ```
//!
//! (An empty list that comes as a variable is left to validation.)
//!
//! A priority level has a type:
//!
//! ```compile_fail,E0277
//! # use evenkeel_api::v1::PriorityLevelConfiguration;
//! PriorityLevelConfiguration::builder("tenants").build();
//! ```
//! ```
//! # use evenkeel_api::v1::PriorityLevelConfiguration;
//! PriorityLevelConfiguration::builder("tenants").limited(|l| l.reject()).build();
//! ```
//!
//! and only one:
//!
//! ```compile_fail,E0277
//! # use evenkeel_api::v1::PriorityLevelConfiguration;
//! PriorityLevelConfiguration::builder("exempt").exempt(|e| e).limited(|l| l.reject()).build();
//! ```
//! ```
//! # use evenkeel_api::v1::PriorityLevelConfiguration;
//! PriorityLevelConfiguration::builder("exempt").exempt(|e| e).build();
//! ```
//!
//! An owner is named in full:
//!
//! ```compile_fail,E0277
//! # use evenkeel_api::v1::FlowSchema;
//! # let batch = FlowSchema::builder("batch").priority_level("workload-low");
//! batch.owned_by(|o| o.object("v1", "ConfigMap").name("tenants")).build();
//! ```
//! ```
//! # use evenkeel_api::v1::FlowSchema;
//! # let batch = FlowSchema::builder("batch").priority_level("workload-low");
//! batch.owned_by(|o| o.object("v1", "ConfigMap").name("tenants").uid("5e0a")).build();
//! ```
//!
//! An item of a list is complete:
//!
//! ```compile_fail,E0277
//! # use evenkeel_api::v1::FlowSchemaList;
//! FlowSchemaList::builder().item(|s| s.name("batch")).build();
//! ```
//! ```
//! # use evenkeel_api::v1::FlowSchemaList;
//! FlowSchemaList::builder().item(|s| s.name("batch").priority_level("workload-low")).build();
//! ```
//!
//! A limited one says what happens to a request that finds no seat:
//!
//! ```compile_fail,E0277
//! # use evenkeel_api::v1::PriorityLevelConfiguration;
//! PriorityLevelConfiguration::builder("tenants").limited(|l| l.shares(40)).build();
//! ```
//! ```
//! # use evenkeel_api::v1::PriorityLevelConfiguration;
//! PriorityLevelConfiguration::builder("tenants").limited(|l| l.shares(40).queue(|q| q)).build();
//! ```

mod condition;
mod flow_schema;
mod limits;
mod list;
mod managed_fields;
mod name;
mod object_parts;
mod older_versions;
mod owner;
mod priority_level;
mod rule;
pub mod state;

pub use condition::ConditionBuilder;
pub use flow_schema::FlowSchemaBuilder;
pub use limits::{ExemptBuilder, LimitedBuilder, QueueBuilder};
pub use list::{FlowSchemaItem, ListBuilder, PriorityLevelItem};
pub use managed_fields::ManagedFieldsBuilder;
pub use name::{Name, generate_name};
pub use owner::OwnerBuilder;
pub use priority_level::PriorityLevelBuilder;
pub use rule::RuleBuilder;

/// The texts of a list, whatever they come as.
fn texts(texts: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    texts.into_iter().map(Into::into).collect()
}
