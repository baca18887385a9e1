//! The names of all metrics, and what they mean (OB-2 to OB-5, OB-8).
//!
//! The names of counters lack their ending `_total`, which the exposition adds.

/// A metric: its name and its help text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
}

macro_rules! metrics {
    ($($constant:ident: $name:literal, $help:literal;)*) => {
        $(pub(crate) const $constant: Metric =
            Metric { name: concat!("apiserver_flowcontrol_", $name), help: $help };)*
    };
}

metrics! {
    REJECTED: "rejected_requests", "[BETA] Number of requests rejected by API Priority and Fairness subsystem";
    DISPATCHED: "dispatched_requests", "[BETA] Number of requests executed by API Priority and Fairness subsystem";
    EPOCH_ADVANCE: "epoch_advance", "[ALPHA] Number of times the queueset's progress meter jumped backward";
    NO_ACCOMMODATION: "request_dispatch_no_accommodation", "[ALPHA] Number of times a dispatch attempt resulted in a non accommodation due to lack of available seats";

    WAITING: "current_inqueue_requests", "[BETA] Number of requests currently pending in queues of the API Priority and Fairness subsystem";
    WAITING_SEATS: "current_inqueue_seats", "[ALPHA] Number of seats currently pending in queues of the API Priority and Fairness subsystem";
    EXECUTING: "current_executing_requests", "[BETA] Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution stage in the API Priority and Fairness subsystem";
    EXECUTING_SEATS: "current_executing_seats", "[BETA] Concurrency (number of seats) occupied by the currently executing (initial stage for a WATCH, any stage otherwise) requests in the API Priority and Fairness subsystem";
    CURRENT_R: "current_r", "[ALPHA] R(time of last change)";
    DISPATCH_R: "dispatch_r", "[ALPHA] R(time of last dispatch)";
    LATEST_S: "latest_s", "[ALPHA] S(most recently dispatched request)";
    NEXT_S_BOUNDS: "next_s_bounds", "[ALPHA] min and max, over queues, of S(oldest waiting request in queue)";
    NEXT_DISCOUNTED_S_BOUNDS: "next_discounted_s_bounds", "[ALPHA] min and max, over queues, of S(oldest waiting request in queue) - estimated work in progress";
    NOMINAL_LIMIT: "nominal_limit_seats", "[BETA] Nominal number of execution seats configured for each priority level";
    LOWER_LIMIT: "lower_limit_seats", "[ALPHA] Configured lower bound on number of execution seats available to each priority level";
    UPPER_LIMIT: "upper_limit_seats", "[ALPHA] Configured upper bound on number of execution seats available to each priority level";
    CURRENT_LIMIT: "current_limit_seats", "[ALPHA] Current derived number of execution seats available to each priority level";
    DEMAND_HIGH_WATERMARK: "demand_seats_high_watermark", "[ALPHA] High watermark, over last adjustment period, of demand_seats";
    DEMAND_AVERAGE: "demand_seats_average", "[ALPHA] Time-weighted average, over last adjustment period, of demand_seats";
    DEMAND_STDEV: "demand_seats_stdev", "[ALPHA] Time-weighted standard deviation, over last adjustment period, of demand_seats";
    DEMAND_SMOOTHED: "demand_seats_smoothed", "[ALPHA] Smoothed seat demands";
    TARGET: "target_seats", "[ALPHA] Seat allocation targets";
    FAIR_FRACTION: "seat_fair_frac", "[ALPHA] Fair fraction of server's concurrency to allocate to each priority level that can use it";

    WAIT_DURATION: "request_wait_duration_seconds", "[BETA] Length of time a request spent waiting in its queue";
    EXECUTION_DURATION: "request_execution_seconds", "[ALPHA] Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of request execution in the API Priority and Fairness subsystem";
    QUEUE_LENGTH: "request_queue_length_after_enqueue", "[ALPHA] Length of queue in the API Priority and Fairness subsystem, as seen by each request after it is enqueued";
    ESTIMATED_SEATS: "work_estimated_seats", "[ALPHA] Number of estimated seats (maximum of initial and final seats) associated with requests in API Priority and Fairness";
    WATCH_COUNT: "watch_count_samples", "[ALPHA] count of watchers for mutating requests in API Priority and Fairness";

    SEAT_UTILIZATION: "priority_level_seat_utilization", "[ALPHA] EXPERIMENTAL: Observations, at the end of every nanosecond, of utilization of seats for any stage of execution (but only initial stage for WATCHes)";
    REQUEST_UTILIZATION: "priority_level_request_utilization", "[ALPHA] EXPERIMENTAL: Observations, at the end of every nanosecond, of number of requests (as a fraction of the relevant limit) waiting or in any stage of execution (but only initial stage for WATCHes)";
    READ_VS_WRITE: "read_vs_write_current_requests", "[ALPHA] EXPERIMENTAL: Observations, at the end of every nanosecond, of the number of requests (as a fraction of the relevant limit) waiting or in regular stage of execution";
    DEMAND: "demand_seats", "[ALPHA] EXPERIMENTAL: Observations, at the end of every nanosecond, of (the number of seats each priority level could use) / (nominal number of seats for that level)";
}

// What Kubernetes does not have begins with another name (BM-4).
pub(crate) const LONG_RUNNING: Metric = Metric {
    name: "evenkeel_long_running_requests",
    help: "Number of long-running requests (watches, upgrades, streams) that wait or run in each priority level",
};
pub(crate) const LONG_RUNNING_LIMIT: Metric = Metric {
    name: "evenkeel_long_running_limit",
    help: "Number of long-running requests that each priority level with such a limit lets in at a time",
};
pub(crate) const LONG_RUNNING_REJECTED: Metric = Metric {
    name: "evenkeel_long_running_rejected_requests",
    help: "Number of requests rejected since their priority level had too many long-running ones",
};

pub(crate) const FLOW_SEATS: Metric = Metric {
    name: "evenkeel_flow_seats",
    help: "Seats that each of the heaviest flows used on average within the last minute; all others are flow=\"other\"",
};
pub(crate) const FLOW_WAITING: Metric = Metric {
    name: "evenkeel_flow_waiting_requests",
    help: "Requests that waited on average within the last minute, for the flows that waited most; all others are flow=\"other\"",
};
pub(crate) const FLOW_REJECTIONS: Metric = Metric {
    name: "evenkeel_flow_rejections_per_second",
    help: "Requests rejected within the last minute, for the flows with most of them; all others are flow=\"other\"",
};
pub(crate) const FLOW_DELAYING: Metric = Metric {
    name: "evenkeel_flow_delayed_requests",
    help: "Requests that waited on average behind requests of each flow within the last minute, for the flows that delayed most; \
           all others are flow=\"other\"",
};

pub(crate) const CURRENT_INFLIGHT: Metric = Metric {
    name: "apiserver_current_inflight_requests",
    help: "[STABLE] Maximal number of currently used inflight request limit of this apiserver per request kind in last second.",
};
pub(crate) const CURRENT_INQUEUE: Metric = Metric {
    name: "apiserver_current_inqueue_requests",
    help: "[ALPHA] Maximal number of queued requests in this apiserver per request kind in last second.",
};
