//! The stream of frames of a gateway's admin endpoint: server-sent events with JSON.

use std::time::Duration;

use evenkeel_gateway::observe::frame::{Frame, PastLevel, VERSION};
use http::StatusCode;
use http_body_util::BodyExt;
use serde::Deserialize;
use tokio::time::timeout;

use super::lines::Lines;
use super::source::{Update, Updates, check};
use crate::remote::Server;

/// An event of the stream. A frame has fields that a past has not; all fields of a past are optional.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Message {
    Frame(Box<Frame>),
    Past(PastLevel),
}

/// The version that an event is in.
#[derive(Debug, Deserialize)]
struct Versioned {
    version: u32,
}

/// Puts server-sent events together.
#[derive(Debug)]
struct Events {
    lines: Lines,
    data: String,
}

const PATH: &str = "/debug/frames";
/// Frames come every second.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// A frame has at most 64 KB, and a past is smaller; later versions may have more.
const EVENT_BYTES_MAX: usize = 4 << 20;

/// Reports all frames until the stream ends, and why it did. `Ok` if nobody wants them any more.
pub(super) async fn follow(server: &Server, updates: &Updates) -> Result<(), String> {
    let mut link = server.connect().await?;
    let response = link.open(PATH, "text/event-stream").await?;
    if response.status() == StatusCode::NOT_FOUND {
        return Err(format!(
            "there is no {PATH} (404); name the admin endpoint of a gateway, or use --kube for a kube-apiserver"
        ));
    }
    check(response.status(), PATH)?;
    let mut body = response.into_body();
    let mut events = Events::new();
    loop {
        let frame = timeout(SILENCE_MAX, body.frame()).await.map_err(|_| format!("no frame for {SILENCE_MAX:?}"))?;
        let frame = frame.ok_or("the server has ended the stream")?.map_err(|error| format!("cut off: {error}"))?;
        let Ok(chunk) = frame.into_data() else { continue };
        for data in events.push(&chunk) {
            let Some(update) = read(&data)? else { continue };
            if updates.send(update).await.is_err() {
                return Ok(());
            }
        }
    }
}

/// Reads the data of an event. `None` for events that later versions may add.
fn read(data: &str) -> Result<Option<Update>, String> {
    match serde_json::from_str::<Versioned>(data) {
        Ok(Versioned { version: VERSION }) => {}
        Ok(Versioned { version }) => {
            return Err(format!(
                "the frames are of version {version}, and this program reads version {VERSION}; use the same version of both"
            ));
        }
        Err(_) => return Ok(None),
    }
    Ok(match serde_json::from_str(data) {
        Ok(Message::Frame(frame)) => Some(Update::Frame(frame)),
        Ok(Message::Past(past)) if past.until_ms > 0 => Some(Update::Past(past)),
        Ok(Message::Past(_)) | Err(_) => None,
    })
}

// === impl Events ===

impl Events {
    fn new() -> Self {
        Self { lines: Lines::new(EVENT_BYTES_MAX), data: String::new() }
    }

    /// The data of the events that this chunk completes.
    fn push(&mut self, chunk: &[u8]) -> Vec<String> {
        let mut complete = Vec::new();
        let data = &mut self.data;
        self.lines.push(chunk, |line| {
            if line.is_empty() {
                if !data.is_empty() {
                    complete.push(std::mem::take(data));
                }
            } else if let Some(text) = line.strip_prefix("data:") {
                if !data.is_empty() {
                    data.push('\n');
                }
                if data.len() + text.len() <= EVENT_BYTES_MAX {
                    data.push_str(text.strip_prefix(' ').unwrap_or(text));
                }
            }
        });
        complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_put_together_from_chunks() {
        let text = ": hello\r\n\r\nevent: frame\nid: 7\ndata: {\"a\":\ndata: 1}\n\ndata:x\nretry: 5\n\n\n";
        for cut in 0..=text.len() {
            let mut events = Events::new();
            let mut found = events.push(&text.as_bytes()[..cut]);
            found.extend(events.push(&text.as_bytes()[cut..]));
            assert_eq!(found, ["{\"a\":\n1}", "x"], "{cut}");
        }
    }

    #[test]
    fn an_event_without_an_end_takes_no_memory() {
        let mut events = Events::new();
        for _ in 0..40 {
            assert!(events.push(&[b'x'; 1 << 18]).is_empty());
            assert!(events.push(b"\ndata: ").is_empty());
            assert!(events.push(&[b'y'; 1 << 18]).is_empty());
        }
        assert!(events.data.len() <= EVENT_BYTES_MAX + 100);
    }

    #[test]
    fn frames_and_pasts_are_told_apart() {
        let frame = serde_json::to_string(&Frame::new(5, 1000)).unwrap();
        assert!(matches!(read(&frame), Ok(Some(Update::Frame(frame))) if frame.time_ms == 5));
        let past = PastLevel { version: VERSION, name: "a".to_owned(), until_ms: 5, ..PastLevel::default() };
        let past = serde_json::to_string(&past).unwrap();
        assert!(matches!(read(&past), Ok(Some(Update::Past(past))) if past.name == "a"));
        for unknown in ["", "[]", "{\"version\":1}", "{\"version\":1,\"news\":true}", "hello"] {
            assert!(matches!(read(unknown), Ok(None)), "{unknown}");
        }
        let why = read(&frame.replace("\"version\":1", "\"version\":9")).unwrap_err();
        assert!(why.contains("the frames are of version 9"), "{why}");
    }
}
