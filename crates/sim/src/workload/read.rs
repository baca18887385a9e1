//! From text to a workload.

use evenkeel_api::Preset;
use evenkeel_api::decode::{Node, Position, Problem, Problems, Value, parse_yaml};
use evenkeel_engine::time::SECOND;

use super::fields::{Field, Fields, Map};
use super::instances::{check_instances, read_instances};
use super::{Change, Event, SIMULATED_EVENTS_MAX, Workload};
use crate::service::{ServiceCurve, Sharing};

pub(super) const API_VERSION: &str = "evenkeel.dev/v1";
pub(super) const KIND: &str = "Workload";

/// The most flows of one workload, and the most clients of one flow.
pub(super) const COUNT_MAX: u32 = 1_000_000;

/// The longest workload: one is a page or two, and a longer file is something else.
const BYTES_MAX: usize = 1 << 20;

// === impl Workload ===

impl Workload {
    /// Reads a workload from YAML or JSON. `file` is what problems call the text; `preset` says what URLs mean.
    ///
    /// ```
    /// use evenkeel_api::Preset;
    /// use evenkeel_sim::workload::Workload;
    ///
    /// let text = b"
    /// apiVersion: evenkeel.dev/v1
    /// kind: Workload
    /// metadata: {name: example}
    /// spec:
    ///   seconds: 10
    ///   flows:
    ///   - name: people
    ///     user: alice
    ///     arrivals: {poisson: {rate: fast}}
    ///     service: {fixed: 10ms}
    /// ";
    /// let problems = Workload::parse("example.yaml", text, Preset::Plain).unwrap_err();
    /// assert_eq!(
    ///     problems.to_string(),
    ///     "example.yaml:10:26: spec.flows[0].arrivals.poisson.rate: is \"fast\", but must be a number from 0.000001 to 1000000",
    /// );
    /// ```
    pub fn parse(file: &str, text: &[u8], preset: Preset) -> Result<Self, Problems> {
        let fault = |at, message: String| Problems::new(vec![Problem::new(file, at, message)]);
        let start = Position { line: 1, column: 1 };
        let (root, mut problems) = if text.len() > BYTES_MAX {
            (None, fault(start, format!("there are more than {BYTES_MAX} bytes; this is not a workload")))
        } else {
            match parse_yaml(text) {
                Err(error) => (None, fault(error.at, error.message)),
                Ok(documents) => match <[_; 1]>::try_from(documents) {
                    Ok([document]) => {
                        let twice = document.duplicates.iter().map(|twice| {
                            Problem::new(
                                file,
                                twice.at,
                                format!("{}: the name {:?} occurs twice", twice.path, twice.key),
                            )
                        });
                        (Some(document.root.clone()), Problems::new(twice.collect()))
                    }
                    Err(documents) => {
                        (None, fault(start, format!("there are {} documents, but must be one", documents.len())))
                    }
                },
            }
        };
        if problems.is_none()
            && let Some(root) = root
        {
            let mut fields = Fields::new(file);
            let workload = read(&mut fields, &root, preset);
            match workload.filter(|_| !fields.has_problems()) {
                Some(workload) => return Ok(workload),
                None => problems = Problems::new(fields.into_problems()),
            }
        }
        Err(problems.or_else(|| fault(start, "this is not a workload".to_owned())).unwrap_or_else(|| unreachable!()))
    }
}

fn read(fields: &mut Fields, root: &Node, preset: Preset) -> Option<Workload> {
    let root = Field::root(root);
    let map = fields.map(&root, &["apiVersion", "kind", "metadata", "spec"])?;
    for (name, wanted) in [("apiVersion", API_VERSION), ("kind", KIND)] {
        match map.get(name) {
            None => fields.missing(&map, name, &format!("is missing; write `{name}: {wanted}`")),
            Some(field) if field.node.as_str() == Some(wanted) => {}
            Some(field) => drop(fields.wanted::<()>(&field, None, wanted)),
        }
    }
    let name = map.get("metadata").and_then(|metadata| {
        let metadata = fields.map(&metadata, &["name", "labels", "annotations"])?;
        fields.text(&metadata.get("name")?)
    });
    let Some(spec) = map.get("spec") else {
        fields.missing(&map, "spec", "is missing; see the documentation of `evenkeel simulate`");
        return None;
    };
    let all = spec;
    let spec = fields.map(&all, &["seconds", "warmup", "service", "objects", "instances", "flows", "events"])?;
    let span = read_span(fields, &spec)?;
    let warmup = spec.get("warmup").and_then(|field| {
        let warmup = fields.seconds(&field)?;
        fields.wanted(&field, (warmup < span).then_some(warmup), "shorter than spec.seconds")
    });
    let service = read_service(fields, &spec);
    let objects = spec.get("objects").map(|field| read_objects(fields, &field)).unwrap_or_default();
    let flows = match spec.get("flows") {
        Some(field) => {
            let items = fields.list(&field)?;
            if items.is_empty() {
                fields.problem(&field, "is empty, but there must be at least one flow");
            }
            items.iter().filter_map(|item| super::read_flow::read_flow(fields, item, span, preset)).collect()
        }
        None => {
            fields.missing(&spec, "flows", "is missing; there must be at least one flow");
            Vec::new()
        }
    };
    super::read_flow::check_names(fields, &spec, &flows);
    let events = spec.get("events").map(|field| read_events(fields, &field)).unwrap_or_default();
    let instances = spec.get("instances").and_then(|field| read_instances(fields, &field));
    check_instances(fields, &all, instances.as_ref(), &service, &flows, &events);
    let name = name.unwrap_or_else(|| "workload".to_owned());
    Some(Workload {
        name,
        span,
        warmup: warmup.unwrap_or(0),
        service,
        objects,
        instances,
        flows,
        events,
        simulated_events_max: SIMULATED_EVENTS_MAX,
    })
}

fn read_span(fields: &mut Fields, spec: &Map<'_>) -> Option<i64> {
    let Some(field) = spec.get("seconds") else {
        fields.missing(spec, "seconds", "is missing; say how long the workload runs, as `seconds: 60`");
        return None;
    };
    let span = fields.seconds(&field)?;
    fields.wanted(&field, (span >= SECOND / 1000).then_some(span), "at least a millisecond")
}

fn read_service(fields: &mut Fields, spec: &Map<'_>) -> ServiceCurve {
    const KNOWN: [&str; 6] = ["slots", "degradation", "sharing", "contention", "coherence", "refusesAbove"];
    let mut curve = ServiceCurve::default();
    let Some(service) = spec.get("service").and_then(|field| fields.map(&field, &KNOWN)) else { return curve };
    let mut factor = |name: &str| service.get(name).and_then(|field| fields.number(&field, 0.0, 1000.0)).unwrap_or(0.0);
    (curve.degradation, curve.contention, curve.coherence) =
        (factor("degradation"), factor("contention"), factor("coherence"));
    curve.slots = service.get("slots").and_then(|field| fields.whole(&field, 0, u32::MAX)).filter(|slots| *slots > 0);
    curve.refuses_above = service.get("refusesAbove").and_then(|field| fields.whole(&field, 1, u32::MAX));
    if let Some(field) = service.get("sharing") {
        let sharing = match field.node.as_str() {
            Some("queue") => Some(Sharing::Queue),
            Some("processor") => Some(Sharing::Processor),
            _ => None,
        };
        curve.sharing = fields.wanted(&field, sharing, "queue or processor").unwrap_or_default();
    }
    curve
}

/// `{pods: {count: 5000, bytes: 4000}}`, or the count alone.
fn read_objects(fields: &mut Fields, field: &Field<'_>) -> Vec<(String, i64, i64)> {
    let Some(resources) = fields.entries(field) else { return Vec::new() };
    let mut objects = Vec::new();
    for (resource, field) in resources {
        let (count, bytes) = if field.is_map() {
            let Some(map) = fields.map(&field, &["count", "bytes"]) else { continue };
            let count = map.get("count").and_then(|field| fields.whole(&field, 0, u32::MAX));
            (count, map.get("bytes").and_then(|field| fields.whole(&field, 0, u32::MAX)))
        } else {
            (fields.whole(&field, 0, u32::MAX), None)
        };
        objects.push((resource, i64::from(count.unwrap_or(0)), i64::from(bytes.unwrap_or(0))));
    }
    objects
}

fn read_events(fields: &mut Fields, field: &Field<'_>) -> Vec<Event> {
    let items = fields.list(field).unwrap_or_default();
    let mut events: Vec<Event> = items.iter().filter_map(|item| read_event(fields, item)).collect();
    // Events at the same time happen in the order of the file.
    events.sort_by_key(|event| event.at);
    events
}

fn read_event(fields: &mut Fields, field: &Field<'_>) -> Option<Event> {
    let map = fields.map(field, &["at", "apply", "slots", "failing", "concurrency"])?;
    let Some(at) = map.get("at") else {
        fields.missing(&map, "at", "is missing; say when the event happens, as `at: 30s`");
        return None;
    };
    let at = fields.duration(&at)?;
    let apply = map.get("apply").map(|field| fields.text(&field).map(Change::Apply));
    let slots = map.get("slots").map(|field| {
        let slots = fields.whole(&field, 0, u32::MAX)?;
        Some(Change::Slots((slots > 0).then_some(slots)))
    });
    let seats = map.get("concurrency").map(|field| fields.whole(&field, 0, i32::MAX as u32).map(Change::Concurrency));
    let failing = map.get("failing").map(|field| {
        let failing = if let Value::Bool(failing) = field.node.value { Some(failing) } else { None };
        fields.wanted(&field, failing, "true or false").map(Change::Failing)
    });
    let mut changes = [apply, slots, failing, seats].into_iter().flatten();
    match (changes.next(), changes.next()) {
        (Some(change), None) => Some(Event { at, change: change? }),
        _ => {
            fields.problem(field, "must have exactly one of apply, slots, failing, concurrency");
            None
        }
    }
}
