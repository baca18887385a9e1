//! What the tests share: the recorded log, and replays of texts.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use evenkeel_api::decode::{Manifest, Strictness};
use evenkeel_engine::controller::Objects;
use evenkeel_recorded::golden;
use evenkeel_replay::{Input, Replay, Report, Settings};
use flate2::read::MultiGzDecoder;

/// One level for everything, with a flow for each user and short queues, so that requests wait and are rejected.
pub(crate) const TENANTS: &str = include_str!("../objects/tenants.yaml");

/// The seats of the recorded server.
pub(crate) const RECORDED_SEATS: u32 = 28;

/// A file of the recording.
pub(crate) fn recorded_file(name: &str) -> PathBuf {
    let packed = golden().join("replay").join(format!("{name}.gz"));
    if packed.exists() { packed } else { golden().join("replay").join(name) }
}

/// The unpacked content of a file of the recording.
pub(crate) fn recorded_text(name: &str) -> String {
    let mut text = String::new();
    let file = File::open(recorded_file(name)).unwrap();
    MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

/// The objects that the recorded server had.
pub(crate) fn recorded_objects() -> Objects {
    objects(&recorded_text("objects.json"))
}

pub(crate) fn objects(manifest: &str) -> Objects {
    let manifest = Manifest::read("objects", manifest.as_bytes(), Strictness::Lenient).unwrap();
    manifest.entries.into_iter().map(|entry| entry.object).collect()
}

pub(crate) fn input(text: impl Into<Vec<u8>>) -> Input {
    Input::new("test.log", Box::new(std::io::Cursor::new(text.into())), None, None).unwrap()
}

/// Replays a text.
pub(crate) fn replay(settings: Settings, configurations: Vec<Objects>, text: impl Into<Vec<u8>>) -> Report {
    let mut replay = Replay::new(settings, configurations, None);
    replay.read(&mut input(text), |_, _| {});
    replay.finish()
}
