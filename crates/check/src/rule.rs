//! The rules, each with its severity and its page.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// How serious a finding is.
///
/// Not `#[non_exhaustive]`: code that shows findings has to know every severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something to know.
    Info,
    /// Probably not what is meant.
    Warning,
    /// Does not work.
    Error,
}

/// The text names no rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownRule(String);

macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $Rule:ident $name:literal $severity:ident,)+) => {
        /// A rule of the check: the subject of a finding.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $($(#[doc = $doc])+ $Rule,)+
        }

        impl Rule {
            /// All rules.
            pub const ALL: &'static [Self] = &[$(Self::$Rule,)+];

            /// The name of the rule.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$Rule => $name,)+
                }
            }

            /// How serious a finding of the rule is.
            pub const fn severity(self) -> Severity {
                match self {
                    $(Self::$Rule => Severity::$severity,)+
                }
            }

            /// The page of the rule, in Markdown: what it finds, why that matters, what to do, and an example.
            pub const fn page(self) -> &'static str {
                match self {
                    $(Self::$Rule => include_str!(concat!("../pages/", $name, ".md")),)+
                }
            }
        }
    };
}

rules! {
    /// Validation fails.
    InvalidObject "invalid-object" Error,
    /// No request can be classified to a schema.
    UnreachableSchema "unreachable-schema" Error,
    /// No request can be classified to a schema by one of its rules.
    UnreachableRule "unreachable-rule" Warning,
    /// Two schemas of equal precedence match a common request.
    PrecedenceTie "precedence-tie" Warning,
    /// A schema names a level that is not there.
    DanglingLevel "dangling-level" Error,
    /// No schema names a level.
    UnusedLevel "unused-level" Warning,
    /// A schema takes every authenticated request that is left.
    CatchesEverything "catches-everything" Warning,
    /// Requests of an ordinary service that match no schema.
    NoCatchAll "no-catch-all" Warning,
    /// A mandatory object differs from what the server would restore.
    MandatoryEdited "mandatory-edited" Error,
    /// A suggested object differs, and would be put back.
    SuggestedEdited "suggested-edited" Warning,
    /// All callers of a schema share one flow in a level with queues.
    OneFlow "one-flow" Warning,
    /// Flows by namespace where no request has one.
    UselessDistinguisher "useless-distinguisher" Warning,
    /// A light flow shares all its queues with heavy ones too often.
    HandCollision "hand-collision" Warning,
    /// One flow can hold all seats of a level.
    HandTooWide "hand-too-wide" Warning,
    /// The seats of a level round to none.
    ZeroSeats "zero-seats" Error,
    /// A level has fewer seats than a request may need.
    FewSeats "few-seats" Warning,
    /// A level that is to reject everything lets a request through.
    RejectJail "reject-jail" Warning,
    /// Requests are queued only to time out.
    Bufferbloat "bufferbloat" Warning,
    /// A level has more queues than help anybody.
    ManyQueues "many-queues" Warning,
    /// The seats of a level cannot serve the rate of a schema.
    RateUnreachable "rate-unreachable" Warning,
    /// No request of a revocable level is ever told to end.
    RevocableInVain "revocable-in-vain" Warning,
    /// An idle level starts with nothing.
    LendsEverything "lends-everything" Warning,
    /// A call runs in a level that does not outrank that of its caller.
    Inversion "inversion" Error,
    /// An annotation of Evenkeel that is not understood.
    UnknownAnnotation "unknown-annotation" Warning,
    /// An annotation that has no effect on its object.
    UselessAnnotation "useless-annotation" Warning,
    /// An object is written in an old version.
    DeprecatedVersion "deprecated-version" Info,
    /// Zero shares become 30 if an old client writes the object back.
    ZeroSharesLost "zero-shares-lost" Info,
    /// A test of the classification fails.
    ClassificationTest "classification-test" Error,
}

/// Where the pages of the rules are.
const PAGES: &str = "https://evenkeel.dev/docs/checks/";

// === impl Rule ===

impl Rule {
    /// The address of the rule's page.
    pub fn address(self) -> String {
        format!("{PAGES}{}", self.name())
    }

    /// The first sentence of the rule's page.
    pub fn summary(self) -> &'static str {
        let mut paragraphs = self.page().split("\n\n").skip(1);
        paragraphs.next().unwrap_or_default()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Rule {
    type Err = UnknownRule;

    fn from_str(name: &str) -> Result<Self, UnknownRule> {
        Self::ALL.iter().copied().find(|rule| rule.name() == name).ok_or_else(|| UnknownRule(name.to_owned()))
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

// === impl Severity ===

impl Severity {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

// === impl UnknownRule ===

impl fmt::Display for UnknownRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no rule {:?}", self.0)
    }
}

impl std::error::Error for UnknownRule {}
