//! The fields of access logs of nginx and Envoy, and their names.

/// The meaning of a value in an access log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogField {
    /// When the request arrived, as in RFC 3339.
    Start,
    /// When it ended, as in RFC 3339.
    End,
    /// When it ended, as in the common log format.
    EndLocal,
    /// When it ended, in seconds since 1970.
    EndUnix,
    /// How long it took, in seconds.
    Seconds,
    /// How long it took, in milliseconds.
    Milliseconds,
    /// Method, target and protocol.
    RequestLine,
    Method,
    Target,
    Status,
    User,
    /// Groups, separated by commas.
    Groups,
    Address,
    Id,
    /// A header, by whose name it is called.
    Header,
    /// Not needed.
    Other,
}

/// The prefix of nginx's variables for headers.
const NGINX_HEADER: &str = "http_";

/// The name of a header in that of a variable, an operator or a member, as `http_x_plan`, `REQ(X-PLAN)` or `x_plan`.
pub(super) fn header_of(name: &str) -> Option<&str> {
    if let Some(header) = name.strip_prefix(NGINX_HEADER) {
        return Some(header);
    }
    let header = name.strip_prefix("REQ(")?.strip_suffix(')')?;
    // Names with a colon are no headers, and of two names, either may have been meant.
    (!header.contains([':', '?'])).then_some(header)
}

// === impl LogField ===

impl LogField {
    /// The meaning of a variable of nginx.
    pub(super) fn of_nginx(variable: &str) -> Self {
        match variable {
            "time_iso8601" => Self::End,
            "time_local" => Self::EndLocal,
            "msec" => Self::EndUnix,
            "request_time" => Self::Seconds,
            "request" => Self::RequestLine,
            "request_method" => Self::Method,
            "request_uri" | "uri" => Self::Target,
            "status" => Self::Status,
            "remote_user" | "http_x_remote_user" | "http_x_forwarded_user" => Self::User,
            "http_x_remote_group" => Self::Groups,
            "remote_addr" => Self::Address,
            "request_id" | "http_x_request_id" => Self::Id,
            other if other.starts_with(NGINX_HEADER) => Self::Header,
            _ => Self::Other,
        }
    }

    /// The meaning of a command operator of Envoy.
    pub(super) fn of_envoy(operator: &str) -> Self {
        match operator {
            "START_TIME" => Self::Start,
            "DURATION" => Self::Milliseconds,
            "REQ(:METHOD)" => Self::Method,
            "REQ(:PATH)" | "REQ(X-ENVOY-ORIGINAL-PATH?:PATH)" => Self::Target,
            "RESPONSE_CODE" => Self::Status,
            "REQ(X-REMOTE-USER)" | "REQ(X-FORWARDED-USER)" => Self::User,
            "REQ(X-REMOTE-GROUP)" => Self::Groups,
            "DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT" => Self::Address,
            "REQ(X-REQUEST-ID)" => Self::Id,
            other if header_of(other).is_some() => Self::Header,
            _ => Self::Other,
        }
    }

    /// The meaning of a member of an object, which is named after a variable of nginx, or as Envoy's users name it.
    pub(super) fn of_member(name: &str) -> Self {
        match name {
            "start_time" => Self::Start,
            "duration" => Self::Milliseconds,
            "method" => Self::Method,
            "path" => Self::Target,
            "response_code" => Self::Status,
            "user" => Self::User,
            "groups" => Self::Groups,
            "downstream_remote_address_without_port" => Self::Address,
            "x_request_id" => Self::Id,
            "user_agent" => Self::Header,
            other if other.starts_with("x_") || other.starts_with("x-") => Self::Header,
            other => Self::of_nginx(other),
        }
    }
}
