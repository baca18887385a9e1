//! Several services behind one gateway: which requests go where.

use std::fmt;
use std::marker::PhantomData;

use evenkeel_engine::auto_limit::Concurrency;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize, de};

use super::{LimitConfig, UpstreamConfig, limit};

/// A service: requests with this host and below this path go to its upstreams, with seats of their own. Of several that match, the one
/// with the most specific host gets a request, then the one with the longest path.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ServiceConfig {
    /// The host of its requests, or several: `shop.example.com`, or `*.example.com` for all below. The default is any.
    #[serde(deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<String>,
    /// What the paths of its requests begin with, or several: `/api` is `/api` and all below `/api/`. The default is any.
    #[serde(deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// What its upstreams get in place of `path`: with `/`, `path` is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace_path: Option<String>,
    /// The upstream of the service, or several: an address, or an object as in `upstreams`.
    #[serde(deserialize_with = "upstreams")]
    pub upstream: Vec<UpstreamConfig>,
    /// How many seats it has: how many ordinary requests its upstreams can work on at a time, or `auto`. The default is that of the gateway.
    #[serde(with = "limit::concurrency::optional", skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    /// The settings of its limit if that finds itself. The default of `stateFile` is a file beside `limit.stateFile`, with the
    /// service's name.
    #[serde(skip_serializing_if = "LimitConfig::is_default")]
    pub limit: LimitConfig,
}

/// An upstream, by its address alone or with everything else.
struct UpstreamEntry(UpstreamConfig);

/// Reads one value, or a list of them.
struct OneOrMany<T>(PhantomData<T>);

/// The name of the pool of `upstreams` beside services.
pub(crate) const DEFAULT_SERVICE: &str = "default";

fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    deserializer.deserialize_any(OneOrMany(PhantomData))
}

fn upstreams<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<UpstreamConfig>, D::Error> {
    let entries: Vec<UpstreamEntry> = deserializer.deserialize_any(OneOrMany(PhantomData))?;
    Ok(entries.into_iter().map(|entry| entry.0).collect())
}

// === impl OneOrMany ===

impl<'de, T: Deserialize<'de>> de::Visitor<'de> for OneOrMany<T> {
    type Value = Vec<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("one value, or a list of them")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<T>, E> {
        T::deserialize(de::value::StrDeserializer::new(text)).map(|one| vec![one])
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Vec<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|one| vec![one])
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, sequence: A) -> Result<Vec<T>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(sequence))
    }
}

// === impl UpstreamEntry ===

impl<'de> Deserialize<'de> for UpstreamEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entry;
        impl<'de> de::Visitor<'de> for Entry {
            type Value = UpstreamEntry;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an address such as http://127.0.0.1:9000, or an object with `url`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<UpstreamEntry, E> {
                UpstreamConfig::new(text).map(UpstreamEntry).map_err(E::custom)
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<UpstreamEntry, A::Error> {
                UpstreamConfig::deserialize(MapAccessDeserializer::new(map)).map(UpstreamEntry)
            }
        }
        deserializer.deserialize_any(Entry)
    }
}
