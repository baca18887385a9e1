//! `evenkeel check`: what is wrong with objects when they are looked at together.

mod against;
mod explain;
mod github;
mod input;
mod sarif;
mod services;
mod text;

use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use evenkeel_api::Preset;
use evenkeel_api::bootstrap::{self, BootstrapObjects, KubernetesVersion};
use evenkeel_check::{Assumptions, Borrowing, Checked, Located, Report, Rule, Severity, check_all};
use evenkeel_engine::auto_limit::Concurrency;
use evenkeel_engine::digest::parse_duration;

use crate::exit::{Exit, WrongUsage};
use crate::object_files::{ObjectFiles, standard_input_once};
use crate::remote::{ClusterFlags, ClusterObjects};
use crate::terminal::{ColorChoice, pretty_json, print};
use crate::tool_settings::ToolSettings;
use crate::usage::{concurrency, is_kubectl_plugin, number};
use input::Input;

const EXAMPLES: &str = "\
Examples:
  Levels and matches, or objects, of a gateway's settings:
    evenkeel check --config evenkeel.yaml
  The objects of your own service, with 50 seats:
    evenkeel check --seats 50 deploy/objects
  The objects of a cluster, by your kubeconfig or from a pipe:
    evenkeel check --context production
    kubectl get flowschemas,prioritylevelconfigurations -o yaml | evenkeel check --preset kubernetes -
  Fail on warnings too:
    evenkeel check --strict deploy/objects
  What a change does to requests:
    evenkeel check --against old.yaml new.yaml
  What a rule means:
    evenkeel check --explain unreachable-schema";

/// Checks flow schemas and priority levels, one by one and together.
///
/// Finds invalid objects, schemas and rules that no request can reach, levels without seats, flows that delay each other, and more.
/// Each finding has a rule, a location, a description, a solution and, where it helps, a request that shows the problem.
///
/// With `--config`, everything is as the settings file of a gateway says: objects or `levels` and `match`, preset, seats, borrowing,
/// time to wait and routes. Otherwise the defaults are those of `serve`; for files of a Kubernetes API, add `--preset kubernetes`.
///
/// The files may be YAML or JSON, with several documents or lists, and may be compressed with gzip. A directory stands for all
/// files in it. Documents of `kind: ClassificationTest` are run as tests. The annotation `evenkeel.dev/ignore: RULE,RULE` silences rules for an object.
///
/// With --context or --kubeconfig, the objects are those of a cluster. As `kubectl evenkeel check`, without FILES, they are those of kubectl's
/// current context.
///
/// The exit code is 1 if there are errors (with `--strict`, also for warnings), and 2 if the files cannot be read or decoded. What cannot be decoded is
/// a finding too, and the rest is checked.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = EXAMPLES)]
pub(crate) struct Check {
    /// Files or directories; `-` is standard input.
    #[arg(value_name = "FILES")]
    files: Vec<PathBuf>,

    /// The settings file of a gateway. Without FILES, its objects are checked.
    #[arg(long, value_name = "FILE", conflicts_with = "explain")]
    config: Option<PathBuf>,

    #[command(flatten)]
    cluster: ClusterFlags,

    /// Compare with these files: print which requests move to another schema or level.
    #[arg(long, value_name = "OLD", conflicts_with_all = ["explain", "calls"])]
    against: Vec<PathBuf>,

    /// Print the page about a rule, and check nothing.
    #[arg(long, value_name = "RULE", conflicts_with = "files")]
    explain: Option<String>,

    /// A file or folder of calls that requests make while they run, for the rule `inversion`; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    calls: Option<PathBuf>,

    /// How the findings are printed.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Output,

    /// Fail on warnings too.
    #[arg(long)]
    strict: bool,

    /// The kind of server, which decides the verbs of non-resource rules and how seats are divided: `kubernetes` or `plain`
    /// [default: that of --config, or plain; kubernetes for a cluster].
    #[arg(long, value_name = "PRESET", value_parser = Preset::from_str)]
    preset: Option<Preset>,

    /// The release of Kubernetes whose suggested objects the server looks after [default: that of the cluster, or the newest known].
    #[arg(long, value_name = "VERSION")]
    kubernetes: Option<KubernetesVersion>,

    /// Add the suggested objects of the preset that the files do not have.
    #[arg(long)]
    with_suggested: bool,

    /// How many seats the server has, or `auto` or `auto:MIN..MAX`: a limit that finds itself
    /// [default: as --config says, or auto; 600 with --preset kubernetes].
    #[arg(long, visible_alias = "concurrency", value_name = "N", value_parser = concurrency)]
    seats: Option<Concurrency>,

    /// How long a request may wait [default: that of --config, or 15s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    wait_limit: Option<Duration>,

    /// How long a request runs.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = duration)]
    service_time: Duration,

    /// How many seats the widest request takes [default: by the routes of --config, or 1; 10 with --preset kubernetes].
    #[arg(long, value_name = "N", value_parser = number::<1_000_000>)]
    widest: Option<u32>,

    /// When levels borrow seats from each other: `periodic` or `immediate` [default: that of --config, or immediate; periodic with
    /// --preset kubernetes].
    #[arg(long, value_name = "WHEN")]
    borrowing: Option<Borrowing>,

    /// When the output is coloured.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: ColorChoice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Text for people.
    Text,
    /// JSON.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Annotations of GitHub Actions.
    Github,
}

/// The objects to check, and the assumptions about their server.
struct CheckSubject {
    /// Files and folders.
    paths: Vec<PathBuf>,
    cluster: Option<ClusterObjects>,
    assumptions: Assumptions,
    /// The services of the settings, with their seats.
    services: Vec<(String, u32)>,
}

fn duration(text: &str) -> Result<Duration, String> {
    let parsed = parse_duration(text).ok().filter(|duration| !duration.is_zero());
    parsed.ok_or_else(|| "it must be a time with its unit, as 15s or 100ms".to_owned())
}

// === impl Check ===

impl Check {
    pub(crate) fn run(&self) -> Result<Exit> {
        // Any error that keeps the command from its work ends it with the code for that.
        self.run_unless_failing()
            .map_err(|error| if error.is::<WrongUsage>() { error } else { WrongUsage(format!("{error:#}")).into() })
    }

    fn run_unless_failing(&self) -> Result<Exit> {
        standard_input_once(self.files.iter().chain(&self.against).chain(&self.calls))?;
        if let Some(rule) = &self.explain {
            print(&explain::page(rule, self.color.paint(&io::stdout()))?)?;
            return Ok(Exit::Success);
        }
        let is_cluster = self.is_cluster()?;
        let mut settings = ToolSettings::read(self.config.as_deref())?;
        let is_kubernetes = is_cluster || self.kubernetes.is_some() || is_kubectl_plugin();
        let preset = settings.choose_preset(self.preset, is_kubernetes);
        let subject = self.subject(&settings, is_cluster)?;
        let exit = if self.against.is_empty() { self.check(&subject)? } else { self.compare(subject)? };
        if self.output == Output::Text {
            let most = settings.concurrency(None).most();
            preset
                .tell(self.seats.as_ref(), &format!("levels are checked with the most seats that it may find, {most}"));
        }
        Ok(exit)
    }

    /// Whether a cluster is checked, and not files.
    fn is_cluster(&self) -> Result<bool> {
        let has_files = !self.files.is_empty() || self.config.is_some();
        if has_files && self.cluster.is_given() {
            let fault = "--context and --kubeconfig name a cluster to check instead of files; leave out either";
            return Err(WrongUsage(fault.to_owned()).into());
        }
        let is_cluster = self.cluster.is_meant(has_files);
        if !has_files && !is_cluster {
            let fault = "name files or directories to check (`-` is standard input), the settings of a gateway with --config, or a \
                         cluster with --context";
            return Err(WrongUsage(fault.to_owned()).into());
        }
        Ok(is_cluster)
    }

    fn subject(&self, settings: &ToolSettings, is_cluster: bool) -> Result<CheckSubject> {
        let paths = settings.object_paths(&self.files);
        if let Some(file) = self.config.as_deref().filter(|_| paths.is_empty()) {
            let fault = format!("{}: the settings have no objects to check; add `levels` and `match`", file.display());
            return Err(WrongUsage(fault).into());
        }
        let cluster = is_cluster.then(|| self.cluster.read(settings.config().preset)).transpose()?;
        let of_cluster = || KubernetesVersion::nearest(cluster.as_ref()?.kubernetes.as_deref()?);
        let kubernetes = self.kubernetes.or_else(of_cluster).unwrap_or_default();
        let of_settings = settings.services().map(|(name, seats)| (name.to_owned(), seats));
        // A flag counts more than the file.
        let services = of_settings.filter(|_| self.seats.is_none()).collect();
        Ok(CheckSubject { paths, assumptions: self.assumptions(settings, kubernetes), cluster, services })
    }

    fn assumptions(&self, settings: &ToolSettings, kubernetes: KubernetesVersion) -> Assumptions {
        let config = settings.config();
        Assumptions {
            preset: config.preset,
            kubernetes,
            // A problem with the most seats is one whatever the limit turns out to be.
            seats: settings.concurrency(self.seats.as_ref()).most(),
            wait_limit: self.wait_limit.unwrap_or(config.timeouts.queue),
            service_time: self.service_time,
            widest: self.widest.unwrap_or_else(|| settings.widest()),
            borrowing: settings.borrowing(self.borrowing),
            ..Assumptions::default()
        }
    }

    /// The suggested objects to add, if they are wanted.
    fn suggested(&self, assumptions: &Assumptions) -> Option<&'static BootstrapObjects> {
        let suggested = match assumptions.preset {
            Preset::Plain | Preset::Llm => Preset::Plain.suggested(),
            Preset::Kubernetes => bootstrap::suggested_by(assumptions.kubernetes),
        };
        self.with_suggested.then_some(suggested)
    }

    fn check(&self, subject: &CheckSubject) -> Result<Exit> {
        let CheckSubject { paths, cluster, assumptions, services } = subject;
        let (files, problems) = ObjectFiles::read_parts(paths)?;
        let of_cluster = cluster.as_ref().map(|cluster| cluster.objects.as_slice()).unwrap_or_default();
        let input = Input::new(&files, of_cluster, problems, self.suggested(assumptions), self.calls.as_ref())?;
        let checked = Checked { objects: &input.objects, calls: &input.calls, tests: &input.tests };
        let mut report = check_all(checked, assumptions);
        let of_services = services::findings(services, &input.objects, assumptions, &report);
        report.findings.extend(of_services);
        report.findings.splice(0..0, input.undecodable.iter().cloned());
        let text = match self.output {
            Output::Text => text::Text::new(&input, self.color).report(&report),
            Output::Json => pretty_json(&report)?,
            Output::Sarif => pretty_json(&sarif::log(&report))?,
            Output::Github => github::commands(&report),
        };
        print(&text)?;
        Ok(if input.undecodable.is_empty() { self.exit(&report) } else { Exit::Usage })
    }

    fn exit(&self, report: &Report) -> Exit {
        let least = if self.strict { Severity::Warning } else { Severity::Error };
        let fails = report.findings.iter().any(|finding| finding.severity >= least);
        if fails { Exit::Failure } else { Exit::Success }
    }

    fn compare(&self, subject: CheckSubject) -> Result<Exit> {
        let CheckSubject { paths, cluster, assumptions, .. } = subject;
        let (old, new) = (ObjectFiles::read(&self.against)?, ObjectFiles::read(&paths)?);
        let mut old = valid(&old, assumptions.preset)?;
        let mut new = match cluster {
            Some(cluster) => cluster.objects.into_iter().map(Located::without_place).collect(),
            None => valid(&new, assumptions.preset)?,
        };
        for side in [&mut old, &mut new] {
            input::add_suggested(side, self.suggested(&assumptions));
        }
        let outcome = evenkeel_check::diff(&old, &new, &assumptions);
        let text = match self.output {
            Output::Text => against::text(&outcome, self.color.paint(&io::stdout())),
            Output::Json => pretty_json(&outcome)?,
            Output::Github => against::commands(&outcome),
            Output::Sarif => {
                let message = "`-o sarif` is for findings, not for what `--against` prints; use `-o json`";
                return Err(WrongUsage(message.to_owned()).into());
            }
        };
        print(&text)?;
        Ok(if outcome.differences.is_empty() { Exit::Success } else { Exit::Failure })
    }
}

/// The objects of one side of a comparison.
fn valid(files: &ObjectFiles, preset: Preset) -> Result<Vec<Located<'_>>> {
    let objects = files.valid_objects(preset)?;
    if objects.is_empty() && !files.has_documents() {
        return Err(input::nothing_found());
    }
    Ok(input::located(objects))
}

/// The names of all rules, for messages.
fn rule_names() -> String {
    Rule::ALL.iter().map(|rule| rule.name()).collect::<Vec<_>>().join(", ")
}
