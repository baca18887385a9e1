//! Groups of measures that take minutes, and how busy the machine was with other things.

use std::io;

use evenkeel_process::load_average;

use crate::Bars;

/// A group of measures: its name, and what adds its figures.
pub type Group = (&'static str, fn(&mut Bars) -> io::Result<()>);

/// Runs the groups and prints the table, with the load of the machine before and after.
///
/// # Errors
///
/// A group failed: the groups after it are not run. The table has what was measured before.
pub fn run_groups(mut bars: Bars, groups: &[Group], title: &str) -> io::Result<()> {
    let before = load_average()?;
    let outcome = groups.iter().try_for_each(|(_, add)| add(&mut bars));
    let after = load_average()?;
    bars.print(&format!("{title} (load average {before} before and {after} after)"));
    outcome
}

// === impl Bars ===

impl Bars {
    /// The groups that the filter lets through.
    pub fn wanted(&self, groups: &[Group]) -> Vec<Group> {
        groups.iter().copied().filter(|(name, _)| self.wants(name)).collect()
    }
}
