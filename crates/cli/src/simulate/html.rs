//! The report as a page: one file, with its pictures inside.

use evenkeel_sim::Run;
use evenkeel_svg::escape;

use super::charts;
use super::inputs::Inputs;
use super::runs::{Figures, Simulated};
use super::table::{FLOW_FIGURES, Figure, LEVEL_FIGURES, fairness, flow_rows, heading, level_rows};

const STYLE: &str = include_str!("report.css");

/// The page.
pub(super) fn page(inputs: &Inputs, simulated: &Simulated, figures: &[Figures]) -> String {
    let names: Vec<&str> = inputs.configurations.iter().map(|configuration| &*configuration.name).collect();
    // Pictures are of the first run of each configuration.
    let runs: Vec<&Run> = simulated.runs.iter().filter_map(|runs| runs.first()).collect();
    let title = escape(&format!("{}: simulation", inputs.workload.name));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>{}</h1>\n<p>{}</p>\n",
        escape(&inputs.workload.name),
        escape(&heading(inputs, figures)),
    );
    page += "<h2>Flows</h2>\n";
    page += &pictures([
        charts::percentiles("Total time by flow (wait and service)", &names, &runs, |flow| flow.figures.total),
        charts::percentiles("Wait by flow", &names, &runs, |flow| flow.figures.wait),
    ]);
    page += &each(&names, |index| {
        let table = table("flow", &FLOW_FIGURES, flow_rows(&figures[index]));
        format!("{table}<p>{}</p>\n", escape(&sentence(&fairness(&figures[index]))))
    });
    page += "<h2>Levels</h2>\n";
    page += &each(&names, |index| table("level", &LEVEL_FIGURES, level_rows(&figures[index])));
    // What is compared has the same axes.
    let most = |of: fn(&Run) -> f64| runs.iter().map(|run| of(run)).fold(0.0, f64::max) * 1.05;
    let (seats, waiting, rejections) =
        (most(charts::seats_max), most(charts::waiting_max), most(charts::rejections_max));
    page += &each(&names, |index| {
        let run = runs[index];
        let rejections = charts::rejections(run, rejections);
        let all = [charts::seats(run, seats), charts::waiting(run, waiting)].into_iter().chain(rejections);
        pictures(all.chain(charts::used(run).into_iter().map(|level| charts::level(run, level))))
    });
    page + "</body>\n</html>\n"
}

/// A column for each configuration; only the content if there is one.
fn each(names: &[&str], content: impl Fn(usize) -> String) -> String {
    if names.len() == 1 {
        return content(0);
    }
    let mut html = String::from("<div class=\"columns\">\n");
    for (index, name) in names.iter().enumerate() {
        html += &format!("<section>\n<h3>{}</h3>\n{}</section>\n", escape(name), content(index));
    }
    html + "</div>\n"
}

fn pictures(all: impl IntoIterator<Item = String>) -> String {
    let mut html = String::from("<div class=\"pictures\">\n");
    for picture in all {
        html += &format!("<figure>\n{picture}</figure>\n");
    }
    html + "</div>\n"
}

fn table(first: &str, figures: &[Figure], rows: Vec<(String, Vec<String>)>) -> String {
    let mut html = format!("<div class=\"scroll\"><table>\n<thead><tr><th>{first}</th>");
    for (title, ..) in figures {
        html += &format!("<th>{title}</th>");
    }
    html += "</tr></thead>\n<tbody>\n";
    for (name, cells) in rows {
        let class = if name.starts_with(' ') { " class=\"worst\"" } else { "" };
        html += &format!("<tr{class}><th>{}</th>", escape(name.trim()));
        for cell in cells {
            html += &format!("<td>{}</td>", escape(&cell));
        }
        html += "</tr>\n";
    }
    html + "</tbody></table></div>\n"
}

/// With a capital and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}
