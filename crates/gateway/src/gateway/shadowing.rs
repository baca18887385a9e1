//! `Shadowing`: the shadow of all flow controls of a gateway, as the settings say it.

use std::sync::Arc;

use evenkeel::FlowControl;
use evenkeel::objects::InvalidObjects;
use evenkeel_api::Preset;
use evenkeel_engine::controller::Objects;

use super::flow_controls::FlowControls;
use super::governing;
use crate::config::ShadowConfig;
use crate::objects::{DirectorySource, ObjectSource, ObjectsError};

/// The settings and the objects of the shadow.
#[derive(Debug, Default)]
pub(super) struct Shadowing {
    config: Option<ShadowConfig>,
    /// The objects of the files that the settings name, when they have been read.
    of_files: Option<Objects>,
}

// === impl Shadowing ===

impl Shadowing {
    pub(super) fn new(config: Option<&ShadowConfig>) -> Self {
        Self { config: config.cloned(), of_files: None }
    }

    /// Whether a change of the source's objects changes the shadow: it has the objects in effect, or those of the mode `audit`.
    pub(super) fn follows(&self, before: &Objects, after: &Objects) -> bool {
        match &self.config {
            Some(config) => config.objects.is_none(),
            None => match (before.audited(), after.audited()) {
                (None, None) => false,
                (Some(before), Some(after)) => !governing::changes(&before, &after).is_empty(),
                _ => true,
            },
        }
    }

    /// Takes the settings. Files of other settings are not its own any more.
    pub(super) fn set_config(&mut self, config: Option<&ShadowConfig>) {
        *self = Self::new(config);
    }

    pub(super) fn set_files(&mut self, objects: Objects) {
        self.of_files = Some(objects);
    }

    /// Starts the shadow on these flow controls, or ends it.
    pub(super) fn begin<'a>(
        &self,
        governing: &Objects,
        flows: impl Iterator<Item = &'a FlowControl>,
    ) -> Result<(), InvalidObjects> {
        let objects = match &self.config {
            Some(ShadowConfig { objects: Some(_), .. }) => self.of_files.clone(),
            Some(_) => Some(governing.audited().unwrap_or_else(|| governing.clone())),
            None => governing.audited(),
        };
        let config = self.config.clone().unwrap_or_default();
        for flow in flows {
            match &objects {
                Some(objects) => {
                    flow.shadow_with(objects.clone(), config.settings())?;
                    begin_canary(flow, objects, &config);
                }
                None => {
                    flow.end_shadow();
                    flow.end_canary();
                }
            }
        }
        Ok(())
    }
}

/// Starts a canary with the shadow's objects, if the settings ask for one.
fn begin_canary(flow: &FlowControl, objects: &Objects, config: &ShadowConfig) {
    let begun = match config.canary() {
        Some(settings) => flow.canary(objects.clone(), settings),
        None => {
            flow.end_canary();
            Ok(())
        }
    };
    if let Err(error) = begun {
        tracing::warn!("there is no canary: {error}");
    }
}

/// The files of a shadow.
#[derive(Debug)]
pub(super) struct ShadowFiles {
    source: DirectorySource,
    flows: Arc<FlowControls>,
}

// === impl ShadowFiles ===

impl ShadowFiles {
    /// Reads the files that the settings name, if they name any, and lets the shadow begin.
    pub(super) async fn open(
        config: Option<&ShadowConfig>,
        preset: Preset,
        flows: &Arc<FlowControls>,
    ) -> Result<Option<Self>, ObjectsError> {
        let Some(path) = config.and_then(|config| config.objects.as_ref()) else { return Ok(None) };
        let mut files = Self { source: DirectorySource::new(path).preset(preset), flows: Arc::clone(flows) };
        files.take_next().await?;
        Ok(Some(files))
    }

    /// Lets the shadow begin again whenever a file changes.
    pub(super) async fn follow(mut self) {
        loop {
            match self.take_next().await {
                Ok(()) => tracing::info!("the objects of the shadow changed, and it begins from nothing"),
                Err(error) => tracing::warn!("the objects of the shadow cannot be used; it stays as it is: {error}"),
            }
        }
    }

    async fn take_next(&mut self) -> Result<(), ObjectsError> {
        let objects = self.source.next().await?;
        self.flows.shadow_files(objects).map_err(|invalid| ObjectsError(format!("shadow.objects: {invalid}")))
    }
}
