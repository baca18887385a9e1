//! Explains where a request would go, with these rules.

use evenkeel::FlowControl;
use evenkeel::digest::{Digest, PartsHead};
use evenkeel::explain::Explanation;
use evenkeel::service::Occupancy;
use evenkeel_api::model_namespace;
use evenkeel_engine::digest::{DigestError, Query};
use evenkeel_engine::{Attributes, RequestHead, User};
use http::request::Parts;

use super::RequestRules;

/// An extension of a request: the language model that its body names (LM-2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedModel(String);

// === impl AskedModel ===

impl AskedModel {
    /// The model of this name, as clients write it.
    pub fn new(name: &str) -> Self {
        Self(name.to_owned())
    }
}

// === impl RequestRules ===

impl RequestRules {
    /// Explains where a request of this user with this head would go at this moment, and why. Nothing is counted, and nothing changes.
    ///
    /// Flow schemas see the same of it as of a real request: also its headers, and its
    /// [`ClientAddress`](evenkeel::identify::ClientAddress). Where routes count tokens, they see the [`AskedModel`].
    pub fn explain(&self, flow: &FlowControl, user: &User, mut parts: Parts) -> Result<Explanation, DigestError> {
        let target = self.target(&mut parts);
        let head = PartsHead::new(&parts);
        let mut digested = self.digest_target(&target)?;
        digested.info.head = RequestHead::borrowed(&head);
        if self.counts_tokens(digested.extra)
            && let Some(AskedModel(name)) = parts.extensions.get()
        {
            digested.info.namespace = model_namespace(name).into();
        }
        let attributes = Attributes { user, request: &digested.info };
        let query = Query::new(parts.uri.query().unwrap_or_default());
        let wait_limit = self.wait_limit(&digested);
        let mut explanation = flow.explain_digested(attributes, query, self, &digested.extra, wait_limit);
        explanation.request.is_limited = self.occupancy(&digested) != Some(Occupancy::None);
        Ok(explanation)
    }
}
