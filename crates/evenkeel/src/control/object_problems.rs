//! `InvalidObjects`: everything that is wrong with the objects that a flow control is given.
//!
//! The objects of a text are validated when the text is read. Those that are made in Rust are validated here, by the same rules.
//! Problems that no object shows alone are looked for here in both: two objects of one name, and flow schemas that lead to no
//! level.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use evenkeel_api::decode::{Position, Problem, Problems};
use evenkeel_api::v1::{FlowSchema, V1};
use evenkeel_api::validate::{self, Context, FieldError, Reason, ValidSpec};
use evenkeel_api::{Kind, Object, Preset, Version, bootstrap};
use evenkeel_engine::controller::Objects;

/// Everything that is wrong with the objects that a flow control was given: at least one problem. Nothing was changed by them.
///
/// Written out, each problem has its line: the object, the field, what is wrong, and what to do.
///
/// ```
/// use evenkeel::{FlowControl, FlowSchema, PriorityLevelConfiguration};
///
/// let level = PriorityLevelConfiguration::builder("Gold_x").limited(|l| l.shares(-5).reject()).build();
/// let schema = FlowSchema::builder("orders").priority_level("gold");
/// let schema = schema.rule(|r| r.user("*").non_resource_urls(["orders"]).verbs(["FETCH"])).build();
///
/// let invalid = FlowControl::builder().objects(level).objects(schema).drive_by_hand().try_build().unwrap_err();
/// let fields: Vec<_> = invalid.iter().map(|problem| (problem.name.as_str(), problem.field.as_str())).collect();
/// assert_eq!(fields, [
///     ("Gold_x", "metadata.name"),
///     ("Gold_x", "spec.limited.nominalConcurrencyShares"),
///     ("orders", "spec.rules[0].nonResourceRules[0].verbs"),
///     ("orders", "spec.rules[0].nonResourceRules[0].nonResourceURLs[0]"),
///     ("orders", "spec.priorityLevelConfiguration.name"),
/// ]);
/// assert!(invalid.to_string().ends_with(
///     "FlowSchema \"orders\": spec.priorityLevelConfiguration.name: there is no priority level \"gold\": \
///      correct the name, or add the level; there are \"Gold_x\", \"catch-all\", \"exempt\""
/// ));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidObjects(Vec<ObjectProblem>);

/// One thing that is wrong with an object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectProblem {
    /// Where it is, if the object is in a text.
    pub at: Option<Position>,
    /// The kind of the object; `None` if the object is in a text, whose message says it.
    pub kind: Option<Kind>,
    /// The name of the object; empty if it is in a text.
    pub name: String,
    /// The path of the field, such as `spec.rules[0].subjects`; empty if the problem is not about a single field.
    pub field: String,
    /// What is wrong.
    pub message: String,
    /// What to do; empty if the message says it.
    pub help: Cow<'static, str>,
}

/// How many problems of one object are told.
const PROBLEMS_MAX: usize = 100;
/// How many levels are named to choose from.
const NAMES_MAX: usize = 10;

/// Checks objects, together with the schema that exempts paths, by the rules of a preset.
pub(crate) fn check(
    objects: &Objects,
    exempt_paths: Option<&Arc<FlowSchema>>,
    preset: Preset,
) -> Result<(), InvalidObjects> {
    let mut objects = objects.clone();
    objects.flow_schemas.extend(exempt_paths.cloned());
    let mut problems = of_each(&objects, preset);
    problems.extend(without_level(&objects));
    InvalidObjects::none_in(problems)
}

/// The problems of single objects, and objects of which there are two.
pub(crate) fn of_each(objects: &Objects, preset: Preset) -> Vec<ObjectProblem> {
    let mut problems = Vec::new();
    check_kind(objects.priority_levels.iter().map(|level| &**level), preset, &mut problems);
    check_kind(objects.flow_schemas.iter().map(|schema| &**schema), preset, &mut problems);
    problems
}

/// Flow schemas whose levels are neither given nor mandatory.
pub(crate) fn without_level(objects: &Objects) -> Vec<ObjectProblem> {
    let mandatory = bootstrap::mandatory().priority_levels.iter().map(Object::name);
    let levels: HashSet<&str> = objects.priority_levels.iter().map(|level| level.name()).chain(mandatory).collect();
    let problem = |(schema, level): (&str, &str)| ObjectProblem {
        at: None,
        kind: Some(Kind::FlowSchema),
        name: schema.to_owned(),
        field: "spec.priorityLevelConfiguration.name".to_owned(),
        message: format!("there is no priority level {level:?}"),
        help: format!("correct the name, or add the level; there are {}", listed(&levels)).into(),
    };
    let named =
        objects.flow_schemas.iter().map(|schema| (schema.name(), &*schema.spec.priority_level_configuration.name));
    // A schema that names no level at all is a problem of its own.
    named.filter(|(_, level)| !level.is_empty() && !levels.contains(level)).map(problem).collect()
}

fn listed(names: &HashSet<&str>) -> String {
    let mut names: Vec<&str> = names.iter().copied().collect();
    names.sort_unstable();
    let listed: Vec<String> = names.iter().take(NAMES_MAX).map(|name| format!("{name:?}")).collect();
    let more = names.len().saturating_sub(NAMES_MAX);
    listed.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

fn check_kind<'a, S: ValidSpec>(
    objects: impl Iterator<Item = &'a Object<V1, S>>,
    preset: Preset,
    problems: &mut Vec<ObjectProblem>,
) {
    let mut names = HashSet::new();
    for object in objects {
        let problem = |field: &str, message: &str, help: Cow<'static, str>| ObjectProblem {
            at: None,
            kind: Some(S::KIND),
            name: object.name().to_owned(),
            field: field.to_owned(),
            message: message.to_owned(),
            help,
        };
        if let Err(errors) = validate(object, preset) {
            let found = errors.iter().take(PROBLEMS_MAX);
            problems.extend(found.map(|error| problem(error.field(), error.message(), help(object, error, preset))));
        } else if object.name().is_empty() {
            // The object is valid: an API server makes up its name.
            problems.push(problem(
                "metadata.name",
                "the object has no name",
                "name it: only an API server makes up names".into(),
            ));
        }
        if !object.name().is_empty() && !names.insert(object.name()) {
            problems.push(problem("", "is there twice", "keep one of them".into()));
        }
    }
}

fn validate<S: ValidSpec>(object: &Object<V1, S>, preset: Preset) -> Result<(), validate::FieldErrors> {
    validate::create(object, Context { preset, ..Context::from(Version::V1) })
}

/// The advice on a problem of a field.
fn help<S: ValidSpec>(object: &Object<V1, S>, error: &FieldError, preset: Preset) -> Cow<'static, str> {
    let field = error.field();
    if field == "spec" && bootstrap::is_mandatory(S::KIND, object.name()) {
        return "leave the object out: it is always there as it has to be".into();
    }
    if field == "metadata.name" {
        return "use lower-case letters, digits and '-'".into();
    }
    if field.contains(".nonResourceURLs") {
        return "begin paths with a slash; '*' stands alone or after the last slash, as in '/orders/*'".into();
    }
    if field.contains(".nonResourceRules[") && field.rsplit('.').next() == Some("verbs") {
        return match preset {
            Preset::Plain | Preset::Llm => "use methods in lower case; Kubernetes' verbs are for `kubernetes()`".into(),
            Preset::Kubernetes => "use Kubernetes' verbs; methods are for services other than Kubernetes APIs".into(),
        };
    }
    match error.reason() {
        Reason::Required => "add it".into(),
        Reason::NotSupported => "use one of those".into(),
        Reason::Forbidden | Reason::Duplicate => "remove it".into(),
        Reason::TooLong => "shorten it".into(),
        // The message says what to do.
        _ => "".into(),
    }
}

// === impl InvalidObjects ===

impl InvalidObjects {
    /// Fine if there are no problems, and all of them otherwise.
    pub(crate) fn none_in(problems: Vec<ObjectProblem>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self(problems)) }
    }

    /// The problems: those of texts, of priority levels, of flow schemas, and then the levels that are missing.
    pub fn iter(&self) -> std::slice::Iter<'_, ObjectProblem> {
        self.0.iter()
    }
}

impl From<Problems> for InvalidObjects {
    /// The problems of a text.
    fn from(problems: Problems) -> Self {
        Self(problems.into_iter().map(ObjectProblem::from).collect())
    }
}

impl IntoIterator for InvalidObjects {
    type Item = ObjectProblem;
    type IntoIter = std::vec::IntoIter<ObjectProblem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a InvalidObjects {
    type Item = &'a ObjectProblem;
    type IntoIter = std::slice::Iter<'a, ObjectProblem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for InvalidObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.0.len() == 1 { "" } else { "s" };
        write!(f, "the objects of the flow control have {} problem{s}:", self.0.len())?;
        self.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

impl std::error::Error for InvalidObjects {}

// === impl ObjectProblem ===

impl ObjectProblem {
    /// A path that is to be exempt from all limits, and cannot be.
    pub(crate) fn not_exempt(path: &str) -> Self {
        Self {
            at: None,
            kind: Some(Kind::FlowSchema),
            name: "exempt-paths".to_owned(),
            field: "spec.rules[0].nonResourceRules[0].nonResourceURLs".to_owned(),
            message: format!("the path {path:?} cannot be exempt"),
            help: "begin paths with a slash; '/' would exempt every request, and if that is meant, '/*' does".into(),
        }
    }
}

impl ObjectProblem {
    /// A problem of levels and rules that were given by methods.
    pub(crate) fn of_short_form(field: &str, message: &str) -> Self {
        let (field, message) = (field.to_owned(), message.to_owned());
        Self { at: None, kind: None, name: String::new(), field, message, help: "".into() }
    }
}

#[cfg(feature = "fleet")]
impl ObjectProblem {
    /// The fleet cannot be joined.
    pub(crate) fn of_fleet(error: &crate::control::fleet::JoinFleetError) -> Self {
        Self::of_short_form("fleet", &error.to_string())
    }
}

impl From<Problem> for ObjectProblem {
    /// A problem of a text.
    fn from(problem: Problem) -> Self {
        let Problem { at, message, .. } = problem;
        Self { at: Some(at), kind: None, name: String::new(), field: String::new(), message, help: "".into() }
    }
}

impl fmt::Display for ObjectProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = self.at {
            write!(f, "manifest:{at}: ")?;
        }
        if let Some(kind) = self.kind {
            write!(f, "{kind} {:?}: ", self.name)?;
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)?;
        if self.help.is_empty() { Ok(()) } else { write!(f, ": {}", self.help) }
    }
}
