//! The tutorial about replays. Its reader works in a copy of the recorded log, and its pictures are those of the report that the
//! last command writes.

use std::fs;
use std::path::Path;

use super::page::Page;
use super::session::Session;

/// The pictures of the tutorial, by the titles that the report gives them. `EVENKEEL_UPDATE=1` writes them anew.
const PICTURES: [(&str, &str); 3] = [
    ("replay-rejected.svg", "Rejected requests by flow"),
    ("replay-waits.svg", "Wait by flow"),
    ("replay-batch.svg", "Seats of batch"),
];

pub(crate) fn follow() {
    let mut session = Session::new();
    for file in fs::read_dir(evenkeel_recorded::golden().join("replay")).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), session.folder().join(file.file_name())).unwrap();
    }
    let page = Page::read("docs/tutorials/replay.md");
    page.sections().for_each(|section| session.follow(section));
    let report = fs::read_to_string(session.folder().join("report.html")).unwrap();
    for (name, title) in PICTURES {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images").join(name);
        let drawn = picture(&report, title);
        if std::env::var_os("EVENKEEL_UPDATE").is_some() {
            fs::write(&file, drawn).unwrap();
        } else {
            let kept = fs::read_to_string(&file).unwrap_or_default();
            assert!(kept == drawn, "{name} is not the picture of the report; update it with EVENKEEL_UPDATE=1");
        }
        assert!(page.has_text(name), "the tutorial does not show {name}");
    }
}

/// The last picture with that title: where two configurations are compared, that of the new one.
fn picture<'a>(report: &'a str, title: &str) -> &'a str {
    let pictures = report.split("<figure>\n").skip(1).filter_map(|figure| figure.split("</figure>").next());
    let titled = pictures.filter(|picture| picture.contains(&format!(">{title}<")));
    titled.last().unwrap_or_else(|| panic!("the report has no picture {title:?}"))
}
