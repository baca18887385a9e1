//! `ModelServer`: serves the APIs of language models on a port of this machine.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::batch::{Batch, BatchSize, BatchStatus, Chunks, Order};
use super::model_api::{Asked, ModelApi};
use super::model_body::{CutOff, ModelBody};
use crate::exit::Exit;
use crate::signals::Signals;
use crate::terminal::print;

/// A server of language models without a model. It stops when it is dropped.
#[derive(Debug)]
pub(crate) struct ModelServer {
    address: SocketAddr,
    models: Arc<Models>,
    accepting: JoinHandle<()>,
}

/// The state that its connections share.
#[derive(Debug)]
struct Models {
    batch: Batch,
    /// How many requests of the model that fails came.
    flaky: AtomicU64,
}

/// Longer bodies are refused.
const BODY_MAX: usize = 8 << 20;
/// Models that do something else than to generate.
const FLAKY: &str = "flaky";
const FAILING: &str = "failing";
const CUT_OFF: &str = "cut-off";

/// Runs a server at this address until a signal comes.
pub(crate) async fn run(address: SocketAddr) -> Result<Exit> {
    let mut signals = Signals::listen()?;
    let server = ModelServer::start(address, BatchSize::default())
        .await
        .with_context(|| format!("cannot listen on {address}; choose another address"))?;
    let at = server.address();
    print(format!(
        "A sample server of language models is at http://{at} (APIs of OpenAI, Anthropic and Ollama; any model name).\n\
         Try it: curl http://{at}/v1/chat/completions -d '{{\"model\":\"sample\",\"messages\":[{{\"role\":\"user\",\"content\":\"hello\"}}],\"stream\":true}}'\n"
    ))?;
    signals.stop().await;
    Ok(Exit::Success)
}

// === impl ModelServer ===

impl ModelServer {
    pub(crate) async fn start(address: SocketAddr, size: BatchSize) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let models = Arc::new(Models { batch: Batch::start(size), flaky: AtomicU64::new(0) });
        Ok(Self { address, accepting: tokio::spawn(accept(listener, Arc::clone(&models))), models })
    }

    /// The counts and the state so far.
    pub(crate) fn status(&self) -> BatchStatus {
        self.models.batch.status()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, models: Arc<Models>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors, say: some will be free again.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        // Tokens are small, and somebody waits for each.
        let _ = stream.set_nodelay(true);
        let models = Arc::clone(&models);
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let models = Arc::clone(&models);
                async move { Ok::<_, Infallible>(models.answer(request).await) }
            });
            // A connection that breaks is its client's concern.
            let _ = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

// === impl Models ===

impl Models {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<ModelBody> {
        let (parts, body) = request.into_parts();
        match (&parts.method, parts.uri.path()) {
            (&Method::GET, "/status") => return json_response(StatusCode::OK, &json!(self.batch.status())),
            (&Method::GET, "/v1/models") => {
                let model = json!({"id": "sample", "object": "model", "created": 1, "owned_by": "evenkeel"});
                return json_response(StatusCode::OK, &json!({"object": "list", "data": [model]}));
            }
            _ => {}
        }
        let api =
            Some(&parts.method).filter(|method| *method == Method::POST).and_then(|_| ModelApi::of(parts.uri.path()));
        let Some(api) = api else { return error(StatusCode::NOT_FOUND, "no such API") };
        let Ok(body) = Limited::new(body, BODY_MAX).collect().await else {
            return error(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large");
        };
        let asked = match Asked::read(api, &body.to_bytes()) {
            Ok(asked) => asked,
            Err(problem) => return error(StatusCode::BAD_REQUEST, &problem),
        };
        let is_failing = asked.model == FAILING
            || asked.model == FLAKY && self.flaky.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        if is_failing {
            return error(StatusCode::INTERNAL_SERVER_ERROR, "the model fails, as its name says");
        }
        let tokens = if asked.is_embedding() { 0 } else { asked.tokens };
        let chunks = self.batch.generate(Order {
            tenant: &asked.tenant,
            prompt_tokens: asked.prompt_tokens,
            cached_tokens: asked.cached_tokens,
            tokens: tokens.max(1),
        });
        if asked.is_stream { stream(asked, chunks).await } else { whole(&asked, chunks).await }
    }
}

async fn whole(asked: &Asked, mut chunks: Chunks) -> Response<ModelBody> {
    let mut tokens = 0;
    while let Some(chunk) = chunks.recv().await {
        tokens += chunk;
    }
    json_response(StatusCode::OK, &asked.response(tokens))
}

/// The head of the response comes with the first tokens.
async fn stream(asked: Asked, mut chunks: Chunks) -> Response<ModelBody> {
    let first = chunks.recv().await.unwrap_or_default();
    let (pieces, body) = ModelBody::stream();
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(asked.api.stream_type()));
    let begin = asked.stream_start() + &asked.stream_piece(first, 0);
    let _ = pieces.send(Ok(begin.into()));
    tokio::spawn(async move {
        let mut tokens = first;
        loop {
            let chunk = tokio::select! {
                chunk = chunks.recv() => chunk,
                // The client has left, and nothing more is generated for it.
                () = pieces.closed() => return,
            };
            let Some(chunk) = chunk else { break };
            if asked.model == CUT_OFF && (tokens + chunk) * 2 > asked.tokens {
                let _ = pieces.send(Err(CutOff));
                return;
            }
            let _ = pieces.send(Ok(asked.stream_piece(chunk, tokens).into()));
            tokens += chunk;
        }
        let _ = pieces.send(Ok(asked.stream_end(tokens).into()));
    });
    response
}

fn json_response(status: StatusCode, value: &serde_json::Value) -> Response<ModelBody> {
    let mut response = Response::new(ModelBody::whole(Bytes::from(value.to_string())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn error(status: StatusCode, message: &str) -> Response<ModelBody> {
    json_response(status, &json!({"error": {"message": message, "type": "server_error", "param": null, "code": null}}))
}
