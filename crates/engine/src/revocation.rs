//! Which requests of revocable levels end, so that another level gets its own seats (LM-7).
//!
//! A level that lends seats gets them back when the requests on them end, which takes minutes where responses are long. Requests
//! of a *revocable* level end before that: the youngest ones, and no more of them than waiting requests need.
//!
//! ```
//! use evenkeel_engine::revocation::{RevocableLevel, RevocableRequest, choose};
//! use evenkeel_engine::time::Instant;
//!
//! // A batch level without a floor holds all seats, and a request of one seat has waited for too long.
//! let mut batch = [RevocableLevel { floor: 0, in_use: 2 }];
//! let request = |started| RevocableRequest { level: 0, started: Instant::from_nanos(started), seats: 1, is_ending: false };
//! let requests = [request(20), request(50)];
//! assert_eq!(choose(&[1], 0, &mut batch, &requests), [1]);
//! ```

use crate::time::Instant;

/// A level whose requests may be ended.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RevocableLevel {
    /// The seats that it keeps: those that it does not lend.
    pub floor: i64,
    /// The seats that it uses.
    pub in_use: i64,
}

/// A request that runs in a revocable level.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RevocableRequest {
    /// The place of its level among those that are given with it.
    pub level: usize,
    /// When it started.
    pub started: Instant,
    /// The seats that it holds.
    pub seats: i64,
    /// Whether it was told to end before, and has not done so yet.
    pub is_ending: bool,
}

/// The places of the requests that are to end. `claims` are the seats of the requests that wait for them, `free` the seats that these could
/// have without that; below zero if more are in use than there are.
///
/// The youngest requests end first. A level keeps its floor: requests end in levels that use more. What is chosen is enough for as many
/// claims as possible, in their order, and no chosen request can be left out. `levels` are left as they will be.
pub fn choose(claims: &[i64], free: i64, levels: &mut [RevocableLevel], requests: &[RevocableRequest]) -> Vec<usize> {
    let mut coming = 0;
    for request in requests.iter().filter(|request| request.is_ending) {
        coming += request.seats;
        levels[request.level].in_use -= request.seats;
    }
    let mut youngest: Vec<usize> = (0..requests.len()).filter(|index| !requests[*index].is_ending).collect();
    youngest.sort_by_key(|index| (std::cmp::Reverse(requests[*index].started), *index));
    let available = youngest.into_iter().filter(|index| {
        let request = requests[*index];
        let level = &mut levels[request.level];
        let is_available = request.seats > 0 && level.in_use > level.floor;
        level.in_use -= if is_available { request.seats } else { 0 };
        is_available
    });
    let available: Vec<usize> = available.collect();
    let supply = free + coming + seats_of(requests, &available);
    let mut claimed = 0;
    for claim in claims {
        if claimed + claim > supply {
            break;
        }
        claimed += claim;
    }
    let needed = if claimed > 0 { claimed - free - coming } else { 0 };
    let mut chosen = Vec::new();
    let mut sum = 0;
    for index in &available {
        if sum < needed {
            sum += requests[*index].seats;
            chosen.push(*index);
        }
    }
    // A wide request that was chosen last may make narrow ones before it needless. The older ones are spared first.
    let mut kept = Vec::new();
    for index in chosen.into_iter().rev() {
        if sum - requests[index].seats >= needed {
            sum -= requests[index].seats;
        } else {
            kept.push(index);
        }
    }
    kept.reverse();
    for index in available.iter().filter(|index| !kept.contains(index)) {
        levels[requests[*index].level].in_use += requests[*index].seats;
    }
    kept
}

fn seats_of(requests: &[RevocableRequest], of: &[usize]) -> i64 {
    of.iter().map(|index| requests[*index].seats).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(level: usize, started: i64, seats: i64) -> RevocableRequest {
        RevocableRequest { level, started: Instant::from_nanos(started), seats, is_ending: false }
    }

    #[test]
    fn lm_7_the_youngest_end_and_no_more_than_needed() {
        let running = [request(0, 10, 1), request(0, 30, 1), request(0, 20, 1)];
        let batch = || [RevocableLevel { floor: 0, in_use: 3 }];
        assert_eq!(choose(&[1], 0, &mut batch(), &running), [1]);
        assert_eq!(choose(&[1, 1], 0, &mut batch(), &running), [1, 2]);
        assert_eq!(choose(&[1, 1], 1, &mut batch(), &running), [1], "one seat is free");
        assert_eq!(choose(&[1], -1, &mut batch(), &running), [1, 2], "one seat too many is in use");
        assert_eq!(choose(&[], -1, &mut batch(), &running), [0_usize; 0], "nobody waits");
        assert_eq!(choose(&[4], 0, &mut batch(), &running), [0_usize; 0], "it would not be enough");
        let ending = [running[0], RevocableRequest { is_ending: true, ..running[1] }, running[2]];
        assert_eq!(choose(&[1], 0, &mut batch(), &ending), [0_usize; 0], "a seat is about to come");
        let mut kept = [RevocableLevel { floor: 2, in_use: 3 }];
        assert_eq!(choose(&[1, 1], 0, &mut kept, &running), [1], "the level has a floor of its own");
        assert_eq!(kept[0].in_use, 2);
        let wide = [request(0, 30, 1), request(0, 20, 4)];
        assert_eq!(
            choose(&[4], 0, &mut [RevocableLevel { floor: 0, in_use: 5 }], &wide),
            [1],
            "the narrow one is spared"
        );
    }

    fn any_requests() -> impl Strategy<Value = Vec<RevocableRequest>> {
        let one = (0..3_usize, 0..20_i64, 0..5_i64, prop::bool::weighted(0.2));
        let one = one.prop_map(|(level, started, seats, is_ending)| RevocableRequest {
            is_ending,
            ..request(level, started, seats)
        });
        prop::collection::vec(one, 0..12)
    }

    proptest! {
        #[test]
        fn lm_7_nothing_ends_in_vain(
            wanted in prop::collection::vec(1..5_i64, 0..6),
            free in -3..4_i64,
            floors in prop::array::uniform3(0..6_i64),
            requests in any_requests(),
        ) {
            let in_use = |level: usize| requests.iter().filter(|request| request.level == level).map(|request| request.seats).sum();
            let before = [0, 1, 2].map(|level| RevocableLevel { floor: floors[level], in_use: in_use(level) });
            let mut after = before;
            let chosen = choose(&wanted, free, &mut after, &requests);
            let coming: i64 = requests.iter().filter(|request| request.is_ending).map(|request| request.seats).sum();
            let gained = seats_of(&requests, &chosen);
            for index in &chosen {
                let ended = requests[*index];
                prop_assert!(!ended.is_ending && ended.seats > 0);
                // Without any one of them, a claim that is met with all of them would not be met.
                let met = |seats: i64| {
                    let mut sum = 0;
                    wanted.iter().take_while(|claim| { sum += **claim; sum <= seats }).count()
                };
                let supply = free + coming + gained;
                prop_assert!(met(supply) > met(supply - ended.seats), "{chosen:?}");
                // The level used more than its floor until the last of its requests was chosen.
                let of_level = chosen.iter().map(|index| requests[*index]).filter(|request| request.level == ended.level);
                let widest = of_level.map(|request| request.seats).max().unwrap_or(0);
                prop_assert!(after[ended.level].in_use + widest > floors[ended.level]);
            }
            prop_assert!(!wanted.is_empty() || chosen.is_empty());
            for level in 0..3 {
                let ended: i64 = chosen.iter().filter(|index| requests[**index].level == level).map(|index| requests[*index].seats).sum();
                let ending: i64 = requests.iter().filter(|request| request.is_ending && request.level == level).map(|request| request.seats).sum();
                prop_assert_eq!(after[level].in_use, before[level].in_use - ended - ending);
            }
            // Equal requests of one level: those that end are younger than those that go on.
            for (index, spared) in requests.iter().enumerate().filter(|(index, _)| !chosen.contains(index)) {
                let is_older = |chosen: &usize| {
                    let ended = requests[*chosen];
                    ended.level == spared.level && ended.seats == spared.seats && !spared.is_ending && ended.started < spared.started
                };
                prop_assert!(!chosen.iter().any(is_older), "{index} of {requests:?} is younger than one of {chosen:?}");
            }
        }
    }
}
