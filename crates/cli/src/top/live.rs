//! The live screen: draws the updates of the source, and carries out the actions of keys.

use std::io;
use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use ratatui::crossterm::event::{self, Event};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::palette::Palette;
use super::screen::Screen;
use super::source::Source;
use super::state::Top;
use super::{keys, source};
use crate::exit::Exit;
use crate::signals::Signals;

/// Updates that come together are drawn together.
const DRAW_DELAY: Duration = Duration::from_millis(30);

pub(super) async fn run(source: Source, palette: Palette, signals: &mut Signals) -> Result<Exit> {
    let mut top = Top::new(&source.name(), source.kind);
    let (sender, mut updates) = mpsc::channel(16);
    let (want, wanted) = watch::channel(top.wanted());
    let mut screen = Screen::open(palette).context("cannot use the terminal")?;
    let mut events = terminal_events();
    let mut task = tokio::spawn(source.run(sender, wanted));
    let mut draw_at = Some(Instant::now());
    loop {
        tokio::select! {
            Some(update) = updates.recv() => top.update(update),
            event = events.recv() => match event {
                Some(Ok(Event::Key(key))) => {
                    if let ControlFlow::Break(()) = keys::press(&mut top, key) {
                        return Ok(Exit::Success);
                    }
                    // The effect of a key has to be seen at once.
                    draw_at = Some(Instant::now());
                }
                // A resize and all other events: drawing adapts to the size.
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error).context("cannot read keys from the terminal"),
                None => return Err(anyhow!("cannot read keys from the terminal")),
            },
            () = async { sleep_until(draw_at.unwrap_or_else(Instant::now)).await }, if draw_at.is_some() => {
                draw_at = None;
                screen.draw(&top).context("cannot write to the terminal")?;
                continue;
            }
            () = signals.end() => return Ok(Exit::Success),
            failed = &mut task => {
                return Err(anyhow!("the source of frames has ended unexpectedly: {failed:?}"));
            }
        }
        want.send_if_modified(|wanted| source::Wanted::replace(wanted, top.wanted()));
        draw_at.get_or_insert_with(|| Instant::now() + DRAW_DELAY);
    }
}

/// Keys and resizes. They are read on a thread of their own, which ends with the process.
fn terminal_events() -> mpsc::Receiver<io::Result<Event>> {
    let (sender, receiver) = mpsc::channel(64);
    thread::spawn(move || {
        loop {
            let event = event::read();
            let is_last = event.is_err();
            if sender.blocking_send(event).is_err() || is_last {
                return;
            }
        }
    });
    receiver
}
