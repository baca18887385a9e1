//! `GET /debug/shadow`: the report on how requests would have fared under the shadow's configuration (SH-3).

use axum::extract::State as Extract;
use axum::response::{IntoResponse, Response};
use evenkeel::FlowControl;
use evenkeel::shadow::ShadowReport;
use http::StatusCode;
use tokio::sync::Semaphore;

use super::pages::{AdminState, json};

pub(super) const PATH: &str = "/debug/shadow";

/// One report at a time: percentiles of hundreds of flows take some milliseconds.
static TURN: Semaphore = Semaphore::const_new(1);

pub(super) async fn report(Extract(state): Extract<AdminState>) -> Response {
    let _turn = TURN.acquire().await;
    let in_effect = state.admin().settings.get();
    let report = if in_effect.has_services() {
        let mut services = Vec::new();
        for one in &in_effect.services {
            if let Some(report) = report_of(&one.flow).await {
                services.push(serde_json::json!({ "service": one.service.as_deref(), "shadow": report }));
            }
        }
        (!services.is_empty()).then(|| serde_json::json!({ "services": services }))
    } else {
        report_of(&state.admin().flow).await.map(|report| serde_json::json!(report))
    };
    match report {
        Some(report) => json(&report),
        None => {
            let text = "there is no shadow; start the gateway with `--shadow FILE`, or set `shadow`\n";
            (StatusCode::NOT_FOUND, text).into_response()
        }
    }
}

async fn report_of(flow: &FlowControl) -> Option<ShadowReport> {
    let flow = flow.clone();
    tokio::task::spawn_blocking(move || flow.shadow_report()).await.ok().flatten()
}
