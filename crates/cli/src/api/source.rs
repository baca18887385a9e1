//! The objects of the API as what governs the gateway's traffic.

use std::path::Path;

use anyhow::{Error, Result};
use evenkeel_apiserver::{ObjectStream, ObjectsCopy};
use evenkeel_gateway::Config;
use evenkeel_gateway::objects::{NextObjects, ObjectSource, ObjectsError};
use tokio::sync::oneshot;

use super::late::{LateApi, copy_instead};
use super::{ApiArgs, RunningApi};

/// The objects of an API.
#[derive(Debug)]
pub(crate) struct ApiObjects(Origin);

/// Where the objects come from.
#[derive(Debug)]
enum Origin {
    /// From the API.
    Api(ObjectStream),
    /// From the last copy, until the API has started.
    Copy { copy: Option<ObjectsCopy>, stale: String, api: oneshot::Receiver<ObjectStream> },
}

// === impl ApiObjects ===

impl ApiObjects {
    /// Those of an API that runs.
    pub(crate) fn of(api: &RunningApi) -> Self {
        Self(Origin::Api(api.server().objects()))
    }

    /// The last copy, while the store cannot be opened for this reason, and then those of the API, which is started as
    /// soon as the store can be opened. Fails with the reason if there is no copy.
    pub(crate) fn without_store(
        args: &ApiArgs,
        folder: &Path,
        config: &Config,
        reason: Error,
        announce: impl FnOnce(&RunningApi) + Send + 'static,
    ) -> Result<(Self, LateApi)> {
        let why = format!("{reason:#}");
        let copy = copy_instead(folder, reason)?;
        let stale =
            format!("the copy of revision {}, written at {}, because {why}", copy.state.revision, copy.copied_at);
        tracing::warn!("the gateway starts with {stale}; it keeps trying to open the store");
        let (sender, api) = oneshot::channel();
        let (folder, manifests) = (folder.to_owned(), config.objects.clone());
        let late = LateApi::start(args.clone(), config.preset, folder, why, manifests, sender, announce);
        Ok((Self(Origin::Copy { copy: Some(copy), stale, api }), late))
    }
}

impl ObjectSource for ApiObjects {
    fn next(&mut self) -> NextObjects<'_> {
        Box::pin(async {
            if let Origin::Copy { copy, api, .. } = &mut self.0 {
                if let Some(copy) = copy.take() {
                    return Ok(copy.state.objects);
                }
                match api.await {
                    Ok(stream) => self.0 = Origin::Api(stream),
                    // The process is about to end.
                    Err(_) => std::future::pending().await,
                }
            }
            let next = match &mut self.0 {
                Origin::Api(stream) => stream.next().await,
                Origin::Copy { .. } => None,
            };
            match next {
                Some(state) => Ok(state.objects),
                None => {
                    // The process is about to end: those that govern stay until then.
                    std::future::pending::<()>().await;
                    Err(ObjectsError("the store is closed".to_owned()))
                }
            }
        })
    }

    fn stale(&self) -> Option<String> {
        match &self.0 {
            Origin::Api(_) => None,
            Origin::Copy { stale, .. } => Some(stale.clone()),
        }
    }
}
