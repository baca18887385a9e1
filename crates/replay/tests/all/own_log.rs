//! A log of our own, replayed under its own objects: what became of the requests is what had become of them.

use std::collections::BTreeMap;

use evenkeel_api::Preset;
use evenkeel_engine::time::{MILLISECOND, Nanos, SECOND};
use evenkeel_engine::{Attributes, RequestInfo, User, WorkEstimate};
use evenkeel_replay::{Report, Settings};
use evenkeel_sim::{End, NewRequest, Outcome, ServerSettings, Simulator};

use crate::logs::{TENANTS, objects, replay};

const SEATS: u32 = 4;

/// Requests of a greedy and of a polite user, as a simulated gateway logs them: when they end, to the microsecond.
fn log() -> (String, BTreeMap<&'static str, u64>) {
    let users = ["greedy", "polite"].map(|name| User::new(name, ["system:authenticated"]));
    let mut settings = ServerSettings::new(SEATS.into());
    settings.preset = Preset::Plain;
    settings.borrowing = evenkeel_engine::controller::Borrowing::Immediate;
    let mut simulator: Simulator<(usize, Nanos)> = Simulator::new(settings, objects(TENANTS).with_mandatory_levels());
    let request = RequestInfo { path: "/orders".into(), verb: "get".into(), ..RequestInfo::default() };
    let mut random = fastrand::Rng::with_seed(16);
    let (mut text, mut rejected) = (String::new(), BTreeMap::new());
    let mut ended = |outcome: Outcome<(usize, Nanos)>| {
        let (user, _) = outcome.token;
        let name = ["greedy", "polite"][user];
        let started = match outcome.end {
            End::Completed { started, .. } => started,
            End::Rejected { .. } | End::TimedOut { .. } => outcome.ended,
        };
        let reason = match outcome.end {
            End::Completed { .. } => String::new(),
            End::Rejected { reason, .. } => format!(r#","rejected":"{}""#, reason.as_str()),
            End::TimedOut { .. } => r#","rejected":"time-out""#.to_owned(),
        };
        *rejected.entry(name).or_default() += u64::from(!reason.is_empty());
        text += &format!(
            "{{\"time\":\"2026-11-16T10:{:02}:{:02}.{:06}Z\",\"user\":\"{name}\",\"groups\":[\"system:authenticated\"],\
             \"method\":\"GET\",\"path\":\"/orders\",\"schema\":\"tenants\",\"level\":\"tenants\",\"flow\":\"{name}\",\"seats\":1,\
             \"waitMs\":{}.{:03},\"serviceMs\":{}.{:03},\"status\":200{reason}}}\n",
            outcome.arrived / SECOND / 60,
            outcome.arrived / SECOND % 60,
            outcome.arrived % SECOND / 1000,
            (started - outcome.arrived) / MILLISECOND,
            (started - outcome.arrived) % MILLISECOND / 1000,
            (outcome.ended - started) / MILLISECOND,
            (outcome.ended - started) % MILLISECOND / 1000,
        );
    };
    let mut at = 0;
    for _ in 0..20_000 {
        at += random.i64(0..10 * MILLISECOND);
        let user = usize::from(random.u8(..8) == 0);
        let class = simulator.classify(Attributes { user: &users[user], request: &request });
        let service = random.i64(10 * MILLISECOND..40 * MILLISECOND);
        let new = NewRequest::new((user, service), service, WorkEstimate::ONE_SEAT).patience(15 * SECOND);
        simulator.arrive(at, class, new, &mut ended);
    }
    simulator.drain(&mut ended);
    (text, rejected)
}

/// TL-31, TL-32, TL-40
#[test]
fn a_log_replays_as_it_was() {
    let (text, rejected) = log();
    let report: Report = replay(Settings::new(Preset::Plain, SEATS), vec![objects(TENANTS)], text);
    assert_eq!((report.requests, report.damaged.count()), (20_000, 0));
    assert_eq!(report.comparison.agree, 20_000);
    for flow in &report.flows {
        let name = flow.names[0].distinguisher.as_deref().unwrap();
        let (recorded, replayed) = (rejected[name], flow.replayed[0].rejected_total());
        assert_eq!(flow.recorded.rejected, recorded);
        assert!(recorded.abs_diff(replayed) * 100 <= 2 * recorded, "{name}: {recorded} and {replayed} rejected");
        let [recorded, replayed] = [&flow.recorded.wait, &flow.replayed[0].wait].map(|wait| wait.percentile(0.99));
        assert!(recorded > MILLISECOND, "{name} waits");
        assert!((recorded - replayed).abs() * 100 <= 15 * recorded, "{name}: p99 {recorded} and {replayed}");
    }
    assert!(rejected["greedy"] > 1000, "{rejected:?}");
}
