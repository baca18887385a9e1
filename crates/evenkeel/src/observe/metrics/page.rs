//! `MetricsPage`: all metrics of a registry, in the format that the client asks for.

use std::fmt;

use http::HeaderMap;
use http::header::ACCEPT;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

/// The response to a scrape.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetricsPage {
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// The metrics.
    pub text: String,
}

/// The two formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    OpenMetrics,
    Plain,
}

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

// === impl MetricsPage ===

impl MetricsPage {
    /// The metrics of a registry, for a request with these headers: in the format of `OpenMetrics` if `Accept` asks for that, and
    /// in the plain text format of Prometheus otherwise.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    /// use evenkeel::metrics::MetricsPage;
    /// use prometheus_client::registry::Registry;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let flow = FlowControl::builder().drive_by_hand().build();
    /// let mut registry = Registry::default();
    /// flow.register_metrics(&mut registry)?;
    /// let mut headers = http::HeaderMap::new();
    /// assert!(MetricsPage::new(&registry, &headers)?.content_type.starts_with("text/plain; version=0.0.4"));
    /// headers.insert("accept", "application/openmetrics-text".parse().unwrap());
    /// assert!(MetricsPage::new(&registry, &headers)?.text.ends_with("# EOF\n"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(registry: &Registry, request: &HeaderMap) -> Result<Self, fmt::Error> {
        let mut page = String::new();
        text::encode(&mut page, registry)?;
        Ok(match Format::wanted(request) {
            Format::OpenMetrics => Self { content_type: OPEN_METRICS, text: page },
            Format::Plain => Self { content_type: PLAIN, text: plain(&page) },
        })
    }
}

// === impl Format ===

impl Format {
    /// The format that is wanted most. A client that names neither, or only `*/*`, gets the format that every scraper reads.
    fn wanted(request: &HeaderMap) -> Self {
        let (mut open_metrics, mut plain) = (0.0_f64, 0.0_f64);
        let values = request.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        for range in values.flat_map(|value| value.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
            let quality =
                parts.find_map(|part| part.strip_prefix("q=")).map_or(1.0, |text| text.parse().unwrap_or(0.0));
            let place = match &*kind {
                "application/openmetrics-text" | "application/*" => &mut open_metrics,
                "text/plain" | "text/*" => &mut plain,
                _ => continue,
            };
            // A client may send something that is not a number; the other format counts then.
            *place = place.max(quality);
        }
        if open_metrics > 0.0 && open_metrics >= plain { Self::OpenMetrics } else { Self::Plain }
    }
}

/// The same metrics in the plain text format: there, a counter is called by the whole name that its series have, and there
/// is no mark at the end.
fn plain(page: &str) -> String {
    let mut out = String::with_capacity(page.len());
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if line == "# EOF" || line.starts_with("# UNIT ") {
            continue;
        }
        // The help of a metric comes before its type.
        let kind = line.strip_prefix("# TYPE ").or_else(|| lines.peek().and_then(|next| next.strip_prefix("# TYPE ")));
        let is_counter = kind.is_some_and(|kind| kind.ends_with(" counter"));
        let head = ["# HELP ", "# TYPE "].into_iter().find_map(|head| Some((head, line.strip_prefix(head)?)));
        match head {
            Some((head, rest)) if is_counter => {
                let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                out.extend([head, name, "_total ", rest, "\n"]);
            }
            _ => out.extend([line, "\n"]),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(accept: &[&str]) -> Format {
        let mut headers = HeaderMap::new();
        for value in accept {
            headers.append(ACCEPT, value.parse().unwrap());
        }
        Format::wanted(&headers)
    }

    #[test]
    fn a_client_gets_the_format_that_it_prefers() {
        for accept in [
            &["text/plain"] as &[&str],
            &["text/plain; version=0.0.4"],
            &["TEXT/PLAIN;q=0.9, application/openmetrics-text;q=0.5"],
            &["application/json", "text/*"],
            &[],
            &["*/*"],
            &["text/html"],
            &["text/plain;q=x"],
            &["application/openmetrics-text;q=0"],
        ] {
            assert_eq!(wanted(accept), Format::Plain, "{accept:?}");
        }
        for accept in [
            &["application/openmetrics-text"] as &[&str],
            &["text/plain;q=0, application/*"],
            // What Prometheus sends.
            &["application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"],
        ] {
            assert_eq!(wanted(accept), Format::OpenMetrics, "{accept:?}");
        }
    }

    #[test]
    fn counters_have_their_whole_names_in_plain_text() {
        let page = "# HELP a_b Things\n# TYPE a_b counter\na_b_total{x=\"# TYPE y\"} 1\n# HELP c d\n# TYPE c gauge\n# UNIT c e\nc 2\n# EOF\n";
        let expected = "# HELP a_b_total Things\n# TYPE a_b_total counter\na_b_total{x=\"# TYPE y\"} 1\n# HELP c d\n# TYPE c gauge\nc 2\n";
        assert_eq!(plain(page), expected);
    }
}
