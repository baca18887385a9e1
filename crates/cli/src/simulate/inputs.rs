//! What is simulated: the workload, and one or two configurations.

use std::path::{Path, PathBuf};

use anyhow::Result;
use evenkeel_api::Preset;
use evenkeel_engine::controller::Objects;
use evenkeel_sim::workload::{Change, Workload};
use evenkeel_sim::{Scenario, ServerSettings};

use super::{Simulate, routes};
use crate::exit::WrongUsage;
use crate::object_files::{SourceFile, configuration, standard_input_once};
use crate::tool_settings::{ChosenPreset, ToolSettings};
use crate::usage::is_kubectl_plugin;

/// Everything that a simulation depends on, except its seed.
#[derive(Debug)]
pub(super) struct Inputs {
    pub(super) workload: Workload,
    /// One configuration, or two to be compared.
    pub(super) configurations: Vec<Configuration>,
    /// The preset, and whether somebody chose it.
    pub(super) preset: ChosenPreset,
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
        let mut file = ToolSettings::read(arguments.config.as_deref())?;
        let of_kubectl = (is_kubectl_plugin() && arguments.config.is_none()).then_some(Preset::Kubernetes);
        let chosen = file.choose_preset(arguments.preset.or(of_kubectl));
        let preset = chosen.preset;
        let mut workload = read_workload(&arguments.workload, preset)?;
        routes::apply(&mut workload, file.config())?;
        let applied = read_applied(&workload, &arguments.workload, preset)?;
        let mut settings = ServerSettings::new(i64::from(file.seats(arguments.concurrency)));
        settings.preset = preset;
        settings.borrowing = file.borrowing(arguments.borrowing);
        let configured = |paths: &[PathBuf]| -> Result<Configuration> {
            let objects = if paths.is_empty() { Objects::from(preset) } else { read_objects(paths, preset)? };
            let name = name_of(paths);
            let scenario = Scenario { settings: settings.clone(), objects, applied: applied.clone() };
            Ok(Configuration { name, scenario })
        };
        let mut configurations = vec![configured(&file.object_paths(&arguments.objects))?];
        if !arguments.against.is_empty() {
            configurations.push(configured(&arguments.against)?);
        }
        name_shortly(&mut configurations);
        Ok(Self { workload, configurations, preset: chosen })
    }
}

fn name_of(paths: &[PathBuf]) -> String {
    let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    if names.is_empty() { "the objects of the preset".to_owned() } else { names.join(", ") }
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
        Change::Slots(_) | Change::Concurrency(_) => None,
    });
    files.map(|file| read_objects(&[file], preset)).collect()
}

fn read_objects(paths: &[PathBuf], preset: Preset) -> Result<Objects> {
    Ok(configuration(paths, preset)?.into_iter().collect::<Objects>().with_mandatory_levels())
}
