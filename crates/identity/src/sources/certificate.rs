//! Identifies users by client certificate.

use std::sync::Arc;

use evenkeel_engine::User;

use super::naming::Naming;
use crate::ClientCertificate;
use crate::config::CertificateIdentity;

pub(super) fn naming(config: &CertificateIdentity) -> Naming {
    Naming {
        user_prefix: config.user_prefix.clone(),
        group_prefix: config.group_prefix.clone(),
        system_names: config.system_names,
    }
}

/// The owner of a certificate; none if it has no name, or one that it may not have.
pub(super) fn user(naming: &Naming, certificate: &ClientCertificate) -> Option<Arc<User>> {
    naming.user(certificate.common_name.as_deref()?, certificate.organizations.iter().map(String::as_str))
}
