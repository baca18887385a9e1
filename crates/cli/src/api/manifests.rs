//! Applies the manifests of `--objects` through the API, and seeds a new one with the levels and matches of the settings.

use std::collections::HashSet;
use std::sync::Arc;

use evenkeel_api::decode::{Manifest, ManifestEntry, Strictness};
use evenkeel_api::short::ShortForm;
use evenkeel_api::{Kind, Preset};
use evenkeel_apiserver::ApiServer;
use evenkeel_gateway::objects::DirectorySource;

/// The field manager of objects in manifests.
const MANAGER: &str = "evenkeel-objects";
/// The field manager of objects that the settings had when the API was new.
const SETTINGS_MANAGER: &str = "evenkeel-settings";

/// Applies the manifests whenever they change.
pub(super) async fn keep_applied(server: Arc<ApiServer>, mut source: DirectorySource) {
    loop {
        apply_next(&server, &mut source).await;
    }
}

/// Applies the manifests as soon as there is something new in them. Problems are logged, and objects without problems are
/// applied.
pub(super) async fn apply_next(server: &ApiServer, source: &mut DirectorySource) {
    let mut entries = match source.next_entries().await {
        Ok(entries) => entries,
        Err(error) => {
            tracing::error!(%error, "the manifests have errors; none of them was applied");
            return;
        }
    };
    let applied = apply(server, &mut entries, MANAGER).await;
    tracing::info!(applied, of = entries.len(), "manifests applied as field manager {MANAGER}");
}

/// Applies objects, and returns how many. Problems are logged.
async fn apply(server: &ApiServer, entries: &mut [ManifestEntry], manager: &str) -> usize {
    // Levels first, so that no schema is without its level for a while.
    entries.sort_by_key(|entry| entry.object.kind() == Kind::FlowSchema);
    let mut applied = 0_usize;
    for entry in entries {
        match server.apply(entry, manager).await {
            Ok(()) => applied += 1,
            Err(failure) => {
                let (kind, name) = (entry.object.kind(), entry.object.name());
                tracing::error!(%kind, name, %failure, "cannot apply an object");
            }
        }
    }
    applied
}

/// Gives an API that has no objects but those of the preset the ones that a short form stands for. After that, its objects belong
/// to it (SF-4).
pub(super) async fn seed(server: &ApiServer, form: &ShortForm, preset: Preset) {
    let Some(state) = server.objects().next().await else { return };
    let preset_objects = preset.objects();
    let built_in: HashSet<(Kind, String)> =
        preset_objects.to_objects().map(|object| (object.kind(), object.name().to_owned())).collect();
    let schemas = state.objects.flow_schemas.iter().map(|schema| (Kind::FlowSchema, schema.name().to_owned()));
    let levels = &state.objects.priority_levels;
    let levels = levels.iter().map(|level| (Kind::PriorityLevelConfiguration, level.name().to_owned()));
    if schemas.chain(levels).any(|object| !built_in.contains(&object)) {
        tracing::info!("the API has objects of its own, so `levels` and `match` of the settings are not used");
        return;
    }
    let text = form.to_string();
    match Manifest::read_for(preset, "settings", text.as_bytes(), Strictness::Strict) {
        Ok(mut manifest) => {
            let applied = apply(server, &mut manifest.entries, SETTINGS_MANAGER).await;
            tracing::info!(
                applied,
                "the API starts with the objects of `levels` and `match`; change these objects through the API, since the settings are not read for them again"
            );
        }
        Err(problems) => tracing::error!("the API does not start with `levels` and `match`: {problems}"),
    }
}
