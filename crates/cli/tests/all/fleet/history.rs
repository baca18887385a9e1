//! The history of a run: every ledger, with the time at which it was seen, and every start and end of a request at the service. A checker
//! goes through it afterwards, and knows nothing of how the fleet works but who may hold how many seats.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use evenkeel_store::{CoordinationKey, EtcdConfig, EtcdTransactions, KeyChange};
use serde_json::Value;
use tokio::task::AbortHandle;

/// A request that starts or ends at the service.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestEntry {
    pub(super) at: Instant,
    pub(super) gateway: u64,
    /// 1 or -1.
    pub(super) change: i64,
    /// Whether nobody knows of it any more, because its gateway was killed; or its gateway was stopped while it was sent.
    pub(super) is_apart: bool,
}

/// A ledger, as it was seen in etcd.
#[derive(Debug, Clone)]
pub(super) struct LedgerEntry {
    pub(super) at: Instant,
    pub(super) seats: u64,
    /// The seats that each process may use or still holds, with its registration.
    pub(super) held: Vec<Holder>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Holder {
    pub(super) process: u64,
    pub(super) id: u64,
    pub(super) seats: u64,
}

/// What is wrong with a history.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Violation {
    /// A ledger gives away more than there is.
    Overcommitted { ledger: usize, held: u64 },
    /// More requests ran than the service has seats.
    Overrun { entry: usize, in_flight: i64 },
    /// A request started through a gateway that no ledger of that time gave so many seats.
    OutsideOfGrant { entry: usize, gateway: u64, in_flight: i64, held: u64 },
}

/// What a checker has found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) violations: Vec<Violation>,
    pub(super) starts: usize,
    /// Starts that were compared with the ledgers of their time. Of others no ledger was seen, because etcd was away.
    pub(super) compared: usize,
    pub(super) held_max: u64,
}

/// A ledger is seen so much later than it is written, or sooner than its gateways obey it. While nothing is seen for longer, starts
/// are compared with the sums only.
const LAG: Duration = Duration::from_secs(1);

/// Reads the ledger again and again.
pub(super) struct Recorder {
    ledgers: Arc<Mutex<Vec<LedgerEntry>>>,
    /// When etcd answered.
    contacts: Arc<Mutex<Vec<Instant>>>,
    task: AbortHandle,
}

// === impl Recorder ===

impl Recorder {
    pub(super) fn start(members: &[String]) -> Self {
        let config = EtcdConfig {
            prefix: "/evenkeel/fleet/checkout".to_owned(),
            attempt_deadline: Duration::from_millis(400),
            call_deadline: Duration::from_millis(400),
            ..EtcdConfig::new(members.iter().cloned())
        };
        let etcd = EtcdTransactions::new(&config).unwrap();
        let (ledgers, contacts) = (Arc::<Mutex<Vec<LedgerEntry>>>::default(), Arc::<Mutex<Vec<Instant>>>::default());
        let (seen, answered) = (Arc::clone(&ledgers), Arc::clone(&contacts));
        let task = tokio::spawn(async move {
            let note = |key: &CoordinationKey| {
                if let Some(ledger) = (key.name == "ledger").then(|| read_ledger(&key.value)).flatten() {
                    seen.lock().unwrap().push(ledger);
                }
            };
            let mut period = tokio::time::interval(Duration::from_millis(50));
            loop {
                let Ok(mut watch) = etcd.watch().await else {
                    period.tick().await;
                    continue;
                };
                // The watch has every ledger; reads tell that it lives.
                loop {
                    tokio::select! {
                        changes = watch.next() => {
                            let Ok(changes) = changes else { break };
                            for change in changes {
                                if let KeyChange::Written(key) = change {
                                    note(&key);
                                }
                            }
                        }
                        _ = period.tick() => {
                            if let Ok(read) = etcd.transact(&[], Vec::new()).await {
                                answered.lock().unwrap().push(Instant::now());
                                read.keys.iter().for_each(note);
                            }
                        }
                    }
                }
            }
        })
        .abort_handle();
        Self { ledgers, contacts, task }
    }

    /// Checks a history with all ledgers that were seen. Gateways are told by one of their registrations.
    pub(super) fn check(&self, requests: &[RequestEntry], registrations: &BTreeMap<u64, u64>) -> Verdict {
        check(requests, &self.ledgers.lock().unwrap(), &self.contacts.lock().unwrap(), registrations)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn read_ledger(value: &[u8]) -> Option<LedgerEntry> {
    let ledger: Value = serde_json::from_slice(value).ok()?;
    let number = |value: &Value, name: &str| value[name].as_u64();
    let holder = |entry: &Value| {
        let seats = ["grant", "hold", "floorHeld"].iter().filter_map(|name| number(entry, name)).max()?;
        Some(Holder { process: number(entry, "process")?, id: number(entry, "id")?, seats })
    };
    let held = ledger["entries"].as_array()?.iter().filter_map(holder).collect();
    Some(LedgerEntry { at: Instant::now(), seats: number(&ledger, "seats")?, held })
}

/// Finds every moment at which more was held or used than there is, or used than was held.
pub(super) fn check(
    requests: &[RequestEntry],
    ledgers: &[LedgerEntry],
    contacts: &[Instant],
    registrations: &BTreeMap<u64, u64>,
) -> Verdict {
    let mut verdict = Verdict::default();
    for (place, ledger) in ledgers.iter().enumerate() {
        let held = ledger.held.iter().map(|holder| holder.seats).sum();
        verdict.held_max = verdict.held_max.max(held);
        if held > ledger.seats {
            verdict.violations.push(Violation::Overcommitted { ledger: place, held });
        }
    }
    let seats = ledgers.iter().map(|ledger| ledger.seats).max().unwrap_or(0);
    // A process keeps its nonce when it registers again.
    let process_of = |gateway: u64| {
        let id = registrations.get(&gateway)?;
        ledgers.iter().flat_map(|ledger| &ledger.held).find(|holder| holder.id == *id).map(|holder| holder.process)
    };
    let gateways: BTreeSet<u64> = requests.iter().map(|entry| entry.gateway).collect();
    let processes: BTreeMap<u64, u64> =
        gateways.into_iter().filter_map(|gateway| Some((gateway, process_of(gateway)?))).collect();
    let mut in_flight = BTreeMap::<u64, i64>::new();
    for (place, entry) in requests.iter().enumerate().filter(|(_, entry)| !entry.is_apart) {
        *in_flight.entry(entry.gateway).or_default() += entry.change;
        let all: i64 = in_flight.values().sum();
        if all > i64::try_from(seats).unwrap() {
            verdict.violations.push(Violation::Overrun { entry: place, in_flight: all });
        }
        if entry.change < 0 {
            continue;
        }
        verdict.starts += 1;
        let (own, gateway) = (in_flight[&entry.gateway], entry.gateway);
        let Some(held) = processes.get(&gateway).and_then(|process| held_around(entry.at, *process, ledgers, contacts))
        else {
            continue;
        };
        verdict.compared += 1;
        if own > i64::try_from(held).unwrap() {
            verdict.violations.push(Violation::OutsideOfGrant { entry: place, gateway, in_flight: own, held });
        }
    }
    verdict
}

/// The most seats that a process held in any ledger that may have been in effect at a time; nothing if ledgers may be missing.
fn held_around(at: Instant, process: u64, ledgers: &[LedgerEntry], contacts: &[Instant]) -> Option<u64> {
    let next = contacts.partition_point(|contact| *contact < at);
    let (before, after) = (contacts.get(next.checked_sub(1)?)?, contacts.get(next)?);
    if *after - *before > LAG / 2 {
        return None;
    }
    // The one that was in effect when the window begins counts too.
    let first = ledgers.partition_point(|ledger| ledger.at + LAG < at).saturating_sub(1);
    let end = ledgers.partition_point(|ledger| ledger.at <= at + LAG);
    let held = ledgers[first..end].iter().map(|ledger| {
        ledger.held.iter().filter(|holder| holder.process == process).map(|holder| holder.seats).max().unwrap_or(0)
    });
    held.max()
}

/// Two gateways with ten seats: the first has six of them, and gives four to the second.
fn recorded() -> (Vec<RequestEntry>, Vec<LedgerEntry>, Vec<Instant>, BTreeMap<u64, u64>) {
    let start = Instant::now();
    let at = |ms: u64| start + Duration::from_millis(ms);
    let ledger = |ms: u64, first: u64, second: u64| LedgerEntry {
        at: at(ms),
        seats: 10,
        held: vec![Holder { process: 100, id: 1, seats: first }, Holder { process: 200, id: 2, seats: second }],
    };
    let request = |ms: u64, gateway: u64, change: i64| RequestEntry { at: at(ms), gateway, change, is_apart: false };
    let mut requests: Vec<RequestEntry> = (0..6).map(|_| request(100, 1, 1)).collect();
    requests.extend((0..4).map(|_| request(100, 2, 1)));
    requests.extend((0..4).map(|_| request(4_000, 1, -1)));
    requests.extend((0..4).map(|_| request(6_000, 2, 1)));
    let contacts = (0..200).map(|number| at(number * 50)).collect();
    (requests, vec![ledger(0, 6, 4), ledger(5_000, 2, 4), ledger(5_500, 2, 8)], contacts, [(1, 1), (2, 2)].into())
}

#[test]
fn a_history_without_faults_has_no_violation() {
    let (requests, ledgers, contacts, registrations) = recorded();
    let verdict = check(&requests, &ledgers, &contacts, &registrations);
    assert_eq!(verdict, Verdict { violations: Vec::new(), starts: 14, compared: 14, held_max: 10 });
}

#[test]
fn every_fault_that_is_put_into_a_history_is_found() {
    let (requests, ledgers, contacts, registrations) = recorded();
    // The second has its new seats before the first has given them back.
    let mut early = ledgers.clone();
    early[0].held[1].seats = 8;
    let found = check(&requests, &early, &contacts, &registrations).violations;
    assert_eq!(found, [Violation::Overcommitted { ledger: 0, held: 14 }]);

    // The first starts one more than its grant, while the service has seats left.
    let mut outside = requests.clone();
    outside.truncate(14);
    let extra: Vec<RequestEntry> =
        (0..3).map(|_| RequestEntry { at: ledgers[0].at + Duration::from_secs(8), ..requests[0] }).collect();
    outside.extend(extra);
    let found = check(&outside, &ledgers, &contacts, &registrations).violations;
    let wanted: Vec<Violation> = (14..17)
        .zip(3..6)
        .map(|(entry, in_flight)| Violation::OutsideOfGrant { entry, gateway: 1, in_flight, held: 2 })
        .collect();
    assert_eq!(found, wanted);

    // A request more than there are seats, from a gateway that nobody knows.
    let mut overrun = requests.clone();
    overrun.insert(10, RequestEntry { gateway: 3, ..requests[9] });
    overrun.push(RequestEntry { gateway: 3, change: -1, ..requests[13] });
    let found = check(&overrun, &ledgers, &contacts, &registrations).violations;
    assert_eq!(found.first(), Some(&Violation::Overrun { entry: 10, in_flight: 11 }));

    // What was seen too seldom is not compared.
    let verdict = check(&requests, &ledgers, &[contacts[0], contacts[199]], &registrations);
    assert_eq!((verdict.starts, verdict.compared), (14, 0));
}
