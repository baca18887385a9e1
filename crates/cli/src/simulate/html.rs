//! The report as a page: one file, with its pictures inside.

use evenkeel_sim::Run;
use evenkeel_svg::escape;

use crate::report_page::{self, Levels, each, pictures};

use super::charts;
use super::inputs::Inputs;
use super::runs::{Figures, Simulated};
use super::table::{
    FLOW_TITLES, Figure, LEVEL_FIGURES, LEVEL_TITLES, Row, fairness, fleet, flow_figures, flow_rows, heading,
    level_rows,
};

/// The page.
pub(super) fn page(inputs: &Inputs, simulated: &Simulated, figures: &[Figures]) -> String {
    let names: Vec<&str> = inputs.configurations.iter().map(|configuration| &*configuration.name).collect();
    // Pictures are of the first run of each configuration.
    let runs: Vec<&Run> = simulated.runs.iter().filter_map(|runs| runs.first()).collect();
    let mut page = format!("<p>{}</p>\n", escape(&sentence(&heading(inputs, figures))));
    page += "<h2>Flows</h2>\n";
    let waits = runs.iter().flat_map(|run| &run.report.flows).any(|flow| flow.figures.wait.p99 > 0.0);
    let total = charts::percentiles("Total time by flow (wait and service)", &names, &runs, |flow| flow.figures.total);
    let wait = waits.then(|| charts::percentiles("Wait by flow", &names, &runs, |flow| flow.figures.wait));
    page += &pictures([Some(total), wait].into_iter().flatten());
    page += &each("tables", &names, |index| {
        let table = table(FLOW_TITLES, flow_figures(&figures[index]), flow_rows(&figures[index]));
        let sentences = std::iter::once(fairness(&figures[index])).chain(fleet(&figures[index]));
        let paragraph = |text: String| format!("<p>{}</p>\n", escape(&sentence(&text)));
        table + &sentences.map(paragraph).collect::<String>()
    });
    page += "<h2>Levels</h2>\n";
    page += &each("tables", &names, |index| table(LEVEL_TITLES, &LEVEL_FIGURES, level_rows(&figures[index])));
    // Pictures that are compared have the same axes.
    let levels: Vec<Levels<'_>> =
        runs.iter().map(|run| Levels { records: &run.levels, seconds: run.report.simulated_seconds }).collect();
    page += &report_page::level_pictures(&names, &levels);
    let title = format!("{}: simulation", inputs.workload.name);
    report_page::page(&title, &inputs.workload.name, &page)
}

fn table<const TITLES: usize>(titles: [&str; TITLES], figures: &[Figure], rows: Vec<Row<TITLES>>) -> String {
    let titles: Vec<&str> = titles.into_iter().chain(figures.iter().map(|(title, ..)| *title)).collect();
    let row = |(titles, cells): Row<TITLES>| {
        let mut titles = titles.into_iter();
        (titles.next().unwrap_or_default(), titles.chain(cells).collect::<Vec<String>>())
    };
    report_page::table(&titles, rows.into_iter().map(row).collect::<Vec<_>>())
}

/// The text as a sentence, with a capital and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}
