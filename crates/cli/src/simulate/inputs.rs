//! What is simulated: the workload, and one or two configurations.

use std::path::{Path, PathBuf};

use anyhow::Result;
use evenkeel_api::{Preset, bootstrap};
use evenkeel_engine::auto_limit::Concurrency;
use evenkeel_engine::controller::{Borrowing, Objects};
use evenkeel_sim::workload::{Change, Workload};
use evenkeel_sim::{Scenario, ServerSettings};

use super::Simulate;
use crate::exit::WrongUsage;
use crate::object_files::{SourceFile, configuration, standard_input_once};
use crate::remote::ClusterObjects;

/// Everything that a simulation depends on, except its seed.
#[derive(Debug)]
pub(super) struct Inputs {
    pub(super) workload: Workload,
    /// One configuration, or two to be compared.
    pub(super) configurations: Vec<Configuration>,
    /// The seats of the server, as the user wrote them.
    pub(super) concurrency: Concurrency,
}

/// A configuration, and what it is called.
#[derive(Debug)]
pub(super) struct Configuration {
    pub(super) name: String,
    pub(super) scenario: Scenario,
}

// === impl Inputs ===

impl Inputs {
    pub(super) fn read(arguments: &Simulate) -> Result<Self> {
        standard_input_once([&arguments.workload].into_iter().chain(&arguments.objects).chain(&arguments.against))?;
        let preset = arguments.preset;
        let workload = read_workload(&arguments.workload, preset)?;
        let applied = read_applied(&workload, &arguments.workload, preset)?;
        let mut settings = ServerSettings::new(0).concurrency(&arguments.concurrency);
        settings.preset = preset;
        settings.borrowing = arguments.borrowing.unwrap_or(match preset {
            Preset::Kubernetes => Borrowing::Periodic,
            Preset::Plain => Borrowing::Immediate,
        });
        let configured = |name: String, objects: Objects| {
            let scenario = Scenario { settings: settings.clone(), objects, applied: applied.clone() };
            Configuration { name, scenario }
        };
        let (name, objects) = first(arguments)?;
        let mut configurations = vec![configured(name, objects)];
        if !arguments.against.is_empty() {
            configurations.push(configured(name_of(&arguments.against), read_objects(&arguments.against, preset)?));
        }
        name_shortly(&mut configurations);
        Ok(Self { workload, configurations, concurrency: arguments.concurrency.clone() })
    }
}

/// The first configuration: of files, of a cluster, or of the preset.
fn first(arguments: &Simulate) -> Result<(String, Objects)> {
    let Simulate { objects, cluster, preset, kubernetes, .. } = arguments;
    if !objects.is_empty() && cluster.is_given() {
        let fault =
            "--context and --kubeconfig name a cluster whose objects take the place of --objects; leave out either";
        return Err(WrongUsage(fault.to_owned()).into());
    }
    if cluster.is_meant(!objects.is_empty() || *preset == Preset::Plain) {
        let ClusterObjects { url, objects, .. } = cluster.read(*preset)?;
        return Ok((url, objects.into_iter().collect::<Objects>().with_mandatory_levels()));
    }
    if !objects.is_empty() {
        return Ok((name_of(objects), read_objects(objects, *preset)?));
    }
    let own = match kubernetes {
        Some(version) if *preset == Preset::Kubernetes => {
            let suggested = bootstrap::suggested_by(*version).to_objects();
            bootstrap::mandatory().to_objects().chain(suggested).collect()
        }
        _ => Objects::from(*preset),
    };
    Ok(("the objects of the preset".to_owned(), own))
}

fn name_of(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Folders that two names begin with tell nobody anything.
fn name_shortly(configurations: &mut [Configuration]) {
    let [one, other] = configurations else { return };
    let common = one.name.char_indices().zip(other.name.chars()).take_while(|((_, a), b)| a == b);
    let end = common.filter(|((_, letter), _)| *letter == '/').map(|((place, _), _)| place + 1).last();
    if let Some(end) = end {
        one.name.drain(..end);
        other.name.drain(..end);
    }
}

fn read_workload(path: &Path, preset: Preset) -> Result<Workload> {
    let source = SourceFile::read_one(path)?;
    Workload::parse(&source.name, &source.text, preset).map_err(|problems| WrongUsage(problems.to_string()).into())
}

/// The objects of the files that events apply. Their paths are relative to the workload.
fn read_applied(workload: &Workload, path: &Path, preset: Preset) -> Result<Vec<Objects>> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let files = workload.events.iter().filter_map(|event| match &event.change {
        Change::Apply(file) => Some(folder.join(file)),
        Change::Slots(_) | Change::Failing(_) | Change::Concurrency(_) => None,
    });
    files.map(|file| read_objects(&[file], preset)).collect()
}

fn read_objects(paths: &[PathBuf], preset: Preset) -> Result<Objects> {
    Ok(configuration(paths, preset)?.into_iter().collect::<Objects>().with_mandatory_levels())
}
