//! Objects in the store of a server.

use std::time::{Duration, Instant};

use k8s_openapi::api::flowcontrol::v1::FlowSchema;
use kube::Api;
use kube::api::{ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::server::Server;

/// So many creates are under way at a time.
const TASKS_MAX: usize = 500;

/// How long a server may take to write the conditions of all objects.
const CONDITIONS_AFTER_MAX: Duration = Duration::from_secs(600);

/// Creates flow schemas until there are so many.
pub(crate) fn fill(server: &Server, objects: usize) {
    Runtime::new().expect("a runtime").block_on(async {
        let api = api(server).await;
        let there = api.list(&ListParams::default()).await.expect("a list").items.len();
        let mut tasks = JoinSet::new();
        for number in there..objects {
            let api = api.clone();
            tasks.spawn(async move { api.create(&PostParams::default(), &schema(number)).await });
            if tasks.len() == TASKS_MAX {
                created(&mut tasks).await;
            }
        }
        while !tasks.is_empty() {
            created(&mut tasks).await;
        }
    });
}

/// Waits until the server has written a condition to each of the flow schemas that [`fill`] has created. A few of them are asked for:
/// a list of all would take memory, which is about to be measured. The server writes them in the order of their names.
pub(crate) fn wait_for_conditions(server: &Server, objects: usize) {
    Runtime::new().expect("a runtime").block_on(async {
        let api = api(server).await;
        let mut names: Vec<String> = (0..objects).map(name).collect();
        names.sort_unstable();
        let asked: Vec<&String> = names.iter().rev().step_by(objects.div_ceil(20)).collect();
        let begun = Instant::now();
        for name in asked {
            loop {
                // The preset's own objects count too, so that the first numbers are not used.
                let Some(schema) = api.get_opt(name).await.expect("an object") else { break };
                if schema.status.and_then(|status| status.conditions).is_some_and(|conditions| !conditions.is_empty()) {
                    break;
                }
                assert!(
                    begun.elapsed() < CONDITIONS_AFTER_MAX,
                    "{name} has no condition after {CONDITIONS_AFTER_MAX:?}"
                );
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    });
}

async fn api(server: &Server) -> Api<FlowSchema> {
    let kubeconfig = Kubeconfig::read_from(&server.kubeconfig).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Api::all(kube::Client::try_from(config.expect("a kubeconfig that makes sense")).expect("a client"))
}

async fn created(tasks: &mut JoinSet<kube::Result<FlowSchema>>) {
    tasks.join_next().await.expect("a task").expect("no panic").expect("it is created");
}

fn name(number: usize) -> String {
    format!("object-{number}")
}

fn schema(number: usize) -> FlowSchema {
    let rule = json!({
        "subjects": [{"kind": "User", "user": {"name": "alice"}}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/reports/*"]}],
    });
    let spec = json!({
        "priorityLevelConfiguration": {"name": "workload-low"}, "matchingPrecedence": 600, "rules": [rule],
    });
    let object = json!({"metadata": {"name": name(number)}, "spec": spec});
    serde_json::from_value(object).expect("a flow schema")
}
