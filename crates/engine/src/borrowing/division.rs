//! Dividing seats among levels: the input, the result, and the trait of what decides.

use std::fmt;

use super::DemandStatistics;
use crate::limits::{LevelLimits, LevelShare, faithful_limits};

/// Divides the server's seats among the levels, given what they have asked for.
///
/// [`FaithfulDivision`](super::FaithfulDivision) decides as Kubernetes does. Another one may be put in its place; all it
/// has to promise is one result for each level, in the same order.
pub trait DivideSeats: fmt::Debug {
    /// Divides seats among levels, which come in ascending byte order of their names (CV-8).
    ///
    /// What `adjustment` held before is replaced, in the memory that it already has.
    fn divide(&mut self, levels: &[LevelDemand], adjustment: &mut Adjustment);

    /// The limits of levels on a server with that many seats, in the same order. They come in ascending byte order of their names
    /// (CV-8). The default is what Kubernetes does.
    fn limits(&self, levels: &[LevelShare<'_>], server_limit: i64) -> Vec<LevelLimits> {
        faithful_limits(levels, server_limit)
    }

    /// Whether limits are exact (LB-2a): a level that rejects and can have no seats rejects every request, where in Kubernetes one
    /// runs at a time (FQ-21), and each level with shares has to have a seat.
    fn is_exact(&self) -> bool {
        false
    }
}

impl<D: DivideSeats + ?Sized> DivideSeats for Box<D> {
    fn divide(&mut self, levels: &[LevelDemand], adjustment: &mut Adjustment) {
        (**self).divide(levels, adjustment);
    }

    fn limits(&self, levels: &[LevelShare<'_>], server_limit: i64) -> Vec<LevelLimits> {
        (**self).limits(levels, server_limit)
    }

    fn is_exact(&self) -> bool {
        (**self).is_exact()
    }
}

/// A level when limits are adjusted.
///
/// Not `#[non_exhaustive]`: tests of a division make it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelDemand {
    /// Whether the level limits nothing.
    pub is_exempt: bool,
    /// What its configuration gives it.
    pub limits: LevelLimits,
    /// What it asked for lately, up to this moment.
    pub statistics: DemandStatistics,
    /// The limit that it has until now.
    pub current: i64,
}

/// How the seats were divided.
///
/// Not `#[non_exhaustive]`: a division has to give all of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Adjustment {
    /// The part of its target that a level got, if nothing held it back; 0 if the seats were not divided in this way.
    pub fair_fraction: f64,
    /// One for each level, in the same order.
    pub levels: Vec<AdjustedLevel>,
}

/// What a level got.
///
/// Not `#[non_exhaustive]`: a division has to give all of it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AdjustedLevel {
    /// The seats that it may use from now on: `CurrentCL`.
    pub current: i64,
    /// The least that it was to get, given its demand: `MinCurrentCL`.
    pub min_current: i64,
    /// What it would like to have. An exempt level has no target.
    pub target: Option<f64>,
}
