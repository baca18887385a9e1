//! `--explain RULE`: the page of a rule.

use anyhow::Result;
use evenkeel_check::Rule;

use super::rule_names;
use crate::exit::WrongUsage;
use crate::terminal::{Paint, Shade};

pub(super) fn page(name: &str, paint: Paint) -> Result<String> {
    let rule: Rule = name.parse().map_err(|error| WrongUsage(format!("{error}; the rules are {}", rule_names())))?;
    let shown = |line: &str| match line.strip_prefix('#') {
        Some(_) => format!("{}\n", paint.text(Shade::Strong, line.trim_start_matches(['#', ' ']))),
        None => format!("{line}\n"),
    };
    Ok(rule.page().lines().map(shown).collect())
}
