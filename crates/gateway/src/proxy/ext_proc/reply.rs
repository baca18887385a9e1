//! Replies to Envoy: to go on, or to respond itself.

use bytes::Bytes;
use evenkeel::grpc::is_grpc;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, Response, StatusCode};

use super::flow::Started;
use super::messages::{
    AppendAction, CommonResponse, GoOn, GrpcStatus, HeaderMode, HeaderMutation, HeaderValue, HeaderValueOption,
    HttpStatus, ImmediateResponse, ProcessingMode, ProcessingResponse, Reply, Step, Unread,
};

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

// === impl ProcessingResponse ===

impl ProcessingResponse {
    /// The request has its seat. If Envoy allows the choice, it keeps the stream open until the response has ended, and sends the
    /// head of the response only if asked to.
    pub(super) fn start(started: &Started, asks_for_response: bool) -> Self {
        let mutation = difference(&started.headers, &started.forwarded);
        let common = mutation.map(|mutation| CommonResponse { header_mutation: Some(mutation) });
        let mode = ProcessingMode {
            response_header_mode: if asks_for_response { HeaderMode::Send } else { HeaderMode::Skip }.into(),
            response_trailer_mode: HeaderMode::Send.into(),
        };
        Self { reply: Some(Reply::RequestHeaders(GoOn { response: common })), mode_override: Some(mode) }
    }

    /// Nothing is changed in a later step.
    pub(super) fn go_on(step: &Step) -> Self {
        let go_on = GoOn::default();
        let reply = match step {
            Step::RequestHeaders(_) => Reply::RequestHeaders(go_on),
            Step::ResponseHeaders(_) => Reply::ResponseHeaders(go_on),
            Step::RequestBody(_) => Reply::RequestBody(go_on),
            Step::ResponseBody(_) => Reply::ResponseBody(go_on),
            Step::RequestTrailers(_) => Reply::RequestTrailers(Unread {}),
            Step::ResponseTrailers(_) => Reply::ResponseTrailers(Unread {}),
        };
        Self { reply: Some(reply), mode_override: None }
    }

    /// Envoy sends this response. For a gRPC call, it makes one of gRPC from the status and the message.
    pub(super) fn respond(response: &Response<()>, body: Bytes, reason: &str) -> Self {
        let headers = response.headers();
        let details = format!("evenkeel_{reason}");
        let immediate = match grpc_status(headers) {
            None => ImmediateResponse {
                status: Some(HttpStatus { code: response.status().as_u16().into() }),
                headers: Some(all_of(headers, &[CONTENT_LENGTH])),
                body,
                grpc_status: None,
                details,
            },
            Some(status) => ImmediateResponse {
                status: Some(HttpStatus { code: StatusCode::OK.as_u16().into() }),
                headers: Some(all_of(headers, &[CONTENT_LENGTH, CONTENT_TYPE, GRPC_STATUS, GRPC_MESSAGE])),
                body: headers.get(GRPC_MESSAGE).map(|text| text.as_bytes().to_vec().into()).unwrap_or_default(),
                grpc_status: Some(GrpcStatus { status }),
                details,
            },
        };
        Self { reply: Some(Reply::Immediate(immediate)), mode_override: None }
    }
}

/// The status of gRPC that a response consists of, if it is one.
fn grpc_status(headers: &HeaderMap) -> Option<u32> {
    if !is_grpc(headers) {
        return None;
    }
    headers.get(GRPC_STATUS)?.to_str().ok()?.parse().ok()
}

fn all_of(headers: &HeaderMap, except: &[HeaderName]) -> HeaderMutation {
    let set = headers.iter().filter(|(name, _)| !except.contains(name));
    HeaderMutation {
        set_headers: set.map(|(name, value)| setting(name, value, true)).collect(),
        remove_headers: Vec::new(),
    }
}

/// What makes these headers from those. None if they are the same.
fn difference(before: &HeaderMap, after: &HeaderMap) -> Option<HeaderMutation> {
    let mut mutation = HeaderMutation::default();
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        mutation.remove_headers.push(name.as_str().to_owned());
    }
    for name in after.keys() {
        if before.get_all(name).iter().eq(after.get_all(name).iter()) {
            continue;
        }
        let values = after.get_all(name).iter().enumerate();
        mutation.set_headers.extend(values.map(|(index, value)| setting(name, value, index == 0)));
    }
    (mutation != HeaderMutation::default()).then_some(mutation)
}

/// Sets a header. Its first value replaces those that there are, and others follow.
fn setting(name: &HeaderName, value: &http::HeaderValue, is_first: bool) -> HeaderValueOption {
    let action = if is_first { AppendAction::OverwriteIfExistsOrAdd } else { AppendAction::AppendIfExistsOrAdd };
    HeaderValueOption {
        header: Some(HeaderValue {
            key: name.as_str().to_owned(),
            value: String::new(),
            raw_value: value.as_bytes().to_vec().into(),
        }),
        append_action: action.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(headers: &[(&str, &str)]) -> HeaderMap {
        headers.iter().map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_what_differs_is_changed() {
        let before = headers(&[("a", "1"), ("b", "2"), ("c", "3")]);
        assert_eq!(difference(&before, &before), None);
        let mut after = headers(&[("a", "1"), ("c", "4"), ("d", "5")]);
        after.append("d", "6".parse().unwrap());
        let mutation = difference(&before, &after).unwrap();
        assert_eq!(mutation.remove_headers, ["b"]);
        let set: Vec<(String, Vec<u8>, i32)> = (mutation.set_headers.into_iter())
            .map(|set| (set.header.clone().unwrap().key, set.header.unwrap().raw_value.to_vec(), set.append_action))
            .collect();
        assert_eq!(set, [("c".into(), b"4".into(), 2), ("d".into(), b"5".into(), 2), ("d".into(), b"6".into(), 0)]);
    }

    #[test]
    fn a_call_gets_a_status_of_grpc() {
        let told = headers(&[
            ("content-type", "application/grpc"),
            ("grpc-status", "8"),
            ("grpc-message", "later"),
            ("x-evenkeel-level", "free"),
        ]);
        let (mut parts, ()) = Response::new(()).into_parts();
        parts.headers = told;
        let reply = ProcessingResponse::respond(&Response::from_parts(parts, ()), Bytes::new(), "queue-full").reply;
        let Some(Reply::Immediate(response)) = reply else { panic!("no response") };
        assert_eq!(response.grpc_status, Some(GrpcStatus { status: 8 }));
        assert_eq!((&*response.body, &*response.details), (&b"later"[..], "evenkeel_queue-full"));
        let set: Vec<String> =
            response.headers.unwrap().set_headers.into_iter().map(|set| set.header.unwrap().key).collect();
        assert_eq!(set, ["x-evenkeel-level"]);
    }
}
