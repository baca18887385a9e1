//! `FlowControls`: the flow control of each service. All are governed by the same objects, and each divides its own seats.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use evenkeel::division::Borrowing;
use evenkeel::limit::Learnt;
use evenkeel::objects::InvalidObjects;
use evenkeel::{FlowControl, FlowControlBuilder};
use evenkeel_engine::auto_limit::Concurrency;
use evenkeel_engine::controller::{Objects, TooFewSeats};

use super::StartError;
use super::shadowing::Shadowing;
use crate::config::{Config, LimitConfig};
use crate::limit;

/// All flow controls of a gateway.
#[derive(Debug)]
pub(crate) struct FlowControls {
    /// The flow control of requests that belong to no service.
    default: FlowControl,
    of_services: Mutex<OfServices>,
}

#[derive(Debug, Default)]
struct OfServices {
    by_name: BTreeMap<String, FlowControl>,
    /// The objects that govern.
    objects: Objects,
    shadowing: Shadowing,
}

// === impl FlowControls ===

impl FlowControls {
    pub(super) fn new(config: &Config) -> Self {
        let learnt = limit::learnt(&config.concurrency(), &config.limit);
        let shadowing = Shadowing::new(config.shadow.as_ref());
        let of_services = Mutex::new(OfServices { shadowing, ..OfServices::default() });
        let default = builder(config, config.concurrency(), learnt).build();
        default.record(recorder_bytes(config));
        Self { default, of_services }
    }

    fn of_services(&self) -> MutexGuard<'_, OfServices> {
        self.of_services.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The flow control of requests that belong to no service.
    pub(crate) fn default(&self) -> &FlowControl {
        &self.default
    }

    /// The flow control of a service, which is made if there is none yet.
    pub(super) fn of(&self, service: &str, config: &Config) -> FlowControl {
        let mut of_services = self.of_services();
        if let Some(flow) = of_services.by_name.get(service) {
            return flow.clone();
        }
        let seats = config.concurrency_of(service);
        let learnt = limit::learnt(&seats, &config.limit_of(service));
        let builder = builder(config, seats, learnt);
        // All have the same objects, and the default one warns of them.
        let flow = builder.service_name(service).without_object_warnings().build();
        flow.record(recorder_bytes(config));
        flow.apply_stored(of_services.objects.clone());
        warn_of(of_services.shadowing.begin(&of_services.objects, std::iter::once(&flow)));
        of_services.by_name.insert(service.to_owned(), flow.clone());
        flow
    }

    /// The flow controls whose limit finds itself, with the settings of the limit.
    pub(super) fn finding(&self, config: &Config) -> Vec<(FlowControl, LimitConfig)> {
        let own = config.concurrency().auto().map(|_| (self.default.clone(), config.limit.clone()));
        let of_services = self.of_services();
        let of_services = of_services.by_name.iter().filter(|(name, _)| config.concurrency_of(name).auto().is_some());
        own.into_iter().chain(of_services.map(|(name, flow)| (flow.clone(), config.limit_of(name)))).collect()
    }

    /// Applies these objects to all flow controls, unless one of them has fewer seats than levels that have to have one.
    pub(super) fn apply(&self, objects: &Objects) -> Result<(), StartError> {
        let mut of_services = self.of_services();
        self.default.check_objects(objects)?;
        for (service, flow) in &of_services.by_name {
            flow.check_objects(objects).map_err(|error| of_service(service, error))?;
        }
        self.default.apply_stored(objects.clone());
        for flow in of_services.by_name.values() {
            flow.apply_stored(objects.clone());
        }
        let before = std::mem::replace(&mut of_services.objects, objects.clone());
        if of_services.shadowing.follows(&before, objects) {
            warn_of(self.begin_shadow(&of_services));
        }
        Ok(())
    }

    /// The files of the shadow have these objects.
    pub(super) fn shadow_files(&self, objects: Objects) -> Result<(), InvalidObjects> {
        let mut of_services = self.of_services();
        of_services.shadowing.set_files(objects);
        self.begin_shadow(&of_services)
    }

    fn begin_shadow(&self, of_services: &OfServices) -> Result<(), InvalidObjects> {
        let all = std::iter::once(&self.default).chain(of_services.by_name.values());
        of_services.shadowing.begin(&of_services.objects, all)
    }

    /// Whether there are enough seats under these settings, for the objects that govern or for these.
    pub(super) fn check(&self, config: &Config, objects: Option<&Objects>) -> Result<(), StartError> {
        let check = |seats| match objects {
            Some(objects) => self.default.check_objects_with(objects, seats),
            None => self.default.check_server_concurrency(seats),
        };
        check(config.concurrency().most())?;
        for service in config.services.keys() {
            check(config.concurrency_of(service).most()).map_err(|error| of_service(service, error))?;
        }
        Ok(())
    }

    /// Follows new settings. The flow controls of services that are gone end with their last request.
    pub(super) fn follow(&self, before: &Config, config: &Config) {
        let mut of_services = self.of_services();
        of_services.by_name.retain(|service, _| config.services.contains_key(service));
        if before.shadow != config.shadow {
            of_services.shadowing.set_config(config.shadow.as_ref());
            warn_of(self.begin_shadow(&of_services));
        }
        let own = [(&self.default, before.concurrency(), config.concurrency())];
        let of_services = of_services
            .by_name
            .iter()
            .map(|(service, flow)| (flow, before.concurrency_of(service), config.concurrency_of(service)));
        for (flow, seats_before, seats) in own.into_iter().chain(of_services) {
            if seats != seats_before {
                flow.set_concurrency(seats);
            }
            flow.set_borrowing(config.flow_control.borrowing.map(Borrowing::from));
            flow.set_newcomer_wait(config.flow_control.newcomer_wait);
            flow.set_revoke_after(config.flow_control.revoke_after);
            flow.set_wait_limit(config.timeouts.queue);
            if recorder_bytes(config) != recorder_bytes(before) {
                flow.record(recorder_bytes(config));
            }
        }
    }
}

/// A builder with the limit that an earlier run has learnt, if there is one. It has no objects: objects that never govern must
/// not leave series in the metrics.
fn builder(config: &Config, seats: Concurrency, learnt: Option<Learnt>) -> FlowControlBuilder {
    FlowControl::builder()
        .preset(config.preset)
        .concurrency(seats)
        .learnt_limit(learnt)
        .borrowing(config.flow_control.borrowing.map(Borrowing::from))
        .newcomer_wait(config.flow_control.newcomer_wait)
        .revoke_after(config.flow_control.revoke_after)
        .wait_limit(config.timeouts.queue)
        .machine_clock()
        .attribute_flows()
        .objects(Objects::default())
}

/// How much memory the recorder of each flow control has.
fn recorder_bytes(config: &Config) -> usize {
    config.flight_recorder.bytes / (config.services.len() + 1)
}

fn warn_of(begun: Result<(), InvalidObjects>) {
    if let Err(invalid) = begun {
        tracing::warn!("there is no shadow, because its objects cannot be used: {invalid}");
    }
}

fn of_service(service: &str, error: TooFewSeats) -> StartError {
    StartError::SeatsOfService { service: service.to_owned(), error }
}
