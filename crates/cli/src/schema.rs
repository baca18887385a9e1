//! `evenkeel schema`: what the fields of flow schemas and priority levels are, for people and for editors.

use anyhow::Result;
use clap::{Args, ValueEnum};
use evenkeel_api::{Kind, Version, schema};

use crate::exit::{Exit, WrongUsage};
use crate::terminal::{pretty_json, print};

const EXAMPLES: &str = "\
Examples:
  The reference of priority levels:
    evenkeel schema PriorityLevelConfiguration
  A schema with which an editor checks and completes manifests:
    evenkeel schema -o jsonschema > flowcontrol.schema.json
  The OpenAPI document of an older version:
    evenkeel schema --version v1beta3 -o openapi";

/// Prints the fields of flow schemas and priority levels: their types and defaults, which are required, which the server sets, and
/// what they mean.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = EXAMPLES)]
pub(crate) struct Schema {
    /// The kind: `FlowSchema` or `PriorityLevelConfiguration`. Default: both.
    #[arg(value_name = "KIND", value_parser = kind)]
    kind: Option<Kind>,

    /// The version of the API: `v1`, `v1beta3`, `v1beta2` or `v1beta1`.
    #[arg(long, value_name = "VERSION", default_value = "v1", value_parser = version)]
    version: Version,

    /// The form: a page for people, a JSON Schema (draft 2020-12) of manifests, or the OpenAPI 3.0 document of the API.
    #[arg(short, long, value_name = "FORMAT", default_value = "markdown")]
    output: SchemaFormat,
}

/// How schemas are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SchemaFormat {
    Markdown,
    Jsonschema,
    Openapi,
}

// === impl Schema ===

impl Schema {
    pub(crate) fn run(&self) -> Result<Exit> {
        let text = match (self.output, self.kind) {
            (SchemaFormat::Markdown, None) if self.version == Version::V1 => schema::markdown_reference(),
            (SchemaFormat::Markdown, None) => schema::markdown_of(self.version, &Kind::ALL),
            (SchemaFormat::Markdown, Some(kind)) => schema::markdown_of(self.version, &[kind]),
            (SchemaFormat::Jsonschema, None) => pretty_json(&schema::json_schema_of_all(self.version))?,
            (SchemaFormat::Jsonschema, Some(kind)) => pretty_json(&schema::json_schema(self.version, kind))?,
            (SchemaFormat::Openapi, None) => pretty_json(&schema::openapi_v3(self.version))?,
            (SchemaFormat::Openapi, Some(kind)) => {
                let fault = format!("the OpenAPI document describes all kinds together; leave {kind} out");
                return Err(WrongUsage(fault).into());
            }
        };
        print(&text)?;
        Ok(Exit::Success)
    }
}

/// A kind, by its name or by that of its resource, in any case.
fn kind(text: &str) -> Result<Kind, String> {
    let names = |kind: &Kind| [kind.name(), kind.resource()];
    let found = Kind::ALL.into_iter().find(|kind| names(kind).iter().any(|name| name.eq_ignore_ascii_case(text)));
    found.ok_or_else(|| "it must be FlowSchema or PriorityLevelConfiguration".to_owned())
}

fn version(text: &str) -> Result<Version, String> {
    let found = Version::ALL.into_iter().find(|version| version.name() == text);
    found.ok_or_else(|| "it must be v1, v1beta3, v1beta2 or v1beta1".to_owned())
}
