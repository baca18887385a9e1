//! Collectors that decode what they get with the messages of `opentelemetry-proto`.

use std::io::Read;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use crate::support::client::Answer;
use crate::support::eventually;
use crate::support::upstream::Upstream;

/// A collector, and what it has got.
pub(super) struct Collector {
    pub(super) address: SocketAddr,
    received: Received,
    _http: Option<Upstream>,
}

/// The messages that a collector has got, and the heads of requests over HTTP.
#[derive(Clone, Default)]
struct Received(Arc<Mutex<Vec<(String, ExportTraceServiceRequest)>>>);

/// A collector of gRPC that says this of the first calls, and takes the others.
struct GrpcService {
    received: Received,
    first: Mutex<Vec<Status>>,
    api_key: Option<String>,
}

// === impl Collector ===

impl Collector {
    /// Speaks OTLP over HTTP, and takes everything.
    pub(super) async fn http() -> Self {
        Self::responding(|_| "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned()).await
    }

    /// Speaks OTLP over HTTP, and says what a function makes of the number of messages before.
    pub(super) async fn responding(respond: impl Fn(usize) -> String + Clone + Send + Sync + 'static) -> Self {
        let received = Received::default();
        let kept = received.clone();
        let answer = move |request: Answer| {
            let message = ExportTraceServiceRequest::decode(&*unpacked(&request)).unwrap();
            let mut kept = kept.0.lock().unwrap();
            kept.push((request.head, message));
            respond(kept.len() - 1)
        };
        let http = Upstream::answering(answer).await;
        Self { address: http.address, received, _http: Some(http) }
    }

    /// Does with its connections as a test says.
    pub(super) fn odd(upstream: Upstream) -> Self {
        Self { address: upstream.address, received: Received::default(), _http: Some(upstream) }
    }

    /// Speaks OTLP over gRPC, says this of the first calls, and takes the others if they have this key.
    pub(super) async fn grpc(first: Vec<Status>, api_key: Option<&str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, received) = (listener.local_addr().unwrap(), Received::default());
        let api_key = api_key.map(ToOwned::to_owned);
        let service = GrpcService { received: received.clone(), first: Mutex::new(first), api_key };
        let server = tonic::transport::Server::builder().add_service(TraceServiceServer::new(service));
        tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
        Self { address, received, _http: None }
    }

    /// The messages so far.
    pub(super) fn messages(&self) -> Vec<ExportTraceServiceRequest> {
        self.received.0.lock().unwrap().iter().map(|(_, message)| message.clone()).collect()
    }

    /// The heads of the requests over HTTP so far.
    pub(super) fn heads(&self) -> Vec<String> {
        self.received.0.lock().unwrap().iter().map(|(head, _)| head.clone()).collect()
    }

    /// The spans so far.
    pub(super) fn spans(&self) -> Vec<Span> {
        let resources = self.messages().into_iter().flat_map(|message| message.resource_spans);
        resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }

    /// The span with this name. There is one.
    pub(super) fn span(&self, name: &str) -> Span {
        let spans = self.spans();
        let [span] = &spans.iter().filter(|span| span.name == name).collect::<Vec<_>>()[..] else {
            panic!("not one {name:?} in {spans:#?}")
        };
        (*span).clone()
    }

    /// Waits until there are so many spans.
    pub(super) async fn has_spans(&self, count: usize) {
        eventually(&format!("there are {count} spans"), || self.spans().len() >= count).await;
    }
}

/// The body of a request. The gateway does not compress it; other collectors do.
fn unpacked(request: &Answer) -> Vec<u8> {
    let mut body = Vec::new();
    match request.header("content-encoding").as_deref() {
        Some("gzip") => flate2::read::GzDecoder::new(&*request.body).read_to_end(&mut body).unwrap(),
        _ => request.body.as_slice().read_to_end(&mut body).unwrap(),
    };
    body
}

// === impl GrpcService ===

#[tonic::async_trait]
impl TraceService for GrpcService {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let key = request.metadata().get("x-api-key").map(|key| key.to_str().unwrap().to_owned());
        if key != self.api_key {
            return Err(Status::unauthenticated("no such key"));
        }
        let first = self.first.lock().unwrap().pop();
        if let Some(status) = first {
            return Err(status);
        }
        self.received.0.lock().unwrap().push((String::new(), request.into_inner()));
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}
