//! Explains where a request would go, with these rules.

use evenkeel::FlowControl;
use evenkeel::digest::Digest;
use evenkeel::explain::Explanation;
use evenkeel::service::Occupancy;
use evenkeel_engine::digest::{DigestError, Query};
use evenkeel_engine::{Attributes, User};
use http::{Method, Request, Uri};

use super::RequestRules;

impl RequestRules {
    /// Explains where a request of this user would go at this moment, and why. Nothing is counted, and nothing changes.
    pub fn explain(
        &self,
        flow: &FlowControl,
        user: &User,
        method: Method,
        uri: Uri,
    ) -> Result<Explanation, DigestError> {
        let (mut parts, ()) = Request::new(()).into_parts();
        (parts.method, parts.uri) = (method, uri);
        let target = self.target(&mut parts);
        let digested = self.digest_target(&target)?;
        let attributes = Attributes { user, request: &digested.info };
        let query = Query::new(parts.uri.query().unwrap_or_default());
        let wait_limit = self.wait_limit(&digested);
        let mut explanation = flow.explain_digested(attributes, query, self, &digested.extra, wait_limit);
        explanation.request.is_limited = self.occupancy(&digested) != Some(Occupancy::None);
        Ok(explanation)
    }
}
