//! The head of the screen: the server, its seats, and the diagnosis.

use evenkeel_gateway::observe::frame::{DiagnosisState, Frame, Level};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::panel::wrapped;
use crate::terminal::{printable, text_width};
use crate::top::figures::{amount, clock, float, percent, share};
use crate::top::grid::{Side, Tone, fitted};
use crate::top::palette::Palette;
use crate::top::state::{Connection, Top};

/// From this width on, a diagnosis fits into one line.
const WIDE: u16 = 160;
/// The separator of two figures.
const SEPARATOR: &str = "   ";

/// Draws the head, and says how many lines it takes. Its height does not change from frame to frame.
pub(super) fn render(top: &Top, palette: Palette, area: Rect, buffer: &mut Buffer) -> u16 {
    let (tone, state) = connection(top);
    let name = format!("evenkeel top  {}", printable(&top.url));
    let room = usize::from(area.width).saturating_sub(text_width(&state) + 2);
    let name = fitted(&name, room, Side::Left);
    let line = Line::from(vec![
        Span::styled(name, palette.style(Tone::Strong)),
        Span::raw("  "),
        Span::styled(state, palette.style(tone)),
    ]);
    buffer.set_line(area.x, area.y, &line, area.width);
    let Some(frame) = top.frame() else { return 2 };
    let (lines, diagnosis_lines) = if area.width >= WIDE { (4, 1) } else { (5, 2) };
    if area.height < lines + 4 {
        return 1;
    }
    buffer.set_line(area.x, area.y + 1, &Line::raw(summary(frame, area.width.into())), area.width);
    let style = palette.style(diagnosis_tone(frame));
    let text = printable(&frame.diagnosis.text).into_owned();
    let text = wrapped(&text, area.width.into(), diagnosis_lines);
    for (line, y) in text.into_iter().zip(area.y + 2..) {
        buffer.set_line(area.x, y, &Line::styled(line, style), area.width);
    }
    lines
}

/// The server in one line of that width at most.
pub(in crate::top) fn summary(frame: &Frame, width: usize) -> String {
    let server = &frame.server;
    let waiting: i64 = frame.levels.iter().map(|level| level.waiting).sum();
    let rate = |each: fn(&Level) -> f64| amount(frame.levels.iter().map(each).sum::<f64>());
    let exempt = if server.exempt > 0 { format!(" + {} exempt", server.exempt) } else { String::new() };
    let used = percent(share(float(server.in_use), float(server.concurrency)));
    let auto = server.limit.as_ref().map_or("", |_| ", auto");
    let mut parts = vec![
        format!("seats {} of {} ({used}{auto}){exempt}", server.in_use, server.concurrency),
        format!("waiting {waiting}"),
    ];
    if let Some(fleet) = &server.fleet {
        parts.insert(1, fleet.phrase());
    }
    if frame.interval_ms > 0 {
        parts.push(format!("started {}/s", rate(|level| level.dispatched)));
        parts.push(format!("rejected {}/s", rate(Level::rejected_total)));
    }
    if let Some(limit) = &server.limit {
        parts.push(format!("limit {}: {}", limit.phase.replace('-', " "), limit.because()));
    }
    if !server.borrowing.is_empty() {
        parts.push(format!("{} borrowing", server.borrowing));
    }
    while parts.len() > 1 && text_width(&parts.join(SEPARATOR)) > width {
        parts.pop();
    }
    printable(&parts.join(SEPARATOR)).into_owned()
}

pub(in crate::top) fn diagnosis_tone(frame: &Frame) -> Tone {
    match frame.diagnosis.state {
        DiagnosisState::Well => Tone::Good,
        DiagnosisState::Slow => Tone::Warn,
        DiagnosisState::Failing => Tone::Bad,
    }
}

fn connection(top: &Top) -> (Tone, String) {
    let time = top.frame().map(|frame| clock(frame.time_ms)).unwrap_or_default();
    match &top.connection {
        Connection::Connecting => (Tone::Warn, "connecting …".to_owned()),
        Connection::Lost { .. } if top.frame().is_some() => (Tone::Bad, format!("not connected, as of {time} UTC")),
        Connection::Lost { .. } => (Tone::Bad, "not connected".to_owned()),
        Connection::Live if top.is_paused() => (Tone::Warn, format!("paused at {time} UTC")),
        Connection::Live => (Tone::Good, format!("live {time} UTC")),
    }
}
