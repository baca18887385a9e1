//! Counts the instructions of a call. The benchmark runs itself once more under valgrind, with few calls and with many; the difference
//! belongs to the calls. Other load on the machine does not change the figure.

use std::process::{Command, Output};

use crate::{Bar, Bars};

/// Something whose instructions can be counted: its name, and what calls it so many times.
pub type Call = (&'static str, fn(u32));

/// Tells a process under valgrind what to call, and how many times: `NAME=CALLS`.
const VARIABLE: &str = "EVENKEEL_BENCH_CALL";
/// Beginnings of the names of measures that count instructions.
const PREFIX: &str = "instructions: ";
/// Enough for one-time costs, such as spare boxes of a thread, to be over.
const FEW: u32 = 500;
const MANY: u32 = 2_500;

/// Whether this process was started to make some of the calls, which have been made then. To be called at the start of `main`.
pub fn called(calls: &[Call]) -> bool {
    let Ok(order) = std::env::var(VARIABLE) else { return false };
    let (name, number) = order.split_once('=').unwrap_or((&order, ""));
    let call = calls.iter().find(|(known, _)| *known == name);
    let (Some((_, call)), Ok(number)) = (call, number.parse()) else {
        panic!("{VARIABLE}: nothing to call in {order}")
    };
    call(number);
    true
}

/// How many instructions one call takes; `None` without valgrind.
fn count(name: &str) -> Option<f64> {
    let (few, many) = (run(name, FEW)?, run(name, MANY)?);
    Some((many - few) / f64::from(MANY - FEW))
}

/// The instructions of a process that makes these calls.
fn run(name: &str, calls: u32) -> Option<f64> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(std::env::current_exe().ok()?);
    let Output { status, stderr, .. } = valgrind.env(VARIABLE, format!("{name}={calls}")).output().ok()?;
    let text = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "valgrind cannot run {name}:\n{text}");
    collected(&text)
}

/// The number in what callgrind says last: `==123== Collected : 456`.
fn collected(text: &str) -> Option<f64> {
    text.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
}

// === impl Bars ===

impl Bars {
    /// Counts the instructions of each call that the filter lets through. A measure has no bar: it is for comparison with another
    /// version of the program.
    pub fn measure_instructions(&mut self, calls: &[Call]) {
        for (name, _) in calls {
            let measure = format!("{PREFIX}{name}");
            if !self.wants(&measure) {
                continue;
            }
            let Some(instructions) = count(name) else {
                eprintln!(
                    "{measure}: left out, because there is no valgrind; `cargo xtask bench` installs it if it can"
                );
                return;
            };
            self.measure(&measure, "a call", || (instructions, Bar::None));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_callgrind() {
        let text = "==7== Callgrind\n==7== Events    : Ir\n==7== Collected : 1234567\n==7== \n";
        assert_eq!(collected(text), Some(1_234_567.0));
        assert_eq!(collected("valgrind: no such tool\n"), None);
    }
}
