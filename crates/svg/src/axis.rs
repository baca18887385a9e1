//! Axes: what values are shown, and where their ticks are.

/// An axis of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    min: f64,
    max: f64,
    is_logarithmic: bool,
    unit: String,
    title: String,
}

/// A logarithmic axis shows at least so many powers of ten.
const DECADES_MIN: i32 = 2;

// === impl Axis ===

impl Axis {
    /// From the one value to the other. An axis without extent gets one.
    pub fn linear(min: f64, max: f64) -> Self {
        let max = if max > min { max } else { min + 1.0 };
        Self { min, max, is_logarithmic: false, unit: String::new(), title: String::new() }
    }

    /// The same in powers of ten: both ends are moved outwards to the next power.
    pub fn logarithmic(min: f64, max: f64) -> Self {
        let low = decade_below(if min > 0.0 && min.is_finite() { min } else { 0.1 });
        let mut high = low + DECADES_MIN;
        while power_of_ten(high) < max && high < 300 {
            high += 1;
        }
        Self {
            min: f64::from(low),
            max: f64::from(high),
            is_logarithmic: true,
            unit: String::new(),
            title: String::new(),
        }
    }

    /// The same, but with a unit after the number at each tick.
    #[must_use]
    pub fn unit(self, unit: &str) -> Self {
        Self { unit: unit.to_owned(), ..self }
    }

    /// The same with a title.
    #[must_use]
    pub fn title(self, title: &str) -> Self {
        Self { title: title.to_owned(), ..self }
    }

    pub(crate) fn caption(&self) -> &str {
        &self.title
    }

    /// Where a value is, as a part of the axis from 0 to 1. What is beyond an end is at the end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let value = if self.is_logarithmic { log10(value) } else { value };
        let place = (value - self.min) / (self.max - self.min);
        if place.is_nan() { 0.0 } else { place.clamp(0.0, 1.0) }
    }

    /// The places of about so many ticks, each with its label.
    pub(crate) fn ticks(&self, count: u32) -> Vec<(f64, String)> {
        if self.is_logarithmic {
            let mut decade = whole(self.min);
            let mut ticks = Vec::new();
            while f64::from(decade) <= self.max {
                ticks.push((self.place(power_of_ten(decade)), self.label(power_of_ten(decade))));
                decade += 1;
            }
            return ticks;
        }
        let step = nice_step((self.max - self.min) / f64::from(count.max(1)));
        let mut number = (self.min / step).ceil();
        let mut ticks = Vec::new();
        while number * step <= self.max * (1.0 + 1e-9) && ticks.len() < 100 {
            ticks.push((self.place(number * step), self.label(number * step)));
            number += 1.0;
        }
        ticks
    }

    fn label(&self, value: f64) -> String {
        let number = number(value);
        if self.unit.is_empty() { number } else { format!("{number} {}", self.unit) }
    }
}

/// A number for people: `1,500`, `0.25`.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    // As many digits as are needed to show steps of 1, 2 and 5 times a power of ten in full.
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |rest| (if rest == "0" { "" } else { "-" }, rest));
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut grouped = String::from(sign);
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    fraction.map_or(grouped.clone(), |fraction| format!("{grouped}.{fraction}"))
}

/// The least of 1, 2 and 5 times a power of ten that is no smaller.
fn nice_step(least: f64) -> f64 {
    let least = if least.is_finite() && least > 0.0 { least } else { 1.0 };
    let decade = power_of_ten(decade_below(least));
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * decade).find(|step| *step >= least).unwrap_or(least)
}

/// The power of ten that is no larger.
fn decade_below(value: f64) -> i32 {
    let mut decade = -12;
    while decade < 300 && power_of_ten(decade + 1) <= value {
        decade += 1;
    }
    decade
}

fn power_of_ten(power: i32) -> f64 {
    let factor = (0..power.abs()).fold(1.0, |product, _| product * 10.0);
    if power < 0 { 1.0 / factor } else { factor }
}

/// Good enough for a place in a picture, and the same on every machine.
fn log10(value: f64) -> f64 {
    if value.is_nan() || value <= 0.0 {
        return -12.0;
    }
    let decade = decade_below(value);
    // From 1 to 10: by halving.
    let (mut rest, mut part, mut sum) = (value / power_of_ten(decade), 0.5, f64::from(decade));
    for _ in 0..16 {
        rest *= rest;
        if rest >= 10.0 {
            rest /= 10.0;
            sum += part;
        }
        part /= 2.0;
    }
    sum
}

#[expect(clippy::cast_possible_truncation, reason = "a small power")]
fn whole(number: f64) -> i32 {
    number.round() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, count: u32) -> Vec<String> {
        axis.ticks(count).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            labels(&Axis::linear(0.0, 60.0).unit("s"), 6),
            ["0 s", "10 s", "20 s", "30 s", "40 s", "50 s", "60 s"]
        );
        assert_eq!(labels(&Axis::linear(0.0, 1.0), 5), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(labels(&Axis::linear(0.0, 2600.0), 3), ["0", "1,000", "2,000"]);
        assert_eq!(labels(&Axis::linear(3.0, 3.0), 2), ["3", "3.5", "4"]);
    }

    #[test]
    fn logarithmic_axes_show_powers_of_ten() {
        let axis = Axis::logarithmic(0.3, 250.0).unit("ms");
        assert_eq!(labels(&axis, 5), ["0.1 ms", "1 ms", "10 ms", "100 ms", "1,000 ms"]);
        let places = [0.1, 1.0, 10.0, 31.622_776_6, 1000.0, 5000.0, 0.0].map(|value| axis.place(value));
        for (place, wanted) in places.into_iter().zip([0.0, 0.25, 0.5, 0.625, 1.0, 1.0, 0.0]) {
            assert!((place - wanted).abs() < 1e-4, "{places:?}");
        }
        assert_eq!(labels(&Axis::logarithmic(0.0, 0.0), 5), ["0.1", "1", "10"]);
        let odd = [f64::NAN, f64::INFINITY, -1.0].map(|value| Axis::logarithmic(value, value).ticks(5).len());
        assert!(odd.iter().all(|count| (1..=320).contains(count)), "{odd:?}");
    }
}
