//! Reads the cost of a request from its response: its bytes, or a header or trailer of the service (CO-2).

use bytes::Bytes;
use evenkeel_api::annotations::CostUnit;
use http::{HeaderMap, Response};
use http_body::{Body, Frame};

use crate::control::accounts::RequestAccount;
use crate::control::permit::Permit;

/// The head of a response to a request whose cost counts.
#[cold]
pub(crate) fn note_response<B: Body>(permit: &Permit, account: &RequestAccount, response: &mut Response<B>) {
    if let Some(meter) = &account.meter {
        let status = response.status();
        let counted = meter.lock().begin(status, response.headers_mut());
        return permit.note_counted(counted);
    }
    match permit.accounts().and_then(|accounts| accounts.unit.as_ref()) {
        Some(CostUnit::Bytes) => {
            if let Some(length) = response.body().size_hint().exact() {
                permit.announce_cost(bytes(length));
            }
        }
        Some(CostUnit::Header { keeps, .. }) => note_header(permit, response.headers_mut(), *keeps),
        Some(CostUnit::Time | CostUnit::Tokens) | None => {}
    }
}

/// A frame of such a response.
pub(crate) fn note_frame(permit: &Permit, account: &RequestAccount, frame: &mut Frame<Bytes>) {
    if let Some(meter) = &account.meter {
        let counted = meter.lock().progress(frame);
        return permit.note_counted(counted);
    }
    match permit.accounts().and_then(|accounts| accounts.unit.as_ref()) {
        Some(CostUnit::Bytes) => {
            if let Some(data) = frame.data_ref() {
                permit.add_cost(bytes(data.len() as u64));
            }
        }
        Some(CostUnit::Header { keeps, .. }) => {
            if let Some(trailers) = frame.trailers_mut() {
                note_header(permit, trailers, *keeps);
            }
        }
        Some(CostUnit::Time | CostUnit::Tokens) | None => {}
    }
}

/// A response whose cost is counted has come to its end.
pub(crate) fn note_end(permit: &Permit, account: &RequestAccount) {
    if let Some(meter) = &account.meter {
        let counted = meter.lock().end();
        permit.note_counted(counted);
    }
    account.end_response();
}

/// Takes the cost out of headers or trailers. A value that is not a number is ignored, and does not get to the client either.
fn note_header(permit: &Permit, headers: &mut HeaderMap, keeps: bool) {
    let Some(name) = permit.accounts().and_then(|accounts| accounts.header.as_ref()) else { return };
    let cost = headers.get(name).and_then(|value| value.to_str().ok()?.trim().parse::<f64>().ok());
    if let Some(cost) = cost.filter(|cost| cost.is_finite() && *cost >= 0.0) {
        permit.set_cost(cost);
    }
    if !keeps {
        headers.remove(name);
    }
}

/// A number of bytes as a cost.
#[expect(clippy::cast_precision_loss, reason = "exact up to some petabytes")]
fn bytes(length: u64) -> f64 {
    length as f64
}
