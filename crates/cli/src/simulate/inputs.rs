//! `Inputs`: the workload of a simulation, and one or two configurations.

use std::path::{Path, PathBuf};

use anyhow::Result;
use evenkeel_api::{Preset, bootstrap};
use evenkeel_engine::auto_limit::Concurrency;
use evenkeel_engine::controller::{Borrowing, Objects};
use evenkeel_sim::workload::{Change, Workload};
use evenkeel_sim::{Scenario, ServerSettings};

use super::{Simulate, routes};
use crate::exit::WrongUsage;
use crate::flight_file;
use crate::object_files::{SourceFile, configuration, standard_input_once};
use crate::remote::ClusterObjects;
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
    /// The seats of the server, as the user wrote them.
    pub(super) concurrency: Concurrency,
}

/// A configuration and its name.
#[derive(Debug)]
pub(super) struct Configuration {
    pub(super) name: String,
    pub(super) scenario: Scenario,
}

// === impl Inputs ===

impl Inputs {
    pub(super) fn read(arguments: &Simulate) -> Result<Self> {
        standard_input_once([&arguments.workload].into_iter().chain(&arguments.objects).chain(&arguments.against))?;
        let is_cluster = is_cluster(arguments)?;
        let mut file = ToolSettings::read(arguments.config.as_deref())?;
        if flight_file::is_dump(&arguments.workload) {
            return Self::of_dump(arguments, file, is_cluster);
        }
        let is_kubernetes = is_cluster || arguments.kubernetes.is_some() || is_kubectl_plugin();
        let chosen = file.choose_preset(arguments.preset, is_kubernetes);
        let preset = chosen.preset;
        let mut workload = read_workload(&arguments.workload, preset)?;
        routes::apply(&mut workload, &file)?;
        let applied = read_applied(&workload, &arguments.workload, preset)?;
        let concurrency = file.concurrency(arguments.concurrency.as_ref());
        let mut settings = ServerSettings::new(0).concurrency(&concurrency);
        settings.preset = preset;
        settings.borrowing = file.borrowing(arguments.borrowing);
        settings.newcomer_wait = file.newcomer_wait(None);
        if workload.instances.is_some() {
            check_instances(&settings)?;
        }
        let configuration_of = |name: String, objects: Objects| {
            let scenario = Scenario { settings: settings.clone(), objects, applied: applied.clone() };
            Configuration { name, scenario }
        };
        let configurations = compared(arguments, first(arguments, &file, is_cluster)?, preset, configuration_of)?;
        file.tell_services(arguments.concurrency.as_ref());
        Ok(Self { workload, configurations, preset: chosen, concurrency })
    }

    /// A dump of the flight recorder has its workload, and the objects and settings of its gateway, unless others are named.
    fn of_dump(arguments: &Simulate, mut file: ToolSettings, is_cluster: bool) -> Result<Self> {
        let path = &arguments.workload;
        let flight = flight_file::read(path)?;
        let of_dump = file.is_default().then(|| evenkeel_replay::preset_of(&flight));
        let chosen = file.choose_preset(arguments.preset.or(of_dump), is_cluster);
        let preset = chosen.preset;
        let name = path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let workload = evenkeel_replay::workload_of(&name, &flight);
        let (concurrency, borrowing) = if file.is_default() {
            let seats = Concurrency::Fixed(u32::try_from(flight.header.seats).unwrap_or(u32::MAX));
            let borrowing = arguments.borrowing.unwrap_or_else(|| evenkeel_replay::borrowing_of(&flight));
            (arguments.concurrency.clone().unwrap_or(seats), borrowing)
        } else {
            (file.concurrency(arguments.concurrency.as_ref()), file.borrowing(arguments.borrowing))
        };
        let mut settings = ServerSettings::new(0).concurrency(&concurrency);
        (settings.preset, settings.borrowing) = (preset, borrowing);
        settings.newcomer_wait = file.newcomer_wait(Some(&flight));
        let configuration_of = |name: String, objects: Objects| {
            let scenario = Scenario { settings: settings.clone(), objects, applied: Vec::new() };
            Configuration { name, scenario }
        };
        let is_own = !is_cluster && file.object_paths(&arguments.objects).is_empty() && arguments.kubernetes.is_none();
        let first = if is_own {
            ("the objects of the dump".to_owned(), flight_file::objects(path, &flight)?.with_mandatory_levels())
        } else {
            first(arguments, &file, is_cluster)?
        };
        let configurations = compared(arguments, first, preset, configuration_of)?;
        file.tell_services(arguments.concurrency.as_ref());
        Ok(Self { workload, configurations, preset: chosen, concurrency })
    }
}

/// The first configuration, and that of `--against` if there is one.
fn compared(
    arguments: &Simulate,
    (name, objects): (String, Objects),
    preset: Preset,
    configuration_of: impl Fn(String, Objects) -> Configuration,
) -> Result<Vec<Configuration>> {
    let mut configurations = vec![configuration_of(name, objects)];
    if !arguments.against.is_empty() {
        configurations.push(configuration_of(name_of(&arguments.against), read_objects(&arguments.against, preset)?));
    }
    name_shortly(&mut configurations);
    Ok(configurations)
}

/// Checks the settings that instances which share seats need, as a gateway does.
fn check_instances(settings: &ServerSettings) -> Result<()> {
    if !settings.preset.is_kubernetes() && settings.borrowing == Borrowing::Immediate {
        return Ok(());
    }
    let fault = "the workload has instances, which need levels that borrow at once and never use more seats than there are; use \
         `--preset plain --borrowing immediate`";
    Err(WrongUsage(fault.to_owned()).into())
}

/// Whether the first configuration is that of a cluster.
fn is_cluster(arguments: &Simulate) -> Result<bool> {
    let Simulate { objects, config, cluster, preset, .. } = arguments;
    let is_other_named = !objects.is_empty() || config.is_some();
    if is_other_named && cluster.is_given() {
        let fault = "--context and --kubeconfig name a cluster whose objects take the place of --objects and --config; leave out \
                     either";
        return Err(WrongUsage(fault.to_owned()).into());
    }
    Ok(cluster.is_meant(is_other_named || preset.is_some_and(|preset| !preset.is_kubernetes())))
}

/// The first configuration: of files, of a cluster, or of the preset.
fn first(arguments: &Simulate, settings: &ToolSettings, is_cluster: bool) -> Result<(String, Objects)> {
    let preset = settings.config().preset;
    if is_cluster {
        let ClusterObjects { url, objects, .. } = arguments.cluster.read(preset)?;
        return Ok((url, objects.into_iter().collect::<Objects>().with_mandatory_levels()));
    }
    let paths = settings.object_paths(&arguments.objects);
    if !paths.is_empty() {
        return Ok((name_of(&paths), read_objects(&paths, preset)?));
    }
    let own = match arguments.kubernetes {
        Some(version) if preset == Preset::Kubernetes => {
            let suggested = bootstrap::suggested_by(version).to_objects();
            bootstrap::mandatory().to_objects().chain(suggested).collect()
        }
        _ => Objects::from(preset),
    };
    Ok(("the objects of the preset".to_owned(), own))
}

fn name_of(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Removes the folders that both names begin with.
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
