//! `FoundSeats`: what a fleet has found out about how many seats its service should have (FL-13).

use std::ops::RangeInclusive;

use evenkeel_engine::auto_limit::Learnt;
use serde::{Deserialize, Serialize};

use crate::ledger::InstanceId;

/// How many seats a service should have, as one instance finds out for all. A part of the ledger, so that another one can go on from there.
///
/// Numbers are whole, so that they are read as they were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FoundSeats {
    /// The fewest seats.
    pub least: u32,
    /// The most seats.
    pub most: u32,
    /// The seats that are believed to be right, in thousandths. The ledger's are those of a trial, or with room for bursts.
    pub limit_thousandths: u64,
    /// Whether they were found, and are not only where the search begins.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_known: bool,
    /// The usual logarithm of the seat-time for a good response, in millionths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ln_cost_millionths: Option<i64>,
    /// The highest throughput that the service has shown, in thousandths of a good response a second.
    #[serde(default)]
    pub peak_thousandths: u64,
    /// The instance that has found this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<InstanceId>,
}

// === impl FoundSeats ===

impl FoundSeats {
    /// Nothing is known of the service: the search begins at so many seats.
    pub fn unknown(bounds: RangeInclusive<u32>, start: u32) -> Self {
        let (least, most) = (*bounds.start(), *bounds.end());
        Self {
            least,
            most,
            limit_thousandths: u64::from(start.clamp(least, most.max(least))) * 1000,
            is_known: false,
            ln_cost_millionths: None,
            peak_thousandths: 0,
            by: None,
        }
    }

    /// An earlier run has learnt this.
    #[must_use]
    pub fn learnt(self, learnt: Option<Learnt>) -> Self {
        let Some(Learnt { limit, ln_cost, peak }) = learnt.filter(|learnt| learnt.limit.is_finite()) else {
            return self;
        };
        let limit = limit.clamp(f64::from(self.least), f64::from(self.most.max(self.least)));
        Self {
            limit_thousandths: whole(limit * 1e3),
            is_known: true,
            ln_cost_millionths: ln_cost.filter(|cost| cost.is_finite()).map(|cost| whole_signed(cost * 1e6)),
            peak_thousandths: whole(peak * 1e3),
            ..self
        }
    }

    /// What is known of the service; `None` as long as nothing is.
    pub fn as_learnt(&self) -> Option<Learnt> {
        let ln_cost = self.ln_cost_millionths.map(|cost| float_signed(cost) / 1e6);
        let peak = float(self.peak_thousandths) / 1e3;
        self.is_known.then(|| Learnt { limit: self.limit(), ln_cost, peak })
    }

    /// The bounds. If they are less than one seat, or in the wrong order, they are widened, as the limit itself does.
    pub fn bounds(&self) -> RangeInclusive<u32> {
        let least = self.least.max(1);
        least..=self.most.max(least)
    }

    /// The seats that are believed to be right.
    pub fn limit(&self) -> f64 {
        float(self.limit_thousandths) / 1e3
    }

    /// The same in whole seats.
    pub fn limit_seats(&self) -> u32 {
        u32::try_from(self.limit_thousandths.saturating_add(500) / 1000).unwrap_or(u32::MAX).max(1)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and nothing is negative")]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

#[expect(clippy::cast_possible_truncation, reason = "saturates")]
fn whole_signed(number: f64) -> i64 {
    number.round() as i64
}

#[expect(clippy::cast_precision_loss, reason = "exact for any number of seats and responses that there is")]
fn float(number: u64) -> f64 {
    number as f64
}

#[expect(clippy::cast_precision_loss, reason = "the logarithm of some seconds")]
fn float_signed(number: i64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fl_13_what_was_learnt_is_read_as_it_was_written() {
        let learnt = Learnt { limit: 37.25, ln_cost: Some(-4.5), peak: 1999.5 };
        let found = FoundSeats::unknown(1..=400, 20).learnt(Some(learnt));
        let text = serde_json::to_string(&found).unwrap();
        let read: FoundSeats = serde_json::from_str(&text).unwrap();
        assert_eq!((read, read.as_learnt(), read.limit_seats()), (found, Some(learnt), 37));
        // What an earlier version has written that knew less.
        let read: FoundSeats = serde_json::from_str(r#"{"least":1,"most":9,"limitThousandths":9000}"#).unwrap();
        assert_eq!((read.as_learnt(), read.limit_seats()), (None, 9));
        // A file may say anything.
        let odd = Learnt { limit: 1e300, ln_cost: Some(f64::NAN), peak: f64::NAN };
        assert_eq!(FoundSeats::unknown(1..=400, 20).learnt(Some(odd)).limit_seats(), 400);
        assert_eq!(FoundSeats::unknown(5..=400, 1).limit_seats(), 5);
        assert_eq!(FoundSeats::unknown(0..=0, 1).bounds(), 1..=1);
    }
}
