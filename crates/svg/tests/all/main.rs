//! The pictures, as text. What they look like is checked by eye.

use evenkeel_svg::{Area, Axis, Bars, Chart, Interval, Intervals, Line};

fn chart() -> Chart {
    Chart::new("Seats in use", "Two levels share eight seats.")
        .x(Axis::linear(0.0, 60.0).unit("s"))
        .y(Axis::linear(0.0, 8.0).title("seats"))
}

fn area(name: &str, color: usize, heights: &[f64]) -> Area {
    Area { name: name.to_owned(), color, heights: heights.to_vec() }
}

#[test]
fn a_chart_with_everything() {
    let areas = vec![area("system", 0, &[1.0, 2.0, 1.0]), area("batch", 1, &[0.0, 3.0, 5.0])];
    let picture = chart()
        .areas(vec![0.0, 20.0, 40.0, 60.0], areas)
        .dashed("nominal", vec![(0.0, 6.0), (60.0, 6.0)])
        .dotted("floor", vec![(0.0, 2.0), (60.0, 2.0)])
        .steps(Line { name: "limit".into(), color: 2, points: vec![(0.0, 5.0), (30.0, 7.0), (60.0, 7.0)] })
        .line(Line { name: "trend".into(), color: 3, points: vec![(0.0, 0.0), (60.0, 8.0)] })
        .render();
    insta::assert_snapshot!(without_style(&picture));
}

#[test]
fn percentiles_and_bars() {
    let interval = |p50: f64| Interval { p50, p90: 2.0 * p50, p99: 3.0 * p50, p999: 20.0 * p50 };
    let picture = Intervals::new("Total time", "Mice are faster.", "ms", &["old", "new"])
        .row("mice", vec![interval(20.0), interval(0.0)])
        .row("elephants", vec![interval(300.0), interval(310.0)])
        .render();
    insta::assert_snapshot!("intervals", without_style(&picture));
    let picture = Bars::new("Rejections", "", "", &["queue-full", "time-out"])
        .group("mice", vec![0.0, 3.0])
        .group("elephants", vec![1250.0, 17.0])
        .render();
    insta::assert_snapshot!("bars", without_style(&picture));
}

#[test]
fn names_are_data_and_not_markup() {
    let name = "</text><script>alert(1)</script>\u{0}&\"";
    let line = || Line { name: name.to_owned(), color: 99, points: vec![(f64::NAN, f64::INFINITY), (1.0, -1.0)] };
    let pictures = [
        Chart::new(name, name)
            .x(Axis::linear(0.0, 0.0).unit(name))
            .y(Axis::logarithmic(-1.0, 1.0).title(name))
            .steps(line())
            .render(),
        Intervals::new(name, name, name, &[name, name]).row(name, Vec::new()).render(),
        Bars::new(name, name, name, &[name]).group(name, vec![f64::NAN, -5.0]).render(),
    ];
    for picture in pictures {
        assert!(!picture.contains("<script") && !picture.contains("NaN") && !picture.contains("inf"), "{picture}");
    }
}

#[test]
fn empty_charts_are_pictures_too() {
    for picture in [chart().areas(Vec::new(), Vec::new()).render(), Bars::new("", "", "", &[]).render()] {
        assert!(picture.ends_with("</svg>\n"));
    }
}

/// The style is the same in all pictures.
fn without_style(picture: &str) -> String {
    let (before, rest) = picture.split_once("<style>").expect("a style");
    let (_, after) = rest.split_once("</style>\n").expect("the end of the style");
    format!("{before}{after}")
}
