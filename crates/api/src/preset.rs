//! `Preset`: whether a service is an ordinary one, one that serves language models, or a Kubernetes API.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::bootstrap::{self, BootstrapObjects};

/// What kind of service is protected. One word decides what objects there are at first, what a path means, and which
/// verbs rules may have.
///
/// ```
/// use evenkeel_api::Preset;
///
/// assert_eq!("kubernetes".parse(), Ok(Preset::Kubernetes));
/// assert_eq!(Preset::default().to_string(), "plain");
/// assert_eq!(Preset::Plain.objects().priority_levels[2].name(), "everyone");
/// ```
///
/// Not `#[non_exhaustive]`: code that goes by the kind of service has to know every kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// An ordinary HTTP service: paths and methods are what they are, one level has all seats, and every user is a flow.
    #[default]
    Plain,
    /// A service of language models: an ordinary one whose requests cost tokens.
    Llm,
    /// A Kubernetes API: everything is as a kube-apiserver does it.
    Kubernetes,
}

/// The word names no preset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a preset; use `plain`, `llm` or `kubernetes`")]
pub struct UnknownPreset(String);

// === impl Preset ===

impl Preset {
    /// All presets.
    pub const ALL: [Self; 3] = [Self::Plain, Self::Llm, Self::Kubernetes];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Llm => "llm",
            Self::Kubernetes => "kubernetes",
        }
    }

    /// Whether everything is as a kube-apiserver does it.
    pub const fn is_kubernetes(self) -> bool {
        matches!(self, Self::Kubernetes)
    }

    /// The objects that exist until an operator decides otherwise.
    pub fn suggested(self) -> &'static BootstrapObjects {
        match self {
            Self::Plain => bootstrap::plain(),
            Self::Llm => bootstrap::llm(),
            Self::Kubernetes => bootstrap::suggested(),
        }
    }

    /// The objects that a server starts with: the mandatory ones, and then the [suggested](Self::suggested) ones.
    pub fn objects(self) -> BootstrapObjects {
        let [mandatory, suggested] = [bootstrap::mandatory(), self.suggested()];
        BootstrapObjects {
            priority_levels: [&mandatory.priority_levels[..], &suggested.priority_levels].concat(),
            flow_schemas: [&mandatory.flow_schemas[..], &suggested.flow_schemas].concat(),
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(text: &str) -> Result<Self, UnknownPreset> {
        Self::ALL.into_iter().find(|preset| preset.name() == text).ok_or_else(|| UnknownPreset(text.to_owned()))
    }
}
