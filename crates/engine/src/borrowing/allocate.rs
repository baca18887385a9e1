//! The allocation problem: one proportion for all, within everybody's bounds (CL-20, CL-21).

/// The smallest target that counts; the steps of the solution divide by it (CL-20).
const TARGET_MIN: f64 = 0.001;
/// Sums that differ by less are equal (CL-21).
const TOLERANCE: f64 = 0.000_000_1;
/// Where minima of relative bounds start: the largest number of binary32 (CL-21).
const RELATIVE_BOUND_MAX: f64 = f32::MAX as f64;

/// A party to an allocation.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Class {
    /// The least that it gets.
    pub lower: f64,
    /// The most that it gets.
    pub upper: f64,
    /// What it would like to have: no less than the lower bound.
    pub target: f64,
}

/// The solution of an allocation problem.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Allocation<'a> {
    /// What each class gets, in the order of the classes.
    pub allocations: &'a [f64],
    /// The part of its target that a class gets unless a bound holds it back.
    pub proportion: f64,
}

/// The problem has no solution: bounds contradict each other or the total, or are no numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no allocation within these bounds has this total")]
pub struct Infeasible;

/// Solves allocation problems, in memory that it keeps from one to the next.
///
/// ```
/// use evenkeel_engine::borrowing::{Allocator, Class, Infeasible};
///
/// let classes = [Class { lower: 6.0, upper: 20.0, target: 24.0 }, Class { lower: 8.0, upper: 18.0, target: 8.0 }];
/// let mut allocator = Allocator::default();
/// assert_eq!(allocator.allocate(24.0, &classes)?.allocations, [16.0, 8.0]);
/// assert_eq!(allocator.allocate(39.0, &classes), Err(Infeasible));
/// # Ok::<(), Infeasible>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Allocator {
    allocations: Vec<f64>,
    bounds: Vec<Bound>,
}

/// A proportion at which a class stops being held by its lower bound, or starts to be held by its upper one.
#[derive(Debug, Clone, Copy)]
struct Bound {
    relative: f64,
    change: Change,
}

/// What changes when the proportion rises above a bound: the targets of the classes between their bounds, added up,
/// and how many such classes there are.
#[derive(Debug, Clone, Copy, Default)]
struct Change {
    target: f64,
    classes: i64,
}

/// What all classes ask for together (CL-21, step 1).
#[derive(Debug, Clone, Copy)]
struct Totals {
    lower: f64,
    upper: f64,
    target: f64,
    relative_lower_min: f64,
    relative_lower_max: f64,
    relative_upper_min: f64,
    relative_upper_max: f64,
}

// === impl Allocator ===

impl Allocator {
    /// Finds the proportion at which the classes get the total, each within its bounds (CL-21).
    ///
    /// Sums are formed in the order of the classes.
    pub fn allocate(&mut self, total: f64, classes: &[Class]) -> Result<Allocation<'_>, Infeasible> {
        let totals = Totals::of(classes);
        // With targets that are not below their lower bounds, no relative lower bound can be above 1.
        let possible = total.is_finite()
            && classes.iter().all(Class::is_sound)
            && totals.lower - total <= TOLERANCE
            && total - totals.upper <= TOLERANCE;
        if !possible {
            return Err(Infeasible);
        }
        let proportion = self.solve(total, classes, &totals)?;
        Ok(Allocation { allocations: &self.allocations, proportion })
    }

    fn solve(&mut self, total: f64, classes: &[Class], totals: &Totals) -> Result<f64, Infeasible> {
        if total == 0.0 {
            self.give(classes, |_| 0.0);
            return Ok(0.0);
        }
        if totals.lower - total > -TOLERANCE {
            self.give(classes, |class| class.lower);
            return Ok(totals.relative_lower_min);
        }
        if total - totals.upper > -TOLERANCE {
            self.give(classes, |class| class.upper);
            return Ok(totals.relative_upper_max);
        }
        let proportion = total / totals.target;
        if totals.relative_lower_max <= proportion && proportion <= totals.relative_upper_min {
            self.give(classes, |class| class.effective_target() * proportion);
            return Ok(proportion);
        }
        let proportion = self.raise(total, classes, totals)?;
        self.give(classes, |class| class.lower.max(class.upper.min(proportion * class.effective_target())));
        Ok(proportion)
    }

    /// Raises the proportion from bound to bound until the total is reached (step 7).
    fn raise(&mut self, total: f64, classes: &[Class], totals: &Totals) -> Result<f64, Infeasible> {
        self.bounds.clear();
        self.bounds.extend(classes.iter().flat_map(Class::bounds));
        // Stable, so that equal bounds stay in the order of the classes, lower before upper.
        self.bounds.sort_by(|a, b| a.relative.total_cmp(&b.relative));

        let mut bounds = self.bounds.iter();
        let (mut sum, mut proportion) = (totals.lower, totals.relative_lower_min);
        let (mut active, mut pending) = (Change::default(), Change::default());
        while sum < total {
            let next = loop {
                active.add(pending);
                let bound = bounds.next().ok_or(Infeasible)?;
                pending = bound.change;
                if bound.relative > proportion {
                    break bound.relative;
                }
            };
            if active.classes != 0 {
                let enough = proportion + (total - sum) / active.target;
                if enough <= next {
                    return Ok(enough);
                }
                sum += (next - proportion) * active.target;
            }
            proportion = next;
        }
        Ok(proportion)
    }

    fn give(&mut self, classes: &[Class], allocation: impl Fn(&Class) -> f64) {
        self.allocations.clear();
        self.allocations.extend(classes.iter().map(allocation));
    }
}

// === impl Class ===

impl Class {
    /// Written so that it does not hold for what is no number.
    fn is_sound(&self) -> bool {
        self.lower >= 0.0 && self.upper >= self.lower && self.target >= self.lower && self.target.is_finite()
    }

    fn effective_target(&self) -> f64 {
        self.target.max(TARGET_MIN)
    }

    fn relative_lower(&self) -> f64 {
        self.lower / self.effective_target()
    }

    fn relative_upper(&self) -> f64 {
        self.upper / self.effective_target()
    }

    fn bounds(&self) -> [Bound; 2] {
        let target = self.effective_target();
        [
            Bound { relative: self.relative_lower(), change: Change { target, classes: 1 } },
            Bound { relative: self.relative_upper(), change: Change { target: -target, classes: -1 } },
        ]
    }
}

// === impl Change ===

impl Change {
    fn add(&mut self, other: Self) {
        self.target += other.target;
        self.classes += other.classes;
    }
}

// === impl Totals ===

impl Totals {
    fn of(classes: &[Class]) -> Self {
        let nothing = Self {
            lower: 0.0,
            upper: 0.0,
            target: 0.0,
            relative_lower_min: RELATIVE_BOUND_MAX,
            relative_lower_max: 0.0,
            relative_upper_min: RELATIVE_BOUND_MAX,
            relative_upper_max: 0.0,
        };
        classes.iter().fold(nothing, |totals, class| Self {
            lower: totals.lower + class.lower,
            upper: totals.upper + class.upper,
            target: totals.target + class.effective_target(),
            relative_lower_min: totals.relative_lower_min.min(class.relative_lower()),
            relative_lower_max: totals.relative_lower_max.max(class.relative_lower()),
            relative_upper_min: totals.relative_upper_min.min(class.relative_upper()),
            relative_upper_max: totals.relative_upper_max.max(class.relative_upper()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class((lower, upper, target): (f64, f64, f64)) -> Class {
        Class { lower, upper, target }
    }

    fn allocate(total: f64, classes: &[(f64, f64, f64)]) -> Result<(Vec<f64>, f64), Infeasible> {
        let classes: Vec<_> = classes.iter().copied().map(class).collect();
        let mut allocator = Allocator::default();
        let solved = allocator.allocate(total, &classes)?;
        Ok((solved.allocations.to_vec(), solved.proportion))
    }

    #[rustfmt::skip] // a table
    #[test]
    fn cl_22_vectors() {
        for (total, classes, allocations, proportion) in [
            (24.0, &[(6.0, 20.0, 24.0), (8.0, 18.0, 8.0)][..], &[16.0, 8.0][..], 0.666_666_666_666_666_7),
            (24.0, &[(6.0, 20.0, 30.0), (8.0, 18.0, 8.0)], &[16.0, 8.0], 0.533_333_333_333_333_3),
            (24.0, &[(6.0, 16.0, 24.0), (6.0, 16.0, 6.0)], &[16.0, 8.0], 1.333_333_333_333_333_3),
            (600.0, &[(50.0, 674.0, 50.0), (73.0, 698.0, 200.0), (25.0, 625.0, 25.0), (49.0, 698.0, 49.0),
                (24.0, 845.0, 900.0), (24.0, 649.0, 24.0), (13.0, 613.0, 13.0)],
                &[50.0, 79.818_181_818_181_81, 25.0, 49.0, 359.181_818_181_818_13, 24.0, 13.0],
                0.399_090_909_090_909_05),
            (602.0, &[(50.0, 674.0, 50.0), (73.0, 698.0, 73.0), (25.0, 625.0, 25.0), (98.0, 698.0, 140.0),
                (245.0, 845.0, 700.0), (24.0, 649.0, 24.0), (13.0, 613.0, 13.0)],
                &[50.0, 73.0, 25.0, 98.0, 319.0, 24.0, 13.0], 0.455_714_285_714_285_7),
            (100.0, &[(10.0, 30.0, 10.0), (0.0, 20.0, 0.0), (40.0, 60.0, 50.0)],
                &[30.0, 10.000_000_000_023_313, 60.0], 10_000.000_000_023_312),
            (10.0, &[(10.0, 20.0, 12.0)], &[10.0], 0.833_333_333_333_333_4),
            (20.0, &[(10.0, 20.0, 12.0)], &[20.0], 1.666_666_666_666_666_7),
        ] {
            assert_eq!(allocate(total, classes), Ok((allocations.to_vec(), proportion)), "{total} for {classes:?}");
        }
    }

    #[test]
    fn cl_21_problems_without_a_solution() {
        for (what, total, classes) in [
            ("negative lower bound", 7.0, &[(-1.0, 16.0, 8.0)][..]),
            ("target below the lower bound", 7.0, &[(7.0, 10.0, 5.0)]),
            ("upper bound below the lower one", 7.0, &[(7.0, 6.0, 8.0)]),
            ("more than the upper bounds", 21.0, &[(0.0, 10.0, 0.0), (0.0, 10.0, 0.0)]),
            ("less than the lower bounds", 9.0, &[(5.0, 10.0, 5.0), (5.0, 10.0, 5.0)]),
            ("negative total", -1.0, &[(0.0, 10.0, 5.0)]),
            ("a total for nobody", 1.0, &[]),
        ] {
            assert_eq!(allocate(total, classes), Err(Infeasible), "{what}");
        }
    }

    #[test]
    fn cl_21_sums_are_compared_with_a_tolerance() {
        let classes = [(5.0, 10.0, 6.0)];
        for (total, expected) in
            [(4.999_999_95, Some(5.0)), (4.999_999_8, None), (10.000_000_05, Some(10.0)), (10.000_000_2, None)]
        {
            assert_eq!(allocate(total, &classes).ok().map(|(allocations, _)| allocations[0]), expected, "{total}");
        }
    }

    #[test]
    fn cl_21_nothing_divided_is_nothing_for_everybody() {
        assert_eq!(allocate(0.0, &[(0.0, 10.0, 5.0), (0.0, 9.0, 3.0)]), Ok((vec![0.0, 0.0], 0.0)));
        assert_eq!(allocate(0.0, &[]), Ok((vec![], 0.0)));
    }

    #[test]
    fn what_is_no_number_has_no_solution() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(allocate(value, &[(0.0, 10.0, 5.0)]), Err(Infeasible));
            assert_eq!(allocate(5.0, &[(value, 10.0, 5.0)]), Err(Infeasible));
            assert_eq!(allocate(5.0, &[(0.0, 10.0, value)]), Err(Infeasible));
        }
        assert_eq!(allocate(5.0, &[(0.0, f64::NAN, 5.0)]), Err(Infeasible));
        assert_eq!(allocate(5.0, &[(0.0, f64::INFINITY, 5.0)]), Ok((vec![5.0], 1.0)), "no upper bound at all");
    }
}
