//! gRPC through the gateway: a client and a server of tonic.

use crate::frames;
use crate::support;

use std::convert::Infallible;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes};
use frames::{DATA, Frames, Outcome, frame};
use http::uri::PathAndQuery;
use support::{Running, config, start};
use tokio::net::TcpListener;
use tokio::sync::mpsc::Receiver;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{NamedService, StreamingService};
use tonic::transport::Channel;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status, Streaming};

/// Messages are texts.
#[derive(Debug, Clone, Copy, Default)]
struct Text;

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
        let length = buffer.remaining();
        Ok(Some(String::from_utf8_lossy(&buffer.copy_to_bytes(length)).into_owned()))
    }
}

/// Says every message back, and fails at `fail`.
#[derive(Debug, Clone, Copy)]
struct Echo;

impl NamedService for Echo {
    const NAME: &'static str = "test.Echo";
}

impl StreamingService<String> for Echo {
    type Response = String;
    type ResponseStream = std::pin::Pin<Box<dyn tokio_stream::Stream<Item = Result<String, Status>> + Send>>;
    type Future = std::future::Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Streaming<String>>) -> Self::Future {
        use tokio_stream::StreamExt;
        let said = request.into_inner().map(|text| match text?.as_str() {
            "fail" => Err(Status::new(Code::DataLoss, "as you wish")),
            text => Ok(format!("echo {text}")),
        });
        std::future::ready(Ok(Response::new(Box::pin(said))))
    }
}

impl<B> tower_service::Service<http::Request<B>> for Echo
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        Box::pin(async move { Ok(tonic::server::Grpc::new(Text).streaming(Echo, request).await) })
    }
}

/// A gateway in front of the service.
async fn before_echo() -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let incoming = TcpIncoming::from(listener);
    tokio::spawn(tonic::transport::Server::builder().add_service(Echo).serve_with_incoming(incoming));
    start(config(&[address])).await
}

async fn channel_to(running: &Running) -> Channel {
    Channel::from_shared(format!("http://{}", running.address)).unwrap().connect().await.unwrap()
}

/// What is heard in a call in which this is said.
async fn conversation(running: &Running, said: Receiver<String>) -> Streaming<String> {
    let mut client = tonic::client::Grpc::new(channel_to(running).await);
    client.ready().await.unwrap();
    let request = Request::new(tokio_stream::wrappers::ReceiverStream::new(said));
    client.streaming(request, PathAndQuery::from_static("/test.Echo/Say"), Text).await.unwrap().into_inner()
}

async fn call(channel: Channel, texts: Vec<&str>) -> Result<Vec<String>, Status> {
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let texts: Vec<String> = texts.into_iter().map(ToOwned::to_owned).collect();
    let request = Request::new(tokio_stream::iter(texts));
    let path = PathAndQuery::from_static("/test.Echo/Say");
    let mut said = client.streaming(request, path, Text).await?.into_inner();
    let mut all = Vec::new();
    while let Some(text) = said.message().await? {
        all.push(text);
    }
    Ok(all)
}

#[tokio::test]
async fn calls_and_their_statuses_pass() {
    let running = before_echo().await;
    let channel = channel_to(&running).await;
    assert_eq!(call(channel.clone(), vec!["a", "b"]).await.unwrap(), ["echo a", "echo b"]);
    let status = call(channel.clone(), vec!["a", "fail"]).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::DataLoss, "as you wish"));
    drop(channel);
    running.done().await;
}

#[tokio::test]
async fn a_client_may_wait_for_the_response_to_begin_before_it_says_anything() {
    let running = before_echo().await;
    let (says, said) = tokio::sync::mpsc::channel(1);
    let mut heard = conversation(&running, said).await;
    says.send("first".to_owned()).await.unwrap();
    assert_eq!(heard.message().await.unwrap().unwrap(), "echo first");
    drop(says);
    assert_eq!(heard.message().await.unwrap(), None);
    drop(heard);
    running.done().await;
}

#[tokio::test]
async fn a_client_may_pause_between_messages_and_not_within_one() {
    let running = before_echo().await;
    let (says, said) = tokio::sync::mpsc::channel(1);
    says.send("first".to_owned()).await.unwrap();
    let mut heard = conversation(&running, said).await;
    assert_eq!(heard.message().await.unwrap().unwrap(), "echo first");
    // Another client says something, and never finishes its second message.
    let mut other = Frames::connect(running.address).await;
    let call = frames::request("/test.Echo/Say", &[("te", "trailers"), ("content-type", "application/grpc")]);
    let call: Vec<_> =
        call.into_iter().map(|(name, value)| (name, if name == ":method" { "POST" } else { value })).collect();
    other.send_head(1, &call, 0).await;
    other.send(&frame(DATA, 0, 1, b"\0\0\0\0\x02ab")).await;
    loop {
        other.send(&frame(DATA, 0, 1, b"\0\0\0\x01\0")).await;
        if other.next().await.unwrap().kind == DATA {
            break;
        }
    }
    assert_eq!(other.outcome(1).await, Outcome::Reset);
    // The first has been silent for as long.
    says.send("second".to_owned()).await.unwrap();
    assert_eq!(heard.message().await.unwrap().unwrap(), "echo second");
    drop(says);
    assert_eq!(heard.message().await.unwrap(), None);
    drop((heard, other));
    running.done().await;
}

#[tokio::test]
async fn a_call_that_nobody_answers_is_unavailable() {
    let refused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let running = start(config(&[refused])).await;
    let channel = channel_to(&running).await;
    let status = call(channel.clone(), vec!["a"]).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "connecting to the upstream failed"));
    drop(channel);
    running.done().await;
}
