//! `ToolSettings`: the settings file that tools go by, so that `check`, `explain`, `simulate` and `replay` decide as `serve` does.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use evenkeel::flight::Flight;
use evenkeel_api::Preset;
use evenkeel_engine::auto_limit::Concurrency;
use evenkeel_engine::controller::Borrowing;
use evenkeel_engine::time::Nanos;
use evenkeel_gateway::{Config, RequestRules};

use crate::exit::WrongUsage;

/// The settings of a gateway, or the defaults.
#[derive(Debug)]
pub(crate) struct ToolSettings {
    config: Config,
    file: Option<PathBuf>,
}

/// A preset, and whether it is the default.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChosenPreset {
    pub(crate) preset: Preset,
    is_default: bool,
}

// === impl ToolSettings ===

impl ToolSettings {
    /// Reads the file of `--config`. Problems of its objects are errors; the rest need not fit this machine.
    pub(crate) fn read(file: Option<&Path>) -> Result<Self> {
        let Some(path) = file else { return Ok(Self { config: Config::default(), file: None }) };
        let config = Config::read(path).map_err(|error| WrongUsage(error.to_string()))?;
        let problems = config.check_short_form();
        if !problems.is_empty() {
            let line = |problem: &evenkeel_gateway::config::Problem| {
                let at = Config::place_of(path, &problem.field);
                at.map_or_else(|| problem.to_string(), |at| format!("{at}: {problem}"))
            };
            let lines: Vec<String> = problems.iter().map(line).collect();
            return Err(WrongUsage(lines.join("\n")).into());
        }
        Ok(Self { config, file: Some(path.to_owned()) })
    }

    /// Chooses the preset: that of the flag, of the file, or the default of all commands. Without flag and file, a question about
    /// a cluster is about a Kubernetes API.
    pub(crate) fn choose_preset(&mut self, flag: Option<Preset>, is_about_cluster: bool) -> ChosenPreset {
        let of_cluster = (is_about_cluster && self.file.is_none()).then_some(Preset::Kubernetes);
        let chosen = flag.or(of_cluster);
        match (chosen, &self.file) {
            (Some(preset), None) => self.config = Config::for_preset(preset),
            (Some(preset), Some(_)) => self.config.preset = preset,
            (None, _) => {}
        }
        ChosenPreset { preset: self.config.preset, is_default: chosen.is_none() && self.file.is_none() }
    }

    /// Whether no file was named.
    pub(crate) fn is_default(&self) -> bool {
        self.file.is_none()
    }

    /// The settings.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// How many seats there are: as the flag says, the file, or the preset.
    pub(crate) fn concurrency(&self, flag: Option<&Concurrency>) -> Concurrency {
        flag.cloned().unwrap_or_else(|| self.config.concurrency())
    }

    /// The concurrency of a service of the file, which may have seats of its own; `None` for requests that belong to no service.
    pub(crate) fn concurrency_of(&self, service: Option<&str>, flag: Option<&Concurrency>) -> Concurrency {
        let of_file = || service.map_or_else(|| self.config.concurrency(), |name| self.config.concurrency_of(name));
        flag.cloned().unwrap_or_else(of_file)
    }

    /// The services of the file whose seats are their own, with the most that they may have.
    pub(crate) fn services(&self) -> impl Iterator<Item = (&str, u32)> {
        self.config.services.keys().map(|name| (name.as_str(), self.config.concurrency_of(name).most()))
    }

    /// Says on standard error which seats a tool uses that knows one service only, unless the flag sets them.
    pub(crate) fn tell_services(&self, flag: Option<&Concurrency>) {
        if flag.is_some() || self.config.services.is_empty() {
            return;
        }
        let seats = |name: &String| format!("{name} {}", self.config.concurrency_of(name));
        let services: Vec<String> = self.config.services.keys().map(seats).collect();
        let text = format!(
            "concurrency {} (all requests share it; the services of the settings have their own: {}; for one of them, add --concurrency N)\n",
            self.config.concurrency(),
            services.join(", ")
        );
        // A failure to write this line does not matter.
        let _ = io::stderr().write_all(text.as_bytes());
    }

    /// When levels borrow from each other: as the flag says, the file, or the preset.
    pub(crate) fn borrowing(&self, flag: Option<Borrowing>) -> Borrowing {
        let of_file = self.config.flow_control.borrowing.map(Borrowing::from);
        flag.or(of_file).unwrap_or(match self.config.preset {
            Preset::Kubernetes => Borrowing::Periodic,
            Preset::Plain | Preset::Llm => Borrowing::Immediate,
        })
    }

    /// How long a request waits at most.
    pub(crate) fn wait_limit(&self) -> Nanos {
        nanos(self.config.timeouts.queue)
    }

    /// How long newcomers may have to wait for a seat before some are kept for them: as the file says, the gateway of a dump, or the default.
    pub(crate) fn newcomer_wait(&self, dump: Option<&Flight>) -> Nanos {
        let of_dump = dump.filter(|_| self.is_default()).map(evenkeel_replay::newcomer_wait_of);
        of_dump.unwrap_or_else(|| nanos(self.config.flow_control.newcomer_wait))
    }

    /// The rules by which the routes interpret requests.
    pub(crate) fn request_rules(&self) -> Result<RequestRules> {
        let rules = RequestRules::new(&self.config.requests, self.config.preset);
        rules.map_err(|error| WrongUsage(error.to_string()).into())
    }

    /// How many seats the widest request takes: by the routes, or by the estimates of a kube-apiserver.
    pub(crate) fn widest(&self) -> u32 {
        match self.config.preset {
            Preset::Kubernetes => 10,
            Preset::Plain | Preset::Llm => {
                self.config.requests.routes.iter().map(|route| route.seats).max().unwrap_or(1).max(1)
            }
        }
    }

    /// Where the objects are: those that are given, or else those that the file names or holds. None if they are those of the
    /// preset.
    pub(crate) fn object_paths(&self, given: &[PathBuf]) -> Vec<PathBuf> {
        if !given.is_empty() {
            return given.to_vec();
        }
        let of_short_form = self.file.iter().filter(|_| self.config.short_form().is_some());
        self.config.objects.iter().chain(of_short_form).take(1).cloned().collect()
    }
}

/// A span of time as simulations know it.
pub(crate) fn nanos(span: Duration) -> Nanos {
    Nanos::try_from(span.as_nanos()).unwrap_or(Nanos::MAX)
}

// === impl ChosenPreset ===

impl ChosenPreset {
    /// Says on standard error which preset and which number of seats it was, if nobody chose them: `flag` is what the command line says of
    /// seats, and `meaning` what a limit that finds itself means here.
    pub(crate) fn tell(self, flag: Option<&Concurrency>, meaning: &str) {
        if !self.is_default {
            return;
        }
        let mut text = format!("preset {} (the default; for a Kubernetes API, add --preset kubernetes)\n", self.preset);
        let seats = Concurrency::of_preset(self.preset);
        if flag.is_none() && seats.auto().is_some() {
            text +=
                &format!("concurrency {seats} (the default: {meaning}; for a number of seats, add --concurrency N)\n");
        }
        // A failure to write this line does not matter.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}
