//! `Generation`: what follows from the settings. When they change, the next generation takes its place as a whole.

use std::sync::Arc;

use evenkeel_identity::RequestRules;

use crate::config::{AccessLogFormat, Config};
use crate::gateway::StartError;
use crate::identity::{self, Identification};
use crate::observe::Ended;
use crate::observe::access_log::AccessLogWriter;
use crate::observe::metrics::{GatewayMetrics, UpstreamMetrics};
use crate::observe::spans::SpanExporter;
use crate::proxy::upstream::UpstreamTarget;
use crate::tls::{ClientTls, Refresh, TlsError};

/// What follows from the settings at one time. Requests keep the generation that they began with.
#[derive(Debug)]
pub(crate) struct Generation {
    pub(crate) config: Arc<Config>,
    pub(crate) identification: Arc<Identification>,
    pub(crate) rules: RequestRules,
    /// In the order of the settings.
    pub(crate) upstreams: Vec<Arc<UpstreamTarget>>,
    /// Writes the access log, if there is one.
    pub(crate) access_log: Option<AccessLogWriter>,
    /// Exports the spans of requests, if there is tracing.
    pub(crate) spans: Option<SpanExporter>,
}

// === impl Generation ===

impl Generation {
    /// Sets everything up. What is the same as before is taken over: identities with their caches, and upstreams with their
    /// connections and their health.
    pub(crate) async fn open(
        config: Config,
        before: Option<&Self>,
        metrics: &GatewayMetrics,
    ) -> Result<Self, StartError> {
        if config.upstreams.is_empty() {
            return Err(StartError::NoUpstream);
        }
        let is_same =
            |before: &&Self| before.config.requests == config.requests && before.config.preset == config.preset;
        let rules = match before.filter(is_same) {
            Some(before) => before.rules.clone(),
            None => RequestRules::new(&config.requests, config.preset)?,
        };
        let known = config.upstreams.iter().enumerate().map(|(index, upstream)| {
            let kept = before.filter(|before| before.config.health == config.health).and_then(|before| {
                let index = before.config.upstreams.iter().position(|other| other == upstream)?;
                before.upstreams.get(index).cloned()
            });
            let made = || UpstreamTarget::new(index, upstream, &config, metrics.workers()).map(Arc::new);
            kept.map_or_else(made, Ok)
        });
        let upstreams = known.collect::<Result<_, TlsError>>()?;
        let identification = match before.filter(|before| before.config.identity == config.identity) {
            Some(before) => Arc::clone(&before.identification),
            None => Self::identification(&config, metrics).await?,
        };
        let access_log = Self::access_log(&config, before, metrics)?;
        let spans_before = before.and_then(|before| before.spans.as_ref());
        let spans = SpanExporter::open(&config.tracing, spans_before, metrics.spans())?;
        Ok(Self { config: Arc::new(config), identification, rules, upstreams, access_log, spans })
    }

    /// Who writes the access log. The thread is kept as long as its file is the same.
    fn access_log(
        config: &Config,
        before: Option<&Self>,
        metrics: &GatewayMetrics,
    ) -> Result<Option<AccessLogWriter>, StartError> {
        let file = config.log.access_file.as_deref();
        if config.log.access == AccessLogFormat::Off {
            return Ok(None);
        }
        let before = before.and_then(|before| before.access_log.as_ref()).filter(|writer| writer.file() == file);
        if let Some(writer) = before {
            return Ok(Some(writer.clone()));
        }
        let writer = AccessLogWriter::start(file, metrics.access_log());
        writer.map(Some).map_err(|error| StartError::AccessLog { file: file.map(ToOwned::to_owned), error })
    }

    /// Opens the sources on a thread that may block: they read files, and wait for keys.
    async fn identification(config: &Config, metrics: &GatewayMetrics) -> Result<Arc<Identification>, StartError> {
        let (config, counts) = (config.identity.clone(), metrics.identity().clone());
        match tokio::task::spawn_blocking(move || identity::open(&config, &counts)).await {
            Ok(opened) => Ok(opened?),
            Err(error) => Err(StartError::Thread(std::io::Error::other(error))),
        }
    }

    /// The ends of whoever writes the access log and exports spans.
    pub(crate) fn recorders(&self) -> impl Iterator<Item = Ended> {
        let access_log = self.access_log.as_ref().map(AccessLogWriter::ended);
        access_log.into_iter().chain(self.spans.as_ref().map(SpanExporter::ended))
    }

    /// The counters of the upstreams.
    pub(crate) fn upstream_metrics(&self) -> Vec<UpstreamMetrics> {
        self.upstreams.iter().map(|known| known.metrics.clone()).collect()
    }

    /// The certificates that are shown to upstreams, and the authorities that are trusted for upstreams.
    pub(crate) fn files(&self) -> impl Iterator<Item = Arc<dyn Refresh>> {
        self.upstreams.iter().filter_map(|known| known.tls.as_ref().map(ClientTls::files))
    }
}
