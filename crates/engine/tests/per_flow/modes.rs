//! A level changes its discipline under load (BM-3).

use std::collections::BTreeSet;

use evenkeel_engine::level::{Level, NewRequest};
use evenkeel_engine::queue_set::{Arrival, Effects, Ended, Mode, Phase, QueueSetConfig, QueuingDiscipline, RequestId};
use evenkeel_engine::time::{Instant, MILLISECOND};
use evenkeel_engine::{Flow, WorkEstimate};

use QueuingDiscipline::{PerFlow, ShuffleSharded};

/// Starts, in order. Nobody is ever rejected.
#[derive(Default)]
struct Started(Vec<(usize, RequestId)>);

impl Effects<usize> for Started {
    fn started(&mut self, id: RequestId, request: &mut usize) {
        self.0.push((*request, id));
    }

    fn displaced(&mut self, ended: Ended<usize>) {
        panic!("request {} is rejected", ended.payload);
    }
}

fn at(ms: usize) -> Instant {
    Instant::from_nanos(i64::try_from(ms).unwrap() * MILLISECOND)
}

fn config(discipline: QueuingDiscipline, seats: i64, length: i64) -> QueueSetConfig {
    QueueSetConfig { mode: Mode::queue(16, 4, length).unwrap().with_discipline(discipline), concurrency_limit: seats }
}

fn arrive(
    level: &mut Level<usize>,
    now: Instant,
    flow: u64,
    seats: u32,
    request: usize,
    started: &mut Started,
) -> Arrival<usize> {
    level.arrive(now, NewRequest::new(Flow::from(flow), WorkEstimate::seats(seats)), request, started)
}

#[test]
fn bm_3_waiting_requests_keep_their_order_and_running_ones_their_seats() {
    for (from, to) in [(ShuffleSharded, PerFlow), (PerFlow, ShuffleSharded)] {
        let mut level: Level<usize> = Level::new(config(from, 3, 100), at(0));
        let mut started = Started::default();
        let ids: Vec<_> = (0..200)
            .map(|request| {
                let flow = u64::try_from(request % 7).unwrap();
                match arrive(&mut level, at(request / 50), flow, 1, request, &mut started) {
                    Arrival::Started { id, .. } | Arrival::Waiting { id, .. } => id,
                    Arrival::Rejected { .. } => panic!("rejected"),
                }
            })
            .collect();
        assert_eq!(started.0.len(), 3);

        // Narrower limits than what waits: nobody is rejected because of the change.
        level.configure(at(100), config(to, 3, 1), &mut started);
        let set = level.queue_set();
        assert_eq!((set.waiting(), set.executing(), set.seats_in_use(), started.0.len()), (197, 3, 3, 3), "to {to:?}");
        assert!(ids.iter().all(|&id| set.phase(id).is_some()));
        let lengths: usize = set.queues().map(|queue| queue.waiting).sum();
        assert_eq!(lengths, 197);
        for queue in 0..set.queues().len() {
            let waiting: Vec<_> = set.waiting_in(queue).map(|request| *request.payload).collect();
            assert!(waiting.is_sorted(), "queue {queue} of {to:?}: {waiting:?}");
            if to == PerFlow {
                let flows: BTreeSet<_> = waiting.iter().map(|request| request % 7).collect();
                assert!(flows.len() <= 1, "a queue for each flow: {waiting:?}");
            }
        }

        let mut ended = 0;
        while let Some(&(_, id)) = started.0.get(ended) {
            level.finish(at(101 + ended), id, &mut started).expect("it runs");
            ended += 1;
        }
        assert_eq!(ended, 200, "everybody has been served");
        let set = level.queue_set();
        assert_eq!((set.waiting(), set.executing(), set.seats_in_use()), (0, 0, 0));
        if to == PerFlow {
            for flow in 0..7 {
                let order: Vec<_> = started.0.iter().map(|(request, _)| *request).filter(|r| r % 7 == flow).collect();
                assert!(order.is_sorted(), "flow {flow}: {order:?}");
            }
        }
    }
}

/// Arrivals, ends, cancellations and changes of the mode, the seats and the limits at random.
#[test]
fn bm_3_no_seat_is_lost_however_often_the_mode_changes() {
    for seed in 1..30_u64 {
        let mut state = seed;
        let mut below = |end: usize| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            usize::try_from(state >> 33).unwrap() % end
        };
        let mut level: Level<usize> = Level::new(config(ShuffleSharded, 5, 10_000), at(0));
        let (mut running, mut waiting, mut limit) = (Vec::<(u32, RequestId)>::new(), Vec::<(u32, RequestId)>::new(), 5);
        for step in 0..3000 {
            let (now, mut started) = (at(step), Started::default());
            match below(20) {
                0..9 => {
                    let seats = u32::try_from(1 + below(4)).unwrap();
                    let flow = u64::try_from(below(12)).unwrap();
                    match arrive(&mut level, now, flow, seats, seats as usize, &mut started) {
                        Arrival::Waiting { id, .. } => waiting.push((seats, id)),
                        Arrival::Started { .. } => {}
                        Arrival::Rejected { .. } => panic!("rejected"),
                    }
                }
                9..16 if !running.is_empty() => {
                    let (_, id) = running.swap_remove(below(running.len()));
                    level.finish(now, id, &mut started).expect("it runs");
                }
                16..18 if !waiting.is_empty() => {
                    let (_, id) = waiting.swap_remove(below(waiting.len()));
                    level.cancel(now, id, &mut started).expect("it waits");
                }
                18 => {
                    let discipline = if below(2) == 0 { PerFlow } else { ShuffleSharded };
                    limit = 4 + i64::try_from(below(4)).unwrap();
                    level.configure(now, config(discipline, limit, 10_000), &mut started);
                }
                // Without queues for a while; what waits goes on waiting.
                19 if below(10) == 0 => {
                    let reject = QueueSetConfig { mode: Mode::Reject, concurrency_limit: limit };
                    level.configure(now, reject, &mut started);
                    level.configure(now, config(PerFlow, limit, 10_000), &mut started);
                }
                _ => {}
            }
            for (seats, id) in started.0 {
                waiting.retain(|(_, other)| *other != id);
                running.push((u32::try_from(seats).unwrap(), id));
            }
            let set = level.queue_set();
            let seats: u32 = running.iter().map(|(seats, _)| seats).sum();
            assert_eq!(set.seats_in_use(), i64::from(seats), "seed {seed}, step {step}");
            assert_eq!((set.waiting(), set.executing()), (waiting.len(), running.len()));
            assert!(waiting.iter().all(|(_, id)| set.phase(*id) == Some(Phase::Waiting)));
            assert!(running.iter().all(|(_, id)| set.phase(*id) == Some(Phase::Executing)));
        }
    }
}
