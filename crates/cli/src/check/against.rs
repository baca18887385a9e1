//! What `--against` prints: the requests that move.

use evenkeel_check::{Outcome, Side};

use super::github;
use crate::terminal::{Paint, Shade, printable};

pub(super) fn text(outcome: &Outcome, paint: Paint) -> String {
    let mut text = String::new();
    let side = |side: &Side| format!("{:?} (level {:?})", side.flow_schema, side.priority_level);
    for difference in &outcome.differences {
        let heading = format!("from {} to {}", side(&difference.old), side(&difference.new));
        text += &format!("{}\n", paint.text(Shade::Strong, &heading));
        for requests in &difference.requests {
            text += &format!("  {}\n", printable(requests));
        }
        let witness = difference.witness.to_string();
        text += &format!("  {} {}\n\n", paint.text(Shade::Faint, "for example:"), printable(&witness));
    }
    for (old, new) in &outcome.undecided {
        text +=
            &format!("undecided: the analysis takes too long to tell whether requests move from {old:?} to {new:?}\n");
    }
    let summary = match outcome.differences.len() {
        0 if outcome.undecided.is_empty() => paint.text(Shade::Green, "no request is classified differently"),
        0 => "no request is known to be classified differently".to_owned(),
        1 => "requests move between 1 pair of schemas or levels".to_owned(),
        count => format!("requests move between {count} pairs of schemas or levels"),
    };
    text + &summary + "\n"
}

/// The differences as notices of GitHub Actions.
pub(super) fn commands(outcome: &Outcome) -> String {
    let notice = |difference: &evenkeel_check::Difference| {
        let message = format!(
            "requests move from {:?} (level {:?}) to {:?} (level {:?}), for example {}",
            difference.old.flow_schema,
            difference.old.priority_level,
            difference.new.flow_schema,
            difference.new.priority_level,
            difference.witness
        );
        format!("::notice title=requests move::{}\n", github::escaped(&message))
    };
    outcome.differences.iter().map(notice).collect()
}
