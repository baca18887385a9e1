//! What goes wrong: processes that stop, die, drain, are cut off or appear twice; an etcd that is away or loses leases.

use evenkeel_engine::time::Instant;
use evenkeel_fleet::FleetSettings;

use super::world::{Event, World};
use super::{SEC, Time};

// === impl World ===

impl World {
    /// One fault, at random.
    pub(super) fn inject_fault(&mut self) {
        let at = self.random.usize(0..self.processes.len());
        let now = self.now;
        let span = self.random.i64(0..20 * SEC);
        let (is_alive, is_stopped) = (self.processes[at].is_alive, self.processes[at].is_stopped(now));
        match self.random.u32(0..14) {
            0 | 1 if is_alive && !is_stopped => {
                let span = span * 3 / 4;
                self.processes[at].stopped_until = now + span;
                self.processes[at].stopped_total += span;
            }
            2 if is_alive => self.kill(at),
            3 | 4 => {
                let is_long = self.random.u32(0..1000) < 150;
                let floor_hold = Time::from(self.plan.settings.terms.floor_hold_ms) * super::MS;
                let span = if is_long { self.random.i64(0..2 * floor_hold) } else { span };
                self.processes[at].cut_until = now + span;
            }
            5 => self.network.etcd_down_until = now + span / 2,
            6 | 7 => self.change_leader(span / 10),
            8 => {
                let ids = self.etcd.ids();
                if let Some(id) = self.random.choice(ids) {
                    let changes = self.etcd.lose_key(id);
                    self.watch(changes);
                }
            }
            9 if is_alive => self.drain(at),
            10 => self.network.slow_until = now + span / 2,
            // One fault of the network: a process is cut off, and the new leader ends its lease at once.
            11 | 12 => {
                self.processes[at].cut_until = now + span;
                if let Some(id) = self.processes[at].member.id() {
                    let changes = self.etcd.revoke(id);
                    self.watch(changes);
                }
            }
            _ => self.boot_namesake(),
        }
    }

    pub(super) fn kill(&mut self, at: usize) {
        self.processes[at].is_alive = false;
        let back = self.now + self.random.i64(0..10 * SEC);
        self.push(back, Event::Boot(at));
    }

    /// Another version of evenkeel writes the ledger, in a format that these processes do not know.
    pub(crate) fn write_foreign_ledger(&mut self) {
        let changes = self.etcd.write_foreign_ledger();
        self.watch(changes);
    }

    /// A process gets no more requests, and serves those that it has.
    pub(crate) fn give_back(&mut self, at: usize) {
        self.processes[at].member.give_back();
    }

    pub(crate) fn drain(&mut self, at: usize) {
        let process = &mut self.processes[at];
        process.is_draining = true;
        process.wanted = 0;
        process.load = std::sync::Arc::default();
        process.member.drain();
    }

    /// The new leader prolongs most leases and loses some.
    fn change_leader(&mut self, down: Time) {
        self.network.etcd_down_until = self.network.etcd_down_until.max(self.now + down);
        self.etcd.restart_leases(Instant::from_nanos(self.now + down));
        for id in self.etcd.ids() {
            if self.random.u32(0..1000) < 250 {
                let changes = self.etcd.revoke(id);
                self.watch(changes);
            }
        }
    }

    /// A second process with the name of one that is stopped or cut off, in the place of a dead one.
    fn boot_namesake(&mut self) {
        let now = self.now;
        let original = self
            .processes
            .iter()
            .find(|process| process.is_alive && (process.is_stopped(now) || process.cut_until > now));
        let name = original.map(|process| process.name);
        let place = self.processes.iter().position(|process| !process.is_alive);
        if let (Some(name), Some(place)) = (name, place) {
            let settings = self.next_settings();
            self.start_process(place, name, None, settings);
        }
    }

    /// The settings of a process that starts now: some rollouts change the seats of the service.
    pub(super) fn next_settings(&mut self) -> FleetSettings {
        if self.plan.is_resized && self.random.u32(0..1000) < 200 {
            self.plan.settings.generation += 1;
            self.plan.settings.seats = self.random.u64(10..60);
        }
        self.plan.settings
    }
}
