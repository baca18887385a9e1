//! Pictures of what became of flows.

use evenkeel_sim::Run;
use evenkeel_sim::report::{FlowReport, Percentiles};
use evenkeel_svg::{Interval, Intervals};

/// Percentiles of all flows, for one or two configurations side by side.
pub(super) fn percentiles(title: &str, names: &[&str], runs: &[&Run], of: fn(&FlowReport) -> Percentiles) -> String {
    let description = "For each flow a bar from the median to the 99th percentile.";
    let mut chart = Intervals::new(title, description, "ms", names);
    let rows = runs.first().map_or(&[][..], |run| run.report.flows.as_slice());
    for (index, flow) in rows.iter().enumerate() {
        let bars = runs.iter().filter_map(|run| run.report.flows.get(index)).map(|flow| {
            let Percentiles { p50, p90, p99, p999, .. } = of(flow);
            Interval { p50, p90, p99, p999 }
        });
        chart = chart.row(&flow.name, bars.collect());
    }
    chart.render()
}
