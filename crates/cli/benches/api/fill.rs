//! Objects in the store of a server.

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

/// Creates flow schemas until there are so many.
pub(crate) fn fill(server: &Server, objects: usize) {
    Runtime::new().expect("a runtime").block_on(async {
        let kubeconfig = Kubeconfig::read_from(&server.kubeconfig).expect("a kubeconfig");
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let client = kube::Client::try_from(config.expect("a kubeconfig that makes sense")).expect("a client");
        let api: Api<FlowSchema> = Api::all(client);
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

async fn created(tasks: &mut JoinSet<kube::Result<FlowSchema>>) {
    tasks.join_next().await.expect("a task").expect("no panic").expect("it is created");
}

fn schema(number: usize) -> FlowSchema {
    let rule = json!({
        "subjects": [{"kind": "User", "user": {"name": "alice"}}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/reports/*"]}],
    });
    let spec = json!({
        "priorityLevelConfiguration": {"name": "workload-low"}, "matchingPrecedence": 600, "rules": [rule],
    });
    let object = json!({"metadata": {"name": format!("object-{number}")}, "spec": spec});
    serde_json::from_value(object).expect("a flow schema")
}
