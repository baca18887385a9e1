//! Passes a request on, over HTTP/1.1 and HTTP/2 alike, and waits for the response for as long as its client does.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use evenkeel_api::model_namespace;
use http::Response;
use http::request::Parts;

use super::buffered_body::BufferedBody;
use super::logged_request::LoggedRequest;
use super::pending::PendingResponse;
use crate::llm::{LlmRequest, RequestFacts};
use crate::proxy::arrival::Arrival;
use crate::proxy::connection::Connection;
use crate::proxy::error_response::Failure;
use crate::proxy::exchange::Inbound;
use crate::proxy::forward::PoolRequest;
use crate::proxy::pool::WorkerPool;
use crate::proxy::record::RequestRecord;
use crate::proxy::request_body::{Reception, RequestBody};

/// A client that waits while its request is passed on, as its protocol has it.
pub(super) trait WaitingClient {
    /// Whether the time for the whole request is over; if not, the task is woken when it is.
    fn poll_total(&mut self, context: &Context<'_>) -> Poll<()>;

    /// The body of the request is there, as far as it is received first. The client waits for the response from now on.
    fn begin_waiting(&mut self) {}

    /// Passes interim responses on. Ready if the client has disconnected.
    fn poll_left(&mut self, _context: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

/// Passes on a request that has been interpreted and authenticated.
///
/// A request whose client is slow to send the body holds no seat meanwhile: the body is received first, or as much of it as
/// is buffered.
pub(super) async fn pass_on(
    mut arrival: Arrival<'_>,
    mut parts: Parts,
    mut inbound: Inbound,
    client: &mut impl WaitingClient,
) -> Result<Response<BufferedBody>, Failure> {
    let (connection, exchange) = (Rc::clone(&inbound.connection), Rc::clone(&inbound.exchange));
    let logged = LoggedRequest { connection: &connection, exchange: &exchange, target: arrival.target };
    logged.note_arrival(&arrival);
    let found = arrival.pool.clone()?;
    // The bytes after the head of an upgrade are not a body.
    let counts_tokens = arrival.counts_tokens(&connection);
    if !inbound.is_upgrade && (inbound.body.is_to_come() || counts_tokens && !inbound.body.is_too_large()) {
        let reception = arrival.reception(&parts);
        // Apart, since few requests need it: the futures of all others are smaller.
        Box::pin(receive(&mut inbound.body, reception, &connection, client)).await?;
        exchange.note(RequestRecord::note_asked);
    }
    if counts_tokens {
        let request = read_llm(&mut arrival, &inbound.body, &found.pool, &connection);
        exchange.note(|record| record.note_llm(&request, &parts.headers));
        parts.extensions.insert(request);
    }
    client.begin_waiting();
    let new_path = found.new_path(&parts, arrival.target)?;
    let Arrival { digested, user, .. } = arrival;
    let request = PoolRequest { inbound, pool: Rc::clone(&found.pool), new_path };
    let api = connection.worker.errors.stream_api(&parts.uri, &parts.headers);
    let future = found.pool.call(digested, &user, parts, request);
    let mut pending = PendingResponse::new(future, &exchange, &connection, api);
    let response = poll_fn(|context| {
        if let Poll::Ready(response) = Pin::new(&mut pending).poll(context) {
            return Poll::Ready(response);
        }
        if client.poll_left(context).is_ready() {
            return Poll::Ready(Err(Failure::ClientGone));
        }
        client.poll_total(context).map(|()| Err(pending.expire()))
    });
    let response = response.await?;
    logged.note_response(&response, user.ok().as_deref());
    Ok(response)
}

/// Reads the facts about the model from the body of a request, as far as it has arrived.
#[cold]
fn read_llm(
    arrival: &mut Arrival<'_>,
    body: &RequestBody,
    pool: &WorkerPool,
    connection: &Connection,
) -> Arc<LlmRequest> {
    let received = body.received();
    let mut facts = RequestFacts::read(received);
    arrival.set_namespace(model_namespace(&facts.model));
    let length = body.left().unwrap_or(received.len() as u64);
    // The unread part may hold anything.
    facts.is_text &= body.left() == Some(received.len() as u64);
    let cached_weight = connection.worker.config.llm.cached_token_weight;
    let user = arrival.user();
    let user = user.as_ref().map_or("", |user| &*user.name);
    Arc::new(LlmRequest::new(&pool.llm, facts, length, cached_weight, user))
}

/// Receives the body within the time for the whole request.
async fn receive(
    body: &mut RequestBody,
    reception: Reception,
    connection: &Connection,
    client: &mut impl WaitingClient,
) -> Result<(), Failure> {
    let mut received = pin!(body.receive(reception, connection));
    poll_fn(|context| match received.as_mut().poll(context) {
        Poll::Ready(received) => Poll::Ready(received.map_err(Failure::from)),
        Poll::Pending => client.poll_total(context).map(|()| Err(Failure::TotalTimeout)),
    })
    .await
}
