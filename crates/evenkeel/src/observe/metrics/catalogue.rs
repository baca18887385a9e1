//! The names of all metrics, and what they mean (OB-2 to OB-5, OB-8). Names of metrics that Kubernetes does not have begin with
//! `evenkeel_` (BM-4).
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
    REVOKED: Counter "evenkeel_revoked_requests" ["priority_level"], "Number of requests of each revocable priority level that were ended because another priority level needed its own seats";
    RATE_DELAYED: Counter "evenkeel_rate_delayed_requests" ["flow_schema", "priority_level"], "Number of requests that waited because their flow was over its rate";
    RATE_DELAY: Counter "evenkeel_rate_delay_seconds" ["flow_schema", "priority_level"], "Time for which all these requests waited together, in seconds";
    RATE_WAITING: Gauge "evenkeel_rate_waiting_requests" ["flow_schema", "priority_level"], "Number of requests that wait at present because their flow is over its rate; they take no seat";
    COST: Counter "evenkeel_request_cost" ["flow_schema", "priority_level", "unit"], "What all ended requests cost together, in the unit of their flow schema";
    COST_EXPECTED: Counter "evenkeel_request_cost_expected" ["flow_schema", "priority_level", "unit"], "What these requests were expected to cost when they arrived";
    COST_CLASSES: Gauge "evenkeel_cost_classes" ["priority_level"], "Number of classes of requests whose cost each priority level has learnt";
    LIMIT: Gauge "evenkeel_limit_seats" [], "Number of seats that is believed to be right, where the limit finds itself";
    LIMIT_APPLIED: Gauge "evenkeel_limit_applied_seats" [], "Number of seats in effect, where the limit finds itself: that of a trial or a probe, or with room for bursts";
    LIMIT_BOUND: Gauge "evenkeel_limit_bound_seats" ["bound"], "Lowest and highest number of seats that a limit which finds itself can have";
    LIMIT_CEILING: Gauge "evenkeel_limit_ceiling_seats" [], "Number of seats above which nothing is tried for a while, because requests failed there or throughput fell";
    LIMIT_CHANGES: Counter "evenkeel_limit_changes" ["reason"], "Decisions of a limit that finds itself, by reason";
    LIMIT_ELASTICITY: Gauge "evenkeel_limit_elasticity" [], "Latest estimate of how much more throughput comes of more seats: 1 as much as of the others, 0 nothing, below 0 less";
    LIMIT_DEVIATION: Gauge "evenkeel_limit_elasticity_deviation" [], "Standard deviation of that estimate";
    LIMIT_HELD: Gauge "evenkeel_limit_held_down" [], "Whether an outside signal keeps the limit from rising";
    LIMIT_KNOWN: Gauge "evenkeel_limit_known" [], "Whether the limit was found, in this run or an earlier one";
    LIMIT_LOAD: Gauge "evenkeel_limit_load" ["load"], "1 for the load that the limit sees, 0 for the others";
    LIMIT_PHASE: Gauge "evenkeel_limit_phase" ["phase"], "1 for what the limit is doing, 0 for the others";
    LIMIT_ROOM: Gauge "evenkeel_limit_room_ratio" [], "How far bursts may go above the limit at light load; 1 if not at all";
    CANARY_REJECTED: Counter "evenkeel_canary_rejected_requests" [], "Requests that the canary rejected, since it began";
    CANARY_REQUESTS: Counter "evenkeel_canary_requests" [], "Requests that the canary decided about, since it began";
    CANARY_RETURNS: Counter "evenkeel_canary_returns" [], "How often a canary ended by itself because it was worse than its bounds";
    CANARY_SEATS: Gauge "evenkeel_canary_seats" [], "Seats of the canary; 0 when it has returned";
    SHADOW_DROPPED: Counter "evenkeel_shadow_dropped_requests" [], "Requests that the shadow did not decide about because it was too slow or there were too many, since it began";
    SHADOW_MOVED: Counter "evenkeel_shadow_moved_requests" ["from", "to"], "Requests that would be in another priority level under the configuration of the shadow, for the 50 pairs of levels with the most";
    SHADOW_REJECTED: Counter "evenkeel_shadow_rejected_requests" ["side"], "Requests that were rejected (real), and that the shadow would have rejected (shadow), since it began";
    SHADOW_REQUESTS: Counter "evenkeel_shadow_requests" [], "Requests that the shadow decided about, since it began";
    SHADOW_WAIT: Gauge "evenkeel_shadow_wait_seconds" ["quantile", "side"], "How long requests waited that started (real), and would have waited (shadow), since the shadow began";
    FLEET_CALL: Gauge "evenkeel_fleet_call_seconds" [], "How long etcd took to answer the latest call of the fleet";
    FLEET_CONFLICTS: Counter "evenkeel_fleet_conflicts" [], "How often another instance wrote the ledger of the fleet first";
    FLEET_FAILED_CALLS: Counter "evenkeel_fleet_failed_calls" [], "Calls of the fleet that etcd did not answer in time";
    FLEET_FLOOR: Gauge "evenkeel_fleet_floor_seats" [], "Seats that this instance keeps when it is cut off from etcd";
    FLEET_FOOTING: Gauge "evenkeel_fleet_footing" ["footing"], "1 for what this instance lives on: its grant, its floor because it is cut off from etcd, or nothing";
    FLEET_GRANTED: Gauge "evenkeel_fleet_granted_seats" [], "Seats that this instance may use now";
    FLEET_HELD: Gauge "evenkeel_fleet_held_seats" [], "Seats that are granted or still held, all instances of the fleet together";
    FLEET_IN_USE: Gauge "evenkeel_fleet_seats_in_use" [], "Seats that this instance uses, of all levels that have a limit";
    FLEET_INSTANCES: Gauge "evenkeel_fleet_instances" [], "Instances in the ledger of the fleet";
    FLEET_REGISTRATIONS: Counter "evenkeel_fleet_registrations" [], "How often this instance has registered in the fleet";
    FLEET_REVISION: Gauge "evenkeel_fleet_ledger_revision" [], "Revision in etcd of the latest ledger that this instance knows";
    FLEET_ROUND: Gauge "evenkeel_fleet_round_seconds" [], "How long it took from the publication of a changed load to the next division of the seats, the last time that one followed";
    FLEET_SEATS: Gauge "evenkeel_fleet_seats" [], "Seats of the service, all instances of the fleet together; 0 before the ledger is known";
    DANGLING: Gauge "evenkeel_flow_schema_dangling" ["flow_schema", "priority_level"], "1 for each flow schema that is not used because its priority level is missing; there is no series for the others";
    FLOW_SEATS: Gauge "evenkeel_flow_seats" ["flow", "flow_schema", "priority_level"], "Average number of seats in use within the last minute, for the heaviest flows; all others are flow=\"other\"";
    FLOW_WAITING: Gauge "evenkeel_flow_waiting_requests" ["flow", "flow_schema", "priority_level"], "Average number of waiting requests within the last minute, for the flows that waited most; all others are flow=\"other\"";
    FLOW_REJECTIONS: Gauge "evenkeel_flow_rejections_per_second" ["flow", "flow_schema", "priority_level"], "Requests rejected per second within the last minute, for the flows with the most rejections; all others are flow=\"other\"";
    FLOW_DELAYING: Gauge "evenkeel_flow_delayed_requests" ["flow", "flow_schema", "priority_level"], "Average number of requests that waited behind requests of each flow within the last minute, for the flows that delayed most; all others are flow=\"other\"";
    CURRENT_INFLIGHT: Gauge "apiserver_current_inflight_requests" ["request_kind"], "[STABLE] Maximal number of currently used inflight request limit of this apiserver per request kind in last second.";
    CURRENT_INQUEUE: Gauge "apiserver_current_inqueue_requests" ["request_kind"], "[ALPHA] Maximal number of queued requests in this apiserver per request kind in last second.";
}
