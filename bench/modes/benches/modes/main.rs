//! The bars of the modes that Kubernetes does not have: figure, bar and verdict, by a simulation with fixed seeds.
//!
//! `cargo xtask bench modes` runs all of them; a further word selects measures by name.
//! With `--svg` the pictures of `docs/modes.md` are drawn instead.

mod borrowing;
mod borrowing_cost;
mod cost;
mod one_level;
mod pictures;
mod queuing;
mod random;
mod server;
mod slow_requests;

use evenkeel_bars::Bars;

fn main() -> std::io::Result<()> {
    if std::env::args().any(|argument| argument == "--svg") {
        return pictures::write_all();
    }
    let arguments = std::env::args().skip(1);
    // `cargo xtask bench modes` passes the name of this benchmark on; it selects all measures.
    let mut bars = Bars::filtered(arguments.filter(|argument| argument != "modes"));
    queuing::measure(&mut bars);
    slow_requests::measure(&mut bars);
    borrowing::measure(&mut bars);
    borrowing_cost::measure(&mut bars);
    bars.print("The modes");
    Ok(())
}
