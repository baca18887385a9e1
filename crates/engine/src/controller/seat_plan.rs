//! `SeatPlan`: the seats that levels have by their objects. Servers and tools compute them here, so that they agree.

use std::collections::BTreeMap;

use evenkeel_api::bootstrap::{self, CATCH_ALL};
use evenkeel_api::v1::{
    FlowSchema, PriorityLevelConfiguration, PriorityLevelConfigurationSpec, PriorityLevelEnablement,
};

use super::reach;
use crate::borrowing::DivideSeats;
use crate::limits::{LevelLimits, LevelShare, shares};

/// How many levels an error names.
const NAMED_MAX: usize = 5;

/// The levels among which a server divides its seats.
///
/// ```
/// use evenkeel_api::v1::PriorityLevelConfiguration;
/// use evenkeel_engine::borrowing::ExactDivision;
/// use evenkeel_engine::controller::SeatPlan;
///
/// let level = |name| PriorityLevelConfiguration::builder(name).limited(|l| l.shares(10).reject()).build();
/// let levels = ["orders", "reports"].map(level);
/// let plan = SeatPlan::new(&levels, []);
///
/// // No schema matches every request, so that `catch-all` has a seat too.
/// let limits = plan.limits(&ExactDivision::default(), 7);
/// let nominal: Vec<_> = limits.iter().map(|(name, limits)| (*name, limits.nominal)).collect();
/// assert_eq!(nominal, [("catch-all", 1), ("exempt", 0), ("orders", 3), ("reports", 3)]);
///
/// let too_few = plan.check_seats(2).unwrap_err();
/// assert_eq!(too_few.levels, ["catch-all", "orders", "reports"]);
/// ```
#[derive(Debug, Clone)]
pub struct SeatPlan<'a> {
    /// The levels, in ascending byte order of names, which decides who gets what rounding leaves over (CV-8).
    levels: BTreeMap<&'a str, &'a PriorityLevelConfigurationSpec>,
    is_catch_all_unreachable: bool,
}

/// There are fewer seats than levels that have to have one (LB-2a).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} too few for {} priority levels with shares ({}): each of them needs a seat",
    if *seats == 1 { "1 seat is".to_owned() } else { format!("{seats} seats are") },
    levels.len(),
    named(levels)
)]
#[non_exhaustive]
pub struct TooFewSeats {
    /// The seats of the server.
    pub seats: i64,
    /// The levels that have to have one, in ascending byte order.
    pub levels: Vec<String>,
}

fn named(levels: &[String]) -> String {
    let mut text = levels.iter().take(NAMED_MAX).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    if let Some(others) = levels.len().checked_sub(NAMED_MAX).filter(|others| *others > 0) {
        text.push_str(&format!(" and {others} more"));
    }
    text
}

// === impl SeatPlan ===

impl<'a> SeatPlan<'a> {
    /// The plan for these levels. The mandatory ones are added where they are missing, as a server does (CC-14). Schemas decide
    /// whether requests can get to `catch-all`; those that name a level which is not there are ignored (CC-9).
    pub fn new(
        levels: impl IntoIterator<Item = &'a PriorityLevelConfiguration>,
        schemas: impl IntoIterator<Item = &'a FlowSchema>,
    ) -> Self {
        let plan = Self::with_reach(levels, false);
        let is_usable =
            |schema: &&FlowSchema| plan.levels.contains_key(&*schema.spec.priority_level_configuration.name);
        let usable: Vec<&FlowSchema> = schemas.into_iter().filter(is_usable).collect();
        let is_catch_all_unreachable = reach::is_catch_all_unreachable(&usable);
        Self { is_catch_all_unreachable, ..plan }
    }

    /// The same, where it is known whether requests can get to `catch-all`.
    pub(super) fn with_reach(
        levels: impl IntoIterator<Item = &'a PriorityLevelConfiguration>,
        is_catch_all_unreachable: bool,
    ) -> Self {
        let mut by_name: BTreeMap<&str, _> = BTreeMap::new();
        for level in levels.into_iter().chain(&bootstrap::mandatory().priority_levels) {
            by_name.entry(level.name()).or_insert(&level.spec);
        }
        Self { levels: by_name, is_catch_all_unreachable }
    }

    /// The limits of each level on a server with that many seats, by name (CC-16).
    pub fn limits<D: DivideSeats + ?Sized>(&self, division: &D, server_limit: i64) -> BTreeMap<&'a str, LevelLimits> {
        let share = |(name, spec): (&&str, &&'a _)| LevelShare { spec, is_unreachable: self.is_unreachable(name) };
        let shares: Vec<_> = self.levels.iter().map(share).collect();
        self.levels.keys().copied().zip(division.limits(&shares, server_limit)).collect()
    }

    /// Whether every level that has to have a seat can have one, where seats are divided exactly (LB-2a): every limited level
    /// with shares that requests can get to.
    pub fn check_seats(&self, server_limit: i64) -> Result<(), TooFewSeats> {
        let is_enough = i64::try_from(self.seats_min()).is_ok_and(|levels| levels <= server_limit);
        if is_enough {
            return Ok(());
        }
        let levels = self.levels_that_need_a_seat().map(str::to_owned).collect();
        Err(TooFewSeats { seats: server_limit, levels })
    }

    /// How many seats it takes for every such level to have one.
    pub fn seats_min(&self) -> usize {
        self.levels_that_need_a_seat().count()
    }

    fn levels_that_need_a_seat(&self) -> impl Iterator<Item = &'a str> {
        let needs_seat = |(name, spec): &(&&str, &&PriorityLevelConfigurationSpec)| {
            spec.enablement == PriorityLevelEnablement::Limited && shares(spec) > 0 && !self.is_unreachable(name)
        };
        self.levels.iter().filter(needs_seat).map(|(name, _)| *name)
    }

    fn is_unreachable(&self, level: &str) -> bool {
        self.is_catch_all_unreachable && level == CATCH_ALL
    }
}
