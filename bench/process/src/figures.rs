//! Medians and percentiles, and how busy the machine is with other things.

use std::fs;
use std::io;
use std::time::Duration;

/// The middle of some figures; nothing is a figure of zero.
pub fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

/// The value that 99 of 100 do not exceed, in milliseconds.
pub fn p99_ms(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    let place = (times.len() * 99).div_ceil(100).saturating_sub(1);
    times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

/// Over the last minute.
pub fn load_average() -> io::Result<String> {
    let text = fs::read_to_string("/proc/loadavg")?;
    Ok(text.split_whitespace().next().unwrap_or_default().to_owned())
}
