//! `ApiObjects`: the objects of the API, as the source of the gateway's objects.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Error, Result};
use evenkeel_apiserver::{GovernedFlow, ObjectStream, ObjectsCopy};
use evenkeel_gateway::Config;
use evenkeel_gateway::objects::{NextObjects, ObjectSource, ObjectsError, SourceStatus};
use tokio::sync::oneshot;

use super::late::{LateApi, copy_instead};
use super::running::SettingsObjects;
use super::status::ApiStatus;
use super::{ApiArgs, RunningApi};

/// The objects of an API.
#[derive(Debug)]
pub(crate) struct ApiObjects {
    origin: Origin,
    status: Arc<ApiStatus>,
}

/// Where the objects come from.
#[derive(Debug)]
enum Origin {
    /// The objects come from the API.
    Api(ObjectStream),
    /// The objects come from the last copy, until the API has started.
    Copy { copy: Option<ObjectsCopy>, api: oneshot::Receiver<ObjectStream> },
}

// === impl ApiObjects ===

impl ApiObjects {
    /// The objects of an API that runs.
    pub(crate) fn of(api: &RunningApi) -> Self {
        Self { origin: Origin::Api(api.server().objects_for_flow_control()), status: ApiStatus::running(api.parts()) }
    }

    /// The last copy, while the store cannot be opened for this reason, and then those of the API, which is started as
    /// soon as the store can be opened. Fails with the reason if there is no copy.
    pub(crate) fn without_store(
        args: &ApiArgs,
        folder: &Path,
        config: &Config,
        governed: GovernedFlow,
        reason: Error,
        announce: impl FnOnce(&RunningApi) + Send + 'static,
    ) -> Result<(Self, LateApi)> {
        let why = format!("{reason:#}");
        let copy = copy_instead(folder, reason)?;
        let stale = format!("the copy of revision {}, written at {}, because {why}", copy.revision, copy.copied_at);
        tracing::warn!("the gateway starts with {stale}; it keeps trying to open the store");
        let (sender, api) = oneshot::channel();
        let (folder, of_settings) = (folder.to_owned(), SettingsObjects::from(config));
        let status = ApiStatus::with_copy(stale);
        let started = Arc::clone(&status);
        let announce = move |api: &RunningApi| {
            started.started(api.parts());
            announce(api);
        };
        let start = {
            let (args, preset) = (args.clone(), config.preset);
            move || {
                let (args, folder, governed) = (args.clone(), folder.clone(), governed.clone());
                async move { RunningApi::start(&args, preset, &folder, governed).await }
            }
        };
        let late = LateApi::start(start, why, of_settings, sender, announce);
        Ok((Self { origin: Origin::Copy { copy: Some(copy), api }, status }, late))
    }
}

impl ObjectSource for ApiObjects {
    fn next(&mut self) -> NextObjects<'_> {
        Box::pin(async {
            if let Origin::Copy { copy, api } = &mut self.origin {
                if let Some(copy) = copy.take() {
                    return Ok(copy.objects);
                }
                match api.await {
                    Ok(stream) => self.origin = Origin::Api(stream),
                    // The process is about to end.
                    Err(_) => std::future::pending().await,
                }
            }
            let next = match &mut self.origin {
                Origin::Api(stream) => stream.next().await,
                Origin::Copy { .. } => None,
            };
            match next {
                Some(state) => {
                    self.status.copy_replaced();
                    Ok(state.objects.clone())
                }
                None => {
                    // The process is about to end: the objects in effect stay until then.
                    std::future::pending::<()>().await;
                    Err(ObjectsError("the store is closed".to_owned()))
                }
            }
        })
    }

    fn status(&self) -> Option<Arc<dyn SourceStatus>> {
        Some(Arc::clone(&self.status) as _)
    }
}
