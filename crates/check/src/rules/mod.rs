//! The rules, one file for each subject.

mod annotation;
mod bootstrap_objects;
mod call;
mod everything;
mod flows;
mod hands;
mod levels;
mod rate;
pub(crate) mod reach;
mod revocation;
pub(crate) mod seats;
mod test;
mod tie;
pub(crate) mod validity;
mod version;

use crate::analysis::{Analysis, Output};

/// Runs all rules but validation, which comes before.
pub(crate) fn run(analysis: &Analysis<'_>, output: &mut Output) {
    reach::run(analysis, output);
    tie::run(analysis, output);
    everything::run(analysis, output);
    levels::run(analysis, output);
    bootstrap_objects::run(analysis, output);
    flows::run(analysis, output);
    hands::run(analysis, output);
    seats::run(analysis, output);
    rate::run(analysis, output);
    revocation::run(analysis, output);
    call::run(analysis, output);
    annotation::run(analysis, output);
    version::run(analysis, output);
    test::run(analysis, output);
}
