//! `cargo xtask workflows`: checks the workflow files, the action and the issue forms against GitHub's schemas.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::run::{has_extension, root};
use crate::setup;

/// A folder or a file, and the schema of what is in it. The schemas come with check-jsonschema.
const CHECKED: [(&str, &str); 5] = [
    (".github/workflows", "vendor.github-workflows"),
    (".github/ISSUE_TEMPLATE", "vendor.github-issue-forms"),
    (".github/ISSUE_TEMPLATE/config.yml", "vendor.github-issue-config"),
    (".github/dependabot.yml", "vendor.dependabot"),
    ("action.yml", "vendor.github-actions"),
];

/// Beside the forms, and no form itself.
const NO_FORM: &str = "config.yml";

pub(crate) fn workflows() -> Result<()> {
    for (place, schema) in CHECKED {
        let files = files(place)?;
        ensure!(!files.is_empty(), "there are no files in {place}");
        setup::check_jsonschema().args(["--builtin-schema", schema]).args(files).run()?;
    }
    Ok(())
}

fn files(place: &str) -> Result<Vec<String>> {
    let path = root()?.join(place);
    if path.is_file() {
        return Ok(vec![place.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(&path).with_context(|| format!("cannot read {place}"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if has_extension(&name, "yml") && name != NO_FORM {
            files.push(format!("{place}/{name}"));
        }
    }
    files.sort();
    Ok(files)
}
