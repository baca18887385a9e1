//! An outside signal that keeps the limit from rising: a metric of the service (AL-10).

use std::time::Duration;

use evenkeel::FlowControl;
use http::{HeaderMap, StatusCode, Uri};
use tokio::time::MissedTickBehavior;

use super::sample_value::sum_of;
use crate::config::{HoldWhile, UpstreamTls};
use crate::net::fetch::{FetchLimits, Fetcher};

/// How often the service is asked.
const EVERY: Duration = Duration::from_secs(1);
/// How much a page may take.
const LIMITS: FetchLimits = FetchLimits { time: Duration::from_secs(1), bytes: 4 << 20 };

/// Asks the service again and again, and holds the limit down while the metric is above its number. If the metric cannot be read,
/// the limit is not held.
pub(super) async fn hold_while(flow: &FlowControl, settings: &HoldWhile) {
    let HoldWhile { url, metric, above } = settings;
    let Ok(target) = url.parse::<Uri>() else { return };
    let fetcher = match Fetcher::new(&target, &UpstreamTls::default(), "", LIMITS) {
        Ok(fetcher) => fetcher,
        Err(error) => {
            tracing::warn!("limit.holdWhile: {url}: {error}; the limit is not held");
            return;
        }
    };
    let path = target.path_and_query().map_or("/", |path| path.as_str());
    let mut asks = tokio::time::interval(EVERY);
    asks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_silent = false;
    loop {
        asks.tick().await;
        let answer = ask(&fetcher, path, metric).await;
        if answer.is_err() != is_silent {
            is_silent = answer.is_err();
            match &answer {
                Err(problem) => tracing::warn!("limit.holdWhile: {url}: {problem}; the limit is not held"),
                Ok(_) => tracing::info!("limit.holdWhile: {url} tells {metric} again"),
            }
        }
        flow.hold_limit(answer.is_ok_and(|value| value > *above));
    }
}

async fn ask(fetcher: &Fetcher, path: &str, metric: &str) -> Result<f64, String> {
    let response = fetcher.get(path, HeaderMap::new()).await?;
    if response.status() != StatusCode::OK {
        return Err(format!("responds with {}", response.status()));
    }
    sum_of(metric, response.body()).ok_or_else(|| format!("has no metric {metric}"))
}
