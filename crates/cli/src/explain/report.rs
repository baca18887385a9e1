//! An explanation for people.

use std::time::Duration;

use evenkeel::explain::{
    DanglingSchema, ExpectedWait, ExplainedFleet, ExplainedQueuing, ExplainedRate, ExplainedRequest, Explanation,
    LiveLevel, TriedSchema, WaitOutcome,
};
use evenkeel::status::SeatLimits;

use super::question::Question;
use crate::terminal::{Column, Paint, Shade, Table, printable};

/// How wide the column of titles is.
const TITLE: usize = 12;
/// How many flow schemas with the same reason are named.
const NAMES_MAX: usize = 3;

/// Writes an explanation, with a line about where the objects are from. Clients choose users, groups, paths and flows, and
/// a gateway sends the rest: nothing of it reaches the terminal unchecked.
pub(super) fn report(question: &Question, explanation: &Explanation, objects: &str, paint: Paint) -> String {
    let mut page = Page { text: String::new(), paint };
    let Explanation { request, tried, .. } = explanation;
    let asked_for = format!("{} {}", question.method, question.target);
    page.line("request", &paint.text(Shade::Strong, &printable(&asked_for)));
    page.line("", &printable(&asked(request)));
    page.line("user", &printable(&format!("{} ({})", request.user, listed(&request.groups))));
    if !request.is_limited {
        page.line(
            "",
            &paint
                .text(Shade::Yellow, "flow control does not apply to this request; if it did, it would go as follows"),
        );
    }
    page.line("objects", &printable(objects));
    if let Some(service) = &explanation.service {
        page.line("service", &printable(service));
    }
    page.gap();
    if !tried.is_empty() {
        page.block("tried", &failed(tried, paint));
        page.gap();
    }
    for dangling in &explanation.dangling {
        let DanglingSchema { schema, precedence, priority_level, would_match, .. } = dangling;
        let (shade, would) =
            if *would_match { (Shade::Yellow, "; it would take this request") } else { (Shade::Faint, "") };
        let text = format!("{schema} (precedence {precedence}): its level {priority_level:?} does not exist{would}");
        page.line("not in use", &paint.text(shade, &printable(&text)));
    }
    if !explanation.dangling.is_empty() {
        page.gap();
    }
    let schema = paint.text(Shade::Green, &printable(&explanation.flow_schema));
    let clause = explanation.matched.as_deref().unwrap_or("no flow schema matches, so this one takes it");
    let precedence = explanation.precedence.map_or(String::new(), |precedence| format!("  precedence {precedence}"));
    page.line("flow schema", &format!("{schema}{precedence}  {}", printable(clause)));
    page.line("level", &paint.text(Shade::Green, &printable(&explanation.priority_level)));
    page.line("flow", &printable(&flow(explanation)));
    page.line("queues", &queues(explanation));
    page.line("seats", &printable(&seats(explanation)));
    if let Some(rate) = &explanation.rate {
        page.line("rate", &printable(&rate_of_flow(rate)));
    }
    if let Some(fleet) = &explanation.fleet {
        page.line("fleet", &printable(&shared_seats(fleet)));
    }
    if let Some(limits) = explanation.limits.as_ref().filter(|_| explanation.queuing != ExplainedQueuing::Exempt) {
        page.line("limits", &limited(limits, explanation.lent_by_others));
    }
    if let Some(live) = &explanation.live {
        page.gap();
        page.live(live);
    }
    page.text
}

struct Page {
    text: String,
    paint: Paint,
}

// === impl Page ===

impl Page {
    fn line(&mut self, title: &str, content: &str) {
        let padded = format!("{title:<TITLE$}");
        let title = if title.is_empty() { padded } else { self.paint.text(Shade::Blue, &padded) };
        self.text += &format!("{title} {content}\n");
    }

    fn block(&mut self, title: &str, lines: &str) {
        for (number, line) in lines.lines().enumerate() {
            self.line(if number == 0 { title } else { "" }, line);
        }
    }

    fn gap(&mut self) {
        self.text.push('\n');
    }

    fn live(&mut self, live: &LiveLevel) {
        let LiveLevel { status, wait, .. } = live;
        let (waiting, executing) = (status.waiting, status.executing);
        let seats = format!("{} of {} seats in use", status.seats_in_use, status.current_limit);
        let kept = match status.kept_seats {
            0 => String::new(),
            1 => "; 1 seat is kept for new clients".to_owned(),
            kept => format!("; {kept} seats are kept for new clients"),
        };
        self.line("now", &format!("{executing} requests run, {waiting} wait, {seats}{kept}"));
        let (shade, text) = expected(wait);
        let text = self.paint.text(shade, &text);
        self.line("wait", &text);
        self.line("", &printable(&wait.why));
    }
}

/// A table of the flow schemas that do not match. Neighbours with the same reason share a row.
fn failed(tried: &[TriedSchema], paint: Paint) -> String {
    let columns =
        [Column::left("precedence"), Column::left("flow schema"), Column::left("the first clause that does not match")];
    let mut table = Table::new(columns);
    for alike in tried.chunk_by(|one, other| one.failed == other.failed) {
        let [first, .., last] = alike else {
            let only = &alike[0];
            table.row([only.precedence.to_string(), printable(&only.schema).into_owned(), faint(&only.failed, paint)]);
            continue;
        };
        let precedence = if first.precedence == last.precedence {
            first.precedence.to_string()
        } else {
            format!("{} to {}", first.precedence, last.precedence)
        };
        let names: Vec<&str> = alike.iter().take(NAMES_MAX).map(|tried| tried.schema.as_str()).collect();
        let more = match alike.len() - names.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        table.row([precedence, format!("{}{more}", printable(&names.join(", "))), faint(&first.failed, paint)]);
    }
    table.render()
}

fn faint(text: &str, paint: Paint) -> String {
    paint.text(Shade::Faint, &printable(text))
}

/// How the request is understood.
fn asked(request: &ExplainedRequest) -> String {
    if !request.is_resource_request {
        return format!("verb {}, path {}", request.verb, request.path);
    }
    let group = if request.api_group.is_empty() { String::new() } else { format!(".{}", request.api_group) };
    let subresource = if request.subresource.is_empty() { String::new() } else { format!("/{}", request.subresource) };
    let mut text = format!("verb {}, resource {}{subresource}{group}", request.verb, request.resource);
    for (title, value) in
        [("version", &request.api_version), ("namespace", &request.namespace), ("name", &request.name)]
    {
        if !value.is_empty() {
            text += &format!(", {title} {value}");
        }
    }
    text
}

fn listed(groups: &[String]) -> String {
    if groups.is_empty() { "in no group".to_owned() } else { format!("in {}", groups.join(", ")) }
}

fn flow(explanation: &Explanation) -> String {
    let hash = explanation.flow_hash;
    match (explanation.flow.is_empty(), explanation.queuing) {
        (_, ExplainedQueuing::Exempt | ExplainedQueuing::Reject) => "the level does not separate flows".to_owned(),
        (true, _) => format!("all requests of the flow schema are one flow, hash {hash:#018x}"),
        (false, _) => format!("{}, hash {hash:#018x}", explanation.flow),
    }
}

fn queues(explanation: &Explanation) -> String {
    match explanation.queuing {
        ExplainedQueuing::Exempt => "none: the level is exempt, and requests start at once".to_owned(),
        ExplainedQueuing::Reject => "none: a request that finds no seat is rejected".to_owned(),
        ExplainedQueuing::PerFlow => "one for each flow (evenkeel.dev/queuing: per-flow)".to_owned(),
        _ => {
            let hand: Vec<String> = explanation.hand.iter().map(ToString::to_string).collect();
            format!("the emptiest of {}", hand.join(", "))
        }
    }
}

/// The rate of the flow, and how much of it is left.
fn rate_of_flow(rate: &ExplainedRate) -> String {
    let ExplainedRate { rate, left, wait_ns, part_percent, .. } = rate;
    let rate = match part_percent {
        Some(percent) => {
            format!("{rate}, of which the flow has {percent} % here, by its part of the demand in the fleet")
        }
        None => rate.clone(),
    };
    if *wait_ns > 0 {
        let wait = Duration::from_nanos(wait_ns.unsigned_abs());
        return format!("{rate}; the flow is over it, and the request would wait for {:.3} s", wait.as_secs_f64());
    }
    format!("{rate}; the flow may take {left} at once now")
}

/// How the gateway stands in its fleet.
fn shared_seats(fleet: &ExplainedFleet) -> String {
    let ExplainedFleet { service, seats, total, instances, footing, .. } = fleet;
    let gateways = if *instances == 1 { "gateway" } else { "gateways" };
    let part = format!("{service}: {seats} of {total} seats are this gateway's, {instances} {gateways} share them");
    match footing.as_str() {
        "grant" => part,
        "floor" => format!("{part}; it is cut off from etcd, and has its floor only"),
        _ => format!("{part}; it is cut off from etcd, and starts no requests"),
    }
}

fn seats(explanation: &Explanation) -> String {
    let seats = &explanation.seats;
    let mut text = match (seats.initial, seats.lingering) {
        (0, 0) => "none: it takes no seat, and never waits".to_owned(),
        (initial, _) => initial.to_string(),
    };
    if seats.lingering > 0 {
        let ms = seats.additional_latency_ns / 1_000_000;
        text += &format!(", and {} for {ms} ms after its end", seats.lingering);
    }
    text + &format!("  {}", seats.rule)
}

/// The level's seats. An older gateway does not say what the other levels lend.
fn limited(limits: &SeatLimits, lent_by_others: Option<i64>) -> String {
    let SeatLimits { nominal, lendable, min, .. } = limits;
    let seats = if *nominal == 1 { "seat" } else { "seats" };
    let own = format!("{nominal} {seats} of its own; lends {lendable}");
    let (borrowing, max, why) = match lent_by_others {
        Some(lent) => {
            let borrowing = limits.borrowing.min(lent);
            (borrowing, nominal + borrowing, format!(" (other levels lend {lent})"))
        }
        None => (limits.borrowing, limits.max, String::new()),
    };
    format!("{own}, borrows up to {borrowing}{why}; from {min} to {max} in all")
}

/// The expected outcome of the request, in a few words.
fn expected(wait: &ExpectedWait) -> (Shade, String) {
    let range = match (wait.expected_ms, wait.low_ms, wait.high_ms) {
        (Some(expected), Some(low), Some(high)) => {
            format!("about {}, probably from {} to {}", duration(expected), duration(low), duration(high))
        }
        _ => "for an unknown time".to_owned(),
    };
    match wait.outcome {
        WaitOutcome::Starts => (Shade::Green, "none: it would start at once".to_owned()),
        WaitOutcome::Waits => (Shade::Yellow, range),
        WaitOutcome::TimesOut => (Shade::Red, format!("{range}: it would be rejected before")),
        _ => (Shade::Red, "none: it would be rejected at once".to_owned()),
    }
}

fn duration(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms if ms < 10_000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.1} s", ms / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use evenkeel::FlowControl;
    use evenkeel::objects::Objects;
    use evenkeel_api::Preset;
    use evenkeel_gateway::{Config, RequestRules};

    use super::*;
    use crate::terminal::ColorChoice;

    #[test]
    fn what_clients_send_cannot_control_the_terminal() {
        let preset = Preset::Kubernetes;
        let flow = FlowControl::builder().preset(preset).drive_by_hand().objects(Objects::from(preset)).build();
        let rules = RequestRules::new(&Config::default().requests, preset).unwrap();
        let (user, group) = ("eve\u{1b}]0;owned\u{7}\n".to_owned(), "dev\u{9b}2J\u{202e}".to_owned());
        let question = Question::new("GET", "/a\u{9b}31m", Some(user), vec![group]).unwrap();
        let explained = rules.explain(&flow, &question.user(), question.parts());
        let mut explanation = explained.unwrap();
        // A server that is asked with --live may send anything.
        explanation.flow_schema.push('\u{1b}');
        explanation.priority_level.push('\u{1b}');
        let text = report(&question, &explanation, "those of \u{1b}[2J", ColorChoice::Never.paint(&std::io::stdout()));
        assert!(text.lines().all(|line| printable(line) == line), "{text:?}");
        assert!(
            text.contains(
                "user         eve\\u{1b}]0;owned\\u{7}\\u{a} (in dev\\u{9b}2J\\u{202e}, system:authenticated)\n"
            ),
            "{text}"
        );
    }

    /// RL-1: the rate of the flow, and how much of it is left.
    #[test]
    fn rl_1_the_rate_of_a_flow_is_a_line() {
        let objects = "
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: api}
spec: {type: Limited, limited: {nominalConcurrencyShares: 100, limitResponse: {type: Queue, queuing: {}}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: users, annotations: {evenkeel.dev/rate: 1/s;burst=3}}
spec:
  matchingPrecedence: 100
  priorityLevelConfiguration: {name: api}
  distinguisherMethod: {type: ByUser}
  rules:
  - subjects: [{kind: User, user: {name: '*'}}]
    nonResourceRules: [{verbs: ['*'], nonResourceURLs: ['*']}]
";
        let preset = Preset::Plain;
        let flow = FlowControl::builder().preset(preset).drive_by_hand().objects(objects).build();
        let rules = RequestRules::new(&Config::default().requests, preset).unwrap();
        let question = Question::new("GET", "/orders", Some("alice".to_owned()), Vec::new()).unwrap();
        let line = || {
            let explained = rules.explain(&flow, &question.user(), question.parts()).unwrap();
            let text = report(&question, &explained, "its own", ColorChoice::Never.paint(&std::io::stdout()));
            text.lines().find(|line| line.starts_with("rate ")).map(str::to_owned)
        };
        assert_eq!(line().unwrap(), "rate         1/s;burst=3; the flow may take 3 at once now");
    }

    #[test]
    fn durations_have_as_many_digits_as_are_known() {
        assert_eq!([0.51, 123.4, 12_345.6].map(duration), ["0.5 ms", "123 ms", "12.3 s"]);
    }
}
