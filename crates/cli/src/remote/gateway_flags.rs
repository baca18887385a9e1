//! The flags that name a gateway's admin endpoint.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use evenkeel_gateway::observe::admin::TOKEN_VARIABLE;

use super::{Access, GATEWAY, Pem, kubeconfig};

/// Which gateway is asked, and how to authenticate there.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct GatewayFlags {
    /// The URL of a gateway's admin endpoint [default: `http://127.0.0.1:9901`].
    #[arg(value_name = "URL")]
    gateway: Option<String>,
    /// A file with a bearer token [default: the variable `EVENKEEL_ADMIN_TOKEN`].
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// CA certificates used to verify the server, in PEM [default: the system's].
    #[arg(long, value_name = "FILE")]
    certificate_authority: Option<PathBuf>,
}

// === impl GatewayFlags ===

impl GatewayFlags {
    /// How the gateway is reached.
    pub(crate) fn access(&self) -> Result<Access> {
        let variable = || std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
        let token = self.token_file.as_deref().map(kubeconfig::token_of).transpose()?;
        Ok(Access {
            server: self.gateway.clone().unwrap_or_else(|| GATEWAY.to_owned()),
            token: token.or_else(variable),
            ca: self.certificate_authority.clone().map(Pem::File),
            ..Access::default()
        })
    }
}
