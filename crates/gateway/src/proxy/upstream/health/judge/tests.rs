//! Upstreams with outcomes that a test invents, looked at ten times a second.

use proptest::prelude::*;

use super::*;
use crate::proxy::upstream::health::standing::{Condition, RequestPurpose, Served, UpstreamStanding};

/// How an upstream treats its requests.
#[derive(Debug, Clone, Copy)]
enum Manner {
    /// Every so many fail; zero means none.
    Failing(u64),
    /// Nothing comes back.
    Silent,
    /// Every so many get a response, the others wait for minutes, as long polls do.
    LongPolls(u64),
}

/// Upstreams that get a number of requests at each look, if they are in service.
struct Fleet {
    now: Instant,
    config: HealthConfig,
    manners: Vec<Manner>,
    counts: Vec<UpstreamCounts>,
    records: Vec<TrackRecord>,
    standings: Vec<UpstreamStanding>,
}

impl Fleet {
    fn new(manners: &[Manner]) -> Self {
        let count = manners.len();
        Self {
            now: Instant::now(),
            config: HealthConfig::default(),
            manners: manners.to_vec(),
            counts: vec![UpstreamCounts::default(); count],
            records: vec![TrackRecord::default(); count],
            standings: std::iter::repeat_with(UpstreamStanding::default).take(count).collect(),
        }
    }

    fn out(&self) -> Vec<Option<OutCause>> {
        self.standings.iter().map(UpstreamStanding::out).collect()
    }

    /// One look later, after each of those in service got so many requests.
    fn look(&mut self, requests: u64) {
        self.now += PERIOD;
        let now = self.now;
        for index in 0..self.manners.len() {
            let (counts, standing) = (&mut self.counts[index], &mut self.standings[index]);
            let (requests, purpose) = match standing.condition(now, &self.config) {
                Condition::Well(_) => (requests, RequestPurpose::Service),
                Condition::Due => (u64::from(standing.begin_trial(now)), RequestPurpose::Trial),
                Condition::Out(_) => (0, RequestPurpose::Service),
            };
            for _ in 0..requests {
                counts.asked += 1;
                let served = match self.manners[index] {
                    Manner::Failing(every) if every > 0 && counts.asked.is_multiple_of(every) => Some(Served::Error),
                    Manner::LongPolls(every) if !counts.asked.is_multiple_of(every) => None,
                    Manner::Silent => None,
                    Manner::Failing(_) | Manner::LongPolls(_) => Some(Served::Well),
                };
                match served {
                    None => counts.waiting += 1,
                    Some(Served::Well) => counts.served += 1,
                    Some(Served::Error) => counts.failed += 1,
                }
                if let Some(served) = served {
                    standing.responded(served, purpose, now, &self.config);
                }
            }
        }
        let (counts, standings) = (&self.counts, &self.standings);
        let cases = self.records.iter_mut().zip(counts).zip(standings);
        let mut cases: Vec<Case<'_>> = cases
            .map(|((record, counts), standing)| Case {
                record,
                counts: *counts,
                out: standing.out(),
                trial_since: standing.trial_since(),
            })
            .collect();
        let verdicts = judge(now, patience(&self.config, None), &self.config, &mut cases);
        for (standing, verdict) in self.standings.iter_mut().zip(verdicts) {
            let change = match verdict {
                Some(Verdict::Eject(cause)) => standing.eject(cause, now, &self.config),
                Some(Verdict::Reinstate) => standing.reinstate(now),
                Some(Verdict::TrialFailed) => standing.trial_failed(now, &self.config),
                None => continue,
            };
            assert!(change.is_some(), "{verdict:?}");
        }
    }

    fn looks(&mut self, looks: usize, requests: u64) -> &mut Self {
        (0..looks).for_each(|_| self.look(requests));
        self
    }
}

const WELL: Manner = Manner::Failing(0);
const ERRORS: Option<OutCause> = Some(OutCause::Errors);

#[test]
fn one_that_fails_while_others_serve_is_ejected() {
    for (manner, looks) in [(Manner::Failing(1), 3), (Manner::Failing(2), 5), (Manner::Failing(3), 15)] {
        let mut fleet = Fleet::new(&[WELL, manner, WELL]);
        assert_eq!(fleet.looks(looks, 10).out(), [None, ERRORS, None], "{manner:?}");
    }
    // With few requests it takes longer: some failures in a row, and something to compare them with.
    assert_eq!(Fleet::new(&[WELL, Manner::Failing(1)]).looks(9, 1).out(), [None, None]);
    assert_eq!(Fleet::new(&[WELL, Manner::Failing(1)]).looks(12, 1).out(), [None, ERRORS]);
    // Fewer failures than tolerated.
    assert_eq!(Fleet::new(&[WELL, Manner::Failing(5)]).looks(600, 10).out(), [None, None]);
}

#[test]
fn one_that_has_served_well_for_long_is_ejected_as_soon() {
    let mut fleet = Fleet::new(&[WELL, WELL]);
    fleet.looks(1000, 100);
    fleet.manners[1] = Manner::Failing(1);
    assert_eq!(fleet.looks(2, 100).out(), [None, ERRORS]);
    let mut fleet = Fleet::new(&[WELL, WELL]);
    fleet.looks(1000, 10);
    fleet.manners[1] = Manner::Silent;
    assert_eq!(fleet.looks(14, 10).out(), [None, Some(OutCause::Silent)]);
}

#[test]
fn most_may_fail_and_the_rest_serves() {
    let all = [Manner::Failing(1), Manner::Silent, Manner::Failing(2), WELL];
    assert_eq!(Fleet::new(&all).looks(20, 20).out(), [ERRORS, Some(OutCause::Silent), ERRORS, None]);
}

#[test]
fn one_that_recovers_comes_back() {
    for manner in [Manner::Failing(1), Manner::Silent] {
        let mut fleet = Fleet::new(&[WELL, manner]);
        assert_ne!(fleet.looks(30, 10).out()[1], None);
        fleet.manners[1] = WELL;
        assert_eq!(fleet.looks(400, 10).out(), [None, None], "{manner:?}");
    }
}

#[test]
fn what_others_begin_to_do_too_is_forgiven() {
    let mut fleet = Fleet::new(&[WELL, Manner::Failing(1)]);
    assert_eq!(fleet.looks(5, 10).out(), [None, ERRORS]);
    fleet.manners[0] = Manner::Failing(1);
    assert_eq!(fleet.looks(5, 10).out(), [None, None]);
}

#[test]
fn long_polls_are_not_silence() {
    for every in [2, 10] {
        let mut fleet = Fleet::new(&[WELL, Manner::LongPolls(every)]);
        assert_eq!(fleet.looks(100, 3).out(), [None, None], "one in {every} gets a response");
    }
    // All of them wait, here and there.
    let alike = [Manner::LongPolls(1000), Manner::LongPolls(1000)];
    assert_eq!(Fleet::new(&alike).looks(300, 1).out(), [None, None]);
    // There are no requests but those that wait here.
    let mut fleet = Fleet::new(&[WELL, Manner::LongPolls(1000)]);
    fleet.look(1);
    assert_eq!(fleet.looks(300, 0).out(), [None, None]);
}

#[test]
fn what_is_switched_off_ejects_nobody() {
    let mut fleet = Fleet::new(&[WELL, Manner::Failing(1), Manner::Silent]);
    (fleet.config.errors, fleet.config.silence) = (0, Duration::ZERO);
    assert_eq!(fleet.looks(100, 10).out(), [None; 3]);
}

fn manner() -> impl Strategy<Value = Manner> {
    prop_oneof![(0_u64..5).prop_map(Manner::Failing), Just(Manner::Silent), (1_u64..20).prop_map(Manner::LongPolls),]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever upstreams do, one at least is in service; and memory does not grow, since a record owns none.
    #[test]
    fn never_all_are_ejected(
        manners in prop::collection::vec(manner(), 1..6),
        later in prop::collection::vec(manner(), 6),
        requests in prop::collection::vec(0_u64..30, 1..200),
    ) {
        let mut fleet = Fleet::new(&manners);
        for (look, requests) in requests.iter().enumerate() {
            if look == 100 {
                let count = manners.len();
                fleet.manners = later[..count].to_vec();
            }
            fleet.look(*requests);
            prop_assert!(fleet.out().contains(&None), "{:?}", fleet.out());
        }
    }

    #[test]
    fn nobody_is_ejected_for_what_all_do(
        manner in manner(),
        count in 2_usize..6,
        requests in prop::collection::vec(0_u64..30, 1..200),
    ) {
        let mut fleet = Fleet::new(&vec![manner; count]);
        for requests in requests {
            fleet.look(requests);
            prop_assert_eq!(fleet.out(), vec![None; count]);
        }
    }
}
