//! The flight recorder on the admin endpoint (FR-2).

use crate::support;

use std::path::Path;
use std::time::Duration;

use evenkeel::flight::Flight;
use support::client::get;
use support::upstream::{Upstream, ok};
use support::{ONE_LEVEL, config, start_with};
use tempfile::TempDir;

#[tokio::test]
async fn fr_2_the_last_requests_are_dumped() {
    let upstream = Upstream::answering(|_| ok("fine")).await;
    let mut settings = config(&[upstream.address]);
    settings.admin.address = Some("127.0.0.1:0".parse().unwrap());
    let mut running = start_with(settings, ONE_LEVEL).await;
    for _ in 0..5 {
        assert_eq!(get(running.address, "/orders/1", "").await.status, 200);
    }
    running.no_seat_is_taken().await;
    let admin = running.gateway.admin_address().unwrap();
    let answer = get(admin, "/debug/flight?seconds=60", "").await;
    assert_eq!(answer.status, 200);
    let flight = Flight::from_bytes(&answer.body).unwrap();
    assert_eq!((flight.records.len(), flight.header.hides_users), (5, true));
    assert!(flight.header.objects.len() >= 2);
    let in_effect = flight.header.settings.as_ref().unwrap();
    assert_eq!(in_effect["flightRecorder"]["bytes"], 32 << 20, "{in_effect}");
    for (query, what) in [
        ("?seconds=many", "seconds is not a number; use ?seconds=120"),
        ("?minutes=1", "unknown parameter \"minutes\""),
    ] {
        let answer = get(admin, &format!("/debug/flight{query}"), "").await;
        assert!(answer.status == 400 && answer.text().starts_with(what), "{}", answer.text());
    }

    // A recorder that is switched off keeps nothing.
    let mut without = (*running.gateway.config()).clone();
    without.flight_recorder.bytes = 0;
    assert_eq!(running.gateway.reconfigure(without).await.unwrap().changed, ["flightRecorder.bytes"]);
    assert_eq!(get(admin, "/debug/flight", "").await.status, 404);
    running.done().await;
}

/// Waits until there is a dump, and reads it.
async fn first_dump(folder: &Path) -> (String, Flight) {
    let until = std::time::Instant::now() + 2 * support::PATIENCE;
    loop {
        let files = std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        if let Some(path) = files.into_iter().find(|path| path.extension().is_some_and(|end| end == "ekf")) {
            let flight = Flight::from_bytes(&std::fs::read(&path).unwrap()).unwrap();
            return (path.file_name().unwrap().to_string_lossy().into_owned(), flight);
        }
        assert!(std::time::Instant::now() < until, "there is no dump");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn fr_2_a_burst_of_rejections_is_dumped_by_itself() {
    let (upstream, folder) = (Upstream::answering(|_| ok("fine")).await, TempDir::new().unwrap());
    let mut settings = config(&[upstream.address]);
    let directory = folder.path().join("flight");
    settings.flight_recorder.directory = Some(directory.clone());
    settings.flight_recorder.triggers.rejections = 5;
    let nobody = "{levels: {nobody: {share: 0}}, match: [{level: nobody}]}";
    let running = start_with(settings, nobody).await;
    // The first look has to be before the burst, so it goes on until there is a dump.
    let requests = async {
        loop {
            assert_eq!(get(running.address, "/orders/1", "").await.status, 429);
        }
    };
    let (name, flight) = tokio::select! {
        found = first_dump(&directory) => found,
        () = requests => unreachable!("it never ends"),
    };
    assert!(name.starts_with("flight-") && name.ends_with("-rejections.ekf"), "{name}");
    assert!(flight.header.cause.contains("requests were rejected within 10 s"), "{}", flight.header.cause);
    assert!(flight.records.len() >= 5 && flight.header.hides_users);
    running.done().await;
}

#[tokio::test]
async fn fr_2_a_signal_asks_for_a_dump() {
    let (upstream, folder) = (Upstream::answering(|_| ok("fine")).await, TempDir::new().unwrap());
    let mut settings = config(&[upstream.address]);
    settings.flight_recorder.directory = Some(folder.path().to_owned());
    settings.flight_recorder.users = true;
    let running = start_with(settings, ONE_LEVEL).await;
    assert_eq!(get(running.address, "/orders/1", "").await.status, 200);
    running.gateway.dump_flight().await;
    let (name, flight) = first_dump(folder.path()).await;
    assert!(name.ends_with("-signal.ekf"), "{name}");
    assert_eq!((flight.records.len(), &*flight.header.cause), (1, "asked for by SIGUSR1"));
    assert!(!flight.header.hides_users);
    running.done().await;
}
