//! `cargo xtask soak`: all tests again and again on a busy machine, to find those that fail only now and then.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::test;

/// How often the tests are run if nobody says otherwise.
pub(crate) const RUNS: u32 = 10;

/// Threads that take processor time from the tests. Dropping it stops them.
struct BusyLoops {
    stop: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

pub(crate) fn soak(runs: u32) -> Result<()> {
    let _busy = BusyLoops::start(2);
    let mut passed = Vec::new();
    for run in 1..=runs {
        println!("\n=== run {run} of {runs}, beside two busy loops ===");
        let start = Instant::now();
        test::test(None).with_context(|| format!("run {run} of {runs} failed, {} passed before", passed.len()))?;
        passed.push(start.elapsed());
        print!("\n{}", summary(&passed, runs));
    }
    Ok(())
}

/// How long each run took that passed.
fn summary(passed: &[Duration], runs: u32) -> String {
    let mut text = format!("=== {} of {runs} runs passed ===\n", passed.len());
    for (run, elapsed) in (1..).zip(passed) {
        let _ = writeln!(text, "run {run:<3} {:>7.1} s", elapsed.as_secs_f64());
    }
    text
}

// === impl BusyLoops ===

impl BusyLoops {
    fn start(count: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let spin = |stop: Arc<AtomicBool>| {
            move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }
        };
        let threads = (0..count).map(|_| thread::spawn(spin(Arc::clone(&stop)))).collect();
        Self { stop, threads }
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A loop that panicked has ended, which is all that is wanted.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_loops_end_with_their_owner() {
        let busy = BusyLoops::start(2);
        let stop = Arc::downgrade(&busy.stop);
        drop(busy);
        assert!(stop.upgrade().is_none(), "each thread gives up its reference when it ends");
    }

    #[test]
    fn summary_has_each_run() {
        let passed = [Duration::from_secs(812), Duration::from_millis(790_400)];
        assert_eq!(
            summary(&passed, 10).lines().collect::<Vec<_>>(),
            ["=== 2 of 10 runs passed ===", "run 1     812.0 s", "run 2     790.4 s"]
        );
    }
}
