//! `evenkeel explain --limit`: why the limit of a gateway is what it is (AL-7).

use anyhow::Result;
use evenkeel_gateway::observe::frame::Limit;
use serde::{Deserialize, Serialize};

use crate::remote::{Server, json_page};
use crate::terminal::{Column, Paint, Shade, Table, clock, printable};

const ADMIN_PATH: &str = "/debug/status";

/// How wide the column of titles is.
const TITLE: usize = 12;

/// How many decisions people see. JSON has all that the gateway keeps.
const DECISIONS_MAX: usize = 12;

/// The limits of a gateway.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Limits {
    /// The limits of a gateway with several services.
    OfServices {
        services: Vec<ServerLimit>,
    },
    One(ServerLimit),
}

/// The limit of a gateway, or of one of its services.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ServerLimit {
    /// `None` for a gateway without services, and for requests that belong to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    service: Option<String>,
    /// How many seats there are now.
    concurrency: u32,
    /// `None` if the number of seats is fixed.
    limit: Option<Limit>,
}

/// Asks a gateway for its limits.
pub(super) async fn limits(gateway: &Server) -> Result<Limits> {
    json_page(gateway, ADMIN_PATH, "").await
}

// === impl Limits ===

impl Limits {
    /// For people. The gateway may send anything: nothing of it reaches the terminal unchecked.
    pub(super) fn text(&self, paint: Paint) -> String {
        let all = match self {
            Self::OfServices { services } => services.as_slice(),
            Self::One(one) => std::slice::from_ref(one),
        };
        all.iter().map(|one| one.text(paint)).collect::<Vec<_>>().join("\n")
    }
}

// === impl ServerLimit ===

impl ServerLimit {
    fn text(&self, paint: Paint) -> String {
        let mut text = String::new();
        let mut line = |title: &str, content: &str| {
            let padded = format!("{title:<TITLE$}");
            let title = if title.is_empty() { padded } else { paint.text(Shade::Blue, &padded) };
            text += &format!("{title} {}\n", printable(content));
        };
        if let Some(service) = &self.service {
            line("service", service);
        }
        let Some(limit) = &self.limit else {
            let fixed = "it is the number that `concurrency` says; only `concurrency: auto` finds its own";
            line("limit", &format!("{} seats: {fixed}", self.concurrency));
            return text;
        };
        let known = if limit.is_known { "found by trials" } else { "not found yet" };
        line("limit", &format!("{} seats, {known}; from {} to {}", limit.applied, limit.least, limit.most));
        line("why", limit.because());
        match &limit.found_by {
            Some(instance) => {
                line("doing", &format!("follows instance {instance} of the fleet; ask that one for its decisions"));
            }
            None => line("doing", &format!("{}; {}", phase(limit), load(limit))),
        }
        if let Some([value, deviation]) = limit.elasticity {
            let meaning = "1: as much as the others, 0: nothing, less: harm";
            line("last seat", &format!("brings {value:.2} ± {deviation:.2} of what an average one brings ({meaning})"));
        }
        if let Some(ceiling) = limit.ceiling {
            line("ceiling", &format!("nothing above {ceiling:.0} is tried for a while"));
        }
        if limit.room > 1.0 {
            line("room", &format!("at light load, bursts may take up to {:.2} times as many seats", limit.room));
        }
        if limit.is_held_down {
            line("held", "the metric of `limit.holdWhile` keeps it from rising");
        }
        if !limit.steps.is_empty() {
            text += "\n";
            text += &decisions(limit);
        }
        text
    }
}

/// The latest decisions, the newest first.
fn decisions(limit: &Limit) -> String {
    let columns = [Column::left("UTC"), Column::right("from"), Column::right("to"), Column::left("decision")];
    let mut table = Table::new(columns);
    table.ruler();
    for step in limit.steps.iter().rev().take(DECISIONS_MAX) {
        let text = printable(&step.text).into_owned();
        table.row([clock(step.time_ms), step.from.to_string(), step.to.to_string(), text]);
    }
    table.render()
}

fn phase(limit: &Limit) -> String {
    match limit.phase.as_str() {
        "holding" => "holds the limit".to_owned(),
        "measuring-base" => "measures what the service does with this limit".to_owned(),
        "trying" => "tries another limit".to_owned(),
        "probing-up" => "tries a few seats more".to_owned(),
        "probing-down" => "tries a few seats less".to_owned(),
        other => other.to_owned(),
    }
}

fn load(limit: &Limit) -> String {
    match limit.load.as_str() {
        "light" => "hardly a request waits, so nothing is tried".to_owned(),
        "burst" => "requests have waited for a short time, so nothing is tried yet".to_owned(),
        "overload" => "requests wait".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_gateway::observe::frame::Step;

    use super::*;
    use crate::terminal::ColorChoice;

    fn shown(limits: &Limits) -> String {
        limits.text(ColorChoice::Never.paint(&std::io::stdout()))
    }

    /// AL-7
    #[test]
    fn the_limit_its_bounds_and_the_latest_decisions_are_told() {
        let step = |number, from, to, text: &str| Step {
            number,
            time_ms: 1_763_290_290_000 + 1000 * number,
            from,
            to,
            tried: None,
            text: text.to_owned(),
        };
        let limit = Limit {
            seats: 39.6,
            applied: 40,
            least: 1,
            most: 1000,
            is_known: true,
            phase: "probing-up".to_owned(),
            load: "overload".to_owned(),
            elasticity: Some([0.21, 0.08]),
            ceiling: Some(57.0),
            room: 1.15,
            found_by: None,
            is_held_down: true,
            steps: vec![
                step(0, 20, 40, "trial 20 → 40: elasticity 0.85 ± 0.12: taken"),
                step(1, 40, 40, "trial 40 → 57: elasticity 0.05 ± 0.10: not taken"),
            ],
        };
        let auto = ServerLimit { service: Some("shop".to_owned()), concurrency: 40, limit: Some(limit) };
        let fixed = ServerLimit { service: Some("chat\u{1b}[2J".to_owned()), concurrency: 8, limit: None };
        insta::assert_snapshot!(shown(&Limits::OfServices { services: vec![auto, fixed] }));
    }

    /// FL-13, AL-7: only the gateway that finds the limit for all knows why it is what it is.
    #[test]
    fn fl_13_a_gateway_of_a_fleet_names_the_one_that_finds_the_limit() {
        let status = r#"{"concurrency": 7, "limit": {"applied": 20, "least": 3, "most": 1000, "phase": "holding", "isKnown": true,
            "load": "light", "room": 1.0, "seats": 20.0, "foundBy": "00000000000000ff"}, "levels": []}"#;
        let text = shown(&serde_json::from_str(status).unwrap());
        assert!(
            text.contains("why          another instance of the fleet finds it for all, and knows why\n"),
            "{text}"
        );
        assert!(text.contains("doing        follows instance 00000000000000ff of the fleet;"), "{text}");
    }

    #[test]
    fn a_limit_that_has_tried_nothing_says_so() {
        let status = r#"{"concurrency": 20, "limit": {"applied": 20, "least": 1, "most": 1000, "phase": "holding",
            "load": "light", "room": 1.0, "seats": 20.0}, "levels": []}"#;
        let text = shown(&serde_json::from_str(status).unwrap());
        assert!(text.starts_with("limit        20 seats, not found yet; from 1 to 1000\n"), "{text}");
        assert!(text.contains("why          nothing has been tried yet"), "{text}");
    }
}
