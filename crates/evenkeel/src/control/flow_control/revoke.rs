//! Ends requests of revocable levels when requests of another level have waited for too long for seats of its own (LM-7).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::LevelId;
use evenkeel_engine::queue_set::{Phase, RequestId};
use evenkeel_engine::revocation::{RevocableLevel, RevocableRequest, choose};
use evenkeel_engine::time::{Instant, Nanos};

use super::{FlowControl, FlowControlShared};
use crate::control::clock::nanos;
use crate::control::core::LevelCore;
use crate::control::ledger::LevelGrants;
use crate::control::level::Level;
use crate::control::revocation::RevocationTicket;

/// The requests that may be told to end, and their levels.
#[derive(Default)]
struct Revocable {
    levels: Vec<RevocableLevel>,
    requests: Vec<RevocableRequest>,
    /// The tickets of the requests, in the same order.
    tickets: Vec<Arc<RevocationTicket>>,
}

// === impl FlowControl ===

impl FlowControl {
    /// How long requests wait for seats of their own level from now on before requests of revocable levels end: see
    /// [`FlowControlBuilder::revoke_after`](crate::FlowControlBuilder::revoke_after).
    pub fn set_revoke_after(&self, wait: Duration) {
        self.shared.upkeep.revoker.set_after(nanos(wait));
    }
}

// === impl FlowControlShared ===

impl FlowControlShared {
    /// Tells requests to end if that is due. Returns when to look again; `None` if there is no request that could end.
    pub(super) fn revoke(&self) -> Option<Instant> {
        let revoker = &self.upkeep.revoker;
        let now = self.upkeep.clock.now();
        if let Err(next) = revoker.look(now)? {
            return Some(next);
        }
        let snapshot = self.snapshot();
        let schemas = snapshot.configuration.schemas().iter();
        let revocable: BTreeSet<LevelId> =
            schemas.filter(|schema| schema.level.is_revocable).map(|schema| schema.level.id).collect();
        // Revocable levels give seats up and do not claim any.
        let others = snapshot.levels.iter().filter(|level| !revocable.contains(&level.id));
        let (claimed, free) = claims_of(others, now, revoker.after());
        if !claimed.is_empty() {
            let mut revocable = Revocable::default();
            for level in snapshot.levels.iter() {
                revocable.add(level, revoker.tickets_of(level.id), now);
            }
            let Revocable { levels, requests, tickets } = &mut revocable;
            for index in choose(&claimed, free, levels, requests) {
                tickets[index].revoke(now);
            }
            // As soon as the request that is next has started, the one after it may claim seats.
            revoker.look_soon(now);
        }
        revoker.look(now).and_then(Result::err)
    }
}

/// The seats that are claimed by levels which use fewer than their own, and the seats that these levels could already have.
fn claims_of<'a>(levels: impl Iterator<Item = &'a Arc<Level>>, now: Instant, after: Nanos) -> (Vec<i64>, i64) {
    let (mut claimed, mut of_floors, mut unreserved) = (Vec::new(), 0, 0);
    for level in levels {
        let mut core = level.lock();
        let Some((stake, in_use)) = core.grants.as_ref().map(LevelGrants::stake_and_use) else { continue };
        if in_use >= stake.nominal || stake.is_exempt || core.queue_set().waiting() == 0 {
            continue;
        }
        let Some(claim) = claim(&mut core, now, after).filter(|claim| in_use + claim <= stake.nominal) else {
            continue;
        };
        claimed.push(claim);
        // The seats of its floor are kept for the level itself.
        of_floors += claim.min((stake.floor - in_use).max(0));
        unreserved = core.grants.as_ref().map_or(0, LevelGrants::unreserved);
    }
    (claimed, unreserved + of_floors)
}

/// The seats that the next request of a level needs, if requests of the level have waited for that long: including those that it
/// has to leave to newcomers (PF-10), unless it is one. The request after it claims seats when this one has started.
fn claim(core: &mut LevelCore, now: Instant, after: Nanos) -> Option<i64> {
    let now = core.latest.max(now);
    let [head, newcomer] = core.level.heads(now);
    let set = core.queue_set();
    let is_overdue = |arrived: Instant| now - arrived >= after;
    if let Some(newcomer) = newcomer
        && set.request(newcomer.id).is_some_and(|request| is_overdue(request.arrived))
    {
        return Some(newcomer.seats.max(1));
    }
    let head = head?;
    let mut waiting = set.requests().filter(|request| request.phase == Phase::Waiting);
    waiting.any(|request| is_overdue(request.arrived)).then(|| head.seats.max(1) + head.kept)
}

// === impl Revocable ===

impl Revocable {
    fn add(&mut self, level: &Level, tickets: Vec<(RequestId, Arc<RevocationTicket>)>, now: Instant) {
        if tickets.is_empty() {
            return;
        }
        let core = level.lock();
        let Some(grants) = &core.grants else { return };
        let (stake, in_use) = grants.stake_and_use();
        let place = self.levels.len();
        self.levels.push(RevocableLevel { floor: stake.floor, in_use });
        for (id, ticket) in tickets {
            let Some(request) = core.queue_set().request(id).filter(|request| request.phase == Phase::Executing) else {
                continue;
            };
            // A request that was told to end and did not is left alone.
            let (is_ending, seats) = (ticket.is_ending(now), i64::from(request.work.max_seats()));
            if is_ending || !ticket.is_revoked() {
                let started = request.started.unwrap_or(request.arrived);
                self.requests.push(RevocableRequest { level: place, started, seats, is_ending });
                self.tickets.push(ticket);
            }
        }
    }
}
