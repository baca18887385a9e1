//! Ledgers and publications as JSON, with a version in front.

use std::sync::Arc;

use evenkeel_engine::auto_limit::Totals;
use evenkeel_engine::fleet_division::{FlowLoad, InstanceLoad, LevelLoad};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::ledger::{FORMAT_VERSION, Ledger};
use crate::publication::{FLOWS_LISTED_MAX, Publication};
use crate::rates::{RATES_LISTED_MAX, RateLoad};

/// A value that this version cannot read. Its key is left alone (FL-2).
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum UnreadableValue {
    /// Another version has written it.
    #[error("it has version {version}, and this version of evenkeel reads {FORMAT_VERSION} only")]
    Version {
        /// Its version.
        version: u32,
    },
    /// The text is not a value of a fleet.
    #[error("it is not a value of a fleet: {0}")]
    Malformed(#[from] serde_json::Error),
}

/// All values have it, in every version.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublicationValue {
    version: u32,
    ack: u64,
    hold: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    draining: bool,
    levels: Vec<LevelValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    totals: Option<TotalsValue>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    held_down: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rates: Vec<RateValue>,
}

/// As in [`Totals`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TotalsValue {
    seconds: f64,
    good: f64,
    failed: f64,
    seat_seconds: f64,
    squares: f64,
    in_use: f64,
    waited: f64,
}

/// As in [`RateLoad`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RateValue {
    schema: String,
    /// Hash and demand.
    #[serde(default)]
    flows: Vec<(u64, u64)>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cut_short: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LevelValue {
    name: String,
    floor: u64,
    nominal: u64,
    max: u64,
    borrowing_weight: u64,
    demand: u64,
    flow_weight: u64,
    /// Hash, weight and demand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    flows: Vec<(u64, u64, u64)>,
}

/// The value of the ledger's key.
pub fn encode_ledger(ledger: &Ledger) -> Vec<u8> {
    serde_json::to_vec(ledger).unwrap_or_default()
}

/// The ledger in the value of its key.
pub fn decode_ledger(value: &[u8]) -> Result<Ledger, UnreadableValue> {
    check_version(value)?;
    Ok(serde_json::from_slice(value)?)
}

/// The value of an instance's key.
pub fn encode_publication(publication: &Publication) -> Vec<u8> {
    let value = PublicationValue {
        version: FORMAT_VERSION,
        ack: publication.ack,
        hold: publication.hold,
        draining: publication.is_draining,
        levels: publication.load.levels.iter().map(LevelValue::from).collect(),
        totals: publication.totals.map(TotalsValue::from),
        held_down: publication.is_held_down,
        rates: publication.rates.iter().map(RateValue::from).collect(),
    };
    serde_json::to_vec(&value).unwrap_or_default()
}

/// The publication of an instance, from the value of its key.
pub fn decode_publication(value: &[u8]) -> Result<Publication, UnreadableValue> {
    check_version(value)?;
    let value: PublicationValue = serde_json::from_slice(value)?;
    Ok(Publication {
        ack: value.ack,
        hold: value.hold,
        is_draining: value.draining,
        load: Arc::new(InstanceLoad { levels: value.levels.into_iter().map(LevelLoad::from).collect() }),
        totals: value.totals.map(Totals::from),
        is_held_down: value.held_down,
        rates: Arc::new(value.rates.into_iter().take(RATES_LISTED_MAX).map(RateLoad::from).collect()),
    })
}

fn check_version(value: &[u8]) -> Result<(), UnreadableValue> {
    match serde_json::from_slice::<Versioned>(value)?.version {
        FORMAT_VERSION => Ok(()),
        version => Err(UnreadableValue::Version { version }),
    }
}

// === impl RateValue ===

impl From<&RateLoad> for RateValue {
    fn from(load: &RateLoad) -> Self {
        let flows = load.flows.iter().map(|(flow, demand)| (*flow, *demand)).collect();
        Self { schema: load.schema.clone(), flows, cut_short: load.is_cut_short }
    }
}

impl From<RateValue> for RateLoad {
    fn from(value: RateValue) -> Self {
        let flows = value.flows.into_iter().take(RATES_LISTED_MAX).collect();
        Self { schema: value.schema, flows, is_cut_short: value.cut_short }
    }
}

// === impl LevelValue ===

impl From<&LevelLoad> for LevelValue {
    fn from(level: &LevelLoad) -> Self {
        Self {
            name: level.name.clone(),
            floor: level.floor,
            nominal: level.nominal,
            max: level.max,
            borrowing_weight: level.borrowing_weight,
            demand: level.demand,
            flow_weight: level.flow_weight,
            flows: level
                .flows
                .iter()
                .take(FLOWS_LISTED_MAX)
                .map(|flow| (flow.hash, flow.weight, flow.demand))
                .collect(),
        }
    }
}

impl From<LevelValue> for LevelLoad {
    fn from(level: LevelValue) -> Self {
        let flow = |(hash, weight, demand)| FlowLoad { hash, weight, demand };
        Self {
            name: level.name,
            floor: level.floor,
            nominal: level.nominal,
            max: level.max,
            borrowing_weight: level.borrowing_weight,
            demand: level.demand,
            flow_weight: level.flow_weight,
            flows: level.flows.into_iter().take(FLOWS_LISTED_MAX).map(flow).collect(),
        }
    }
}

// === impl TotalsValue ===

impl From<Totals> for TotalsValue {
    fn from(totals: Totals) -> Self {
        let Totals { seconds, good, failed, seat_seconds, squares, in_use, waited } = totals;
        Self { seconds, good, failed, seat_seconds, squares, in_use, waited }
    }
}

impl From<TotalsValue> for Totals {
    fn from(value: TotalsValue) -> Self {
        let TotalsValue { seconds, good, failed, seat_seconds, squares, in_use, waited } = value;
        Self { seconds, good, failed, seat_seconds, squares, in_use, waited }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FleetSettings;
    use crate::ledger::{InstanceId, LedgerEntry, ProcessNonce};
    use crate::settings::Terms;

    #[test]
    fn fl_2_a_ledger_is_read_as_it_was_written() {
        let mut ledger = Ledger::new(&FleetSettings::default());
        ledger.entries.push(LedgerEntry {
            process: ProcessNonce(u64::MAX),
            id: InstanceId(7),
            terms: Terms::default(),
            grant: 5,
            hold: 9,
            floor: 3,
            floor_held: 4,
            low: 12,
        });
        assert_eq!(decode_ledger(&encode_ledger(&ledger)).unwrap(), ledger);
    }

    #[test]
    fn fl_3_a_publication_is_read_as_it_was_written() {
        let flows = vec![FlowLoad { hash: u64::MAX, weight: 1, demand: 2 }];
        let level = LevelLoad { name: "people".to_owned(), demand: 5, flows, ..LevelLoad::default() };
        let load = Arc::new(InstanceLoad { levels: vec![level] });
        let totals = Totals { seconds: 2.5, good: 3.0, ..Totals::default() };
        for (is_draining, totals) in [(false, None), (true, Some(totals))] {
            let load = load.clone();
            let flows = [(u64::MAX, 1), (3, u64::MAX)].into();
            let rates = Arc::new(vec![RateLoad { schema: "keys".to_owned(), flows, is_cut_short: is_draining }]);
            let publication =
                Publication { ack: 1, hold: 2, is_draining, load, totals, is_held_down: is_draining, rates };
            assert_eq!(decode_publication(&encode_publication(&publication)).unwrap(), publication);
        }
        // What an instance without rates publishes, and one of a version that knows nothing of them.
        let read = decode_publication(br#"{"version": 1, "ack": 1, "hold": 2, "levels": []}"#).unwrap();
        assert!(read.rates.is_empty());
    }

    #[test]
    fn fl_2_values_of_other_versions_are_not_guessed() {
        let problem = decode_ledger(br#"{"version": 2, "seats": "many"}"#).unwrap_err();
        assert_eq!(problem.to_string(), "it has version 2, and this version of evenkeel reads 1 only");
        for value in ["", "{}", "[]", r#"{"version": 1}"#, r#"{"version": -1}"#] {
            let problem = decode_publication(value.as_bytes()).unwrap_err();
            assert!(problem.to_string().starts_with("it is not a value of a fleet: "), "{problem}");
        }
    }
}
