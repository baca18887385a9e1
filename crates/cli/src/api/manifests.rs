//! Applies the manifests of `--objects` through the API.

use std::sync::Arc;

use evenkeel_api::Kind;
use evenkeel_apiserver::ApiServer;
use evenkeel_gateway::objects::DirectorySource;

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
    let mut entries = match source.next_entries().await {
        Ok(entries) => entries,
        Err(error) => {
            tracing::error!(%error, "the manifests have errors; none of them was applied");
            return;
        }
    };
    // Levels first, so that no schema is without its level for a while.
    entries.sort_by_key(|entry| entry.object.kind() == Kind::FlowSchema);
    let mut applied = 0_usize;
    for entry in &entries {
        match server.apply(entry, MANAGER).await {
            Ok(()) => applied += 1,
            Err(failure) => {
                let (kind, name) = (entry.object.kind(), entry.object.name());
                tracing::error!(%kind, name, %failure, "cannot apply an object of the manifests");
            }
        }
    }
    tracing::info!(applied, of = entries.len(), "manifests applied as field manager {MANAGER}");
}
