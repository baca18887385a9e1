//! `revocable-in-vain`: revocable levels of which no request is ever told to end (LM-7).

use evenkeel_api::annotations;
use evenkeel_api::v1::PriorityLevelConfiguration;
use evenkeel_engine::limits::LevelLimits;

use crate::Borrowing;
use crate::analysis::{Analysis, Output};
use crate::finding::Finding;
use crate::rule::Rule;
use crate::rules::seats::limits;

pub(crate) fn run(analysis: &Analysis<'_>, output: &mut Output) {
    let is_revocable = |level: &PriorityLevelConfiguration| annotations::is_revocable(&level.metadata.annotations);
    if !analysis.levels.iter().any(|(_, level)| is_revocable(level)) {
        return;
    }
    let limits = limits(analysis);
    let lends: Vec<bool> = analysis.levels.iter().zip(&limits).map(|((_, level), of)| lends(level, of)).collect();
    for (index, (located, level)) in analysis.levels.iter().enumerate().filter(|(_, (_, level))| is_revocable(level)) {
        let others_lend = lends.iter().enumerate().any(|(other, lends)| *lends && other != index);
        let Some((why, help)) = why_in_vain(analysis, level, &limits[index], others_lend) else { continue };
        let message = format!("no request of this revocable level is ever told to end: {why}");
        let finding = Finding::new(Rule::RevocableInVain, located, "", message, help);
        output.accuse(analysis, located, finding.at(located.annotation_place(annotations::REVOCABLE)));
    }
}

/// Whether other levels may use seats of this level.
fn lends(level: &PriorityLevelConfiguration, limits: &LevelLimits) -> bool {
    level.spec.limited.is_some() && limits.nominal > limits.min
}

/// Why no other level can wait for a seat of this one, and what to do; `None` if one can.
fn why_in_vain(
    analysis: &Analysis<'_>,
    level: &PriorityLevelConfiguration,
    limits: &LevelLimits,
    others_lend: bool,
) -> Option<(String, &'static str)> {
    if level.spec.limited.is_none() {
        return Some(("the level is exempt".to_owned(), "remove the annotation, or make the level `Limited`"));
    }
    if analysis.assumptions.borrowing == Borrowing::Periodic {
        let why = "seats are divided from time to time, and only levels that borrow at once give seats back".to_owned();
        return Some((why, "use immediate borrowing (`--borrowing immediate`), or remove the annotation"));
    }
    if limits.max <= limits.min {
        let why = format!("it keeps all {} seats that it can ever use", limits.min);
        return Some((why, "let the level lend or borrow seats, or remove the annotation"));
    }
    if !others_lend {
        let why = "no other level lends a seat, so that none waits for its own".to_owned();
        return Some((why, "set `lendablePercent` on the levels that jobs may use while they are idle"));
    }
    None
}
