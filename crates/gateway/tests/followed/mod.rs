//! A flow control that follows a folder, as the gateway lets it.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::path::Path;
use std::time::Duration;

use evenkeel::FlowControl;
use evenkeel_gateway::objects::{DirectorySource, ObjectSource};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A flow control and the task that follows the folder.
pub(crate) struct Followed {
    flow: FlowControl,
    errors: mpsc::UnboundedReceiver<String>,
    task: JoinHandle<()>,
}

/// Long enough for any machine, and shorter than the pause after which a folder is looked at in any case: a change that
/// nobody was told of is a failure here.
const PATIENCE: Duration = Duration::from_secs(4);

impl Followed {
    pub(crate) fn new(path: &Path) -> Self {
        let flow = FlowControl::builder()
            .server_concurrency(100)
            .objects(evenkeel_engine::controller::Objects::default())
            .build();
        let (tell, errors) = mpsc::unbounded_channel();
        let (own, mut source) = (flow.clone(), DirectorySource::new(path));
        let task = tokio::spawn(async move {
            loop {
                match source.next().await {
                    Ok(objects) => drop(own.apply(objects)),
                    Err(error) => drop(tell.send(error.to_string())),
                }
            }
        });
        Self { flow, errors, task }
    }

    /// The levels that govern, those aside that there always are.
    pub(crate) fn levels(&self) -> Vec<String> {
        let levels = self.flow.status().into_iter().map(|level| level.name);
        levels.filter(|name| name != "exempt" && name != "catch-all").collect()
    }

    /// Waits until the levels are as they should be.
    pub(crate) async fn until(&mut self, is_right: impl Fn(&[String]) -> bool) {
        let right = async {
            while !is_right(&self.levels()) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, right).await.is_err() {
            let mut errors = Vec::new();
            while let Ok(error) = self.errors.try_recv() {
                errors.push(error);
            }
            panic!("the levels are still {:?}, after the errors {errors:#?}", self.levels());
        }
    }

    /// The next error.
    pub(crate) async fn error(&mut self) -> String {
        tokio::time::timeout(PATIENCE, self.errors.recv()).await.unwrap().unwrap()
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A manifest with one level.
pub(crate) fn level(name: &str, shares: u32) -> String {
    format!(
        "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nmetadata: {{name: {name}}}\nspec:\n  \
         type: Limited\n  limited:\n    nominalConcurrencyShares: {shares}\n    limitResponse: {{type: Reject}}\n"
    )
}
