//! Calls to a cluster of etcd: one member at a time, the next when it fails, and never longer than the deadline.

use std::error::Error as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use tokio::sync::watch;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_stream::StreamExt;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, ConnectError, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::Error;

use super::circuit::Circuit;
use super::config::{EtcdConfig, EtcdLogin, EtcdTls};
use super::messages::{
    AuthenticateRequest, AuthenticateResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse, RangeRequest,
    RangeResponse, WatchCreateRequest, WatchRequest, WatchResponse,
};

/// A page of the largest objects that etcd takes fits into this.
const MESSAGE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// etcd closes connections of clients that send keep-alive pings more often than every five seconds.
const KEEP_ALIVE: Duration = Duration::from_secs(6);
const KEEP_ALIVE_ANSWER: Duration = Duration::from_secs(2);

/// Between two rounds in which no member could be reached.
const PAUSE: Duration = Duration::from_millis(100);
/// Between two attempts in the background to reach any member.
const PROBE_PAUSE: Duration = Duration::from_millis(500);

/// The members of a cluster, and the one in use.
#[derive(Debug)]
pub(crate) struct Client {
    members: Vec<Channel>,
    current: AtomicUsize,
    /// Notifies of every change of `current`.
    moved: watch::Sender<usize>,
    circuit: Circuit,
    login: Option<EtcdLogin>,
    token: Mutex<Option<MetadataValue<Ascii>>>,
    call_deadline: Duration,
    attempt_deadline: Duration,
}

/// A call of etcd's protocol.
pub(crate) struct Method {
    path: &'static str,
    /// Whether a call may be repeated when it is not known whether it has taken effect.
    retry: Retry,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Retry {
    /// The call changes nothing, or nothing more the second time.
    Always,
    /// The call may be repeated only if it has surely not taken effect.
    IfNotSent,
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum CallError {
    /// etcd rejected the call.
    Refused(Status),
    /// No member could be reached; nothing was done.
    NotSent(String),
    /// The call was sent, and no response came.
    NoResponse(String),
}

pub(crate) const RANGE: Method = Method { path: "/etcdserverpb.KV/Range", retry: Retry::Always };
pub(crate) const TXN: Method = Method { path: "/etcdserverpb.KV/Txn", retry: Retry::IfNotSent };
pub(crate) const COMPACT: Method = Method { path: "/etcdserverpb.KV/Compact", retry: Retry::IfNotSent };
pub(crate) const LEASE_GRANT: Method = Method { path: "/etcdserverpb.Lease/LeaseGrant", retry: Retry::IfNotSent };
const LEASE_KEEP_ALIVE: &str = "/etcdserverpb.Lease/LeaseKeepAlive";
const AUTHENTICATE: &str = "/etcdserverpb.Auth/Authenticate";
const WATCH: &str = "/etcdserverpb.Watch/Watch";

// === impl Client ===

impl Client {
    /// Connects when the first call is made.
    pub(crate) fn new(config: &EtcdConfig) -> Result<Self, Error> {
        if config.endpoints.is_empty() {
            return Err(Error::Location("an etcd needs at least one endpoint".to_owned()));
        }
        let members = config.endpoints.iter().map(|endpoint| channel(endpoint, config.tls.as_ref()));
        Ok(Self {
            members: members.collect::<Result<_, _>>()?,
            current: AtomicUsize::new(0),
            moved: watch::Sender::new(0),
            circuit: Circuit::new(),
            login: config.login.clone(),
            token: Mutex::new(None),
            call_deadline: config.call_deadline,
            attempt_deadline: config.attempt_deadline,
        })
    }

    pub(crate) fn call_deadline(&self) -> Duration {
        self.call_deadline
    }

    /// Whether etcd can be reached.
    pub(crate) fn circuit(&self) -> &Circuit {
        &self.circuit
    }

    /// Tries to reach a member again whenever all are away, until it is aborted.
    pub(crate) async fn probe(&self, key: Bytes) {
        let mut told = false;
        loop {
            self.circuit.opened().await;
            if !std::mem::replace(&mut told, true) {
                tracing::warn!("etcd is unreachable; calls fail at once until a member responds again");
            }
            sleep(PROBE_PAUSE).await;
            let member = self.current.load(Ordering::Relaxed);
            let request = RangeRequest { key: key.clone(), count_only: true, ..RangeRequest::default() };
            let attempt = self.attempt::<_, RangeResponse>(member, RANGE.path, request);
            match timeout(self.attempt_deadline, attempt).await.map(|response| response.map_err(CallError::from)) {
                Ok(Ok(_) | Err(CallError::Refused(_))) => {
                    self.circuit.close();
                    tracing::info!("etcd is reachable again");
                    told = false;
                }
                _ => self.leave(member),
            }
        }
    }

    /// Calls one member after the other until one has responded or the deadline has passed. Fails at once while no member
    /// can be reached.
    pub(crate) async fn call<Q, A>(&self, method: &Method, request: Q) -> Result<A, CallError>
    where
        Q: prost::Message + Clone + 'static,
        A: prost::Message + Default + 'static,
    {
        if let Some(away) = self.circuit.away() {
            return Err(CallError::NotSent(away.problem));
        }
        let deadline = Instant::now() + self.call_deadline;
        let mut failures = 0;
        loop {
            let member = self.current.load(Ordering::Relaxed);
            let attempt_deadline = deadline.min(Instant::now() + self.attempt_deadline);
            let failure = match timeout_at(attempt_deadline, self.attempt(member, method.path, request.clone())).await {
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(status)) => CallError::from(status),
                Err(_) => CallError::NoResponse("a member did not respond in time".to_owned()),
            };
            match &failure {
                CallError::Refused(status) if wants_new_token(status) && self.login.is_some() => {
                    self.forget_token();
                }
                CallError::Refused(_) => return Err(failure),
                CallError::NotSent(_) => self.leave(member),
                CallError::NoResponse(_) => {
                    self.leave(member);
                    if method.retry == Retry::IfNotSent {
                        return Err(failure);
                    }
                }
            }
            failures += 1;
            if failures % self.members.len() == 0 {
                sleep(PAUSE).await;
            }
            if Instant::now() >= deadline {
                if let CallError::NotSent(problem) | CallError::NoResponse(problem) = &failure {
                    self.circuit.open(problem);
                }
                return Err(failure);
            }
            if self.circuit.away().is_some() {
                return Err(failure);
            }
        }
    }

    /// One attempt at the member in use, for callers that have a time for each attempt themselves. After a failure the next
    /// member is in use. It is made whether or not etcd could be reached before.
    pub(crate) async fn call_once<Q, A>(&self, method: &Method, request: Q) -> Result<A, CallError>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let member = self.current.load(Ordering::Relaxed);
        let attempt = timeout(self.attempt_deadline, self.attempt(member, method.path, request)).await;
        self.after_attempt(member, attempt)
    }

    /// Lets a lease last anew; returns for how many seconds, zero if there is no such lease.
    pub(crate) async fn keep_alive(&self, lease: i64) -> Result<i64, CallError> {
        let member = self.current.load(Ordering::Relaxed);
        let attempt = timeout(self.attempt_deadline, self.keep_alive_at(member, lease)).await;
        self.after_attempt(member, attempt)
    }

    async fn keep_alive_at(&self, member: usize, lease: i64) -> Result<i64, Status> {
        let mut request = Request::new(tokio_stream::once(LeaseKeepAliveRequest { id: lease }));
        self.sign(member, &mut request).await?;
        let mut grpc = self.grpc(member);
        grpc.ready().await.map_err(not_ready)?;
        let codec = ProstCodec::<LeaseKeepAliveRequest, LeaseKeepAliveResponse>::default();
        let path = PathAndQuery::from_static(LEASE_KEEP_ALIVE);
        let mut responses = grpc.streaming(request, path, codec).await?.into_inner();
        let response = responses.message().await?.ok_or_else(|| Status::unavailable("no response for the lease"))?;
        Ok(response.seconds)
    }

    fn after_attempt<A>(&self, member: usize, attempt: Result<Result<A, Status>, Elapsed>) -> Result<A, CallError> {
        let failure = match attempt {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(status)) => {
                if wants_new_token(&status) {
                    self.forget_token();
                }
                CallError::from(status)
            }
            Err(_) => CallError::NoResponse("a member did not respond in time".to_owned()),
        };
        if !matches!(failure, CallError::Refused(_)) {
            self.leave(member);
        }
        Err(failure)
    }

    /// Opens a watch at the member in use, and returns after etcd's first response.
    pub(crate) async fn watch(
        &self,
        create: WatchCreateRequest,
    ) -> Result<(WatchResponse, Streaming<WatchResponse>), CallError> {
        let member = self.current.load(Ordering::Relaxed);
        let opened = timeout(self.attempt_deadline, self.open_watch(member, create)).await;
        // A member that refuses a watch may be the only one that does.
        self.after_attempt(member, opened).inspect_err(|_| self.leave(member))
    }

    /// Notifies when another member is used.
    pub(crate) fn moved(&self) -> watch::Receiver<usize> {
        self.moved.subscribe()
    }

    /// Switches to the next member, unless that has happened already. Watches follow.
    pub(crate) fn leave(&self, member: usize) {
        let next = (member + 1) % self.members.len();
        if self.current.compare_exchange(member, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() && next != member {
            self.moved.send_replace(next);
        }
    }

    pub(crate) fn current(&self) -> usize {
        self.current.load(Ordering::Relaxed)
    }

    pub(crate) fn forget_token(&self) {
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    async fn attempt<Q, A>(&self, member: usize, path: &'static str, request: Q) -> Result<A, Status>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let mut request = Request::new(request);
        self.sign(member, &mut request).await?;
        unary(self.grpc(member), path, request).await
    }

    async fn open_watch(
        &self,
        member: usize,
        create: WatchCreateRequest,
    ) -> Result<(WatchResponse, Streaming<WatchResponse>), Status> {
        // The stream of requests stays open: its end would be the end of the watch.
        let requests = tokio_stream::once(WatchRequest { create: Some(create) }).chain(tokio_stream::pending());
        let mut request = Request::new(requests);
        self.sign(member, &mut request).await?;
        let mut grpc = self.grpc(member);
        grpc.ready().await.map_err(not_ready)?;
        let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
        let mut responses = grpc.streaming(request, PathAndQuery::from_static(WATCH), codec).await?.into_inner();
        let first = responses.message().await?.ok_or_else(|| Status::unavailable("the watch ended at once"))?;
        Ok((first, responses))
    }

    /// Adds what every request carries: a demand that a member without a leader rejects it, and our token.
    async fn sign<Q>(&self, member: usize, request: &mut Request<Q>) -> Result<(), Status> {
        request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
        if let Some(login) = &self.login {
            let token = self.token(member, login).await?;
            request.metadata_mut().insert("token", token);
        }
        Ok(())
    }

    async fn token(&self, member: usize, login: &EtcdLogin) -> Result<MetadataValue<Ascii>, Status> {
        let known = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(token) = known {
            return Ok(token);
        }
        let request = AuthenticateRequest { name: login.user.clone(), password: login.password.clone() };
        let response: AuthenticateResponse = unary(self.grpc(member), AUTHENTICATE, Request::new(request)).await?;
        let mut token =
            MetadataValue::try_from(response.token).map_err(|_| Status::internal("the token is no text"))?;
        token.set_sensitive(true);
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.clone());
        Ok(token)
    }

    fn grpc(&self, member: usize) -> Grpc<Channel> {
        Grpc::new(self.members[member].clone()).max_decoding_message_size(MESSAGE_BYTES_MAX)
    }
}

/// Whether the token is too old: its time is over, or users and roles have changed since it was given. Nothing was done then.
fn wants_new_token(status: &Status) -> bool {
    match status.code() {
        Code::Unauthenticated => true,
        Code::InvalidArgument => status.message().contains("revision of auth store is old"),
        _ => false,
    }
}

// === impl CallError ===

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        let mut source = status.source();
        while let Some(error) = source {
            if error.is::<ConnectError>() {
                return Self::NotSent(error.to_string());
            }
            source = error.source();
        }
        match status.code() {
            // The member refused before it did anything, and another one may accept.
            Code::Unavailable if status.message() == "etcdserver: no leader" => {
                Self::NotSent(status.message().to_owned())
            }
            Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::ResourceExhausted
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::Unauthenticated => Self::Refused(status),
            _ => Self::NoResponse(status.message().to_owned()),
        }
    }
}

/// The meaning of a failed call for a read.
impl From<CallError> for Error {
    fn from(failure: CallError) -> Self {
        match failure {
            CallError::Refused(status) => match status.code() {
                Code::Unauthenticated | Code::PermissionDenied => Self::Denied(status.message().to_owned()),
                // A wrong password, or none where etcd demands one.
                Code::InvalidArgument
                    if ["authentication failed", "user name is empty"]
                        .iter()
                        .any(|problem| status.message().contains(problem)) =>
                {
                    Self::Denied(status.message().to_owned())
                }
                _ => Self::Unavailable(status.message().to_owned()),
            },
            CallError::NotSent(problem) | CallError::NoResponse(problem) => Self::Unavailable(problem),
        }
    }
}

fn channel(endpoint: &str, tls: Option<&EtcdTls>) -> Result<Channel, Error> {
    let bad = |problem: tonic::transport::Error| {
        let cause = problem.source().map_or_else(|| problem.to_string(), ToString::to_string);
        Error::Location(format!("cannot use the endpoint {endpoint:?}: {cause}"))
    };
    let scheme = if tls.is_some() { "https" } else { "http" };
    let mut builder = Endpoint::from_shared(format!("{scheme}://{endpoint}"))
        .map_err(bad)?
        .connect_timeout(KEEP_ALIVE_ANSWER)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE_ANSWER)
        .keep_alive_while_idle(true)
        .tcp_nodelay(true);
    if let Some(tls) = tls {
        let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&tls.ca));
        if let Some(identity) = &tls.identity {
            config = config.identity(Identity::from_pem(&identity.certificate, &identity.key));
        }
        if let Some(name) = &tls.server_name {
            config = config.domain_name(name);
        }
        builder = builder.tls_config(config).map_err(bad)?;
    }
    Ok(builder.connect_lazy())
}

async fn unary<Q, A>(mut grpc: Grpc<Channel>, path: &'static str, request: Request<Q>) -> Result<A, Status>
where
    Q: prost::Message + 'static,
    A: prost::Message + Default + 'static,
{
    grpc.ready().await.map_err(not_ready)?;
    let codec = ProstCodec::<Q, A>::default();
    Ok(grpc.unary(request, PathAndQuery::from_static(path), codec).await?.into_inner())
}

fn not_ready(error: tonic::transport::Error) -> Status {
    Status::from_error(Box::new(error))
}
