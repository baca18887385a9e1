//! Reports as pages: one HTML file each, with its pictures inside, readable without a network.

mod level_charts;

use std::path::Path;

use evenkeel_gateway::observe::visible::visible;
use evenkeel_svg::escape;

use crate::exit::WrongUsage;
pub(crate) use level_charts::Levels;

const STYLE: &str = include_str!("report.css");

/// A page with a title for the window, a heading, and a body of HTML. No name in it hides or reorders text, in tables or in pictures.
pub(crate) fn page(title: &str, heading: &str, body: &str) -> String {
    let (title, heading) = (escape(title), escape(heading));
    let page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>{heading}</h1>\n{body}</body>\n</html>\n"
    );
    page.split_inclusive('\n').flat_map(|line| [visible(line.trim_end_matches('\n')), "\n".into()]).collect()
}

/// Writes a page to the file of `--report`.
pub(crate) fn write(file: &Path, page: &str) -> Result<(), WrongUsage> {
    std::fs::write(file, page)
        .map_err(|error| WrongUsage(format!("cannot write the report to {}: {error}", file.display())))
}

/// Pictures of the levels of one or more runs, side by side.
pub(crate) fn level_pictures(names: &[&str], runs: &[Levels<'_>]) -> String {
    // Pictures that are compared have the same axes.
    let most = |of: fn(Levels<'_>) -> f64| runs.iter().map(|run| of(*run)).fold(0.0, f64::max) * 1.05;
    let (seats, waiting, rejections) =
        (most(level_charts::seats_max), most(level_charts::waiting_max), most(level_charts::rejections_max));
    each("columns", names, |index| {
        let run = runs[index];
        let (seats, waiting) = (level_charts::seats(run, seats), level_charts::waiting(run, waiting));
        let all = [seats, waiting, level_charts::rejections(run, rejections)];
        let levels = level_charts::used(run).into_iter().map(|level| level_charts::level(run, level));
        pictures(all.into_iter().flatten().chain(levels))
    })
}

/// A section for each configuration; only the content if there is one. The class says how sections stand.
pub(crate) fn each(class: &str, names: &[&str], content: impl Fn(usize) -> String) -> String {
    if names.len() == 1 {
        return content(0);
    }
    let mut html = format!("<div class=\"{class}\">\n");
    for (index, name) in names.iter().enumerate() {
        html += &format!("<section>\n<h3>{}</h3>\n{}</section>\n", escape(name), content(index));
    }
    html + "</div>\n"
}

pub(crate) fn pictures(all: impl IntoIterator<Item = String>) -> String {
    let mut html = String::from("<div class=\"pictures\">\n");
    for picture in all {
        html += &format!("<figure>\n{picture}</figure>\n");
    }
    html + "</div>\n"
}

/// A table. The first title is that of the rows' names.
pub(crate) fn table(titles: &[&str], rows: impl IntoIterator<Item = (String, Vec<String>)>) -> String {
    let mut html = String::from("<div class=\"scroll\"><table>\n<thead><tr>");
    for title in titles {
        html += &format!("<th>{}</th>", escape(title));
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
