//! The annotations of Evenkeel, for the reference.

use std::fmt::Write as _;

use crate::annotations::{IGNORE, KNOWN, MODE, REPLACES};

/// The section on annotations.
pub(super) fn section() -> String {
    let mut page = "\n## Annotations\n\n\
        What Kubernetes does not have is said by annotations, which Kubernetes ignores. A value that is not understood does not make an\n\
        object invalid: the default is used, and the log, the API and `evenkeel check` say so.\n\n\
        | annotation | on | values | default | description |\n|---|---|---|---|---|\n"
        .to_owned();
    for known in &KNOWN {
        // Writing to a text does not fail.
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} | {} |",
            known.name, known.kind, known.values, known.default, known.about
        );
    }
    let _ = writeln!(
        page,
        "| `{IGNORE}` | both | names of rules, separated by commas | none | The rules of `evenkeel check` that are silent about the object. |"
    );
    for (name, values, default, about) in [
        (
            MODE,
            "`audit`, `promote`",
            "the object governs",
            "The object does not govern: it decides in the shadow only. If one has `promote`, all objects of the shadow govern.",
        ),
        (REPLACES, "the name of an object", "its own name", "With a mode: in whose place the object is in the shadow."),
    ] {
        let _ = writeln!(page, "| `{name}` | both | {values} | {default} | {about} |");
    }
    page
}
