//! Validation against every recorded conversation: each POST and PUT with a JSON body is validated here, and what is
//! found must be what a real kube-apiserver found.

use std::collections::BTreeMap;

use evenkeel_api::decode::Document;
use evenkeel_api::v1::V1;
use evenkeel_api::validate::{self, Context, EmptyRules, FieldErrors, ValidSpec};
use evenkeel_api::{Defaulted, GROUP, Kind, Object, Version, Wire, v1, v1beta1, v1beta2, v1beta3};
use evenkeel_recorded::{Body, Request, Response, Transcript, compare, compared, transcripts};
use serde_json::{Value, json};

/// What there has to be at least one of; otherwise the test has gone blind.
const SORTS: [&str; 4] = ["create", "update", "status update", "refused"];

/// One exchange on an object of the group.
struct Exchange<'a> {
    kind: Kind,
    version: Version,
    name: Option<&'a str>,
    is_status: bool,
    request: &'a Request,
    response: &'a Response,
}

/// The stored objects of one conversation, in the hub version.
#[derive(Default)]
struct Store(BTreeMap<(Kind, String), Value>);

/// What became of all exchanges.
#[derive(Default)]
struct Tally {
    compared: BTreeMap<&'static str, usize>,
    skipped: BTreeMap<&'static str, usize>,
    failures: Vec<String>,
}

#[test]
fn api_28_to_53_every_recorded_object_gets_the_recorded_errors() {
    let Some(all) = transcripts(&[""]) else { return };
    let mut tally = Tally::default();
    for transcript in &all {
        replay(transcript, &mut tally);
    }
    println!("compared: {:?}\nskipped: {:?}", tally.compared, tally.skipped);
    assert!(tally.failures.is_empty(), "{} differences:\n{}", tally.failures.len(), tally.failures.join("\n"));
    for what in SORTS {
        assert!(tally.compared.get(what).is_some_and(|compared| *compared > 0), "{what}: nothing was compared");
    }
    compared(
        "validated objects",
        SORTS.iter().filter(|what| **what != "refused").map(|what| tally.compared[what]).sum(),
    );
}

fn replay(transcript: &Transcript, tally: &mut Tally) {
    let mut store = Store::default();
    for (index, step) in transcript.steps.iter().enumerate() {
        let (Some(request), Some(response)) = (&step.request, &step.response) else { continue };
        let Some(exchange) = Exchange::new(request, response) else { continue };
        let failures = tally.failures.len();
        match (exchange.kind, exchange.version) {
            (Kind::FlowSchema, Version::V1) => exchange.replay::<v1::FlowSchema>(&mut store, tally),
            (Kind::FlowSchema, Version::V1beta3) => exchange.replay::<v1beta3::FlowSchema>(&mut store, tally),
            (Kind::FlowSchema, Version::V1beta2) => exchange.replay::<v1beta2::FlowSchema>(&mut store, tally),
            (Kind::FlowSchema, Version::V1beta1) => exchange.replay::<v1beta1::FlowSchema>(&mut store, tally),
            (_, Version::V1) => exchange.replay::<v1::PriorityLevelConfiguration>(&mut store, tally),
            (_, Version::V1beta3) => exchange.replay::<v1beta3::PriorityLevelConfiguration>(&mut store, tally),
            (_, Version::V1beta2) => exchange.replay::<v1beta2::PriorityLevelConfiguration>(&mut store, tally),
            (_, Version::V1beta1) => exchange.replay::<v1beta1::PriorityLevelConfiguration>(&mut store, tally),
        }
        for failure in &mut tally.failures[failures..] {
            failure.insert_str(0, &format!("{} step {index}: ", transcript.name));
        }
    }
}

/// Puts a time where a placeholder stands for one; other placeholders are texts as good as any.
fn with_times(value: &Value) -> Value {
    match value {
        Value::String(text) if text.starts_with("{{time") => "2024-01-02T03:04:05Z".into(),
        Value::Array(items) => items.iter().map(with_times).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), with_times(value))).collect(),
        plain => plain.clone(),
    }
}

// === impl Exchange ===

impl<'a> Exchange<'a> {
    /// The exchange, if it is on an object or a collection of the group.
    fn new(request: &'a Request, response: &'a Response) -> Option<Self> {
        let path = request.path.strip_prefix("/apis/")?.strip_prefix(GROUP)?.strip_prefix('/')?;
        let mut parts = path.trim_end_matches('/').split('/');
        let version = parts.next()?.parse().ok()?;
        let resource = parts.next()?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.resource() == resource)?;
        let name = parts.next();
        let is_status = parts.next() == Some("status");
        Some(Self { kind, version, name, is_status, request, response })
    }

    fn replay<W>(&self, store: &mut Store, tally: &mut Tally)
    where
        W: Wire<HubSpec: ValidSpec> + Defaulted,
    {
        match (self.request.method.as_str(), self.name) {
            ("POST", None) => self.replay_create::<W>(tally),
            ("PUT", Some(name)) => self.replay_update::<W>(store.get(self.kind, name), tally),
            _ => {}
        }
        self.remember::<W>(store);
    }

    fn replay_create<W>(&self, tally: &mut Tally)
    where
        W: Wire<HubSpec: ValidSpec> + Defaulted,
    {
        let Some(mut object) = self.decode::<W>(tally) else { return };
        object.status = v1::Status::default();
        object.metadata.deletion_timestamp = None;
        object.metadata.deletion_grace_period_seconds = None;
        if object.metadata.name.is_empty() && !object.metadata.generate_name.is_empty() {
            object.metadata.name = format!("{:.58}xxxxx", object.metadata.generate_name);
        }
        let found = validate::create(&object, self.context());
        self.compare("create", object.name(), &found, tally);
    }

    fn replay_update<W>(&self, old: Option<Object<V1, W::HubSpec>>, tally: &mut Tally)
    where
        W: Wire<HubSpec: ValidSpec> + Defaulted,
    {
        let Some(body) = self.decode::<W>(tally) else { return };
        let Some(old) = old else { return tally.skip("update of an object that was not shown") };
        if self.is_status {
            let mut new = old.clone();
            new.status = body.status;
            let found = validate::status_update(&new, &old, self.version);
            return self.compare("status update", new.name(), &found, tally);
        }
        let mut new = body;
        new.status = old.status.clone();
        if new.metadata.uid.is_empty() {
            new.metadata.uid.clone_from(&old.metadata.uid);
        }
        if old.metadata.deletion_timestamp.is_some() {
            new.metadata.deletion_timestamp = old.metadata.deletion_timestamp;
        }
        let found = validate::update(&new, &old, self.context());
        self.compare("update", new.name(), &found, tally);
    }

    /// What validation depends on besides the object.
    fn context(&self) -> Context {
        let empty_rules = match self.request.body() {
            Some(Body::Json(body)) => EmptyRules::of(&Document::from(&body).root),
            _ => EmptyRules::Absent,
        };
        Context { empty_rules, ..Context::from(self.version) }
    }

    /// The object that was sent, with defaults and in the hub version.
    fn decode<W: Wire + Defaulted>(&self, tally: &mut Tally) -> Option<Object<V1, W::HubSpec>> {
        if !matches!(self.response.status, 200 | 201 | 409 | 422) {
            tally.skip("answered before or without validation");
            return None;
        }
        let Some(Body::Json(body)) = self.request.body() else {
            tally.skip("no JSON body");
            return None;
        };
        let Ok(mut object) = serde_json::from_value::<W>(with_times(&body)) else {
            tally.skip("body does not decode");
            return None;
        };
        object.apply_defaults();
        Some(object.into_hub())
    }

    fn compare(&self, what: &'static str, name: &str, found: &Result<(), FieldErrors>, tally: &mut Tally) {
        let recorded = self.response.body.clone().unwrap_or_default();
        let is_create = self.request.method == "POST";
        let expected = match self.response.status {
            422 if recorded["details"]["group"] != GROUP => return tally.skip("422 of a parameter"),
            422 => json!({"message": recorded["message"], "causes": recorded["details"]["causes"]}),
            // That the name is taken is found out after validation, but that the object has changed before (API-5).
            409 if !is_create => return tally.skip("conflict"),
            _ => Value::Null,
        };
        let actual = match found {
            Ok(()) => Value::Null,
            Err(errors) => {
                let causes: Vec<_> = errors
                    .iter()
                    .map(|error| {
                        let (reason, message, field) = (error.reason().as_str(), error.message(), error.field());
                        json!({"reason": reason, "message": message, "field": field})
                    })
                    .collect();
                let message = format!("{}.{GROUP} \"{name}\" is invalid: {errors}", self.kind);
                json!({"message": message, "causes": causes})
            }
        };
        *tally.compared.entry(what).or_default() += 1;
        *tally.compared.entry("refused").or_default() += usize::from(!expected.is_null());
        tally.failures.extend(compare("", &expected, &actual).iter().map(ToString::to_string));
    }

    /// Keeps what the answer shows of the stored object, for a later update.
    fn remember<W: Wire>(&self, store: &mut Store) {
        let dry_run = self.request.query("dryRun").is_some();
        let (200 | 201, false, Some(body)) = (self.response.status, dry_run, &self.response.body) else { return };
        let name = self.name.or_else(|| body["metadata"]["name"].as_str()).unwrap_or_default();
        let key = (self.kind, name.to_owned());
        if self.request.method != "GET" {
            // Stale unless the answer shows it again.
            store.0.remove(&key);
        }
        if body["kind"] == self.kind.name()
            && body["spec"].is_object()
            && let Ok(object) = serde_json::from_value::<W>(with_times(body))
            && let Ok(hub) = serde_json::to_value(object.into_hub())
        {
            store.0.insert(key, hub);
        }
    }
}

// === impl Store ===

impl Store {
    fn get<S: ValidSpec>(&self, kind: Kind, name: &str) -> Option<Object<V1, S>> {
        let hub = self.0.get(&(kind, name.to_owned()))?;
        serde_json::from_value(hub.clone()).ok()
    }
}

// === impl Tally ===

impl Tally {
    fn skip(&mut self, reason: &'static str) {
        *self.skipped.entry(reason).or_default() += 1;
    }
}
