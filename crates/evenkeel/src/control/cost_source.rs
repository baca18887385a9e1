//! Sources of costs: code that counts the cost of a request, from its arrival to its end (CO-2).

use std::fmt;

use bytes::Bytes;
use evenkeel_api::annotations::CostUnit;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use http_body::Frame;

use crate::sync::{Mutex, MutexGuard, PoisonError};

/// Counts what requests cost whose unit is `tokens`: what [`FlowLayer::count_cost`](crate::FlowLayer::count_cost) takes.
///
/// The layer asks for a [`CostMeter`] when such a request arrives, and tells the meter what becomes of it.
///
/// ```
/// use bytes::Bytes;
/// use evenkeel::FlowControl;
/// use evenkeel::cost::{CostMeter, CountCost, Counted};
/// use evenkeel::identify::Anonymous;
/// use http::request::Parts;
/// use http_body::Frame;
///
/// /// Counts the rows of responses, one a line.
/// struct Rows;
///
/// impl CountCost for Rows {
///     fn arrive(&self, _parts: &Parts) -> Option<Box<dyn CostMeter>> {
///         Some(Box::new(Rows))
///     }
/// }
///
/// impl CostMeter for Rows {
///     fn progress(&mut self, frame: &mut Frame<Bytes>) -> Counted {
///         let rows = frame.data_ref().map_or(0, |data| data.iter().filter(|byte| **byte == b'\n').count());
///         Counted::More(rows as f64)
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let layer = FlowControl::builder().build().layer(Anonymous).count_cost(Rows);
/// # }
/// ```
pub trait CountCost: Send + Sync + 'static {
    /// A request arrives whose cost is to be counted. Facts that were found out about it before, from its body for example, are
    /// among its extensions. `None`: its cost is not counted.
    fn arrive(&self, parts: &Parts) -> Option<Box<dyn CostMeter>>;
}

/// Counts what one request costs. Made by [`CountCost::arrive`].
///
/// Methods are called in this order: [`expect`](Self::expect) when the request arrives, and again if it has waited;
/// [`begin`](Self::begin) with the head of the response; [`progress`](Self::progress) with each frame; and [`end`](Self::end)
/// when the response has come to its end. If a meter is dropped before that, its request was rejected or cut off: it is charged
/// the cost that had arisen, and nothing is learnt from it (CO-5).
pub trait CostMeter: Send {
    /// The expected cost of the request, given the learnt cost of its class, if there is one. `None`: the cost cannot be
    /// predicted.
    fn expect(&mut self, learnt: Option<f64>) -> Option<f64> {
        learnt
    }

    /// The head of the response is there.
    fn begin(&mut self, _status: StatusCode, _headers: &mut HeaderMap) -> Counted {
        Counted::Nothing
    }

    /// A frame of the response passes. The client gets the frame as this method leaves it.
    fn progress(&mut self, frame: &mut Frame<Bytes>) -> Counted;

    /// The response has come to its end.
    fn end(&mut self) -> Counted {
        Counted::Nothing
    }
}

/// A cost that a [`CostMeter`] has found out.
///
/// Not `#[non_exhaustive]`: these are all the ways in which a cost can be known.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Counted {
    /// Nothing new.
    #[default]
    Nothing,
    /// More cost has arisen, by this much: see [`Permit::add_cost`](crate::Permit::add_cost).
    More(f64),
    /// The cost that has arisen so far, in all.
    InAll(f64),
    /// The request will have cost this much if it comes to its end: see [`Permit::announce_cost`](crate::Permit::announce_cost).
    Announced(f64),
    /// The whole request costs this much, whatever has arisen: see [`Permit::set_cost`](crate::Permit::set_cost).
    Exactly(f64),
}

/// The cost of a request, as far as its route determines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RouteCost<'a> {
    /// The unit of cost, where the flow schema of the request does not name one.
    pub unit: Option<&'a CostUnit>,
    /// A number that is the same for all requests of the route: what they cost is learnt together. Where there is none, the method and
    /// the path of a request say which are alike.
    pub route: Option<u64>,
}

/// The cost of a request, as far as it is known when the request arrives.
#[derive(Clone, Copy, Default)]
pub(crate) struct Costing<'a> {
    pub(crate) route: RouteCost<'a>,
    /// The source of its cost, and the head that is passed to the source.
    pub(crate) source: Option<(&'a dyn CountCost, &'a Parts)>,
    /// The meter of a request that comes in again, if it has one.
    pub(crate) made: Option<&'a Mutex<Option<Meter>>>,
}

/// The meter of a request.
pub(crate) struct Meter(Mutex<Box<dyn CostMeter>>);

// === impl RouteCost ===

impl<'a> RouteCost<'a> {
    /// A cost of the unit and the route.
    pub fn new(unit: Option<&'a CostUnit>, route: Option<u64>) -> Self {
        Self { unit, route }
    }
}

// === impl Costing ===

impl<'a> Costing<'a> {
    /// What is known of the cost of a request that comes in again: its meter, if it has one, waits here.
    pub(crate) fn again(route: RouteCost<'a>, made: &'a Mutex<Option<Meter>>) -> Self {
        Self { route, source: None, made: Some(made) }
    }

    /// The meter of a request that comes in again waits until the request gets in.
    pub(crate) fn keep_meter(&self, meter: Option<Meter>) {
        if let (Some(made), Some(meter)) = (self.made, meter) {
            *made.lock().unwrap_or_else(PoisonError::into_inner) = Some(meter);
        }
    }

    /// The meter of the request, if its cost is counted in this.
    #[inline]
    pub(crate) fn meter(&self, unit: Option<&CostUnit>) -> Option<Meter> {
        if let Some(made) = self.made.filter(|_| unit == Some(&CostUnit::Tokens)) {
            return made.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        let (source, parts) = self.source.filter(|_| unit == Some(&CostUnit::Tokens))?;
        source.arrive(parts).map(|meter| Meter(Mutex::new(meter)))
    }
}

impl fmt::Debug for Costing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Costing").field("route", &self.route).finish_non_exhaustive()
    }
}

// === impl Meter ===

impl Meter {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Box<dyn CostMeter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meter")
    }
}
