//! `ApiPromotion`: objects of the mode `audit` that an API has take the places of those in effect.
//!
//! One write lets all of them govern: that which gives one of them, the leader, the mode `promote`. What follows makes the objects look like what they
//! are, and changes no decision: each of the others is written into the place that it has, and deleted. The leader comes last, so that the same
//! configuration is in effect after each write. If anything fails in between, doing it again finishes it. What the API would
//! refuse is found out before the first write.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use evenkeel_api::annotations::{MODE, PROMOTE, REPLACES, is_audit, is_promoted};
use evenkeel_api::bootstrap::AUTO_UPDATE_ANNOTATION;
use evenkeel_api::{GROUP, Kind, Version};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::remote::Server;

/// What is to be written, in this order.
#[derive(Debug)]
pub(super) struct ApiPromotion {
    leader: Named,
    is_begun: bool,
    writes: Vec<ApiWrite>,
    objects: usize,
}

/// A write to an API.
#[derive(Debug, PartialEq)]
struct ApiWrite {
    method: Method,
    object: Named,
    body: Value,
}

/// An object of an API.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    kind: Kind,
    name: String,
}

/// An object of the shadow.
#[derive(Debug)]
struct Audit<'a> {
    named: Named,
    object: &'a Value,
    annotations: BTreeMap<String, String>,
}

/// What annotations of Evenkeel begin with.
const OWN: &str = "evenkeel.dev/";
const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

// === impl ApiPromotion ===

impl ApiPromotion {
    /// Reads the objects of an API, and finds out what there is to do; `None` if none of them is part of a shadow.
    pub(super) async fn read(api: &Server) -> Result<Option<Self>> {
        let mut objects = Vec::new();
        for kind in [Kind::PriorityLevelConfiguration, Kind::FlowSchema] {
            let target = path(kind);
            let list = answer(api, api.send(Method::GET, &target, None, Bytes::new()).await?, &target)?;
            let items = list.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
            objects.extend(items.into_iter().map(|item| (kind, item)));
        }
        if let Some(Named { kind, name }) = contested(&objects) {
            bail!(
                "two objects of the shadow take the place of {} {name}; delete one of them, or change its `{REPLACES}`",
                kind.resource()
            )
        }
        Ok(Self::of(&objects))
    }

    fn of(objects: &[(Kind, Value)]) -> Option<Self> {
        let audits: Vec<Audit<'_>> = objects.iter().filter_map(|(kind, object)| Audit::of(*kind, object)).collect();
        let promoted = audits.iter().position(|audit| is_promoted(&audit.annotations));
        let leader = audits.get(promoted.unwrap_or(0))?;
        let is_begun = promoted.is_some();
        let found = |named: &Named| {
            let mut objects = objects.iter();
            objects
                .find(|(kind, object)| *kind == named.kind && name_of(object) == named.name)
                .map(|(_, object)| object)
        };
        let begin = (!is_begun).then(|| leader.annotate(Some(PROMOTE)));
        let copies = audits.iter().filter_map(|audit| {
            let place = audit.place()?;
            let present = found(&place);
            let body = audit.in_place(present, &place);
            let method = if present.is_some() { Method::PUT } else { Method::POST };
            Some(ApiWrite { method, object: place, body })
        });
        let others = audits.iter().filter(|audit| audit.named != leader.named);
        let ends = others.chain([leader]).map(|audit| match audit.place() {
            Some(_) => ApiWrite { method: Method::DELETE, object: audit.named.clone(), body: Value::Null },
            None => audit.annotate(None),
        });
        let writes = begin.into_iter().chain(copies).chain(ends).collect();
        Some(Self { leader: leader.named.clone(), is_begun, writes, objects: audits.len() })
    }

    /// Whether it was begun before, so that the objects govern already.
    pub(super) fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// How many objects the shadow has.
    pub(super) fn objects(&self) -> usize {
        self.objects
    }

    /// The command of a shell by which the objects govern.
    pub(super) fn command(&self) -> String {
        let Named { kind, name } = &self.leader;
        format!("kubectl annotate --overwrite {} {name} {MODE}={PROMOTE}", kind.resource())
    }

    /// Writes everything.
    pub(super) async fn write(&self, api: &Server) -> Result<()> {
        if !self.is_begun {
            self.try_out(api).await?;
        }
        for write in &self.writes {
            let target = write.target();
            let response = write.send(api, &target).await?;
            if write.method == Method::DELETE && response.0 == StatusCode::NOT_FOUND {
                continue;
            }
            answer(api, response, &target)
                .with_context(|| format!("cannot write {target}; run this again to go on"))?;
        }
        Ok(())
    }

    /// Asks the API whether it would accept the objects in their places: what it refuses it would refuse again and again.
    async fn try_out(&self, api: &Server) -> Result<()> {
        for write in self.writes.iter().filter(|write| [Method::POST, Method::PUT].contains(&write.method)) {
            let target = format!("{}?dryRun=All", write.target());
            let response = write.send(api, &target).await?;
            answer(api, response, &target).context("the API refuses an object of the shadow; nothing was changed")?;
        }
        Ok(())
    }
}

// === impl ApiWrite ===

impl ApiWrite {
    fn target(&self) -> String {
        let Named { kind, name } = &self.object;
        if self.method == Method::POST { path(*kind) } else { format!("{}/{name}", path(*kind)) }
    }

    async fn send(&self, api: &Server, target: &str) -> Result<(StatusCode, Bytes)> {
        let media_type = match self.method {
            Method::PATCH => Some(MERGE_PATCH),
            Method::DELETE => None,
            _ => Some(JSON),
        };
        let body = if self.body.is_null() { Bytes::new() } else { Bytes::from(self.body.to_string()) };
        api.send(self.method.clone(), target, media_type, body).await
    }
}

/// Where the objects of a kind are.
fn path(kind: Kind) -> String {
    format!("/apis/{GROUP}/{}/{}", Version::V1, kind.resource())
}

/// The document of a response that is a success.
fn answer(api: &Server, (status, body): (StatusCode, Bytes), target: &str) -> Result<Value> {
    if !status.is_success() {
        let said: Option<Value> = serde_json::from_slice(&body).ok();
        let message = said.as_ref().and_then(|said| said.get("message")?.as_str()).unwrap_or_default();
        bail!("{}{target}: status {status} {message}", api.url());
    }
    serde_json::from_slice(&body).with_context(|| format!("the response of {}{target} is not JSON", api.url()))
}

/// The place that two objects of the shadow would have, if there is one.
fn contested(objects: &[(Kind, Value)]) -> Option<Named> {
    let audits = objects.iter().filter_map(|(kind, object)| Audit::of(*kind, object));
    let mut places: Vec<Named> = Vec::new();
    for audit in audits {
        let place = audit.place().unwrap_or_else(|| audit.named.clone());
        if places.contains(&place) {
            return Some(place);
        }
        places.push(place);
    }
    None
}

fn name_of(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

fn annotations_of(object: &Value) -> BTreeMap<String, String> {
    let annotations = object.pointer("/metadata/annotations").cloned().unwrap_or_default();
    serde_json::from_value(annotations).unwrap_or_default()
}

// === impl Audit ===

impl<'a> Audit<'a> {
    fn of(kind: Kind, object: &'a Value) -> Option<Self> {
        let annotations = annotations_of(object);
        let named = Named { kind, name: name_of(object).to_owned() };
        is_audit(&annotations).then_some(Self { named, object, annotations })
    }

    /// The object in whose place it governs, unless it has a place of its own.
    fn place(&self) -> Option<Named> {
        let name = self.annotations.get(REPLACES).filter(|name| **name != self.named.name)?;
        Some(Named { kind: self.named.kind, name: name.clone() })
    }

    /// Gives it another mode, or none.
    fn annotate(&self, mode: Option<&str>) -> ApiWrite {
        let annotations = if mode.is_none() { json!({ MODE: null, REPLACES: null }) } else { json!({ MODE: mode }) };
        let body = json!({ "metadata": { "annotations": annotations } });
        ApiWrite { method: Method::PATCH, object: self.named.clone(), body }
    }

    /// The object of its place as it governs there: what belongs to the engine is its own, and everything else as it was.
    fn in_place(&self, present: Option<&Value>, place: &Named) -> Value {
        let new = json!({
            "apiVersion": format!("{GROUP}/{}", Version::V1),
            "kind": self.named.kind.name(),
            "metadata": { "name": place.name },
        });
        let mut object = present.cloned().unwrap_or(new);
        let mut annotations = annotations_of(&object);
        annotations.retain(|name, _| !name.starts_with(OWN));
        // What a server looks after by itself would be as before within a minute.
        if let Some(is_looked_after) = annotations.get_mut(AUTO_UPDATE_ANNOTATION) {
            "false".clone_into(is_looked_after);
        }
        let is_kept = |name: &str| name.starts_with(OWN) && name != MODE && name != REPLACES;
        let own = self.annotations.iter().filter(|(name, _)| is_kept(name));
        annotations.extend(own.map(|(name, value)| (name.clone(), value.clone())));
        object["apiVersion"] = json!(format!("{GROUP}/{}", Version::V1));
        object["kind"] = json!(self.named.kind.name());
        object["metadata"]["annotations"] = json!(annotations);
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        object["spec"] = self.object.get("spec").cloned().unwrap_or_default();
        object
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(name: &str, shares: u32, annotations: &Value) -> (Kind, Value) {
        let metadata = json!({ "name": name, "resourceVersion": "7", "annotations": annotations, "managedFields": [] });
        let spec = json!({ "type": "Limited", "limited": { "nominalConcurrencyShares": shares } });
        (Kind::PriorityLevelConfiguration, json!({ "metadata": metadata, "spec": spec }))
    }

    fn shown(promotion: &ApiPromotion) -> Vec<String> {
        promotion.writes.iter().map(|write| format!("{} {}", write.method, write.object.name)).collect()
    }

    #[test]
    fn sh_5_one_write_lets_all_of_them_govern_and_the_last_one_ends_it() {
        let mut objects = vec![
            level(
                "orders",
                10,
                &json!({ AUTO_UPDATE_ANNOTATION: "true", "team": "shop", "evenkeel.dev/queuing": "shuffle" }),
            ),
            level("orders-next", 30, &json!({ MODE: "audit", REPLACES: "orders", "evenkeel.dev/wait-limit": "1s" })),
            level("reports", 40, &json!({ MODE: "audit" })),
            level("exports-next", 5, &json!({ MODE: "audit", REPLACES: "exports" })),
        ];
        let promotion = ApiPromotion::of(&objects).unwrap();
        let all = [
            "PATCH orders-next",
            "PUT orders",
            "POST exports",
            "PATCH reports",
            "DELETE exports-next",
            "DELETE orders-next",
        ];
        assert_eq!(
            (shown(&promotion), promotion.is_begun(), promotion.objects()),
            (all.map(String::from).to_vec(), false, 3)
        );
        assert_eq!(
            promotion.command(),
            "kubectl annotate --overwrite prioritylevelconfigurations orders-next evenkeel.dev/mode=promote"
        );
        let orders = &promotion.writes[1].body;
        assert_eq!(
            orders["metadata"],
            json!({
                "name": "orders",
                "resourceVersion": "7",
                "annotations": { AUTO_UPDATE_ANNOTATION: "false", "team": "shop", "evenkeel.dev/wait-limit": "1s" },
            })
        );
        assert_eq!(orders["spec"]["limited"]["nominalConcurrencyShares"], 30);

        // Begun before, and not finished: it goes on.
        objects[1].1["metadata"]["annotations"][MODE] = json!(PROMOTE);
        let promotion = ApiPromotion::of(&objects).unwrap();
        assert_eq!(
            (shown(&promotion), promotion.is_begun()),
            (all[1..].iter().map(ToString::to_string).collect(), true)
        );

        objects.truncate(1);
        assert!(ApiPromotion::of(&objects).is_none());
    }

    #[test]
    fn two_objects_do_not_take_one_place() {
        let audit = |name: &str, replaces: &str| level(name, 1, &json!({ MODE: "audit", REPLACES: replaces }));
        let mut objects = vec![audit("a", "orders"), audit("b", "reports"), level("reports", 1, &json!({}))];
        assert!(contested(&objects).is_none());
        objects.push(level("orders", 1, &json!({ MODE: "audit" })));
        let place = contested(&objects).unwrap();
        assert_eq!((place.kind, &*place.name), (Kind::PriorityLevelConfiguration, "orders"));
    }
}
