//! Requests of an Envoy that is not governed yet (`observability_mode`): Envoy waits for nothing, and only the shadow decides about them (EP-5).

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Once;

use evenkeel::digest::PartsHead;
use evenkeel::identify::ClientAddress;
use evenkeel::request::FlowRequest;
use evenkeel::shadow::Observed;
use evenkeel_engine::{Attributes, RequestHead, RequestInfo, WorkEstimate};
use http::request::Parts;

use super::head::{head_of, list_bytes};
use super::messages::{HttpHeaders, ProcessingRequest, Step};
use super::process::RequestStream;
use crate::observe::metrics::ExtProcOutcome;
use crate::proxy::arrival::Arrival;
use crate::proxy::connection::Connection;
use crate::proxy::serve::normalize_head;

const NO_SHADOW: &str = "Envoy is in observability_mode, and there is no shadow that it could tell; start evenkeel with `--shadow FILE`, or set `shadow: {}`";

// === impl RequestStream ===

impl RequestStream {
    /// Follows a request that runs already, until it is over. Nothing is sent: Envoy would not read it. The stream never ends with an error: by
    /// that, an Envoy without `failure_mode_allow` would reject the request.
    pub(super) async fn observe(mut self, connection: &Rc<Connection>, headers: HttpHeaders) {
        let is_too_long = list_bytes(&headers) > connection.worker.config.limits.head_bytes;
        let head = if is_too_long { None } else { head_of(headers).ok() };
        let mut observed = head.and_then(|parts| observed(connection, parts));
        while let Some(Ok(message)) = poll_fn(|context| self.messages.poll_next::<ProcessingRequest>(context)).await {
            if is_over(&message) {
                // Envoy may end the stream some seconds later.
                observed = None;
            }
        }
        drop(observed);
    }
}

/// Reports a request to the shadow, unless the request would not reach flow control.
fn observed(connection: &Rc<Connection>, mut parts: Parts) -> Option<Observed> {
    let worker = &connection.worker;
    if normalize_head(&mut parts, worker.config.limits.headers).is_err() {
        return None;
    }
    let target = worker.rules.target(&mut parts);
    let Arrival { digested: Ok(digested), user: Ok(user), pool: Ok(found), .. } =
        Arrival::new(connection, &target, &parts)
    else {
        return None;
    };
    let Some(flow) = &found.pool.held_flow else { return None };
    parts.extensions.insert(ClientAddress::from(connection.identity.client_address(&parts.headers)));
    let head = PartsHead::new(&parts);
    let work = worker.rules.seats_of_route(digested.extra).unwrap_or(WorkEstimate::ONE_SEAT);
    let is_long_running = worker.rules.is_long_running(&digested);
    let request = RequestInfo { head: RequestHead::borrowed(&head), ..digested.info };
    let request = FlowRequest::new(Attributes { user: &user, request: &request }).work(work);
    let request = if is_long_running { request.long_running() } else { request };
    let observed = flow.control().observe(&request);
    if observed.is_some() {
        worker.metrics.ext_proc_request(ExtProcOutcome::Observed);
    } else {
        static WARNING: Once = Once::new();
        WARNING.call_once(|| tracing::warn!("{NO_SHADOW}"));
    }
    observed
}

/// Whether the response has ended.
fn is_over(message: &ProcessingRequest) -> bool {
    match &message.step {
        Some(Step::ResponseHeaders(headers)) => headers.end_of_stream,
        Some(Step::ResponseTrailers(_)) => true,
        _ => false,
    }
}
