//! Applies the manifests of `--objects` through the API.

use std::sync::Arc;

use evenkeel_api::AnyObject;
use evenkeel_apiserver::ApiServer;
use evenkeel_gateway::objects::{DirectorySource, ObjectSource};

/// The manager that owns what the manifests say.
const MANAGER: &str = "evenkeel-objects";

/// Applies the manifests whenever they change.
pub(super) async fn keep_applied(server: Arc<ApiServer>, mut source: DirectorySource) {
    loop {
        apply_next(&server, &mut source).await;
    }
}

/// Applies the manifests as soon as there is something new in them. What is wrong is told, and what is right is applied.
pub(super) async fn apply_next(server: &ApiServer, source: &mut DirectorySource) {
    let objects = match source.next().await {
        Ok(objects) => objects,
        Err(error) => {
            tracing::error!(%error, "the manifests cannot be used; nothing of them is applied");
            return;
        }
    };
    let levels = objects.priority_levels.iter().map(|level| AnyObject::from((**level).clone()));
    let schemas = objects.flow_schemas.iter().map(|schema| AnyObject::from((**schema).clone()));
    let all: Vec<AnyObject> = levels.chain(schemas).collect();
    let mut applied = 0_usize;
    for object in &all {
        match server.apply(object, MANAGER).await {
            Ok(()) => applied += 1,
            Err(failure) => {
                tracing::error!(kind = %object.kind(), name = object.name(), %failure, "a manifest was not applied");
            }
        }
    }
    tracing::info!(applied, of = all.len(), "the manifests are applied, as the manager {MANAGER}");
}
