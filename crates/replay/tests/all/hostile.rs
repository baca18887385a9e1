//! Damaged and hostile logs: no panic, every line counted.

use evenkeel_api::Preset;
use evenkeel_engine::controller::Objects;
use evenkeel_replay::{Format, Replay, Settings, Users};

use crate::logs::{input, recorded_text, replay};

fn settings() -> Settings {
    Settings::new(Preset::Kubernetes, 28)
}

/// Lines of all kinds of logs, to be damaged.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    for file in ["audit.jsonl", "httplog.txt"] {
        let text = recorded_text(file);
        seeds.extend(text.lines().step_by(97).map(|line| line.as_bytes().to_vec()));
    }
    for name in ["eks-s3-export.log", "aks-storage-account.json", "gke-sink.json"] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs").join(name);
        seeds.extend(std::fs::read_to_string(path).unwrap().lines().map(|line| line.as_bytes().to_vec()));
    }
    for line in [
        r#"{"time":"2026-11-16T10:51:03.604580Z","requestId":"7f","user":"alice","groups":["dev"],"method":"GET","path":"/o","schema":"a","level":"b","flow":"c","seats":3,"waitMs":12.5,"serviceMs":40.25,"status":200}"#,
        r#"{"msec":"1794826263.850","remote_addr":"192.0.2.7","request_method":"GET","request_uri":"/o?x=1","status":"200","request_time":"0.250"}"#,
        r#"192.0.2.7 - alice [16/Nov/2026:10:51:03 +0000] "GET /orders?q=\x22a\x22 HTTP/1.1" 200 512 "-" "curl/8.5.0""#,
        r#"[2026-11-16T10:51:03.600Z] "POST /api/v1/x HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "q" "cc" "l" "tcp://10.0.2.1:80""#,
    ] {
        seeds.push(line.as_bytes().to_vec());
    }
    seeds
}

/// Damages a line: bytes are changed, removed, doubled, or replaced by pieces of other lines.
fn damage(random: &mut fastrand::Rng, line: &mut Vec<u8>, other: &[u8]) {
    const WORDS: [&[u8]; 10] = [
        b"\"",
        b"{",
        b"}",
        b"[[[[[[[[",
        b"\\",
        b"\\ud800",
        b"-1",
        b"99999999999999999999",
        b"\0",
        "\u{fffd}é".as_bytes(),
    ];
    for _ in 0..random.usize(1..6) {
        let at = random.usize(..=line.len());
        let end = (at + random.usize(..20)).min(line.len());
        match random.u8(..6) {
            0 => line.truncate(at),
            1 => drop(line.drain(at..end)),
            2 => line.splice(at..at, WORDS[random.usize(..WORDS.len())].iter().copied()).for_each(drop),
            3 => {
                let start = random.usize(..=other.len());
                line.splice(at..end, other[start..].iter().copied().take(200)).for_each(drop);
            }
            4 => line[at..end].iter_mut().for_each(|byte| *byte = random.u8(..)),
            _ => line[at..end].reverse(),
        }
        line.truncate(4096);
    }
}

/// How many lines are tried; `HOSTILE_LINES` sets another number.
fn lines() -> u64 {
    std::env::var("HOSTILE_LINES").map_or(10_000, |lines| lines.parse().unwrap())
}

#[test]
fn damaged_lines_of_every_kind_are_counted_and_nothing_panics() {
    let seeds = seeds();
    let mut random = fastrand::Rng::with_seed(16);
    let templates = ["$msec \"$request\" $status", "[%START_TIME%] %REQ(:METHOD)% %REQ(:PATH)%"];
    let templates = templates.map(|template| Format::of_template(template).unwrap());
    let formats: Vec<Format> =
        [Format::Audit, Format::EventList, Format::Export, Format::HttpLog, Format::Access, Format::Fields]
            .into_iter()
            .chain(templates)
            .collect();
    let mut replays: Vec<_> =
        formats.iter().map(|_| Replay::new(settings(), vec![Objects::bootstrap(), Objects::default()], None)).collect();
    let mut written = vec![0; formats.len()];
    let mut left = lines();
    while left > 0 {
        let batch = left.min(5000);
        left -= batch;
        let mut text = Vec::new();
        let mut count = 0;
        for _ in 0..batch {
            let mut line = seeds[random.usize(..seeds.len())].clone();
            let other = &seeds[random.usize(..seeds.len())];
            if random.u8(..4) > 0 {
                damage(&mut random, &mut line, other);
            }
            line.retain(|byte| *byte != b'\n');
            count += u64::from(!line.trim_ascii().is_empty());
            text.extend_from_slice(&line);
            text.push(b'\n');
        }
        for ((format, replay), written) in formats.iter().zip(&mut replays).zip(&mut written) {
            let reader = Box::new(std::io::Cursor::new(text.clone()));
            let mut log = evenkeel_replay::Input::new("hostile", reader, None, Some(format.clone())).unwrap();
            replay.read(&mut log, |_, _| {});
            *written += count;
        }
    }
    for ((format, replay), written) in formats.iter().zip(replays).zip(written) {
        let report = replay.finish();
        assert!(report.damaged.count() > 0, "{format}");
        assert!(report.damaged.count() <= report.lines, "{format}");
        if !matches!(format, Format::EventList) {
            assert_eq!(report.lines, written, "{format}: every line is counted");
        }
    }
}

/// TL-36
#[test]
fn damaged_lines_are_named_and_the_others_count() {
    let good = recorded_text("audit.jsonl");
    let lines: Vec<&str> = good.lines().take(4).collect();
    let text =
        format!("{}\nnonsense\n{}\n{{\"stage\":\"Panic\"}}\n{}\n{}", lines[0], lines[1], lines[2], &lines[3][..400]);
    let report = replay(settings(), vec![Objects::bootstrap()], text);
    assert_eq!((report.lines, report.damaged.count(), report.requests), (6, 3, 1));
    let named: Vec<_> = report.damaged.first().iter().map(ToString::to_string).collect();
    assert_eq!(
        named,
        [
            "test.log, line 2: expected an object at byte 0",
            "test.log, line 4: requestReceivedTimestamp is missing",
            "test.log, line 6: the text is cut off at byte 400",
        ]
    );
    assert_eq!(report.notes.unfinished, 1);
}

#[test]
fn one_wrong_time_does_not_move_the_clock() {
    let line = |id: u32, time: &str| {
        format!(
            r#"{{"time":"{time}","requestId":"{id}","user":"a","groups":[],"method":"GET","path":"/","schema":"s","level":"l","waitMs":0,"serviceMs":5}}"#
        )
    };
    let text: Vec<String> = (0..100)
        .map(|id| match id {
            50 => line(id, "9999-12-31T23:59:59Z"),
            60 => line(id, "0001-01-01T00:00:00Z"),
            _ => line(id, &format!("2026-11-16T10:51:{:02}Z", id / 2)),
        })
        .collect();
    let report = replay(Settings::new(Preset::Plain, 10), vec![Objects::from(Preset::Plain)], text.join("\n"));
    assert_eq!((report.requests, report.damaged.count()), (98, 2));
    assert!(report.seconds() < 60.0, "{}", report.seconds());
    assert_eq!(report.damaged.first()[0].number, 51);
}

#[test]
fn a_packed_log_that_is_cut_off_is_read_as_far_as_it_goes() {
    use std::io::Write as _;

    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(recorded_text("audit.jsonl").as_bytes()).unwrap();
    let mut packed = packed.finish().unwrap();
    packed.truncate(packed.len() / 2);
    let report = replay(settings(), vec![Objects::bootstrap()], packed);
    assert!(report.requests > 1000, "{}", report.requests);
    let last = report.damaged.first().last().unwrap();
    assert!(last.to_string().contains("cannot read the rest of the log"), "{last}");
}

#[test]
fn first_lines_of_nonsense_are_not_a_log() {
    let mut random = fastrand::Rng::with_seed(16);
    for _ in 0..200 {
        let length = random.usize(..3000);
        let bytes: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(length).collect();
        let _ = Format::detect(&bytes);
        let _ = Format::Audit.read(&bytes, &mut Users::default());
    }
    assert_eq!(input(" \n\n").next_part(), None);
}
