//! From text to the flows of a workload.

use std::collections::BTreeSet;

use evenkeel_api::Preset;
use evenkeel_engine::digest::{Kubernetes, PlainPaths, Query};
use evenkeel_engine::time::{MILLISECOND, Nanos};
use evenkeel_engine::{KnownHead, RequestInfo, User};

use super::fields::{Field, Fields, Map};
use super::read::COUNT_MAX;
use super::{Arrivals, Distribution, FlowGroup, INSTANCES_MAX, OnRejection};
use crate::stream::Caller;

/// How deep mixes of mixes may be.
pub(super) const DEPTH_MAX: usize = 4;

const FIELDS: &[&str] = &[
    "name",
    "count",
    "user",
    "groups",
    "request",
    "seats",
    "arrivals",
    "service",
    "delay",
    "patience",
    "onRejection",
    "instances",
    "from",
    "to",
];

pub(super) fn read_flow(fields: &mut Fields, field: &Field<'_>, span: Nanos, preset: Preset) -> Option<FlowGroup> {
    let map = fields.map(field, FIELDS)?;
    let name = required(fields, &map, "name", "write `name: mice`", Fields::text);
    let count = map.get("count").map_or(Some(1), |field| fields.whole(&field, 1, COUNT_MAX));
    let user = map.get("user").map_or_else(|| name.clone(), |field| fields.text(&field));
    let groups = map.get("groups").map_or(Some(Vec::new()), |field| fields.texts(&field));
    let request = map.get("request").map_or_else(
        || Some((RequestInfo { path: "/".into(), verb: "get".into(), ..RequestInfo::default() }, "".into())),
        |field| read_request(fields, &field, preset),
    );
    let seats = map.get("seats").map(|field| fields.whole(&field, 0, 1_000_000));
    let arrivals = required(fields, &map, "arrivals", "write `arrivals: {poisson: {rate: 50}}`", read_arrivals);
    let service = required(fields, &map, "service", "write `service: {fixed: 10ms}`", |fields, field| {
        let service = read_distribution(fields, field, DEPTH_MAX, Quantity::Duration);
        let cost = field.member(COST).map(|cost| read_cost(fields, &cost));
        match cost {
            None => Some((service?, None)),
            Some(cost) => Some((service?, Some(cost?))),
        }
    });
    let (service, cost) = service.unzip();
    let delay = map.get("delay").map_or(Some(0), |field| fields.duration(&field));
    let patience = map.get("patience").map(|field| {
        let patience = fields.duration(&field)?;
        fields.wanted(&field, (patience >= MILLISECOND).then_some(patience), "at least 1ms")
    });
    let on_rejection =
        map.get("onRejection").map_or(Some(OnRejection::GiveUp), |field| read_on_rejection(fields, &field));
    let instances = map.get("instances").map_or(Some(Vec::new()), |field| {
        let items = fields.list(&field)?;
        items.iter().map(|item| fields.whole(item, 0, INSTANCES_MAX - 1)).collect()
    });
    let from = map.get("from").map_or(Some(0), |field| fields.duration(&field));
    let to = map.get("to").map_or(Some(span), |field| {
        let to = fields.duration(&field)?;
        fields.wanted(&field, (to >= from.unwrap_or(0)).then_some(to), "no earlier than `from`")
    });
    let (request, query) = request?;
    Some(FlowGroup {
        name: name?,
        count: count?,
        caller: Caller { user: User::new(user?, groups?).with_implied_groups(), request, query },
        seats: match seats {
            None => None,
            Some(seats) => Some(seats?),
        },
        arrivals: arrivals?,
        service: service?,
        cost: cost?,
        delay: delay?,
        patience: match patience {
            None => None,
            Some(patience) => Some(patience?),
        },
        on_rejection: on_rejection?,
        instances: instances?,
        from: from?,
        to: to?,
    })
}

/// No two rows have the same name, and there are not too many flows.
pub(super) fn check_names(fields: &mut Fields, spec: &Map<'_>, flows: &[FlowGroup]) {
    let mut names = BTreeSet::new();
    for flow in flows.iter().filter(|flow| !names.insert(&flow.name)) {
        fields.missing(spec, "flows", &format!("two flows have the name {:?}; give each its own", flow.name));
    }
    if flows.iter().map(|flow| u64::from(flow.count)).sum::<u64>() > u64::from(COUNT_MAX) {
        fields.missing(spec, "flows", &format!("there are more than {COUNT_MAX} flows; make `count` smaller"));
    }
}

fn required<'n, T>(
    fields: &mut Fields,
    map: &Map<'n>,
    name: &str,
    help: &str,
    read: impl FnOnce(&mut Fields, &Field<'n>) -> Option<T>,
) -> Option<T> {
    if let Some(field) = map.get(name) {
        return read(fields, &field);
    }
    fields.missing(map, name, &format!("is missing; {help}"));
    None
}

fn read_request(fields: &mut Fields, field: &Field<'_>, preset: Preset) -> Option<(RequestInfo<'static>, Box<str>)> {
    let map = fields.map(field, &[NAMES, &["headers", "address"]].concat())?;
    let (mut request, query) = read_target(fields, field, &map, preset)?;
    let mut head = KnownHead::default();
    if let Some(headers) = map.get("headers") {
        for (name, value) in fields.entries(&headers)? {
            head = head.header(name, fields.text(&value)?);
        }
    }
    if let Some(address) = map.get("address") {
        head = head.address(fields.text(&address)?);
    }
    if head != KnownHead::default() {
        request.head = head.into();
    }
    Some((request, query))
}

/// Reads what requests ask for, and the query.
fn read_target(
    fields: &mut Fields,
    field: &Field<'_>,
    map: &Map<'_>,
    preset: Preset,
) -> Option<(RequestInfo<'static>, Box<str>)> {
    let mut text = |name: &str| map.get(name).map_or(Some(String::new()), |field| fields.text(&field));
    let [method, path, verb, group, version, resource, subresource, namespace, name] =
        NAMES.iter().map(|name| text(name)).collect::<Option<Vec<_>>>()?.try_into().ok()?;
    if !path.is_empty() {
        if [&verb, &group, &version, &resource, &subresource, &namespace, &name].iter().any(|text| !text.is_empty()) {
            fields.problem(field, "has both a path and parts of a resource; use {method, path} or {verb, resource, …}");
            return None;
        }
        let method = if method.is_empty() { "GET" } else { &method };
        let digested = match preset {
            Preset::Kubernetes => Kubernetes::default().digest(method, &path).map(RequestInfo::into_owned),
            Preset::Plain | Preset::Llm => PlainPaths.digest_normal(method, &path).map(RequestInfo::into_owned),
        };
        let query = Query::of_target(&path).as_str().into();
        return match digested {
            Ok(request) => Some((request, query)),
            Err(error) => {
                fields.problem(field, &error.to_string());
                None
            }
        };
    }
    if resource.is_empty() || verb.is_empty() {
        fields.problem(field, "must have a path, or a verb and a resource");
        return None;
    }
    let api_prefix = if group.is_empty() { "api" } else { "apis" };
    let request = RequestInfo {
        is_resource_request: true,
        path: format!("/{api_prefix}/{resource}").into(),
        verb: verb.into(),
        api_prefix: api_prefix.into(),
        api_group: group.into(),
        api_version: version.into(),
        namespace: namespace.into(),
        resource: resource.into(),
        subresource: subresource.into(),
        name: name.into(),
        ..RequestInfo::default()
    };
    Some((request, "".into()))
}

/// The fields that say what requests ask for.
const NAMES: &[&str] =
    &["method", "path", "verb", "apiGroup", "apiVersion", "resource", "subresource", "namespace", "name"];

fn read_arrivals(fields: &mut Fields, field: &Field<'_>) -> Option<Arrivals> {
    match fields.choice(field, &["closed", "poisson", "periodic", "burst"])? {
        ("closed", field) => {
            let map = fields.map(&field, &["clients", "think"])?;
            let clients = required(fields, &map, "clients", "write `clients: 10`", |fields, field| {
                fields.whole(field, 1, COUNT_MAX)
            });
            let think = map.get("think").map_or(Some(0), |field| fields.duration(&field));
            Some(Arrivals::Closed { clients: clients?, think: think? })
        }
        ("poisson", field) => {
            let map = fields.map(&field, &["rate"])?;
            let rate = required(fields, &map, "rate", "write `rate: 50`, in requests a second", |fields, field| {
                fields.number(field, 1e-6, 1e6)
            });
            Some(Arrivals::Poisson { rate: rate? })
        }
        ("periodic", field) => {
            let map = fields.map(&field, &["every"])?;
            let every = required(fields, &map, "every", "write `every: 200ms`", |fields, field| {
                let every = fields.duration(field)?;
                fields.wanted(field, (every >= 1000).then_some(every), "at least 1us")
            });
            Some(Arrivals::Periodic { every: every? })
        }
        (_, field) => {
            let map = fields.map(&field, &["at", "requests"])?;
            let at = map.get("at").map_or(Some(0), |field| fields.duration(&field));
            let requests = required(fields, &map, "requests", "write `requests: 400`", |fields, field| {
                fields.whole(field, 1, 10 * COUNT_MAX)
            });
            Some(Arrivals::Burst { at: at?, requests: requests? })
        }
    }
}

/// The member of a service that says what a request costs.
const COST: &str = "cost";
/// The most that a request costs.
const COST_MAX: u32 = u32::MAX;

/// The quantity of a distribution.
#[derive(Clone, Copy)]
pub(super) enum Quantity {
    Duration,
    Cost,
}

/// What a request costs: a number, or a distribution of numbers.
fn read_cost(fields: &mut Fields, field: &Field<'_>) -> Option<Distribution> {
    if field.is_map() {
        read_distribution(fields, field, DEPTH_MAX, Quantity::Cost)
    } else {
        Quantity::Cost.read(fields, field).map(Distribution::Fixed)
    }
}

impl Quantity {
    fn read(self, fields: &mut Fields, field: &Field<'_>) -> Option<Nanos> {
        match self {
            Self::Duration => fields.duration(field),
            Self::Cost => fields.whole(field, 0, COST_MAX).map(Nanos::from),
        }
    }

    /// The expected form of a pair of values.
    fn pair(self) -> &'static str {
        match self {
            Self::Duration => "two durations, the shorter first, as [8ms, 12ms]",
            Self::Cost => "two whole numbers, the smaller first, as [1, 40]",
        }
    }
}

pub(super) fn read_distribution(
    fields: &mut Fields,
    field: &Field<'_>,
    depth: usize,
    of: Quantity,
) -> Option<Distribution> {
    match fields.choice_beside(field, &["fixed", "uniform", "exponential", "lognormal", "mix"], &[COST])? {
        ("fixed", field) => of.read(fields, &field).map(Distribution::Fixed),
        ("uniform", field) => {
            let spans = fields.list(&field)?;
            let spans: Option<Vec<_>> = spans.iter().map(|field| of.read(fields, field)).collect();
            let spans = spans.map(|spans| (spans.first().copied(), spans.get(1).copied(), spans.len()));
            let ordered = spans.and_then(|spans| match spans {
                (Some(least), Some(most), 2) if least <= most => Some((least, most)),
                _ => None,
            });
            let (least, most) = fields.wanted(&field, ordered, of.pair())?;
            Some(Distribution::Uniform(least, most))
        }
        ("exponential", field) => of.read(fields, &field).map(Distribution::Exponential),
        ("lognormal", field) => {
            let map = fields.map(&field, &["median", "sigma"])?;
            let median =
                required(fields, &map, "median", "write `median: 10ms`", |fields, field| of.read(fields, field));
            let sigma =
                required(fields, &map, "sigma", "write `sigma: 0.5`", |fields, field| fields.number(field, 0.0, 10.0));
            Some(Distribution::Lognormal { median: median?, sigma: sigma? })
        }
        (_, field) if depth == 0 => {
            fields.problem(&field, "is a mix of mixes, too deep");
            None
        }
        (_, field) => read_mix(fields, &field, depth - 1, of),
    }
}

fn read_mix(fields: &mut Fields, field: &Field<'_>, depth: usize, of: Quantity) -> Option<Distribution> {
    let mut parts = Vec::new();
    for item in fields.list(field)? {
        let pair = fields.list(&item)?;
        let [part, distribution] = pair.as_slice() else {
            fields.problem(&item, "must be a part and a distribution, as [0.95, {fixed: 10ms}]");
            return None;
        };
        let part = fields.number(part, 0.0, 1.0);
        let distribution = if distribution.is_map() {
            read_distribution(fields, distribution, depth, of)
        } else {
            of.read(fields, distribution).map(Distribution::Fixed)
        };
        parts.push((part?, distribution?));
    }
    let sum: f64 = parts.iter().map(|(part, _)| part).sum();
    let is_whole = (sum - 1.0).abs() < 1e-6;
    if !is_whole {
        fields.problem(field, &format!("the parts add up to {sum}, but must add up to 1"));
    }
    is_whole.then_some(Distribution::Mix(parts))
}

fn read_on_rejection(fields: &mut Fields, field: &Field<'_>) -> Option<OnRejection> {
    const WORDS: &str = "giveUp, ignore, {retryAfter: honour} or {backoff: {base: 100ms, max: 5s}}";
    let word = |text: &str| match text {
        "honour" => Some(OnRejection::HonourRetryAfter),
        "ignore" => Some(OnRejection::Ignore),
        _ => None,
    };
    if let Some(text) = field.node.as_str() {
        let known = if text == "giveUp" { Some(OnRejection::GiveUp) } else { word(text) };
        return fields.wanted(field, known, WORDS);
    }
    match fields.choice(field, &["retryAfter", "backoff"])? {
        ("retryAfter", field) => {
            let known = field.node.as_str().and_then(word);
            fields.wanted(&field, known, "honour or ignore")
        }
        (_, field) => {
            let map = fields.map(&field, &["base", "max"])?;
            let base = required(fields, &map, "base", "write `base: 100ms`", |fields, field| {
                let base = fields.duration(field)?;
                fields.wanted(field, (base >= MILLISECOND).then_some(base), "at least 1ms")
            });
            let max = required(fields, &map, "max", "write `max: 5s`", |fields, field| {
                let max = fields.duration(field)?;
                fields.wanted(field, (max >= base.unwrap_or(0)).then_some(max), "no shorter than `base`")
            });
            Some(OnRejection::Backoff { base: base?, max: max? })
        }
    }
}
