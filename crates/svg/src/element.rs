//! Elements of a picture under way.

use std::fmt::{Arguments, Write};

use crate::style;

/// A picture under way.
pub(crate) struct Picture {
    svg: String,
}

/// The text with what XML and HTML would take for markup replaced. Characters that XML cannot have are left out.
///
/// ```
/// assert_eq!(evenkeel_svg::escape("a<b & \"c\"\u{1}"), "a&lt;b &amp; &quot;c&quot;");
/// ```
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            '\t' | '\n' | '\r' => escaped.push(' '),
            _ if character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}') => {}
            _ => escaped.push(character),
        }
    }
    escaped
}

/// About how wide a text is, in the font of the pictures.
pub(crate) fn text_width(text: &str) -> f64 {
    text.chars().map(|character| if character.is_ascii() { 7.0 } else { 8.5 }).sum()
}

/// The text, cut to about that width.
pub(crate) fn cut(text: &str, width: f64) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    for character in text.chars() {
        if text_width(&cut) + 16.0 > width {
            break;
        }
        cut.push(character);
    }
    cut + "…"
}

// === impl Picture ===

impl Picture {
    pub(crate) fn new(title: &str, description: &str, width: f64, height: f64) -> Self {
        let (title, description) = (escape(title), escape(description));
        let mut picture = Self { svg: String::new() };
        picture.svg += &format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"evenkeel\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n\
             <title>{title}</title>\n<desc>{description}</desc>\n"
        );
        picture.svg += &style::style();
        picture
    }

    pub(crate) fn add(&mut self, element: Arguments<'_>) {
        // Writing to a text cannot fail.
        let _ = writeln!(self.svg, "{element}");
    }

    pub(crate) fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        self.add(format_args!("<text{class} x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escape(text)));
    }

    pub(crate) fn path(&mut self, class: &str, path: &str) {
        self.add(format_args!("<path class=\"{class}\" d=\"{path}\"/>"));
    }

    pub(crate) fn end(self) -> String {
        self.svg + "</svg>\n"
    }
}
