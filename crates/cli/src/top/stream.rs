//! The stream of frames of a gateway's admin endpoint: server-sent events with JSON.

use std::time::Duration;

use evenkeel_gateway::observe::frame::{Frame, VERSION};
use http::StatusCode;
use http_body_util::BodyExt;
use serde::Deserialize;
use tokio::time::timeout;

use super::lines::Lines;
use super::source::{Update, Updates, check};
use crate::remote::Server;

/// The version that an event is in.
#[derive(Debug, Deserialize)]
struct Versioned {
    version: u32,
}

/// An event of the stream.
#[derive(Debug, Default, PartialEq, Eq)]
struct Event {
    kind: String,
    data: String,
}

/// Puts server-sent events together.
#[derive(Debug)]
struct Events {
    lines: Lines,
    unfinished: Event,
}

const PATH: &str = "/debug/frames";
/// Frames come every second.
const SILENCE_MAX: Duration = Duration::from_secs(15);
const SAME_VERSION: &str = "use the same version of the gateway and of this program";
/// A frame has at most 64 KB, and a past is smaller; later versions may have more.
const EVENT_BYTES_MAX: usize = 4 << 20;

/// Reports all frames until the stream ends, and returns why it did. `Ok` if the reader is gone.
pub(super) async fn follow(server: &Server, updates: &Updates) -> Result<(), String> {
    let mut link = server.connect().await?;
    let response = link.open(PATH, "text/event-stream").await?;
    if response.status() == StatusCode::NOT_FOUND {
        return Err(format!(
            "{PATH} does not exist (404); name the admin endpoint of a gateway, or use --kube for a kube-apiserver"
        ));
    }
    check(response.status(), PATH)?;
    let mut body = response.into_body();
    let mut events = Events::new();
    loop {
        let frame = timeout(SILENCE_MAX, body.frame()).await.map_err(|_| format!("no frame for {SILENCE_MAX:?}"))?;
        let frame = frame.ok_or("the server has ended the stream")?.map_err(|error| format!("cut off: {error}"))?;
        let Ok(chunk) = frame.into_data() else { continue };
        for event in events.push(&chunk) {
            let Some(update) = event.read()? else { continue };
            if updates.send(update).await.is_err() {
                return Ok(());
            }
        }
    }
}

// === impl Event ===

impl Event {
    /// The update of an event. `None` for kinds of events that later versions may add.
    fn read(&self) -> Result<Option<Update>, String> {
        if !["frame", "past"].contains(&self.kind.as_str()) {
            return Ok(None);
        }
        let unreadable = |error: serde_json::Error| format!("a {} cannot be read: {error}; {SAME_VERSION}", self.kind);
        let Versioned { version } = serde_json::from_str(&self.data).map_err(unreadable)?;
        if version != VERSION {
            return Err(format!("frames are of version {version}, and {VERSION} is expected; {SAME_VERSION}"));
        }
        let read = match self.kind.as_str() {
            "past" => serde_json::from_str(&self.data).map(Update::Past),
            _ => serde_json::from_str::<Frame>(&self.data).map(|frame| Update::Frame(Box::new(frame))),
        };
        read.map(Some).map_err(unreadable)
    }
}

// === impl Events ===

impl Events {
    fn new() -> Self {
        Self { lines: Lines::new(EVENT_BYTES_MAX), unfinished: Event::default() }
    }

    /// The events that this chunk completes.
    fn push(&mut self, chunk: &[u8]) -> Vec<Event> {
        let mut complete = Vec::new();
        let Event { kind, data } = &mut self.unfinished;
        self.lines.push(chunk, |line| {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "" if line.is_empty() => {
                    let event = Event { kind: std::mem::take(kind), data: std::mem::take(data) };
                    if !event.data.is_empty() {
                        complete.push(event);
                    }
                }
                "event" => value.clone_into(kind),
                "data" if data.len() + value.len() < EVENT_BYTES_MAX => {
                    if !data.is_empty() {
                        data.push('\n');
                    }
                    data.push_str(value);
                }
                _ => {}
            }
        });
        complete
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_gateway::observe::frame::PastLevel;

    use super::*;

    #[test]
    fn events_are_put_together_from_chunks() {
        let text = ": hello\r\n\r\nevent: frame\nid: 7\ndata: {\"a\":\ndata: 1}\n\ndata:x\nretry: 5\n\nevent: y\n\n\n";
        let event = |kind: &str, data: &str| Event { kind: kind.to_owned(), data: data.to_owned() };
        for cut in 0..=text.len() {
            let mut events = Events::new();
            let mut found = events.push(&text.as_bytes()[..cut]);
            found.extend(events.push(&text.as_bytes()[cut..]));
            assert_eq!(found, [event("frame", "{\"a\":\n1}"), event("", "x")], "{cut}");
        }
    }

    #[test]
    fn an_event_without_an_end_takes_no_memory() {
        let mut events = Events::new();
        for _ in 0..40 {
            assert!(events.push(&vec![b'x'; 1 << 18]).is_empty());
            assert!(events.push(b"\ndata: ").is_empty());
            assert!(events.push(&vec![b'y'; 1 << 18]).is_empty());
        }
        assert!(events.unfinished.data.len() <= EVENT_BYTES_MAX);
    }

    #[test]
    fn frames_and_pasts_are_read_and_others_are_ignored() {
        let event = |kind: &str, data: &str| Event { kind: kind.to_owned(), data: data.to_owned() }.read();
        let frame = serde_json::to_string(&Frame::new(5, 1000)).unwrap();
        assert!(matches!(event("frame", &frame), Ok(Some(Update::Frame(frame))) if frame.time_ms == 5));
        let past = PastLevel { version: VERSION, name: "a".to_owned(), until_ms: 5, ..PastLevel::default() };
        let past = serde_json::to_string(&past).unwrap();
        assert!(matches!(event("past", &past), Ok(Some(Update::Past(past))) if past.name == "a"));
        for unknown in ["", "news"] {
            assert!(matches!(event(unknown, &frame), Ok(None)), "{unknown}");
        }
        let why = event("frame", &frame.replace("\"version\":1", "\"version\":9")).unwrap_err();
        assert!(why.starts_with("frames are of version 9, and 1 is expected; use the same version"), "{why}");
        // Frames that cannot be read are reported: otherwise the screen would wait for ever.
        let why = event("frame", "{\"version\":1}").unwrap_err();
        assert!(why.starts_with("a frame cannot be read: missing field"), "{why}");
    }
}
