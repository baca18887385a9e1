//! The names of all metrics, and what they mean (OB-2 to OB-5, OB-8). What Kubernetes does not have begins with `evenkeel_`
//! (BM-4).
//!
//! The names of counters lack their ending `_total`, which the exposition adds.

use super::Metric;
use super::MetricKind::{Counter, Gauge, Histogram};

macro_rules! metrics {
    ($($constant:ident: $kind:ident $name:literal $labels:tt, $help:literal;)*) => {
        $(pub(crate) const $constant: Metric = Metric { name: $name, kind: $kind, labels: &$labels, help: $help };)*

        /// All of them.
        pub(crate) const ALL: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    REJECTED: Counter "apiserver_flowcontrol_rejected_requests" ["flow_schema", "priority_level", "reason"], "[BETA] Number of requests rejected by API Priority and Fairness subsystem";
    DISPATCHED: Counter "apiserver_flowcontrol_dispatched_requests" ["flow_schema", "priority_level"], "[BETA] Number of requests executed by API Priority and Fairness subsystem";
    EPOCH_ADVANCE: Counter "apiserver_flowcontrol_epoch_advance" ["priority_level", "success"], "[ALPHA] Number of times the queueset's progress meter jumped backward";
    NO_ACCOMMODATION: Counter "apiserver_flowcontrol_request_dispatch_no_accommodation" ["flow_schema", "priority_level"], "[ALPHA] Number of times a dispatch attempt resulted in a non accommodation due to lack of available seats";
    WAITING: Gauge "apiserver_flowcontrol_current_inqueue_requests" ["flow_schema", "priority_level"], "[BETA] Number of requests currently pending in queues of the API Priority and Fairness subsystem";
    WAITING_SEATS: Gauge "apiserver_flowcontrol_current_inqueue_seats" ["flow_schema", "priority_level"], "[ALPHA] Number of seats currently pending in queues of the API Priority and Fairness subsystem";
    EXECUTING: Gauge "apiserver_flowcontrol_current_executing_requests" ["flow_schema", "priority_level"], "[BETA] Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution stage in the API Priority and Fairness subsystem";
    EXECUTING_SEATS: Gauge "apiserver_flowcontrol_current_executing_seats" ["flow_schema", "priority_level"], "[BETA] Concurrency (number of seats) occupied by the currently executing (initial stage for a WATCH, any stage otherwise) requests in the API Priority and Fairness subsystem";
    CURRENT_R: Gauge "apiserver_flowcontrol_current_r" ["priority_level"], "[ALPHA] R(time of last change)";
    DISPATCH_R: Gauge "apiserver_flowcontrol_dispatch_r" ["priority_level"], "[ALPHA] R(time of last dispatch)";
    LATEST_S: Gauge "apiserver_flowcontrol_latest_s" ["priority_level"], "[ALPHA] S(most recently dispatched request)";
    NEXT_S_BOUNDS: Gauge "apiserver_flowcontrol_next_s_bounds" ["bound", "priority_level"], "[ALPHA] min and max, over queues, of S(oldest waiting request in queue)";
    NEXT_DISCOUNTED_S_BOUNDS: Gauge "apiserver_flowcontrol_next_discounted_s_bounds" ["bound", "priority_level"], "[ALPHA] min and max, over queues, of S(oldest waiting request in queue) - estimated work in progress";
    NOMINAL_LIMIT: Gauge "apiserver_flowcontrol_nominal_limit_seats" ["priority_level"], "[BETA] Nominal number of execution seats configured for each priority level";
    LOWER_LIMIT: Gauge "apiserver_flowcontrol_lower_limit_seats" ["priority_level"], "[ALPHA] Configured lower bound on number of execution seats available to each priority level";
    UPPER_LIMIT: Gauge "apiserver_flowcontrol_upper_limit_seats" ["priority_level"], "[ALPHA] Configured upper bound on number of execution seats available to each priority level";
    CURRENT_LIMIT: Gauge "apiserver_flowcontrol_current_limit_seats" ["priority_level"], "[ALPHA] Current derived number of execution seats available to each priority level";
    DEMAND_HIGH_WATERMARK: Gauge "apiserver_flowcontrol_demand_seats_high_watermark" ["priority_level"], "[ALPHA] High watermark, over last adjustment period, of demand_seats";
    DEMAND_AVERAGE: Gauge "apiserver_flowcontrol_demand_seats_average" ["priority_level"], "[ALPHA] Time-weighted average, over last adjustment period, of demand_seats";
    DEMAND_STDEV: Gauge "apiserver_flowcontrol_demand_seats_stdev" ["priority_level"], "[ALPHA] Time-weighted standard deviation, over last adjustment period, of demand_seats";
    DEMAND_SMOOTHED: Gauge "apiserver_flowcontrol_demand_seats_smoothed" ["priority_level"], "[ALPHA] Smoothed seat demands";
    TARGET: Gauge "apiserver_flowcontrol_target_seats" ["priority_level"], "[ALPHA] Seat allocation targets";
    FAIR_FRACTION: Gauge "apiserver_flowcontrol_seat_fair_frac" [], "[ALPHA] Fair fraction of server's concurrency to allocate to each priority level that can use it";
    WAIT_DURATION: Histogram "apiserver_flowcontrol_request_wait_duration_seconds" ["execute", "flow_schema", "priority_level"], "[BETA] Length of time a request spent waiting in its queue";
    EXECUTION_DURATION: Histogram "apiserver_flowcontrol_request_execution_seconds" ["flow_schema", "priority_level", "type"], "[ALPHA] Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of request execution in the API Priority and Fairness subsystem";
    QUEUE_LENGTH: Histogram "apiserver_flowcontrol_request_queue_length_after_enqueue" ["flow_schema", "priority_level"], "[ALPHA] Length of queue in the API Priority and Fairness subsystem, as seen by each request after it is enqueued";
    ESTIMATED_SEATS: Histogram "apiserver_flowcontrol_work_estimated_seats" ["flow_schema", "priority_level"], "[ALPHA] Number of estimated seats (maximum of initial and final seats) associated with requests in API Priority and Fairness";
    WATCH_COUNT: Histogram "apiserver_flowcontrol_watch_count_samples" ["flow_schema", "priority_level"], "[ALPHA] count of watchers for mutating requests in API Priority and Fairness";
    SEAT_UTILIZATION: Histogram "apiserver_flowcontrol_priority_level_seat_utilization" ["phase", "priority_level"], "[ALPHA] EXPERIMENTAL: Observations, at the end of every nanosecond, of utilization of seats for any stage of execution (but only initial stage for WATCHes)";
    REQUEST_UTILIZATION: Histogram "apiserver_flowcontrol_priority_level_request_utilization" ["phase", "priority_level"], "[ALPHA] EXPERIMENTAL: Observations, at the end of every nanosecond, of number of requests (as a fraction of the relevant limit) waiting or in any stage of execution (but only initial stage for WATCHes)";
    READ_VS_WRITE: Histogram "apiserver_flowcontrol_read_vs_write_current_requests" ["phase", "request_kind"], "[ALPHA] EXPERIMENTAL: Observations, at the end of every nanosecond, of the number of requests (as a fraction of the relevant limit) waiting or in regular stage of execution";
    DEMAND: Histogram "apiserver_flowcontrol_demand_seats" ["priority_level"], "[ALPHA] EXPERIMENTAL: Observations, at the end of every nanosecond, of (the number of seats each priority level could use) / (nominal number of seats for that level)";
    MODES: Gauge "evenkeel_priority_level_mode" ["borrowing", "priority_level", "queuing"], "1 for each priority level, labelled with how it queues requests and how it borrows seats";
    NEWCOMER_SEATS: Gauge "evenkeel_newcomer_seats" ["priority_level"], "Number of seats that each priority level with queues per flow keeps at present for flows of which nothing runs, because other flows hold seats for long";
    LONG_RUNNING: Gauge "evenkeel_long_running_requests" ["priority_level"], "Number of long-running requests (watches, upgrades, streams) that wait or run in each priority level";
    LONG_RUNNING_LIMIT: Gauge "evenkeel_long_running_limit" ["priority_level"], "Limit of long-running requests at a time, for each priority level that has one";
    LONG_RUNNING_REJECTED: Counter "evenkeel_long_running_rejected_requests" ["priority_level"], "Number of requests rejected because their priority level had too many long-running requests";
    DANGLING: Gauge "evenkeel_flow_schema_dangling" ["flow_schema", "priority_level"], "1 for each flow schema that is not used because its priority level is missing; there is no series for the others";
    FLOW_SEATS: Gauge "evenkeel_flow_seats" ["flow", "flow_schema", "priority_level"], "Average number of seats in use within the last minute, for the heaviest flows; all others are flow=\"other\"";
    FLOW_WAITING: Gauge "evenkeel_flow_waiting_requests" ["flow", "flow_schema", "priority_level"], "Average number of waiting requests within the last minute, for the flows that waited most; all others are flow=\"other\"";
    FLOW_REJECTIONS: Gauge "evenkeel_flow_rejections_per_second" ["flow", "flow_schema", "priority_level"], "Requests rejected per second within the last minute, for the flows with the most rejections; all others are flow=\"other\"";
    FLOW_DELAYING: Gauge "evenkeel_flow_delayed_requests" ["flow", "flow_schema", "priority_level"], "Average number of requests that waited behind requests of each flow within the last minute, for the flows that delayed most; all others are flow=\"other\"";
    CURRENT_INFLIGHT: Gauge "apiserver_current_inflight_requests" ["request_kind"], "[STABLE] Maximal number of currently used inflight request limit of this apiserver per request kind in last second.";
    CURRENT_INQUEUE: Gauge "apiserver_current_inqueue_requests" ["request_kind"], "[ALPHA] Maximal number of queued requests in this apiserver per request kind in last second.";
}
