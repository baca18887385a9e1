//! `Source`: the oracle that decides about requests, a flow control of our own or a gateway, and where its objects are from.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context, Result};
use evenkeel::division::Borrowing;
use evenkeel::explain::Explanation;
use evenkeel::identify::{ClientAddress, Identify as _};
use evenkeel::objects::Objects;
use evenkeel::{FlowControl, User};
use evenkeel_engine::digest::normal_path;
use evenkeel_gateway::config::{IdentityConfig, IdentitySource};
use evenkeel_gateway::identity::{self, Identification, IdentityCounts, PeerIdentity};
use evenkeel_gateway::{Config, Peer, RequestRules, Transport};
use http::header::HOST;
use http::request::Parts;

use super::gateway;
use super::question::Question;
use crate::exit::WrongUsage;
use crate::remote::Server;

/// The oracle that decides, and where its objects are from.
pub(super) struct Source {
    pub(super) oracle: Oracle,
    pub(super) objects: String,
}

/// The oracle to ask about requests.
pub(super) enum Oracle {
    /// Flow controls of our own.
    Own(Box<OwnDecisions>),
    /// A gateway.
    Live {
        gateway: Box<Server>,
        /// Where requests come from.
        from: IpAddr,
    },
}

/// Flow controls of our own, which only explain requests.
pub(super) struct OwnDecisions {
    config: Config,
    /// By the names of services; the one without a name is for requests that belong to none.
    flows: BTreeMap<Option<String>, FlowControl>,
    rules: RequestRules,
    identification: Arc<Identification>,
    /// Where requests come from.
    from: IpAddr,
    /// Whether the settings say who sends a request.
    is_identified: bool,
}

// === impl Source ===

impl Source {
    pub(super) async fn explain(&self, question: &Question) -> Result<Explanation> {
        match &self.oracle {
            Oracle::Live { gateway, from } => gateway::explanation(gateway, question, *from).await,
            Oracle::Own(own) => own.explain(question),
        }
    }
}

// === impl OwnDecisions ===

impl OwnDecisions {
    /// Decides as a gateway with these settings and objects. Each service has seats of its own.
    pub(super) fn new(config: &Config, seats: impl Fn(Option<&str>) -> u32, objects: &Objects) -> Result<Self> {
        let flow = |service: Option<&str>| {
            let builder = FlowControl::builder()
                .preset(config.preset)
                .server_concurrency(seats(service))
                .wait_limit(config.timeouts.queue)
                .borrowing(config.flow_control.borrowing.map(Borrowing::from))
                .drive_by_hand()
                .stored_objects(objects.clone());
            match service {
                // All have the same objects, and the one without a name warns of them.
                Some(name) => builder.service_name(name).without_object_warnings().build(),
                None => builder.build(),
            }
        };
        let services = config.services.keys().map(|name| Some(name.as_str()));
        Ok(Self {
            flows: services.chain([None]).map(|name| (name.map(ToOwned::to_owned), flow(name))).collect(),
            rules: RequestRules::new(&config.requests, config.preset)?,
            identification: open(&IdentityConfig::default())?,
            from: IpAddr::V4(Ipv4Addr::LOCALHOST),
            is_identified: false,
            config: config.clone(),
        })
    }

    /// Requests come from this address.
    pub(super) fn sent_from(&mut self, address: IpAddr) {
        self.from = address;
    }

    /// The settings say which proxies are trusted, and, unless the user is named, who sends a request.
    pub(super) fn identify(&mut self, config: &Config, is_identified: bool) -> Result<()> {
        self.is_identified = is_identified;
        let mut identities = config.identity.clone();
        if !is_identified {
            // Other sources know users, and their files may not be on this machine.
            identities.sources.retain(|source| matches!(source, IdentitySource::Address(_)));
        }
        self.identification = open(&identities)?;
        Ok(())
    }

    fn explain(&self, question: &Question) -> Result<Explanation> {
        let mut parts = question.parts();
        let address = SocketAddr::new(self.from, 0);
        let peer = self.identification.of(Peer { address, transport: Transport::Plain, certificate: None });
        let user = if self.is_identified { identified(&peer, question, &parts)? } else { question.user() };
        let client = question.address.unwrap_or_else(|| peer.client_address(&parts.headers));
        parts.extensions.insert(ClientAddress::from(client));
        let explained = self.rules.explain(self.flow_of(question, &parts)?, &user, parts);
        let mut explanation = explained.with_context(|| {
            format!("{} {} would be rejected before flow control", question.method, question.target)
        })?;
        // Nothing runs here.
        explanation.live = None;
        Ok(explanation)
    }

    /// The flow control of the service that a request belongs to.
    fn flow_of(&self, question: &Question, parts: &Parts) -> Result<&FlowControl> {
        let path = normal_path(parts.uri.path()).ok();
        let path = path.as_ref().map_or("/", |path| &*path.path);
        let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
        let service = self.config.service_of(host, path);
        if service.is_none() && !self.config.has_default_pool() {
            let host = host.map_or_else(|| "no host".to_owned(), |host| format!("the host {host:?}"));
            let fault = format!(
                "no service of the settings has requests with {host} and the path {:?}; name a URL with the host of a service, as \
                 http://shop.example{}",
                question.target.path(),
                question.target
            );
            return Err(WrongUsage(fault).into());
        }
        self.flows.get(&service.map(ToOwned::to_owned)).context("a service of the settings has no flow control")
    }
}

fn open(identities: &IdentityConfig) -> Result<Arc<Identification>> {
    identity::open(identities, &IdentityCounts::default()).map_err(|error| WrongUsage(error.to_string()).into())
}

/// The user for whom the gateway would take the sender of a request, with the groups that were added.
fn identified(peer: &PeerIdentity, question: &Question, parts: &Parts) -> Result<User> {
    let found = peer.identify(parts).map_err(|denied| {
        let (method, target, status) = (&question.method, &question.target, denied.status.as_u16());
        WrongUsage(format!(
            "the gateway would reject {method} {target} with {status}: {denied}; name the user with --user, or add the credentials with \
             --header or to the curl command"
        ))
    })?;
    let mut user = (*found).clone();
    user.groups.extend(question.groups.iter().map(|group| group.as_str().into()));
    Ok(user)
}
