//! `evenkeel replay`: what another configuration would have done with the requests of a log.

mod figures;
mod html;
mod incident;
mod json;
mod progress;
mod settings_routes;
mod text;

use std::io::{self, IsTerminal};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use anyhow::Result;
use clap::Args;
use evenkeel_api::Preset;
use evenkeel_engine::auto_limit::Concurrency;
use evenkeel_engine::controller::{Borrowing, Objects};
use evenkeel_engine::digest::parse_duration;
use evenkeel_engine::time::Nanos;
use evenkeel_replay::{Format, Input, ObjectNumbers, Replay as Run, Report, Routes, Settings, Truth};

use crate::exit::{Exit, WrongUsage};
use crate::flight_file;
use crate::object_files::{SourceFile, configuration, standard_input_once};
use crate::remote::ClusterFlags;
use crate::report_page;
use crate::terminal::{ColorChoice, OutputFormat, pretty_json, print, width};
use crate::tool_settings::ToolSettings;
use crate::usage::concurrency;
use incident::IncidentView;
pub(crate) use json::FIELDS;
use progress::Progress;
use settings_routes::SettingsRoutes;

const EXAMPLES: &str = "\
Examples:
  Try a new configuration on yesterday's audit log of a server with 600 seats:
    kubectl get flowschemas,prioritylevelconfigurations -o yaml > old.yaml
    evenkeel replay audit.log --against old.yaml --objects new.yaml --report report.html
  The same with the objects of a cluster of your kubeconfig:
    evenkeel replay audit.log --context production --objects new.yaml
  Compare the classification with the server's own log (kube-apiserver -v=3):
    evenkeel replay audit.log --objects old.yaml --truth kube-apiserver.log
  Replay the access log of a gateway with 50 seats, with more time to wait:
    evenkeel replay access.log --objects objects.yaml --concurrency 50 --wait-limit 30s
  See what happened last night, by a dump of the flight recorder, and what would have happened under other objects:
    curl -o incident.ekf 'http://127.0.0.1:9901/debug/flight?seconds=300'
    evenkeel replay incident.ekf
    evenkeel replay incident.ekf --objects new.yaml --report report.html
  Replay an access log of nginx in a format of your own:
    evenkeel replay access.log --objects objects.yaml --format '$msec $remote_user \"$request\" $request_time'";

/// Shows what a configuration would have done with the requests of a log, flow by flow.
///
/// Reads dumps of the flight recorder (/debug/flight), which have the objects and seats of their gateway, Kubernetes audit logs, the request log of a kube-apiserver (-v=3), and access logs of Evenkeel, nginx and Envoy, which may
/// be compressed with gzip. The format is detected from the first lines. Requests keep their arrival times and service times; flow
/// control decides about them again. With --against, two configurations are compared on the same requests, and the flows that
/// differ most come first; otherwise the configuration is compared with the recorded decisions. The output lists what the log does
/// not contain.
///
/// With --context or --kubeconfig, and as `kubectl evenkeel replay` by kubectl's current context, the objects of a cluster are used: they are what --objects is
/// compared with, or without --objects what is replayed.
///
/// With a dump, --config and --objects say what it is decided under besides its own objects, and --against what with. The seats, the
/// time to wait, the borrowing and the wait of newcomers are those of --config, or of its gateway.
///
/// Unreadable lines are counted and listed, and do not end the run. The exit code is 1 if --truth finds a request that was
/// classified differently.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = EXAMPLES)]
pub(crate) struct Replay {
    /// Logs, in chronological order, or `-` for standard input.
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,

    /// The settings file of a gateway: its objects or `levels` and `match`, preset, seats, borrowing, time to wait and routes.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The configuration: files or directories with flow schemas and priority levels [default: those of --config].
    #[arg(long, value_name = "FILE", num_args = 1..)]
    objects: Vec<PathBuf>,

    #[command(flatten)]
    cluster: ClusterFlags,

    /// The configuration to compare with, usually that of the server that wrote the log.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    against: Vec<PathBuf>,

    /// How many seats the server has. For a kube-apiserver: --max-requests-inflight plus --max-mutating-requests-inflight.
    /// With `auto` or `auto:MIN..MAX`, it finds out how many are right, as far as the service times of a log can tell
    /// [default: as --config says, or auto; 600 for a Kubernetes API].
    #[arg(long, visible_alias = "seats", value_name = "N", value_parser = concurrency)]
    concurrency: Option<Concurrency>,

    /// How long a request may wait for a seat [default: that of --config, or 15s].
    #[arg(long, value_name = "TIME", value_parser = span)]
    wait_limit: Option<Nanos>,

    /// When levels borrow from each other: `periodic` or `immediate` [default: that of --config, or periodic under `kubernetes` and
    /// immediate under `plain`].
    #[arg(long, value_name = "WHEN")]
    borrowing: Option<Borrowing>,

    /// How paths are interpreted: `kubernetes` or `plain` [default: that of --config, or kubernetes for logs of a kube-apiserver and
    /// plain for others].
    #[arg(long, value_name = "PRESET")]
    preset: Option<Preset>,

    /// Compare the classification with the request log of a kube-apiserver (-v=3), by audit ID. With --against, the
    /// configuration of --against is compared.
    #[arg(long, value_name = "LOG")]
    truth: Option<PathBuf>,

    /// How many objects exist, which decides how many seats lists take: a dump of the metrics of a kube-apiserver, or lines such
    /// as `deployments.apps 70 4096` (resource, number, and optionally the average size in bytes).
    #[arg(long, value_name = "FILE")]
    object_counts: Option<PathBuf>,

    /// The format of the log, as in the configuration of nginx (`$remote_user …`) or Envoy (`%START_TIME% …`).
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,

    /// Write a report with charts: one HTML file that needs no network.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// How the result is printed.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: OutputFormat,

    /// How many flows are printed; 0 for all. JSON has all of them.
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,

    /// When the output is coloured.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: ColorChoice,
}

/// Reads a time such as `15s`.
fn span(text: &str) -> Result<Nanos, String> {
    let span = parse_duration(text).map_err(|_| "it must be a time, as 250ms, 15s or 1m30s".to_owned())?;
    Nanos::try_from(span.as_nanos()).map_err(|_| "it is too long".to_owned())
}

// === impl Replay ===

impl Replay {
    pub(crate) fn run(&self) -> Result<Exit> {
        if let Some(dump) = self.logs.iter().find(|log| flight_file::is_dump(log)) {
            return self.run_dump(dump);
        }
        let inputs = self.logs.iter().chain(&self.objects).chain(&self.against);
        standard_input_once(inputs.chain(&self.truth).chain(&self.object_counts))?;
        let mut file = ToolSettings::read(self.config.as_deref())?;
        let mut inputs = self.inputs()?;
        let settings = self.settings(&inputs, &mut file)?;
        let configurations = self.configurations(&file)?;
        let truth = self.truth.as_deref().map(read_truth).transpose()?;
        let mut run = Run::new(settings, configurations, truth);
        for input in &mut inputs {
            let mut progress = Progress::new();
            run.read(input, |lines, input| progress.show(lines, input));
            progress.end();
        }
        let report = run.finish();
        file.tell_services(self.concurrency.as_ref());
        if report.lines == 0 {
            let names: Vec<_> = inputs.iter().map(Input::name).collect();
            let fault = format!("{} is empty; name a log with requests in it", names.join(", "));
            return Err(WrongUsage(fault).into());
        }
        print(&self.text(&report)?)?;
        if let Some(file) = &self.report {
            let names: Vec<_> = self.logs.iter().map(|log| log.display().to_string()).collect();
            report_page::write(file, &html::page(&names.join(", "), &report, None))?;
        }
        let is_different = self.truth.is_some() && report.comparison.agree < report.comparison.compared;
        Ok(if is_different { Exit::Failure } else { Exit::Success })
    }

    /// Runs a dump of a flight recorder: shows the incident, and with --objects or --config what would have happened.
    fn run_dump(&self, log: &Path) -> Result<Exit> {
        self.check_flags_of_dump(log)?;
        standard_input_once(self.objects.iter().chain(&self.against))?;
        let mut file = ToolSettings::read(self.config.as_deref())?;
        let flight = flight_file::read(log)?;
        let of_dump = file.is_default().then(|| evenkeel_replay::preset_of(&flight));
        let preset = file.choose_preset(self.preset.or(of_dump), false).preset;
        let seats = Concurrency::Fixed(u32::try_from(flight.header.seats).unwrap_or(u32::MAX));
        // A setting that no file has is that of the gateway.
        let (concurrency, wait_limit, borrowing) = if file.is_default() {
            let borrowing = self.borrowing.unwrap_or_else(|| evenkeel_replay::borrowing_of(&flight));
            (self.concurrency.clone().unwrap_or(seats), flight.header.wait_limit, borrowing)
        } else {
            let concurrency = file.concurrency(self.concurrency.as_ref());
            (concurrency, file.wait_limit(), file.borrowing(self.borrowing))
        };
        let mut settings = Settings::new(preset, concurrency);
        (settings.wait_limit, settings.borrowing) = (self.wait_limit.unwrap_or(wait_limit), borrowing);
        settings.newcomer_wait = file.newcomer_wait(Some(&flight));
        let mut configurations = Vec::new();
        let named = file.object_paths(&self.objects);
        if !self.against.is_empty() {
            configurations.push(read_objects(&self.against, preset)?);
        }
        if self.against.is_empty() || named.is_empty() {
            configurations.push(flight_file::objects(log, &flight)?);
        }
        if !named.is_empty() {
            configurations.push(read_objects(&named, preset)?);
        }
        // The report and the incident each decide about all requests again, so they can do it at the same time.
        let (report, incident) = thread::scope(|scope| {
            let incident = scope.spawn(|| IncidentView::new(&flight));
            let mut run = Run::new(settings, configurations, None);
            run.read_flight(&flight);
            (run.finish(), incident.join())
        });
        let incident = incident.unwrap_or_else(|panicked| resume_unwind(panicked))?;
        file.tell_services(self.concurrency.as_ref());
        print(&match self.output {
            OutputFormat::Text => incident.text(self.color.paint(&io::stdout())) + &self.text(&report)?,
            OutputFormat::Json => pretty_json(&json::JsonReport::new(&report).with_incident(incident.json()))?,
        })?;
        if let Some(file) = &self.report {
            report_page::write(file, &html::page(&log.display().to_string(), &report, Some(&incident)))?;
        }
        Ok(Exit::Success)
    }

    /// Refuses flags that make no sense for a dump.
    fn check_flags_of_dump(&self, dump: &Path) -> Result<()> {
        let name = dump.display();
        if self.logs.len() > 1 {
            let fault =
                format!("{name} is a dump of the flight recorder, which is replayed alone; name one dump at a time");
            return Err(WrongUsage(fault).into());
        }
        let for_logs = [
            ("--truth", self.truth.is_some(), "it has the decisions of its gateway"),
            ("--format", self.format.is_some(), "its format is known"),
            ("--object-counts", self.object_counts.is_some(), "it has the seats that requests took"),
            (
                "--context and --kubeconfig",
                self.cluster.is_given(),
                "it has the objects of its gateway; name others with --objects",
            ),
        ];
        if let Some((flag, _, why)) = for_logs.into_iter().find(|(_, is_given, _)| *is_given) {
            let fault = format!("{name} is a dump of the flight recorder: {why}; leave out {flag}");
            return Err(WrongUsage(fault).into());
        }
        Ok(())
    }

    /// One configuration, or two of which the first is compared with.
    fn configurations(&self, settings: &ToolSettings) -> Result<Vec<Objects>> {
        let preset = settings.config().preset;
        if !self.against.is_empty() && self.cluster.is_given() {
            let fault =
                "--context and --kubeconfig name a cluster whose objects take the place of --against; leave out either";
            return Err(WrongUsage(fault.to_owned()).into());
        }
        let is_other_named = !self.against.is_empty() || !preset.is_kubernetes() || self.config.is_some();
        let is_cluster = self.cluster.is_meant(is_other_named);
        if self.objects.is_empty() && self.config.is_none() && !is_cluster {
            let fault = "name the configuration with --objects or --config, or a cluster with --context";
            return Err(WrongUsage(fault.to_owned()).into());
        }
        let mut configurations = Vec::new();
        if !self.against.is_empty() {
            configurations.push(read_objects(&self.against, preset)?);
        } else if is_cluster {
            configurations.push(self.cluster.read(preset)?.objects.into_iter().collect());
        }
        if !self.objects.is_empty() || self.config.is_some() {
            configurations.push(read_objects(&settings.object_paths(&self.objects), preset)?);
        }
        Ok(configurations)
    }

    fn inputs(&self) -> Result<Vec<Input>> {
        let format = self.format.as_deref().map(Format::of_template).transpose();
        let format = format.map_err(|error| WrongUsage(format!("--format cannot be used: {error}")))?;
        let opened = self.logs.iter().map(|log| Input::open(log, format.clone()));
        opened.map(|input| input.map_err(|error| WrongUsage(error.to_string()).into())).collect()
    }

    fn settings(&self, inputs: &[Input], file: &mut ToolSettings) -> Result<Settings> {
        let is_kubernetes = inputs.iter().all(|input| input.format().is_kubernetes());
        let chosen = file.choose_preset(self.preset, is_kubernetes);
        let mut settings = Settings::new(chosen.preset, file.concurrency(self.concurrency.as_ref()));
        settings.wait_limit = self.wait_limit.unwrap_or(file.wait_limit());
        settings.borrowing = file.borrowing(self.borrowing);
        settings.newcomer_wait = file.newcomer_wait(None);
        settings.routes = routes(file)?;
        if let Some(file) = &self.object_counts {
            settings.object_numbers = read_object_numbers(file)?;
        }
        Ok(settings)
    }

    /// The report as it is printed.
    fn text(&self, report: &Report) -> Result<String> {
        match self.output {
            OutputFormat::Text => {
                let output = io::stdout();
                let width = output.is_terminal().then(|| width(&output));
                Ok(text::render(report, self.top, self.color.paint(&output), width))
            }
            OutputFormat::Json => pretty_json(&json::JsonReport::new(report)),
        }
    }
}

/// The routes of the settings, for the requests of a log.
fn routes(file: &ToolSettings) -> Result<Option<Arc<dyn Routes>>> {
    if file.config().requests.routes.is_empty() {
        return Ok(None);
    }
    Ok(Some(Arc::new(SettingsRoutes(file.request_rules()?))))
}

fn read_objects(paths: &[PathBuf], preset: Preset) -> Result<Objects> {
    if paths.is_empty() {
        return Ok(preset.into());
    }
    Ok(configuration(paths, preset)?.into_iter().collect())
}

fn read_truth(path: &Path) -> Result<Truth> {
    let mut input = Input::open(path, None).map_err(|error| WrongUsage(error.to_string()))?;
    let mut progress = Progress::new();
    let truth = Truth::read(&mut input, |lines, input| progress.show(lines, input));
    progress.end();
    if truth.is_empty() {
        let advice = "it must be the request log of a kube-apiserver that runs with -v=3";
        return Err(WrongUsage(format!("{} does not contain flow schemas: {advice}", path.display())).into());
    }
    Ok(truth)
}

/// Reads a file of object numbers, packed or not.
fn read_object_numbers(path: &Path) -> Result<ObjectNumbers> {
    let SourceFile { name, text, .. } = SourceFile::read_one(path)?;
    let numbers: ObjectNumbers =
        String::from_utf8_lossy(&text).parse().map_err(|error| WrongUsage(format!("{name}: {error}")))?;
    if numbers.is_empty() {
        let advice = "it must have metrics of a kube-apiserver, or lines such as `deployments.apps 70 4096`";
        return Err(WrongUsage(format!("{name} has no numbers of objects; {advice}")).into());
    }
    Ok(numbers)
}
