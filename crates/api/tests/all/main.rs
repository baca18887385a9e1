//! The tests of the objects, in one program: each further program would have to be linked.

#![allow(deprecated, reason = "the older versions are tested like the newest")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bootstrap;
mod build;
mod conversion;
mod defaulting;
mod dropped;
mod encoding;
mod k8s_openapi;
mod lists;
mod manifest;
mod recorded_decoding;
mod recorded_protobuf;
mod recorded_validation;
mod replay;
mod schema_openapi;
mod schema_reference;
mod schema_snapshots;
mod schema_table;
mod short_form;
mod strategies;
mod validated;
mod validation_changes;
mod validation_errors;
mod validation_flow_schema;
mod validation_mandatory;
mod validation_metadata;
mod validation_policy_rules;
mod validation_priority_level;
mod validation_status;
