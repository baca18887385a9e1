//! The incident of a dump of the flight recorder, as text, as JSON and as a part of a page (FR-3).

use std::collections::BTreeMap;

use anyhow::Result;
use evenkeel::flight::Flight;
use evenkeel_engine::time::{Nanos, SECOND};
use evenkeel_replay::{Delay, Incident, Usage};
use evenkeel_svg::escape;
use serde::Serialize;

use crate::exit::WrongUsage;
use crate::report_page;
use crate::terminal::{Column, Paint, Shade, Table, printable, thousands};

const NOTHING: &str = "The dump has no requests: nothing arrived in its time.";
const TIME_LINE: &str = "What happened";
const USAGE: &str = "Who used what";
const DELAYS: &str = "Who delayed whom";

/// A dump and its incident. There is none if the dump has no requests.
pub(super) struct IncidentView<'a> {
    flight: &'a Flight,
    incident: Option<Incident>,
}

/// The incident as JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JsonIncident {
    cause: String,
    seconds: f64,
    requests: u64,
    rejected: u64,
    missed: u64,
    seats: i64,
    is_complete: bool,
    hides_users: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_rejection: Option<JsonFirstRejection>,
    time_line: Vec<JsonPart>,
    usage: Vec<JsonUsage>,
    delays: Vec<JsonDelay>,
    agreement: JsonAgreement,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonFirstRejection {
    after: f64,
    flow: String,
    level: String,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_change: Option<JsonChange>,
}

#[derive(Debug, Serialize)]
struct JsonChange {
    after: f64,
    what: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonPart {
    after: f64,
    arrived: u64,
    rejected: u64,
    longest_wait: f64,
    seats: BTreeMap<String, f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    most_seats: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonUsage {
    flow: String,
    level: String,
    requests: u64,
    seat_seconds: f64,
    costs: BTreeMap<&'static str, f64>,
}

#[derive(Debug, Serialize)]
struct JsonDelay {
    flow: String,
    level: String,
    waited: f64,
    by: Vec<JsonDelayer>,
}

#[derive(Debug, Serialize)]
struct JsonDelayer {
    flow: String,
    seconds: f64,
}

#[derive(Debug, Serialize, Default)]
struct JsonAgreement {
    requests: u64,
    same: u64,
    undecided: u64,
}

// === impl IncidentView ===

impl<'a> IncidentView<'a> {
    pub(super) fn new(flight: &'a Flight) -> Result<Self> {
        let incident = Incident::new(flight)
            .map_err(|problems| WrongUsage(format!("the objects of the dump cannot be read: {problems}")))?;
        Ok(Self { flight, incident })
    }

    /// For people.
    pub(super) fn text(&self, paint: Paint) -> String {
        let Some(incident) = &self.incident else { return format!("{NOTHING}\n") };
        let mut text = self.sentences(incident).iter().map(|line| printable(line) + "\n").collect::<String>();
        let mut section = |title: &str, (titles, rows): (Vec<String>, Vec<Vec<String>>)| {
            text += &format!("\n{}\n", paint.text(Shade::Strong, title));
            let (last, first) = titles.split_last().map_or((None, &titles[..]), |(last, first)| (Some(last), first));
            let mut columns: Vec<Column> = first.iter().map(|title| Column::right(printable(title))).collect();
            columns.extend(last.map(|title| Column::left(printable(title))));
            let mut table = Table::new(columns);
            table.ruler();
            for row in rows {
                table.row(row.iter().map(|cell| printable(cell)));
            }
            text += &table.render();
        };
        section(TIME_LINE, time_line(incident));
        if !incident.usage.is_empty() {
            section(USAGE, usage(&incident.usage));
        }
        if !incident.delays.is_empty() {
            section(DELAYS, delays(&incident.delays));
        }
        text + &format!("\n{}\n\n", self.agreement(incident))
    }

    /// The incident as a part of a page.
    pub(super) fn html(&self) -> String {
        let Some(incident) = &self.incident else { return format!("<p>{NOTHING}</p>\n") };
        let paragraphs: Vec<String> =
            self.sentences(incident).iter().map(|line| format!("<p>{}</p>\n", escape(line))).collect();
        let mut html = paragraphs.concat();
        let mut section = |title: &str, (titles, rows): (Vec<String>, Vec<Vec<String>>)| {
            let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
            let rows = rows.into_iter().filter_map(|mut row| (!row.is_empty()).then(|| (row.remove(0), row)));
            html += &format!("<h2>{title}</h2>\n{}", report_page::table(&titles, rows));
        };
        section(TIME_LINE, time_line(incident));
        if !incident.usage.is_empty() {
            section(USAGE, usage(&incident.usage));
        }
        if !incident.delays.is_empty() {
            section(DELAYS, delays(&incident.delays));
        }
        html + &format!("<p>{}</p>\n", escape(&self.agreement(incident)))
    }

    pub(super) fn json(&self) -> JsonIncident {
        let header = &self.flight.header;
        let of = |each: &dyn Fn(&Incident) -> u64| self.incident.as_ref().map_or(0, each);
        let incident = self.incident.as_ref();
        JsonIncident {
            cause: header.cause.clone(),
            seconds: incident.map_or(0.0, |incident| seconds(incident.length)),
            requests: of(&|incident| incident.requests),
            rejected: of(&|incident| incident.rejected),
            missed: header.missed,
            seats: header.seats,
            is_complete: header.is_complete,
            hides_users: header.hides_users,
            first_rejection: incident.and_then(|incident| {
                let first = incident.first_rejection.as_ref()?;
                let change = first.change.as_ref();
                Some(JsonFirstRejection {
                    after: seconds(first.after),
                    flow: first.flow.clone(),
                    level: first.level.clone(),
                    reason: first.reason.as_str(),
                    last_change: change.map(|(after, what)| JsonChange { after: seconds(*after), what: what.clone() }),
                })
            }),
            time_line: incident.map_or_else(Vec::new, json_parts),
            usage: incident.map_or_else(Vec::new, |incident| incident.usage.iter().map(JsonUsage::new).collect()),
            delays: incident.map_or_else(Vec::new, |incident| incident.delays.iter().map(JsonDelay::new).collect()),
            agreement: incident.map_or_else(JsonAgreement::default, |incident| JsonAgreement {
                requests: incident.agreement.requests,
                same: incident.agreement.same,
                undecided: incident.agreement.undecided,
            }),
        }
    }

    fn sentences(&self, incident: &Incident) -> Vec<String> {
        let header = &self.flight.header;
        let mut lines = vec![format!(
            "{} requests in {:.1} s, {} rejected, {} seats ({})",
            count(incident.requests),
            seconds(incident.length),
            count(incident.rejected),
            header.seats,
            header.cause
        )];
        if let Some(first) = &incident.first_rejection {
            lines.push(format!(
                "first rejection after {:.3} s: {} in level {} ({})",
                seconds(first.after),
                first.flow,
                first.level,
                first.reason.as_str()
            ));
            lines.push(match &first.change {
                Some((after, what)) if *after < 0 => {
                    format!("last change, {:.3} s before the first request: {what}", seconds(-*after))
                }
                Some((after, what)) => format!("last change before it, after {:.3} s: {what}", seconds(*after)),
                None => "nothing was changed before it".to_owned(),
            });
        }
        if header.missed > 0 {
            lines.push(format!("{} requests could not be recorded", count(header.missed)));
        }
        if header.hides_users {
            lines.push("users are hidden: hashes stand for their names (flightRecorder.users)".to_owned());
        }
        lines
    }

    fn agreement(&self, incident: &Incident) -> String {
        let header = &self.flight.header;
        let mut said = format!(
            "Decided again under its own objects: {} of {} requests start or are rejected at the same moment{}.",
            count(incident.agreement.same),
            count(incident.agreement.requests),
            if header.is_complete { "" } else { " (the dump does not know what was there before it began)" }
        );
        if incident.agreement.undecided > 0 {
            let undecided = count(incident.agreement.undecided);
            said +=
                &format!(" {undecided} others cannot be decided again: the dump does not have what that depends on.");
        }
        if header.changes.iter().any(|change| change.changes_objects) {
            said +=
                " The objects changed meanwhile, and the dump has only the last ones: requests before that may differ.";
        }
        said
    }
}

/// The titles and rows of the time line.
fn time_line(incident: &Incident) -> (Vec<String>, Vec<Vec<String>>) {
    let mut titles: Vec<String> = ["after", "arrived", "rejected", "longest wait"].map(str::to_owned).into();
    titles.extend(incident.levels.iter().map(|level| format!("seats of {level}")));
    titles.push("most seats".to_owned());
    let rows = incident.parts.iter().map(|part| {
        let mut row = vec![
            format!("{:.2} s", seconds(part.after)),
            part.arrived.to_string(),
            part.rejected.to_string(),
            format!("{:.1} ms", seconds(part.longest_wait) * 1000.0),
        ];
        row.extend(part.seats.iter().map(|seats| format!("{seats:.1}")));
        row.push(part.most_seats.clone().unwrap_or_default());
        row
    });
    (titles, rows.collect())
}

/// The titles and rows of those that used most. There is a column for costs where any count.
fn usage(usage: &[Usage]) -> (Vec<String>, Vec<Vec<String>>) {
    let has_costs = usage.iter().any(|used| !used.costs.is_empty());
    let mut titles: Vec<String> = ["flow", "level", "requests", "seat-seconds"].map(str::to_owned).into();
    titles.extend(has_costs.then(|| "cost".to_owned()));
    let rows = usage.iter().map(|used| {
        let mut row =
            vec![used.flow.clone(), used.level.clone(), count(used.requests), format!("{:.2}", used.seat_seconds)];
        if has_costs {
            let costs: Vec<String> =
                used.costs.iter().map(|(kind, cost)| format!("{} {}", amount(*cost), kind.noun())).collect();
            row.push(costs.join(", "));
        }
        row
    });
    (titles, rows.collect())
}

/// A cost: whole numbers, unless it is small.
fn amount(cost: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cost is not below zero, and such a cast stays within bounds"
    )]
    let whole = cost.round() as usize;
    if cost < 100.0 && (cost - cost.round()).abs() > 0.0005 { format!("{cost:.2}") } else { thousands(whole) }
}

/// The titles and rows of those that waited.
fn delays(delays: &[Delay]) -> (Vec<String>, Vec<Vec<String>>) {
    let titles = ["flow", "level", "waited", "while seats were taken by"].map(str::to_owned).into();
    let rows = delays.iter().map(|delay| {
        let part = |time: Nanos| seconds(time) / seconds(delay.waited).max(f64::MIN_POSITIVE) * 100.0;
        let by: Vec<String> = delay.by.iter().map(|(flow, time)| format!("{flow} {:.0} %", part(*time))).collect();
        vec![delay.flow.clone(), delay.level.clone(), format!("{:.2} s", seconds(delay.waited)), by.join(", ")]
    });
    (titles, rows.collect())
}

fn json_parts(incident: &Incident) -> Vec<JsonPart> {
    let parts = incident.parts.iter().map(|part| JsonPart {
        after: seconds(part.after),
        arrived: part.arrived,
        rejected: part.rejected,
        longest_wait: seconds(part.longest_wait) * 1000.0,
        seats: incident.levels.iter().cloned().zip(part.seats.iter().copied()).collect(),
        most_seats: part.most_seats.clone(),
    });
    parts.collect()
}

fn count(number: u64) -> String {
    thousands(usize::try_from(number).unwrap_or(usize::MAX))
}

#[expect(clippy::cast_precision_loss, reason = "seconds for people")]
fn seconds(time: Nanos) -> f64 {
    time as f64 / SECOND as f64
}

// === impl JsonUsage ===

impl JsonUsage {
    fn new(usage: &Usage) -> Self {
        Self {
            flow: usage.flow.clone(),
            level: usage.level.clone(),
            requests: usage.requests,
            seat_seconds: usage.seat_seconds,
            costs: usage.costs.iter().map(|(kind, cost)| (kind.noun(), *cost)).collect(),
        }
    }
}

// === impl JsonDelay ===

impl JsonDelay {
    fn new(delay: &Delay) -> Self {
        let by = delay.by.iter().map(|(flow, time)| JsonDelayer { flow: flow.clone(), seconds: seconds(*time) });
        Self { flow: delay.flow.clone(), level: delay.level.clone(), waited: seconds(delay.waited), by: by.collect() }
    }
}
