//! A gRPC service behind a flow control, and a client that is told to come back later. The messages are plain texts, so
//! that nothing has to be generated.
//!
//!     cargo run -p evenkeel --example tonic_greeter

#![allow(clippy::print_stdout, reason = "it is there to show something")]

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BufMut};
use evenkeel::FlowControl;
use evenkeel::identify::Anonymous;
use http::uri::PathAndQuery;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{NamedService, UnaryService};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};
use tower::Service;

/// Says hello, slowly.
#[derive(Debug, Clone)]
struct Greeter;

/// The one method of the service.
struct Greet;

/// Messages that are texts.
#[derive(Debug, Clone, Copy)]
struct Text;

type BoxFuture<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

/// One request at a time.
const OBJECTS: &str = "
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: greetings}
spec: {type: Limited, limited: {nominalConcurrencyShares: 5, limitResponse: {type: Reject}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: greetings}
spec:
  priorityLevelConfiguration: {name: greetings}
  rules:
  - subjects: [{kind: Group, group: {name: system:unauthenticated}}]
    nonResourceRules: [{verbs: ['*'], nonResourceURLs: [/example.Greeter/*]}]
";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A seat for greetings, and one for everything else, which goes to the level `catch-all`: that has five shares too.
    let flow = FlowControl::builder().server_concurrency(2).objects(OBJECTS).try_build()?;
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse()?)?;
    let endpoint = Endpoint::from_shared(format!("http://{}", incoming.local_addr()?))?;
    let server = Server::builder().layer(flow.layer(Anonymous)).add_service(Greeter).serve_with_incoming(incoming);
    tokio::spawn(server);

    let channel = endpoint.connect_lazy();
    println!("{}", greet(channel.clone(), "Ada").await?.into_inner());

    let (first, second) = tokio::join!(greet(channel.clone(), "Ada"), greet(channel, "Grace"));
    for response in [first, second] {
        match response {
            Ok(greeting) => println!("{}", greeting.into_inner()),
            Err(status) => {
                let pushback = status.metadata().get("grpc-retry-pushback-ms");
                println!("{:?}: {}; grpc-retry-pushback-ms: {pushback:?}", status.code(), status.message());
            }
        }
    }
    Ok(())
}

async fn greet(channel: Channel, name: &str) -> Result<Response<String>, Status> {
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    client.unary(Request::new(name.to_owned()), PathAndQuery::from_static("/example.Greeter/Greet"), Text).await
}

// === impl Greeter ===

impl NamedService for Greeter {
    const NAME: &'static str = "example.Greeter";
}

impl Service<http::Request<tonic::body::Body>> for Greeter {
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        Box::pin(async move {
            Ok(match request.uri().path() {
                "/example.Greeter/Greet" => tonic::server::Grpc::new(Text).unary(Greet, request).await,
                _ => Status::unimplemented("there is no such method").into_http(),
            })
        })
    }
}

// === impl Greet ===

impl UnaryService<String> for Greet {
    type Response = String;
    type Future = BoxFuture<Response<String>, Status>;

    fn call(&mut self, request: Request<String>) -> Self::Future {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(200)).await;
            Ok(Response::new(format!("Hello, {}.", request.into_inner())))
        })
    }
}

// === impl Text ===

impl Codec for Text {
    type Encode = String;
    type Decode = String;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Text {
    type Item = String;
    type Error = Status;

    fn encode(&mut self, text: String, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(text.as_bytes());
        Ok(())
    }
}

impl Decoder for Text {
    type Item = String;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<String>, Status> {
        let bytes = buffer.copy_to_bytes(buffer.remaining());
        let text = String::from_utf8(bytes.into()).map_err(|_| Status::invalid_argument("the text is not UTF-8"))?;
        Ok(Some(text))
    }
}
