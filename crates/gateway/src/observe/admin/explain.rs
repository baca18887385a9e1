//! `GET /debug/explain`: where a request would go, and how long it would wait.

use std::borrow::Cow;

use axum::extract::{RawQuery, State as Extract};
use axum::response::{IntoResponse, Response};
use evenkeel_engine::User;
use evenkeel_engine::digest::Query;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{Method, StatusCode, Uri};
use tokio::sync::Semaphore;

use super::pages::AdminState;

pub(super) const PATH: &str = "/debug/explain";

/// The request that is asked about, as the query describes it.
#[derive(Debug, PartialEq)]
struct Question {
    method: Method,
    uri: Uri,
    user: User,
}

/// How many groups a user may have. More than this do not fit into a request head either.
const GROUPS_MAX: usize = 256;
const USAGE: &str =
    "use ?method=GET&url=/path&user=NAME&group=GROUP, with percent-encoded values; `group` may be repeated";

/// Explains one request at a time: the clauses of thousands of flow schemas take some milliseconds, and nobody is in a hurry.
static TURN: Semaphore = Semaphore::const_new(1);

pub(super) async fn explain(Extract(state): Extract<AdminState>, RawQuery(query): RawQuery) -> Response {
    let refused = |what: String| (StatusCode::BAD_REQUEST, format!("{what}; {USAGE}\n")).into_response();
    let Question { method, uri, user } = match Question::read(Query::new(query.as_deref().unwrap_or_default())) {
        Ok(question) => question,
        Err(what) => return refused(what),
    };
    let _turn = TURN.acquire().await;
    let in_effect = state.admin().settings.get();
    let flow = match in_effect.service_of(&uri) {
        Some(service) => service.flow.clone(),
        None if in_effect.has_services() => {
            return refused("no service has the host and the path of the URL".to_owned());
        }
        None => state.admin().flow.clone(),
    };
    let rules = in_effect.rules;
    let explained = tokio::task::spawn_blocking(move || {
        rules.explain(&flow, &user, method, uri).map(|explanation| serde_json::to_vec_pretty(&explanation))
    });
    match explained.await {
        Ok(Ok(Ok(mut text))) => {
            text.push(b'\n');
            ([(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")], text).into_response()
        }
        Ok(Err(error)) => refused(format!("the gateway would reject the request: {error}")),
        Ok(Ok(Err(_))) | Err(_) => {
            (StatusCode::INTERNAL_SERVER_ERROR, "the explanation could not be written\n").into_response()
        }
    }
}

// === impl Question ===

impl Question {
    fn read(query: Query<'_>) -> Result<Self, String> {
        let (mut method, mut url, mut user, mut groups) = (None, None, None, Vec::new());
        for (name, value) in query.pairs() {
            let slot = match &*name {
                "method" => &mut method,
                "url" => &mut url,
                "user" => &mut user,
                "group" if groups.len() < GROUPS_MAX => {
                    groups.push(value.into_owned());
                    continue;
                }
                "group" => return Err(format!("there are more than {GROUPS_MAX} groups")),
                _ => return Err(format!("unknown parameter {name:?}")),
            };
            if slot.replace(value).is_some() {
                return Err(format!("the parameter {name:?} occurs twice"));
            }
        }
        let url: Cow<'_, str> = url.ok_or_else(|| "the parameter \"url\" is missing".to_owned())?;
        let uri = Uri::try_from(&*url).ok().filter(|uri| uri.path().starts_with('/'));
        let uri = uri.ok_or_else(|| format!("{url:?} is not a path or a URL"))?;
        let method = method.unwrap_or(Cow::Borrowed("GET"));
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| format!("{method:?} is not a method"))?;
        Ok(Self { method, uri, user: User::new(user.unwrap_or_default(), groups) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<Question, String> {
        Question::read(Query::new(query))
    }

    #[test]
    fn questions_are_read_from_the_query() {
        let question = read("method=POST&url=%2Forders%3Fpage%3D2&user=alice&group=staff&group=dev").unwrap();
        assert_eq!((question.method, question.uri.to_string()), (Method::POST, "/orders?page=2".to_owned()));
        assert_eq!(question.user, User::new("alice", ["staff", "dev"]));
        let least = read("url=https://shop.example/orders").unwrap();
        assert_eq!((least.method, least.uri.path(), least.user), (Method::GET, "/orders", User::default()));
    }

    #[test]
    fn faults_are_named() {
        let groups = "url=/&".to_owned() + &"group=g&".repeat(GROUPS_MAX + 1);
        for (query, what) in [
            ("", "the parameter \"url\" is missing"),
            ("url=/&url=/", "the parameter \"url\" occurs twice"),
            ("url=a b", "\"a b\" is not a path or a URL"),
            ("url=*", "\"*\" is not a path or a URL"),
            ("url=/&method=a b", "\"a b\" is not a method"),
            ("url=/&path=/", "unknown parameter \"path\""),
            (&groups, "there are more than 256 groups"),
        ] {
            assert_eq!(read(query).unwrap_err(), what);
        }
    }
}
