//! The annotations of Evenkeel, for the reference.

use std::fmt::Write as _;

use crate::annotations::{IGNORE, KNOWN};

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
    page
}
