//! One request: authorization, route, method and timeout.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use evenkeel_api::Kind;
use evenkeel_engine::digest::{FieldSelector, Query};
use evenkeel_engine::{Attributes, User};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{Method, Request, Response};
use http_body::Body;

use super::objects::ObjectsCall;
use super::reply::{ApiBody, Reply};
use super::request_body::{discard, read};
use super::{ApiState, fixed_routes};
use crate::access::authorize;
use crate::denials::Denial;
use crate::failure::Failure;
use crate::in_flight::ConnectionInFlight;
use crate::negotiate::{self, Asked, ResponseKind};
use crate::options;
use crate::output;
use crate::request_context::RequestContext;
use crate::review::Review;
use crate::route::Route;
use crate::target::Target;
use crate::verb::Verb;
use crate::warning;

/// The facts about a request that are known before its body is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) shared: &'a ApiState,
    pub(super) parts: &'a Parts,
    pub(super) context: &'a RequestContext,
    pub(super) query: Query<'a>,
    pub(super) asked: Asked<'a>,
}

/// A request that is not a watch takes no longer than this.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// Responds to a request.
pub(super) async fn respond<B>(shared: &ApiState, request: Request<B>) -> Response<ApiBody>
where
    B: Body + Send,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (mut parts, body) = request.into_parts();
    let mut warnings = Vec::new();
    let mut body = pin!(body);
    let context = parts.extensions.remove().map_or_else(|| context(shared, &parts), Ok);
    let reply = match &context {
        Ok(context) => Call::new(shared, &parts, context).run(body.as_mut(), &mut warnings).await,
        Err(failure) => Err(failure.clone()),
    };
    let reply = match reply {
        Ok(reply) => reply,
        Err(failure) => {
            discard(&parts.headers, body).await;
            return reject(&parts, &failure, &warnings);
        }
    };
    reply.into_response(&parts.headers, warning::warnings(warnings.iter().map(String::as_str)))
}

/// The response to a request that is rejected.
pub(crate) fn reject(parts: &Parts, failure: &Failure, warnings: &[String]) -> Response<ApiBody> {
    let asked = Asked::new(&parts.headers, query(parts).first("pretty").as_deref());
    let warnings = warning::warnings(warnings.iter().map(String::as_str));
    Reply::from(output::failure(failure, asked.failure())).into_response(&parts.headers, warnings)
}

/// The context of a request that did not come through [`ApiService`](crate::ApiService).
fn context(shared: &ApiState, parts: &Parts) -> Result<RequestContext, Failure> {
    let user = parts.extensions.get::<Arc<User>>().cloned().ok_or_else(|| {
        shared.denials.unauthenticated();
        Failure::unauthorized()
    })?;
    let target = Target::of(parts).map_err(|error| Failure::bad_request(error.to_string()))?;
    Ok(RequestContext { user, impersonator: None, target, in_flight: shared.in_flight.connection() })
}

fn query(parts: &Parts) -> Query<'_> {
    Query::new(parts.uri.query().unwrap_or_default())
}

// === impl Call ===

impl<'a> Call<'a> {
    fn new(shared: &'a ApiState, parts: &'a Parts, context: &'a RequestContext) -> Self {
        let query = query(parts);
        let asked = Asked::new(&parts.headers, query.first("pretty").as_deref());
        Self { shared, parts, context, query, asked }
    }
}

impl Call<'_> {
    async fn run<B>(self, body: Pin<&mut B>, warnings: &mut Vec<String>) -> Result<Reply, Failure>
    where
        B: Body + Send,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.authorize()?;
        let route = match &self.context.target.route {
            Route::Objects(route) => route,
            Route::Review(review) => {
                options::timeout(self.query)?;
                let asked = self.review(*review, body);
                return tokio::time::timeout(TIMEOUT_MAX, asked).await.unwrap_or_else(|_| Err(Failure::timed_out()));
            }
            other => {
                options::timeout(self.query)?;
                return fixed_routes::respond(self, other).map(Reply::from);
            }
        };
        let objects = ObjectsCall::new(self, route)?;
        warnings.extend(route.version.deprecation(route.kind));
        // A watch has a duration of its own, `timeoutSeconds` (API-77).
        let asked = if objects.verb() == Verb::Watch { None } else { options::timeout(self.query)? };
        let timeout = asked.map_or(TIMEOUT_MAX, |asked| asked.min(TIMEOUT_MAX));
        let work = async {
            let is_write = objects.verb().is_write();
            let prepared = objects.prepare()?;
            let body = if is_write { read(body).await? } else { Bytes::new() };
            let reply = match route.kind {
                Kind::FlowSchema => objects.run(&self.shared.schemas, prepared, body, warnings).await,
                Kind::PriorityLevelConfiguration => objects.run(&self.shared.levels, prepared, body, warnings).await,
            };
            if is_write && reply.is_ok() {
                self.shared.in_effect().await;
            }
            reply
        };
        tokio::time::timeout(timeout, work).await.unwrap_or_else(|_| Err(Failure::timed_out()))
    }

    async fn review<B>(self, review: Review, body: Pin<&mut B>) -> Result<Reply, Failure>
    where
        B: Body + Send,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if self.parts.method != Method::POST {
            return Err(Failure::no_method());
        }
        let wanted = self.asked.objects(ResponseKind::Object)?.format;
        let content_type = self.parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let sent = negotiate::body_format(content_type)?;
        let body = read(body).await?;
        review.respond(&self.context.user, &body, sent, wanted).map(Reply::from)
    }

    /// The room of the connection that the request came on.
    pub(super) fn in_flight(&self) -> ConnectionInFlight {
        self.context.in_flight.clone()
    }

    fn authorize(&self) -> Result<(), Failure> {
        let request = self.context.target.request();
        let attributes = Attributes { user: &self.context.user, request };
        let authorized = authorize(attributes, || {
            // A list that a field selector limits to one name is about that object.
            let is_about_many = matches!(&*request.verb, "list" | "watch" | "deletecollection");
            let fields = self.query.first("fieldSelector").filter(|_| is_about_many)?;
            let name = FieldSelector::well_formed(&fields)?.exact_value("metadata.name")?;
            Some(name.into_owned())
        });
        if authorized.is_err() {
            let denial = if request.is_resource_request { Denial::Resource } else { Denial::Path };
            self.shared.denials.forbidden(denial, self.parts, &self.context.user);
        }
        authorized
    }
}
