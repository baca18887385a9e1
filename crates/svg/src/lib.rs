//! Charts as SVG, for reports and documentation: step lines, stacked areas, bars and percentiles.
//!
//! A picture is one text that needs nothing else: no script, no font, no network. Colours follow the reader's preference for
//! light or dark. A picture with the same data has the same bytes.
//!
//! ```
//! use evenkeel_svg::{Axis, Chart, Line};
//!
//! let picture = Chart::new("Seats in use", "A level uses 3 seats, then 5.")
//!     .x(Axis::linear(0.0, 10.0).unit("s"))
//!     .y(Axis::linear(0.0, 6.0).title("seats"))
//!     .steps(Line { name: "batch".into(), color: 0, points: vec![(0.0, 3.0), (4.0, 5.0), (10.0, 5.0)] })
//!     .render();
//! assert!(picture.starts_with("<svg ") && picture.contains("batch"));
//! ```

mod axis;
mod bars;
mod chart;
mod element;
mod intervals;
mod legend;
mod style;

pub use axis::Axis;
pub use bars::Bars;
pub use chart::{Area, Chart, Line};
pub use element::escape;
pub use intervals::{Interval, Intervals};
pub use style::COLORS;

/// Tests the example of the page.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
