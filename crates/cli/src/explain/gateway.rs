//! Asks a gateway for explanations.

use std::net::IpAddr;

use anyhow::Result;
use evenkeel::explain::Explanation;

use super::question::Question;
use crate::percent_encoding;
use crate::remote::{Server, json_page};

/// An explanation has a line for each flow schema.
const ADMIN_PATH: &str = "/debug/explain";

/// A gateway's explanation of a request from this address.
pub(super) async fn explanation(gateway: &Server, question: &Question, from: IpAddr) -> Result<Explanation> {
    let user = question.user();
    let mut query = format!("?method={}&url={}", question.method, encoded(&question.target.to_string()));
    query += &format!("&user={}", encoded(&user.name));
    for group in &user.groups {
        query += &format!("&group={}", encoded(group));
    }
    for (name, value) in &question.all_headers() {
        query += &format!("&header={}", encoded(&format!("{name}:{}", String::from_utf8_lossy(value.as_bytes()))));
    }
    query += &format!("&address={}", question.address.unwrap_or(from));
    if let Some(model) = &question.model {
        query += &format!("&model={}", encoded(model));
    }
    json_page(gateway, ADMIN_PATH, &query).await
}

/// A value of the query.
fn encoded(value: &str) -> String {
    percent_encoding::encoded(value, b"/")
}
