//! `ChatLoad`: the load of tenants on the sample server of language models: a job of many long requests, and people who wait for
//! each word.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::demo::tally::{Ending, Tally};
use crate::demo::tenant::HEADER;

/// A tenant of a model server.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChatTenant {
    pub(super) name: &'static str,
    manner: ChatManner,
    pub(super) prompt_tokens: usize,
    pub(super) tokens: usize,
}

#[derive(Debug, Clone, Copy)]
enum ChatManner {
    /// So many requests at a time, each followed by the next.
    Job { requests: usize },
    /// A request now and then.
    Person { first: Duration, every: Duration },
}

/// How long a tenant waited for first tokens.
#[derive(Debug, Clone, Default)]
pub(super) struct FirstTokens {
    /// Each wait; of requests that had no token in the end, the wait until then.
    pub(super) waits: Tally,
    /// How many of these had no token in the end.
    pub(super) unanswered: usize,
}

/// A tenant at work.
#[derive(Debug)]
pub(super) struct ChatLoad {
    tenant: ChatTenant,
    target: SocketAddr,
    first_tokens: Mutex<FirstTokens>,
}

/// The one that sends the job.
pub(super) const JOB: ChatTenant =
    ChatTenant { name: "nightly", manner: ChatManner::Job { requests: 200 }, prompt_tokens: 400, tokens: 300 };

const PEOPLE: [&str; 3] = ["ann", "bob", "cho"];

/// A client that is refused waits so long before it asks again.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// People and a job, in the order in which they are shown.
pub(super) fn tenants() -> Vec<ChatTenant> {
    let every = Duration::from_millis(500);
    let people = (0..).zip(PEOPLE).map(|(place, name)| {
        // They do not all ask at the same time.
        let manner = ChatManner::Person { first: every / 3 * place, every };
        ChatTenant { name, manner, prompt_tokens: 100, tokens: 40 }
    });
    people.chain([JOB]).collect()
}

// === impl ChatTenant ===

impl ChatTenant {
    /// A request in the form of the chat API.
    pub(super) fn body(&self) -> String {
        // A token of the sample server is four characters.
        let prompt = "text".repeat(self.prompt_tokens);
        json!({"model": "sample", "user": self.name, "messages": [{"role": "user", "content": prompt}],
               "max_tokens": self.tokens, "stream": true, "stream_options": {"include_usage": true}})
        .to_string()
    }
}

// === impl ChatLoad ===

impl ChatLoad {
    pub(super) fn new(tenant: ChatTenant, target: SocketAddr) -> Arc<Self> {
        Arc::new(Self { tenant, target, first_tokens: Mutex::default() })
    }

    pub(super) fn tenant(&self) -> ChatTenant {
        self.tenant
    }

    pub(super) fn first_tokens(&self) -> FirstTokens {
        self.first_tokens.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends requests until a time, when those that run are given up. People send their last a while before, so that it could be answered.
    pub(super) async fn run(self: Arc<Self>, last: Instant, until: Instant) {
        let mut requests = JoinSet::new();
        match self.tenant.manner {
            ChatManner::Person { first, every } => {
                let mut due = Instant::now() + first;
                while due < last {
                    sleep_until(due).await;
                    requests.spawn(Arc::clone(&self).ask(due, until));
                    due += every;
                }
            }
            ChatManner::Job { requests: count } => {
                for _ in 0..count {
                    let load = Arc::clone(&self);
                    requests.spawn(async move {
                        while Instant::now() < until {
                            Arc::clone(&load).ask(Instant::now(), until).await;
                        }
                    });
                }
            }
        }
        while requests.join_next().await.is_some() {}
    }

    /// Sends one request, and counts its wait from when it was due.
    async fn ask(self: Arc<Self>, due: Instant, until: Instant) {
        let first = timeout_at(until, self.first_token()).await;
        {
            let mut first_tokens = self.first_tokens.lock().unwrap_or_else(PoisonError::into_inner);
            let ending = if matches!(first, Ok(Err(_))) { Ending::Failed } else { Ending::Served };
            first_tokens.waits.add(ending, due.elapsed());
            first_tokens.unanswered += usize::from(first.is_err());
        }
        match first {
            // A client that leaves in the end leaves nothing behind.
            Ok(Ok(body)) => drop(timeout_at(until, body.collect()).await),
            Ok(Err(_)) => sleep_until(until.min(Instant::now() + AFTER_ERROR)).await,
            Err(_) => {}
        }
    }

    /// The rest of a response whose first tokens are there.
    async fn first_token(&self) -> Result<Incoming> {
        let stream = TcpStream::connect(self.target).await.context("cannot connect")?;
        stream.set_nodelay(true)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // The connection ends with its sender and the body; errors of it reach the request.
        drop(tokio::spawn(connection));
        let mut request = Request::new(Full::new(Bytes::from(self.tenant.body())));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = http::Uri::from_static("/v1/chat/completions");
        request.headers_mut().insert(HOST, HeaderValue::from_str(&self.target.to_string())?);
        request.headers_mut().insert(HEADER, HeaderValue::from_static(self.tenant.name));
        let response = sender.send_request(request).await?;
        ensure!(response.status().is_success(), "the server responds {}", response.status());
        let mut body = response.into_body();
        // The head comes with the first tokens.
        body.frame().await.context("the stream has no events")??;
        Ok(body)
    }
}
