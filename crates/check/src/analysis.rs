//! The check as a whole: which objects count, all rules in turn, and what remains of their findings.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use evenkeel_api::bootstrap::{self, BootstrapObjects, KubernetesVersion};
use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration};
use evenkeel_api::{AnyObject, Kind, Object, Preset, annotations};

use crate::assumptions::Assumptions;
use crate::caller::Callers;
use crate::calls::Call;
use crate::classification_test::ClassificationTest;
use crate::configuration::{Budget, Configuration, View};
use crate::finding::{Finding, Located, ObjectName, Report, Undecided};
use crate::rule::Rule;
use crate::rules;
use crate::space::Space;

/// One question takes at most this part of all work.
const PART_OF_WORK: u64 = 20;

/// Everything that can be checked together.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Checked<'a> {
    /// The objects.
    pub objects: &'a [Located<'a>],
    /// Calls that requests make while they run.
    pub calls: &'a [Call],
    /// Requests, and how they are to be classified.
    pub tests: &'a [ClassificationTest],
}

/// The input of rules: the valid objects, and the configuration that they make.
#[derive(Debug)]
pub(crate) struct Analysis<'a> {
    pub(crate) assumptions: &'a Assumptions,
    pub(crate) checked: Checked<'a>,
    /// The valid schemas.
    pub(crate) schemas: Vec<(&'a Located<'a>, &'a FlowSchema)>,
    /// The valid levels.
    pub(crate) levels: Vec<(&'a Located<'a>, &'a PriorityLevelConfiguration)>,
    /// The names of all levels, valid or not, and those of the mandatory ones.
    pub(crate) level_names: HashSet<&'a str>,
    /// The schemas that a server would use, in match order, the mandatory ones among them.
    pub(crate) view: View<'a>,
    pub(crate) callers: Callers,
    /// The objects that servers suggest: those of the preset or, for Kubernetes, of any release.
    stock: Vec<&'static BootstrapObjects>,
}

/// The output of rules: their findings, and the work that they may still do.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) report: Report,
    pub(crate) budget: Budget,
}

/// Checks objects.
pub fn check(objects: &[Located<'_>], assumptions: &Assumptions) -> Report {
    check_all(Checked { objects, ..Checked::default() }, assumptions)
}

/// Checks only which schemas and rules requests can reach.
pub fn check_reachability(objects: &[Located<'_>], assumptions: &Assumptions) -> Report {
    let checked = Checked { objects, ..Checked::default() };
    run(checked, assumptions, rules::reach::run)
}

/// Checks only the seats and queues of the levels, for another number of seats.
pub fn check_seats(objects: &[Located<'_>], assumptions: &Assumptions) -> Report {
    let checked = Checked { objects, ..Checked::default() };
    run(checked, assumptions, rules::seats::run)
}

/// Checks objects, calls and tests.
pub fn check_all(checked: Checked<'_>, assumptions: &Assumptions) -> Report {
    run(checked, assumptions, rules::run)
}

fn run(checked: Checked<'_>, assumptions: &Assumptions, rules: impl FnOnce(&Analysis<'_>, &mut Output)) -> Report {
    let mut report = Report::default();
    let valid = rules::validity::valid(checked.objects, assumptions, &mut report);
    let analysis = Analysis::new(checked, &valid, assumptions);
    let budget = Budget::new(assumptions.work_max, assumptions.work_max / PART_OF_WORK + 1);
    let mut output = Output { report, budget };
    rules(&analysis, &mut output);
    output.finish(checked.objects)
}

// === impl Analysis ===

impl<'a> Analysis<'a> {
    fn new(checked: Checked<'a>, valid: &[&'a Located<'a>], assumptions: &'a Assumptions) -> Self {
        let (mut schemas, mut levels) = (Vec::new(), Vec::new());
        // Objects of the mode `audit` do not govern.
        let governing = valid.iter().filter(|located| !annotations::is_audit(&located.object.metadata().annotations));
        for located in governing {
            match &located.object {
                AnyObject::FlowSchema(schema) => schemas.push((*located, schema)),
                AnyObject::PriorityLevelConfiguration(level) => levels.push((*located, level)),
            }
        }
        let named = checked.objects.iter().map(|located| &located.object);
        let named = named.filter(|object| object.kind() == Kind::PriorityLevelConfiguration).map(AnyObject::name);
        let mandatory = bootstrap::mandatory().priority_levels.iter().map(Object::name);
        let level_names: HashSet<&str> = named.chain(mandatory).collect();
        let level_of = |schema: &FlowSchema| schema.spec.priority_level_configuration.name.clone();
        let usable = schemas.iter().map(|(_, schema)| *schema).filter(|s| level_names.contains(&*level_of(s)));
        let configuration = Configuration::new(usable, assumptions.preset);
        let space = Arc::new(Space::of(configuration.schemas.iter().copied()));
        let callers = Callers::of(configuration.schemas.iter().copied(), assumptions.preset);
        let view = View::new(configuration, &space);
        let stock = match assumptions.preset {
            Preset::Plain | Preset::Llm => vec![assumptions.preset.suggested()],
            Preset::Kubernetes => KubernetesVersion::all().map(bootstrap::suggested_by).collect(),
        };
        Self { assumptions, checked, schemas, levels, level_names, view, callers, stock }
    }

    /// Where a schema of the configuration comes from, unless it is a built-in one.
    pub(crate) fn located(&self, schema: &FlowSchema) -> Option<&'a Located<'a>> {
        self.schemas.iter().find(|(_, own)| std::ptr::eq(*own, schema)).map(|(located, _)| *located)
    }

    /// Whether an object is mandatory or suggested, and as the server made it.
    pub(crate) fn is_original(&self, object: &AnyObject) -> bool {
        let name = object.name();
        if bootstrap::is_mandatory(object.kind(), name) {
            return true;
        }
        match object {
            AnyObject::FlowSchema(schema) => {
                self.stock.iter().any(|stock| stock.flow_schema(name).is_some_and(|own| own.spec == schema.spec))
            }
            AnyObject::PriorityLevelConfiguration(level) => {
                self.stock.iter().any(|stock| stock.priority_level(name).is_some_and(|own| own.spec == level.spec))
            }
        }
    }
}

// === impl Output ===

impl Output {
    /// Adds a finding, unless the object is mandatory or suggested and as the server made it.
    pub(crate) fn accuse(&mut self, analysis: &Analysis<'_>, of: &Located<'_>, finding: Finding) {
        if !analysis.is_original(&of.object) {
            self.report.findings.push(finding);
        }
    }

    pub(crate) fn undecided(&mut self, rule: Rule, object: ObjectName) {
        let message = "the analysis takes too long; use fewer rules or more general ones".to_owned();
        self.report.undecided.push(Undecided { rule, object, message });
    }

    /// The report without the findings that its objects suppress, in the order of the files.
    fn finish(self, objects: &[Located<'_>]) -> Report {
        let mut ignored: HashMap<ObjectName, Vec<Rule>> = HashMap::new();
        let mut files: HashMap<&str, usize> = HashMap::new();
        for located in objects {
            let number = files.len();
            files.entry(located.file).or_insert(number);
            if let Some(rules) = located.object.metadata().annotations.get(annotations::IGNORE) {
                let rules = rules.split(',').filter_map(|rule| rule.trim().parse::<Rule>().ok());
                ignored.entry(located.name()).or_default().extend(rules);
            }
        }
        let mut report = self.report;
        let is_told = |rule: Rule, object: &ObjectName| ignored.get(object).is_none_or(|rules| !rules.contains(&rule));
        report.findings.retain(|finding| is_told(finding.rule, &finding.object));
        report.undecided.retain(|undecided| is_told(undecided.rule, &undecided.object));
        let file = |finding: &Finding| files.get(finding.place.file.as_str()).copied().unwrap_or(usize::MAX);
        report.findings.sort_by_cached_key(|finding| (file(finding), finding.place.clone(), finding.rule));
        report
    }
}
