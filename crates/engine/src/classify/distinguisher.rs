//! What tells one flow of a flow schema from another (FM-15).

use evenkeel_api::annotations::FlowBy;
use evenkeel_api::v1::{FlowDistinguisherMethod, FlowDistinguisherMethodType};

use crate::Attributes;

/// The distinguisher of a request's flow, as the method of its flow schema has it; empty without a method.
///
/// It counts only at a level that has more than one queue to choose from; at any other level, every flow has the
/// empty distinguisher and the hash 0 (FM-14). The caller knows the level, so the caller asks or does not ask.
///
/// A method that is not known, which validation refuses, tells nothing apart.
///
/// ```
/// use evenkeel_api::v1::{FlowDistinguisherMethod, FlowDistinguisherMethodType};
/// use evenkeel_engine::classify::distinguisher;
/// use evenkeel_engine::{Attributes, RequestInfo, User};
///
/// let user = User::new("alice", ["system:authenticated"]);
/// let request = RequestInfo { namespace: "shop".into(), ..RequestInfo::default() };
/// let attributes = Attributes { user: &user, request: &request };
/// let by_user = FlowDistinguisherMethod { method: FlowDistinguisherMethodType::ByUser };
/// let by_namespace = FlowDistinguisherMethod { method: FlowDistinguisherMethodType::ByNamespace };
/// assert_eq!(distinguisher(Some(&by_user), attributes), "alice");
/// assert_eq!(distinguisher(Some(&by_namespace), attributes), "shop");
/// assert_eq!(distinguisher(None, attributes), "");
/// ```
pub fn distinguisher<'a>(method: Option<&FlowDistinguisherMethod>, attributes: Attributes<'a>) -> &'a str {
    match method.map(|method| &method.method) {
        Some(FlowDistinguisherMethodType::ByUser) => &attributes.user.name,
        Some(FlowDistinguisherMethodType::ByNamespace) => &attributes.request.namespace,
        Some(FlowDistinguisherMethodType::Other(_)) | None => "",
    }
}

/// The same for a schema that says it by annotation (SF-2). Requests without the header are one flow. Where the address of the client
/// is not known, the user stands for it.
pub fn flow_by<'a>(by: &FlowBy, attributes: Attributes<'a>) -> &'a str {
    let Attributes { user, request } = attributes;
    match by {
        FlowBy::Address => request.head.address().unwrap_or(&user.name),
        FlowBy::Path => &request.path,
        FlowBy::Header(name) => request.head.header(name).unwrap_or_default(),
    }
}
