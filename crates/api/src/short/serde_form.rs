//! Levels and matches as parts of settings: written and read by serde.

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

use super::level::Part;
use super::read::{levels_of, rule_of};
use super::rule::RuleSeats;
use super::{ShortLevel, ShortLevels, ShortRule};
use crate::annotations::HeaderValues;
use crate::decode::Node;
use crate::duration;

// === impl ShortLevels ===

impl Serialize for ShortLevels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, level) in &self.0 {
            map.serialize_entry(name, level)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ShortLevels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = OrderedMap::deserialize(deserializer)?;
        let mut levels = Self::default();
        for (name, value) in value.0 {
            let one: Map<String, Value> = [(name, value)].into_iter().collect();
            levels.0.extend(levels_of(&Node::from(&Value::Object(one))).map_err(de::Error::custom)?.0);
        }
        Ok(levels)
    }
}

/// A map in the order of the text, which `serde_json::Map` does not keep.
struct OrderedMap(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for OrderedMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> de::Visitor<'de> for Members {
            type Value = OrderedMap;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("levels by name")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<OrderedMap, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(OrderedMap(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

// === impl ShortLevel ===

impl ShortLevel {
    /// The keys that are set, with their values.
    pub(super) fn members(&self) -> Vec<(&'static str, Value)> {
        let Self { share, lend, borrow, queue, per_client, wait, reject, max_long_running, revocable } = self;
        let [lend, borrow] = [lend, borrow].map(|part| part.map(Part::to_json));
        let number = |number: &Option<i64>| number.map(Value::from);
        let members = [
            ("share", number(share)),
            ("lend", lend),
            ("borrow", borrow),
            ("queue", number(queue)),
            ("perClient", number(per_client)),
            ("wait", wait.map(|wait| duration::text(wait).into())),
            ("reject", reject.then_some(Value::Bool(true))),
            ("maxLongRunning", number(max_long_running)),
            ("revocable", revocable.then_some(Value::Bool(true))),
        ];
        members.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    }
}

impl Serialize for ShortLevel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.members())
    }
}

// === impl Part ===

impl Part {
    fn to_json(self) -> Value {
        match self {
            Self::Percent(percent) => format!("{percent}%").into(),
            Self::All => "all".into(),
        }
    }
}

// === impl ShortRule ===

impl ShortRule {
    /// The keys that are set, with their values.
    pub(super) fn members(&self) -> Vec<(&'static str, Value)> {
        let Self { users, groups, methods, paths, models, headers, level, exempt, weight, per, .. } = self;
        let Self { seats, rate, cost, cost_per_seat, seats_max, .. } = self;
        let [user, group, method, path, model] =
            [users, groups, methods, paths, models].map(|texts| one_or_more(texts));
        let headers = headers.iter().map(|(name, values)| {
            let values = match values {
                HeaderValues::Any => Some("*".into()),
                HeaderValues::Listed(values) => one_or_more(values),
            };
            (name.to_owned(), values.unwrap_or_default())
        });
        let headers: Map<String, Value> = headers.collect();
        let members = [
            ("user", user),
            ("group", group),
            ("method", method),
            ("path", path),
            ("model", model),
            ("header", (!headers.is_empty()).then_some(Value::Object(headers))),
            ("level", level.as_deref().map(Value::from)),
            ("exempt", exempt.then_some(Value::Bool(true))),
            ("weight", weight.map(Value::from)),
            ("per", per.as_ref().map(|per| per.to_string().into())),
            ("seats", seats.map(RuleSeats::to_json)),
            ("rate", rate.map(|rate| rate.to_string().into())),
            ("cost", cost.as_ref().map(|cost| cost.to_string().into())),
            ("costPerSeat", cost_per_seat.as_ref().map(|cost| serde_json::from_str(cost).unwrap_or_default())),
            ("seatsMax", seats_max.map(Value::from)),
        ];
        members.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    }
}

// === impl RuleSeats ===

impl RuleSeats {
    fn to_json(self) -> Value {
        match self {
            Self::Number(seats) => seats.into(),
            Self::Learnt => "learnt".into(),
        }
    }
}

fn one_or_more(texts: &[String]) -> Option<Value> {
    match texts {
        [] => None,
        [one] => Some(one.as_str().into()),
        several => Some(several.into()),
    }
}

impl Serialize for ShortRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.members())
    }
}

impl<'de> Deserialize<'de> for ShortRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        rule_of(&Node::from(&value)).map_err(de::Error::custom)
    }
}
