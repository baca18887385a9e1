//! EP-1: requests over HTTP/2 and calls of gRPC, whichever way they end, give their seats back, and the upstream gets each of them once.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_stream::wrappers::ReceiverStream;

use super::envoy::Envoy;
use super::{Deciding, deciding};

/// Lets Envoy speak HTTP/2 with the service.
const TO_SERVICE: (&str, &str) = (
    "  - name: service\n",
    "  - name: service
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        \"@type\": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}\n",
);

type ResponseBody = UnsyncBoxBody<Bytes, std::io::Error>;

/// A service that speaks HTTP/2. The path says how a response ends.
struct Service {
    address: SocketAddr,
    requests: Arc<AtomicU32>,
    /// A response begins at once, and goes on when there is leave.
    leave: Arc<Semaphore>,
}

impl Service {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, leave) = (Arc::<AtomicU32>::default(), Arc::new(Semaphore::new(0)));
        let (counted, given) = (Arc::clone(&requests), Arc::clone(&leave));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (counted, given) = (Arc::clone(&counted), Arc::clone(&given));
                let respond = service_fn(move |request: Request<Incoming>| {
                    counted.fetch_add(1, SeqCst);
                    std::future::ready(Ok::<_, Infallible>(respond(request.uri().path(), Arc::clone(&given))))
                });
                let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                tokio::spawn(builder.serve_connection(TokioIo::new(stream), respond));
            }
        });
        Self { address, requests, leave }
    }
}

fn grpc_status(status: &'static str) -> HeaderMap {
    HeaderMap::from_iter([("grpc-status".parse().unwrap(), HeaderValue::from_static(status))])
}

fn respond(path: &str, leave: Arc<Semaphore>) -> Response<ResponseBody> {
    let (sends, frames) = tokio::sync::mpsc::channel(4);
    let mut response = Response::new(StreamBody::new(ReceiverStream::new(frames)).boxed_unsync());
    if path != "/plain" {
        response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    }
    if path == "/x.Y/TrailersOnly" {
        response.headers_mut().extend(grpc_status("5"));
        // Its head ends the stream.
        return response.map(|_| Empty::new().map_err(|never| match never {}).boxed_unsync());
    }
    let path = path.to_owned();
    tokio::spawn(async move {
        let first = Frame::data(Bytes::from_static(b"\0\0\0\0\x02ok"));
        // Whoever is gone wants to hear no more.
        let _ = sends.send(Ok(first)).await;
        leave.acquire().await.unwrap().forget();
        let last = match path.as_str() {
            "/x.Y/Call" => Ok(Frame::trailers(grpc_status("0"))),
            "/x.Y/Reset" => Err(std::io::Error::other("the stream is reset")),
            _ => Ok(Frame::data(Bytes::from_static(b"end"))),
        };
        let _ = sends.send(last).await;
    });
    response
}

async fn client_of(address: SocketAddr) -> SendRequest<Empty<Bytes>> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn ask(client: &mut SendRequest<Empty<Bytes>>, address: SocketAddr, path: &str) -> Response<Incoming> {
    let request = Request::post(format!("http://{address}{path}"));
    let request = if path == "/plain" { request } else { request.header("content-type", "application/grpc") };
    client.send_request(request.header("te", "trailers").body(Empty::new()).unwrap()).await.unwrap()
}

/// A body, and the status of gRPC behind it. None if the stream was reset.
async fn end_of(response: Response<Incoming>) -> Option<(Bytes, Option<String>)> {
    let in_head = response.headers().get("grpc-status").cloned();
    let collected = response.into_body().collect().await.ok()?;
    let status = in_head.or_else(|| collected.trailers()?.get("grpc-status").cloned());
    let status = status.map(|status| status.to_str().unwrap().to_owned());
    Some((collected.to_bytes(), status))
}

#[tokio::test]
async fn ep_1_a_response_over_http2_holds_its_seat_to_its_end() {
    let service = Service::start().await;
    let deciding = Deciding::start(deciding(1)).await;
    let Some(envoy) = Envoy::start(service.address, deciding.address, &[TO_SERVICE]).await else { return };
    let mut client = client_of(envoy.address).await;
    for (path, end) in [
        ("/plain", Some((&b"\0\0\0\0\x02okend"[..], None))),
        ("/x.Y/Call", Some((&b"\0\0\0\0\x02ok"[..], Some("0")))),
        ("/x.Y/Reset", None),
    ] {
        let before = service.requests.load(SeqCst);
        for number in 1..=3 {
            let response = ask(&mut client, envoy.address, path).await;
            assert_eq!(response.status(), 200, "{path}");
            // Its head has been forwarded, and it has not ended.
            deciding.has(1, 0).await;
            service.leave.add_permits(1);
            let found = end_of(response).await;
            let expected = end.map(|(body, status)| (Bytes::from_static(body), status.map(str::to_owned)));
            // Envoy ends a call of gRPC that was reset with a status of its own.
            match (path, &found) {
                ("/x.Y/Reset", Some((_, status))) => assert_ne!(status.as_deref(), Some("0")),
                _ => assert_eq!(found, expected, "{path}"),
            }
            deciding.has(0, 0).await;
            assert_eq!(service.requests.load(SeqCst) - before, number, "{path}: requests at the upstream");
        }
    }
    drop(client);
    deciding.done().await;
}

#[tokio::test]
async fn ep_1_a_response_that_is_all_trailers_gives_its_seat_back() {
    let service = Service::start().await;
    let deciding = Deciding::start(deciding(1)).await;
    let Some(envoy) = Envoy::start(service.address, deciding.address, &[TO_SERVICE]).await else { return };
    let mut client = client_of(envoy.address).await;
    for number in 1..=3 {
        let response = ask(&mut client, envoy.address, "/x.Y/TrailersOnly").await;
        assert_eq!(end_of(response).await, Some((Bytes::new(), Some("5".to_owned()))));
        deciding.has(0, 0).await;
        assert_eq!(service.requests.load(SeqCst), number);
    }
    drop(client);
    deciding.done().await;
}

/// A client resets one of its streams, and its connection stays.
#[tokio::test]
async fn ep_1_a_stream_that_its_client_resets_gives_its_seat_back() {
    let service = Service::start().await;
    let deciding = Deciding::start(deciding(1)).await;
    let Some(envoy) = Envoy::start(service.address, deciding.address, &[TO_SERVICE]).await else { return };
    let mut client = client_of(envoy.address).await;
    for _ in 0..3 {
        let response = ask(&mut client, envoy.address, "/x.Y/Call").await;
        deciding.has(1, 0).await;
        drop(response);
        deciding.has(0, 0).await;
    }
    assert_eq!(service.requests.load(SeqCst), 3);
    drop(client);
    deciding.done().await;
}
