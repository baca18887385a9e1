//! The service inside of the flow control: passes requests on.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use evenkeel::identify::Unidentified;
use evenkeel::{FlowFuture, FlowService, Identify};
use evenkeel_engine::User;
use http::request::Parts;
use http::{Request, Response};
use tower_layer::Layer;

use super::attempt::Attempts;
use super::fields::remove_named;
use super::trailers::TrailerGuard;
use crate::answer_body::AnswerBody;
use crate::answers::{self, Failure, Form};
use crate::config::WhenClientLeaves;
use crate::connection::Connection;
use crate::exchange::{CurrentExchange, Exchange, Inbound, OnLeave, Remember};
use crate::h1::Noted;
use crate::requests::Requests;
use crate::service_times::Started;

/// Passes the requests of one connection on.
#[derive(Debug, Clone)]
pub(crate) struct Service(Rc<Connection>);

/// The flow control of one connection, with the service inside.
#[derive(Debug)]
pub(crate) struct Flow {
    service: FlowService<Service, Remember, Requests, Requests>,
    connection: Rc<Connection>,
    current: CurrentExchange,
}

// === impl Flow ===

impl Flow {
    /// The flow control for the requests of this connection.
    ///
    /// This is the one place that says what requests ask for and what they cost: those are the layer's defaults.
    pub(crate) fn new(connection: &Rc<Connection>) -> Self {
        let (remember, current) = Remember::new(connection.identity.clone());
        let routes = &connection.worker.routes;
        let occupancy = routes.clone();
        let layer = connection
            .worker
            .flow
            .layer(remember)
            // Each source of identities says whether it may give such names.
            .allow_system_names()
            .digest(routes.clone())
            .work(routes.clone())
            .long_running(move |parts, request| occupancy.occupancy(parts, request));
        Self { service: layer.layer(Service(Rc::clone(connection))), connection: Rc::clone(connection), current }
    }

    /// A request arrives.
    pub(crate) fn call(&mut self, mut request: Request<Inbound>) -> FlowFuture<Service, Request<Inbound>, AnswerBody> {
        self.connection.worker.routes.normalise(request.uri_mut());
        let exchange = Rc::clone(&request.body().exchange);
        exchange.begin();
        *self.current.borrow_mut() = Some(exchange);
        let future = tower_service::Service::call(&mut self.service, request);
        *self.current.borrow_mut() = None;
        future
    }
}

// === impl Service ===

impl tower_service::Service<Request<Inbound>> for Service {
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>>>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Inbound>) -> Self::Future {
        match prepare(&self.0, request) {
            Ok(attempts) => Box::pin(async move { Ok(attempts.answer().await) }),
            Err(response) => Box::pin(std::future::ready(Ok(*response))),
        }
    }
}

/// Makes of a request what is sent to an upstream, or answers it if it must not be sent.
fn prepare(connection: &Rc<Connection>, request: Request<Inbound>) -> Result<Attempts, Box<Response<AnswerBody>>> {
    let (mut parts, Inbound { mut body, exchange, is_upgrade, noted, id }) = request.into_parts();
    let user = match user(connection, &exchange, &parts) {
        Ok(user) => user,
        Err(error) => return Err(Box::new(answers::answer(error.status, &error.message, Form::of(&parts.headers)))),
    };
    if !connection.client.identify(&user) {
        connection.worker.metrics.client_refused();
        return Err(Box::new(Failure::TooManyConnections.answer(&parts.headers)));
    }
    if body.is_too_large() {
        return Err(Box::new(Failure::BodyTooLarge.answer(&parts.headers)));
    }
    if noted.has(Noted::CONNECTION) {
        remove_named(&mut parts.headers);
    }
    if connection.worker.routes.when_client_leaves(&parts, noted) == WhenClientLeaves::Cancel {
        exchange.set_on_leave(OnLeave::Cancel(Started::now(&user.name, parts.uri.path())));
    }
    connection.identity.cleanse(&mut parts.headers, &user);
    body.start(|| TrailerGuard { identity: connection.identity.clone(), user });
    // The request may have waited for long, and upstreams may be gone since.
    let worker = connection.worker.latest();
    Ok(Attempts { connection: Rc::clone(connection), worker, exchange, parts, noted, id, is_upgrade, body })
}

/// Who is calling. Requests that are not limited have not been identified yet, and are no exception.
fn user(connection: &Connection, exchange: &Exchange, parts: &Parts) -> Result<Arc<User>, Unidentified> {
    match exchange.take_user() {
        Some(user) => Ok(user),
        None => connection.identity.identify(parts),
    }
}
