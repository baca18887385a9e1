//! An API whose store could not be opened when the process started: it starts when the store is back.

use std::path::Path;
use std::time::Duration;

use anyhow::{Error, Result};
use evenkeel_apiserver::{DataDir, ObjectStream, ObjectsCopy};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::RunningApi;
use super::running::SettingsObjects;

/// An API that starts as soon as its store can be opened.
#[derive(Debug)]
pub(crate) struct LateApi {
    starting: JoinHandle<RunningApi>,
}

/// How long to wait before the store is tried again.
const RETRY: Duration = Duration::from_secs(2);

/// The last copy of the objects, for a start without the store for this reason; if there is none, the reason and what to do.
pub(super) fn copy_instead(folder: &Path, reason: Error) -> Result<ObjectsCopy> {
    let copy = DataDir::open(folder).and_then(|data| data.read_objects_copy());
    match copy {
        Ok(Some(copy)) => Ok(copy),
        Ok(None) => Err(reason.context(
            "the gateway cannot start: there is no copy of the objects, which a gateway writes while its store is open; make the store \
             available, or start without `--data-dir`",
        )),
        Err(error) => Err(reason.context(format!("cannot start with the copy of the objects: {error}"))),
    }
}

// === impl LateApi ===

impl LateApi {
    /// Tries again and again to `start` the API, which failed for that reason. When it has started, takes over the objects of the
    /// settings, calls `announce`, and hands its objects out.
    pub(super) fn start<F: Future<Output = Result<RunningApi>> + Send>(
        start: impl Fn() -> F + Send + 'static,
        mut reason: String,
        of_settings: SettingsObjects,
        objects: oneshot::Sender<ObjectStream>,
        announce: impl FnOnce(&RunningApi) + Send + 'static,
    ) -> Self {
        let starting = tokio::spawn(async move {
            let mut api = loop {
                sleep(RETRY).await;
                match start().await {
                    Ok(api) => break api,
                    Err(error) => {
                        let error = format!("{error:#}");
                        if error != reason {
                            tracing::warn!(error, "cannot start the API yet; retrying");
                            reason = error;
                        }
                    }
                }
            };
            tracing::info!("the store is available again; the gateway follows its objects");
            api.take_over(&of_settings).await;
            announce(&api);
            // The gateway may have gone.
            let _ = objects.send(api.server().objects_for_flow_control());
            api
        });
        Self { starting }
    }

    /// Stops it, whether it has started or not.
    pub(crate) async fn stop(self) {
        self.starting.abort();
        if let Ok(api) = self.starting.await {
            api.stop().await;
        }
    }
}
