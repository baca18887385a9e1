//! A line in the log for a request that was rejected.

use evenkeel::Rejected;
use evenkeel_engine::User;
use http::{Method, Response, Uri};

use crate::observe::log::RejectedRequest;
use crate::proxy::worker::Worker;

/// Notes that a request was rejected, if this response says so.
pub(super) fn note<B>(worker: &Worker, response: &Response<B>, method: &Method, target: &Uri, user: Option<&User>) {
    let Some(rejected) = response.extensions().get::<Rejected>() else { return };
    worker.rejections.rejected(|| RejectedRequest {
        user: user.map_or("", |user| &user.name),
        method: method.as_str(),
        path: target.path(),
        flow_schema: &rejected.flow_schema,
        priority_level: &rejected.priority_level,
        reason: rejected.reason.as_str(),
        retry_after: rejected.retry_after,
    });
}
