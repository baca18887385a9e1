//! Colours and fonts, for light and dark.

/// How many colours there are; a larger number starts again from the first.
pub const COLORS: usize = LIGHT.len();

const LIGHT: [&str; 8] = ["#0969da", "#bc4c00", "#1a7f37", "#8250df", "#9a6700", "#bf3989", "#1b7c83", "#6e7781"];
const DARK: [&str; 8] = ["#4493f8", "#f0883e", "#3fb950", "#ab7df8", "#d29922", "#f778ba", "#39c5cf", "#9198a1"];

/// The style of every picture. Its rules apply below `svg.evenkeel` only, so that several pictures can be in one page.
pub(crate) fn style() -> String {
    let mut style = String::from("<style>\n");
    style += &rules("#1f2328", "#59636e", "#818b98", "#d1d9e0", "#ffffff", &LIGHT);
    style += "svg.evenkeel .strong { font-weight: 600; font-size: 15px; }\n";
    style += "svg.evenkeel .middle { text-anchor: middle; } svg.evenkeel .end { text-anchor: end; }\n";
    style += "svg.evenkeel .line { fill: none; stroke-width: 2; stroke-linejoin: round; }\n";
    style += "svg.evenkeel .thin { fill: none; stroke-width: 1.5; }\n";
    style += "svg.evenkeel .dashed { stroke-dasharray: 6 4; } svg.evenkeel .dotted { stroke-dasharray: 2 3; }\n";
    style += "svg.evenkeel .area { stroke: none; fill-opacity: 0.75; }\n";
    style += "@media (prefers-color-scheme: dark) {\n";
    style += &rules("#f0f6fc", "#9198a1", "#656c76", "#3d444d", "#0d1117", &DARK);
    style += "}\n</style>\n";
    style
}

fn rules(text: &str, faint: &str, axis: &str, grid: &str, background: &str, colors: &[&str; COLORS]) -> String {
    let mut rules = format!(
        "svg.evenkeel text {{ font: 13px system-ui, sans-serif; fill: {text}; }}\n\
         svg.evenkeel .faint {{ font-size: 12px; fill: {faint}; }}\n\
         svg.evenkeel .axis {{ fill: none; stroke: {axis}; }}\n\
         svg.evenkeel .grid {{ fill: none; stroke: {grid}; }}\n\
         svg.evenkeel .mark {{ fill: none; stroke: {faint}; stroke-width: 1.5; }}\n\
         svg.evenkeel .halo {{ paint-order: stroke; stroke: {background}; stroke-width: 3px; stroke-linejoin: round; }}\n"
    );
    for (number, color) in colors.iter().enumerate() {
        rules += &format!(
            "svg.evenkeel .c{number} {{ fill: {color}; stroke: {color}; }} \
             svg.evenkeel .line.c{number}, svg.evenkeel .thin.c{number} {{ fill: none; }} \
             svg.evenkeel .area.c{number} {{ stroke: none; }}\n"
        );
    }
    rules
}
