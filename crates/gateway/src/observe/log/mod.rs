//! The log: the format of its lines, the filter, and a line for each rejected request.

mod rejections;
mod throttle;
mod visible_lines;

use std::io::IsTerminal;
use std::sync::OnceLock;

use tracing::Subscriber;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::reload;

use crate::config::{LogConfig, LogFormat};

use visible_lines::VisibleLines;

pub(crate) use throttle::Throttle;

pub use rejections::{DeniedRequest, RejectedRequest, RejectionLog};

/// Logging could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The filter makes no sense.
    #[error("log.filter: {0}")]
    Filter(String),
    /// Another part of the program has set up a log already.
    #[error("the log of this process is already set up; set it up only once")]
    Taken,
}

/// Writes to standard error what the settings ask for, from now on and in the whole process. Colours are used on a
/// terminal only.
pub fn init(config: &LogConfig) -> Result<(), LogError> {
    let paint = if std::io::stderr().is_terminal() { Paint::Colours } else { Paint::Plain };
    let (subscriber, filter) = subscriber(config, paint, std::io::stderr)?;
    tracing::subscriber::set_global_default(subscriber).map_err(|_| LogError::Taken)?;
    // Only one caller can have set the default, so that this one was first.
    let _ = FILTER.set(filter);
    Ok(())
}

/// Writes what these settings ask for from now on, if [`init`] has set the log up. Only the filter changes.
pub fn set_filter(config: &LogConfig) {
    if let (Some(set), Ok(filter)) = (FILTER.get(), filter(config)) {
        set(filter);
    }
}

/// Exchanges the filter of the process.
static FILTER: OnceLock<SetFilter> = OnceLock::new();

type SetFilter = Box<dyn Fn(Targets) + Send + Sync>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Paint {
    Plain,
    Colours,
}

fn subscriber<W>(
    config: &LogConfig,
    paint: Paint,
    writer: W,
) -> Result<(impl Subscriber + Send + Sync + use<W>, SetFilter), LogError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let filter = filter(config).map_err(LogError::Filter)?;
    let writer = VisibleLines { writer, format: config.format };
    let lines = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(paint == Paint::Colours);
    let lines = match config.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
    };
    let (filter, handle) = reload::Layer::new(filter);
    // Reloading fails when the subscriber is gone, and nothing is written any more.
    let set = Box::new(move |filter| drop(handle.reload(filter)));
    Ok((tracing_subscriber::registry().with(lines.with_filter(filter)), set))
}

/// Which lines are written, or why the filter makes no sense.
pub(crate) fn filter(config: &LogConfig) -> Result<Targets, String> {
    let text = &config.filter;
    let fault = |part: &str| {
        format!(
            "{part:?} is neither a level nor a part of the program with one; write `info` or \
             `info,evenkeel_gateway=debug`"
        )
    };
    for part in text.split(',') {
        let level = part.split_once('=').map_or(part, |(_, level)| level);
        if level.is_empty() || level.parse::<LevelFilter>().is_err() {
            return Err(fault(part));
        }
    }
    text.parse().map_err(|_| fault(text))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn written(config: &LogConfig, act: impl FnOnce()) -> String {
        let page = Page::default();
        let writer = page.clone();
        let (subscriber, _) = subscriber(config, Paint::Plain, move || writer.clone()).unwrap();
        tracing::subscriber::with_default(subscriber, act);
        let bytes = page.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn lines_are_text_for_people_or_json_for_machines() {
        let act = || {
            tracing::info!(objects = 3, "in effect");
            tracing::debug!("not asked for");
        };
        let text = written(&LogConfig::default(), act);
        assert!(text.contains(" INFO ") && text.ends_with("in effect objects=3\n"), "{text}");
        let json = written(&LogConfig { format: LogFormat::Json, ..LogConfig::default() }, act);
        let line: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(
            (&line["level"], &line["message"], &line["objects"]),
            (&"INFO".into(), &"in effect".into(), &3.into())
        );
    }

    #[test]
    fn a_rejected_request_has_a_line_without_its_query() {
        let config = LogConfig { rejections_per_second: 1, ..LogConfig::default() };
        let request = || RejectedRequest {
            request_id: "id-1",
            user: "alice",
            method: "GET",
            path: "/orders?key=secret",
            flow_schema: "tenants",
            priority_level: "low",
            reason: "queue-full",
            retry_after: std::time::Duration::from_secs(2),
        };
        let text = written(&config, || {
            let log = RejectionLog::new(&config);
            log.rejected(request);
            log.rejected(|| unreachable!("it gets no line"));
            log.flush();
            log.flush();
        });
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        let fields = "request_id=\"id-1\" user=\"alice\" method=\"GET\" path=\"/orders\" flow_schema=\"tenants\" priority_level=\"low\" \
                      reason=\"queue-full\" retry_after_s=2";
        assert!(lines[0].ends_with(&format!("a request is rejected {fields}")), "{text}");
        assert!(
            lines[1].ends_with("further requests were rejected; only some of them are logged one by one requests=1"),
            "{text}"
        );
    }

    #[test]
    fn a_request_that_is_not_authenticated_has_a_line_with_the_reason() {
        let config = LogConfig::default();
        let text = written(&config, || {
            RejectionLog::new(&config).denied(|| DeniedRequest {
                request_id: "id-1",
                client: [10, 1, 2, 3].into(),
                method: "GET",
                path: "/orders?key=secret",
                reason: "expired",
            });
        });
        let fields = "request_id=\"id-1\" client=10.1.2.3 method=\"GET\" path=\"/orders\" reason=\"expired\"";
        assert!(text.trim_end().ends_with(&format!("a request is not authenticated {fields}")), "{text}");
    }

    #[test]
    fn characters_that_hide_or_reorder_text_are_escaped() {
        for format in [LogFormat::Text, LogFormat::Json] {
            let config = LogConfig { format, ..LogConfig::default() };
            let name = "gro\u{202e}.eliv\u{200b}";
            let text = written(&config, || tracing::info!(user = %name, path = name, "é {name}"));
            assert!(!text.contains(['\u{202e}', '\u{200b}']) && text.contains('é'), "{text}");
            assert!(text.ends_with('\n') && text.lines().count() == 1, "{text}");
            match format {
                LogFormat::Text => assert!(text.contains(r"user=gro\u{202e}.eliv\u{200b}"), "{text}"),
                LogFormat::Json => {
                    let line: serde_json::Value = serde_json::from_str(&text).unwrap();
                    assert_eq!(line["user"], name);
                }
            }
        }
    }

    #[test]
    fn the_filter_can_change() {
        let page = Page::default();
        let writer = page.clone();
        let (subscriber, set) = subscriber(&LogConfig::default(), Paint::Plain, move || writer.clone()).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            tracing::debug!("not asked for");
            set(filter_of("debug").unwrap());
            tracing::debug!("asked for");
            set(filter_of("error").unwrap());
            tracing::warn!("not asked for");
        });
        let text = String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
        assert!(text.ends_with(": asked for\n") && text.lines().count() == 1, "{text}");
    }

    #[test]
    fn a_filter_that_makes_no_sense_is_refused() {
        let of = |filter: &str| filter_of(filter).map(|_| ());
        for good in ["info", "off", "info,evenkeel_gateway=debug", "warn,hyper=error"] {
            assert_eq!(of(good), Ok(()), "{good}");
        }
        for bad in ["", "inof", "info,", "evenkeel=loud", "a=b=c"] {
            assert!(of(bad).unwrap_err().contains("neither a level"), "{bad}");
        }
    }

    fn filter_of(filter: &str) -> Result<Targets, String> {
        super::filter(&LogConfig { filter: filter.to_owned(), ..LogConfig::default() })
    }
}
