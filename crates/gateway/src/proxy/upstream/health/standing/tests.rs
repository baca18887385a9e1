//! An upstream's standing, moved by hand.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn config() -> HealthConfig {
    HealthConfig {
        failures: 2,
        pause: SECOND,
        pause_max: 3 * SECOND,
        slow_start: 10 * SECOND,
        ..HealthConfig::default()
    }
}

#[test]
fn pauses_grow_until_a_trial_succeeds() {
    let (config, start) = (config(), Instant::now());
    let mut standing = UpstreamStanding::default();
    let fail = |standing: &mut UpstreamStanding, now, purpose| standing.connection_failed(purpose, now, &config);
    assert_eq!(fail(&mut standing, start, RequestPurpose::Service), None);
    assert_eq!((standing.condition(start, &config), standing.out()), (Condition::Well(FULL_SHARE), None));
    let ejected = Change::Ejected(OutCause::Connections, SECOND);
    assert_eq!(fail(&mut standing, start, RequestPurpose::Service), Some(ejected));
    let mut now = start;
    for (pause, next) in [(1, 2), (2, 3), (3, 3)] {
        // Requests that were under way fail too; that counts for nothing.
        assert_eq!(fail(&mut standing, now, RequestPurpose::Service), None);
        assert_eq!(standing.condition(now, &config), Condition::Out(now));
        now += pause * SECOND;
        assert_eq!(standing.condition(now, &config), Condition::Due);
        assert!(standing.begin_trial(now) && !standing.begin_trial(now));
        assert!(matches!(standing.condition(now, &config), Condition::Out(_)));
        assert_eq!(fail(&mut standing, now, RequestPurpose::Trial), Some(Change::StillEjected(next * SECOND)));
    }
    now += 3 * SECOND;
    assert!(standing.begin_trial(now));
    standing.abandon_trial();
    assert_eq!(standing.condition(now, &config), Condition::Due);
    assert!(standing.begin_trial(now));
    assert_eq!(standing.responded(Served::Well, RequestPurpose::Trial, now, &config), Some(Change::Back));
    assert_eq!((standing.out(), fail(&mut standing, now, RequestPurpose::Service)), (None, None));
}

#[test]
fn pauses_are_forgotten_after_a_while_in_service_and_not_before() {
    let (config, start) = (config(), Instant::now());
    for (in_service, pause) in [(1, 2), (2, 2), (3, 1), (100, 1)] {
        let mut standing = UpstreamStanding::default();
        standing.eject(OutCause::Errors, start, &config);
        assert!(standing.begin_trial(start + SECOND));
        standing.responded(Served::Well, RequestPurpose::Trial, start + SECOND, &config);
        let again = standing.eject(OutCause::Errors, start + (1 + in_service) * SECOND, &config);
        assert_eq!(again, Some(Change::Ejected(OutCause::Errors, pause * SECOND)), "{in_service} s in service");
    }
}

#[test]
fn only_the_probe_request_decides_about_errors() {
    let (config, start) = (config(), Instant::now());
    let mut standing = UpstreamStanding::default();
    standing.eject(OutCause::Errors, start, &config);
    assert_eq!(standing.eject(OutCause::Silent, start, &config), None);
    assert_eq!(standing.responded(Served::Well, RequestPurpose::Service, start, &config), None);
    assert_eq!(standing.out(), Some(OutCause::Errors));
    assert!(!standing.begin_trial(start));
    assert!(standing.begin_trial(start + SECOND));
    let still = standing.responded(Served::Error, RequestPurpose::Trial, start + SECOND, &config);
    assert_eq!(still, Some(Change::StillEjected(2 * SECOND)));
    // One that can be reached again is judged by its responses, and one that was silent responds.
    for (cause, served) in [(OutCause::Connections, Served::Error), (OutCause::Silent, Served::Well)] {
        let mut standing = UpstreamStanding::default();
        standing.eject(cause, start, &config);
        assert_eq!(
            standing.responded(served, RequestPurpose::Service, start, &config),
            Some(Change::Back),
            "{cause:?}"
        );
    }
}

#[test]
fn the_share_of_one_that_comes_back_grows() {
    let (config, start) = (config(), Instant::now());
    let mut standing = UpstreamStanding::default();
    standing.eject(OutCause::Errors, start, &config);
    standing.reinstate(start);
    for (after, share) in [(0, 100), (1, 100), (5, 500), (9, 900), (10, FULL_SHARE), (11, FULL_SHARE)] {
        assert_eq!(standing.condition(start + after * SECOND, &config), Condition::Well(share), "after {after} s");
        assert_eq!(standing.is_unremarkable(start + after * SECOND, &config), share == FULL_SHARE);
    }
    let at_once = HealthConfig { slow_start: Duration::ZERO, ..config };
    assert_eq!(standing.condition(start, &at_once), Condition::Well(FULL_SHARE));
}

#[test]
fn several_checks_in_a_row_decide() {
    let (config, start) = (config(), Instant::now());
    let check = HealthCheckConfig { healthy_after: 2, unhealthy_after: 3, ..HealthCheckConfig::new("/") };
    let mut standing = UpstreamStanding::default();
    let mut results = Vec::new();
    for has_passed in [true, false, false, true, false, false, false, false, true, false, true, true, true] {
        results.push(standing.checked(has_passed, start, &check));
    }
    let mut expected = [None; 13];
    (expected[6], expected[11]) = (Some(Change::CheckFails), Some(Change::CheckPasses));
    assert_eq!(results, expected);
    assert_eq!(standing.condition(start, &config), Condition::Well(FIRST_SHARE));
    // A check that passes does not end an ejection.
    standing.eject(OutCause::Errors, start, &config);
    let changes: Vec<_> = (0..3).map(|_| standing.checked(false, start, &check)).collect();
    assert_eq!(changes, [None, None, Some(Change::CheckFails)]);
    assert_eq!(standing.out(), Some(OutCause::Check));
    let changes: Vec<_> = (0..2).map(|_| standing.checked(true, start, &check)).collect();
    assert_eq!(changes, [None, Some(Change::CheckPasses)]);
    assert_eq!(standing.out(), Some(OutCause::Errors));
}
