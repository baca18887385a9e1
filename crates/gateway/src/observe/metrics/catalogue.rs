//! The gateway's own metrics: their names, their labels, and what they mean.
//!
//! The names of counters lack their ending `_total`, which the exposition adds.

use evenkeel::metrics::Metric;
use evenkeel::metrics::MetricKind::{Counter, Gauge, Histogram};

macro_rules! metrics {
    ($($constant:ident: $kind:ident $name:literal $labels:tt, $help:literal;)*) => {
        $(pub(super) const $constant: Metric = Metric { name: $name, kind: $kind, labels: &$labels, help: $help };)*

        /// All of them.
        pub(super) const ALL: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    BUILD_INFO: Gauge "evenkeel_build_info" ["version"], "The version that runs";
    CONNECTIONS: Gauge "evenkeel_connections" [], "Connections of clients";
    CONNECTIONS_OPENED: Counter "evenkeel_connections_opened" [], "Connections that were accepted";
    CONNECTIONS_REFUSED: Counter "evenkeel_connections_refused" [], "Connections that were closed because there are too many";
    CLIENTS_REFUSED: Counter "evenkeel_clients_refused" [], "Connections and streams that were refused because their client has too many";
    PROXY_HEADERS_REFUSED: Counter "evenkeel_proxy_headers_refused" [], "Connections that were closed because a balancer sent no valid header of the PROXY protocol";
    CLIENTS_TOO_SLOW: Counter "evenkeel_clients_too_slow" [], "Requests that were ended because their client sent or read too slowly";
    REQUESTS: Counter "evenkeel_requests" ["code"], "Responses to clients, by status class";
    EXT_PROC_REQUESTS: Counter "evenkeel_ext_proc_requests" ["outcome"], "Requests that Envoy told of, by what came of them: started, rejected, left the queue, or were only observed";
    AUTHENTICATION_FAILURES: Counter "evenkeel_authentication_failures" ["reason"], "Requests that were not authenticated, by reason";
    ADMIN_AUTHENTICATION_FAILURES: Counter "evenkeel_admin_authentication_failures" ["reason"], "Requests to the admin endpoint without its token, by reason";
    REQUESTS_ABANDONED: Counter "evenkeel_requests_abandoned" [], "Requests whose client disconnected while an upstream worked on them";
    ABANDONED_REQUESTS: Gauge "evenkeel_abandoned_requests" [], "Requests that upstreams still work on although their clients have disconnected";
    BUFFERED_BYTES: Gauge "evenkeel_buffered_bytes" [], "Bytes of requests and responses that are buffered because they arrive or leave slowly";
    UPSTREAM_REQUESTS: Counter "evenkeel_upstream_requests" ["code", "upstream"], "Responses of upstreams, by status class";
    UPSTREAM_ERRORS: Counter "evenkeel_upstream_errors" ["upstream"], "Responses that say that an upstream failed: status 5xx except 501 and 505, and UNKNOWN, INTERNAL, UNAVAILABLE and DATA_LOSS of gRPC where there is no message";
    UPSTREAM_IN_FLIGHT: Gauge "evenkeel_upstream_in_flight_requests" ["upstream"], "Requests that each upstream works on";
    UPSTREAM_UP: Gauge "evenkeel_upstream_up" ["upstream"], "Whether each upstream is up: 0 while it is ejected or its health check fails";
    UPSTREAM_FAILURES: Counter "evenkeel_upstream_failures" ["kind", "upstream"], "Requests that failed because of an upstream, by kind";
    UPSTREAM_EJECTIONS: Counter "evenkeel_upstream_ejections" ["upstream"], "How often each upstream was taken out of the rotation; a sole upstream never is";
    UPSTREAM_CHECKS: Counter "evenkeel_upstream_checks" ["outcome", "upstream"], "Health checks of upstreams, and whether they passed";
    UPSTREAM_LOOKUPS: Counter "evenkeel_upstream_lookups" ["outcome", "upstream"], "Lookups of the names of upstreams, and whether addresses were found; after a failure the last known ones stay in use";
    UPSTREAM_ADDRESSES: Gauge "evenkeel_upstream_addresses" ["upstream"], "Addresses of each upstream that is given by a name";
    UPSTREAM_RETRIES: Counter "evenkeel_upstream_retries" [], "Requests that were retried";
    LLM_TOKENS: Counter "evenkeel_llm_tokens" ["kind", "model", "user"], "Tokens of language models, by kind (prompt, cached, output), model and user: those of 500 pairs of model and user, and of all others together";
    LLM_FIRST_TOKEN: Histogram "evenkeel_llm_time_to_first_token_seconds" ["model"], "How long clients waited for the first token of streams, from the arrival of the request and with the wait for a seat, by model: that of 64 models, and of all others together";
    OBJECTS_CHANGES: Counter "evenkeel_objects_changes" ["outcome"], "Changes of the objects, and whether they were applied or refused";
    OBJECTS_STALE: Gauge "evenkeel_objects_stale" [], "Whether the gateway works with objects that may be out of date: with the last copy, or without a connection to the store";
    OBJECTS_REFUSED: Gauge "evenkeel_objects_refused" [], "Whether the latest objects are refused, so that older ones are in effect";
    SETTINGS_CHANGES: Counter "evenkeel_settings_changes" ["outcome"], "Changes of the settings at run time, and whether they were applied or refused";
    SETTINGS_REFUSED: Gauge "evenkeel_settings_refused" [], "Whether the settings on disk are refused, so that older ones are in effect";
    JWT_KEY_FETCHES: Counter "evenkeel_jwt_key_fetches" ["outcome"], "Fetches of the keys of signed tokens, and whether they succeeded";
    ACCESS_LOG_LINES: Counter "evenkeel_access_log_lines" ["outcome"], "Lines of the access log, and whether they were written or lost";
    TRACE_SPANS: Counter "evenkeel_trace_spans" ["outcome"], "Spans of traced requests: exported to the collector, rejected by it, or lost because the collector did not respond or could not keep up";
}
