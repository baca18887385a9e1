//! Looks up names: their addresses with the time that these are valid for, and services by SRV records.
//!
//! A stub resolver: it asks the name servers of the machine, or those of the settings, and leaves the rest to them. The lookup of
//! the system knows neither how long addresses are valid nor services; it is asked last, for names that only the machine knows.

mod ask;
mod records;
mod system;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use simple_dns::{Packet, TYPE};

use crate::config::{AddressFamily, DnsConfig};
use records::{Chain, ServiceRecord};
use system::SystemSettings;

/// A name to look up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LookupName {
    /// The addresses of a host.
    Host(String, u16),
    /// The hosts and ports of a service, as `_http._tcp.app.example`.
    Service(String),
}

/// The addresses that were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) addresses: Vec<FoundAddress>,
    /// For how long they are valid, if anybody says so.
    pub(crate) ttl: Option<Duration>,
}

/// One address of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FoundAddress {
    pub(crate) address: SocketAddr,
    /// The address's share of the requests beside the others.
    pub(crate) weight: u32,
}

/// Why no address was found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookupError {
    #[error("there is no name server; set `dns.servers`")]
    NoServer,
    #[error("the name server {0} does not answer: {1}")]
    Server(SocketAddr, io::Error),
    #[error("the name server {0} answers with {1}")]
    Refused(SocketAddr, String),
    #[error("there is no name {0}")]
    NoSuchName(String),
    #[error("{0} has no address")]
    NoAddress(String),
    #[error("the lookup took longer than {0:?}")]
    TookTooLong(Duration),
}

/// Looks up names, as the settings say.
#[derive(Debug, Clone)]
pub(crate) struct Resolver {
    config: DnsConfig,
}

/// One lookup, with the settings at its time.
struct Lookup {
    settings: SystemSettings,
    family: AddressFamily,
    /// Whether the names of the machine count too.
    is_of_system: bool,
}

/// A lookup with all its questions may take so long.
const LOOKUP_MAX: Duration = Duration::from_secs(10);
/// A name may have so many addresses; more are left out.
const ADDRESSES_MAX: usize = 256;

// === impl Resolver ===

impl Resolver {
    pub(crate) fn new(config: DnsConfig) -> Self {
        Self { config }
    }

    /// All addresses of a name, in order and each once; at least one.
    pub(crate) async fn look_up(&self, name: &LookupName) -> Result<Found, LookupError> {
        let lookup = Lookup::new(&self.config);
        let found = async {
            match name {
                LookupName::Host(host, port) => lookup.host(host, *port).await,
                LookupName::Service(service) => lookup.service(service).await,
            }
        };
        let found = tokio::time::timeout(LOOKUP_MAX, found).await;
        let mut found = found.unwrap_or(Err(LookupError::TookTooLong(LOOKUP_MAX)))?;
        found.addresses.sort();
        found.addresses.dedup_by_key(|found| found.address);
        found.addresses.truncate(ADDRESSES_MAX);
        Ok(found)
    }
}

// === impl Lookup ===

impl Lookup {
    fn new(config: &DnsConfig) -> Self {
        let is_of_system = config.servers.is_empty();
        let settings = if is_of_system {
            SystemSettings::read()
        } else {
            let servers = config.servers.iter().map(|server| server.0).collect();
            SystemSettings { servers, search: Vec::new(), dots_min: 1 }
        };
        Self { settings, family: config.family, is_of_system }
    }

    async fn host(&self, host: &str, port: u16) -> Result<Found, LookupError> {
        let (addresses, ttl) = self.addresses(host).await?;
        let with_port = |address| FoundAddress { address: SocketAddr::new(address, port), weight: 1 };
        Ok(Found { addresses: addresses.into_iter().map(with_port).collect(), ttl })
    }

    /// The addresses of a host, at least one.
    async fn addresses(&self, host: &str) -> Result<(Vec<IpAddr>, Option<Duration>), LookupError> {
        let in_hosts = if self.is_of_system { self.chosen(system::in_hosts(host)) } else { Vec::new() };
        if !in_hosts.is_empty() {
            return Ok((in_hosts, None));
        }
        match self.addresses_by_dns(host).await {
            Err(error) if self.is_of_system => match self.addresses_of_system(host).await {
                Some(addresses) => Ok((addresses, None)),
                None => Err(error),
            },
            result => result,
        }
    }

    async fn addresses_by_dns(&self, host: &str) -> Result<(Vec<IpAddr>, Option<Duration>), LookupError> {
        let kinds: &[TYPE] = match self.family {
            AddressFamily::Ipv4 => &[TYPE::A],
            AddressFamily::Ipv6 => &[TYPE::AAAA],
            AddressFamily::Auto | AddressFamily::All => &[TYPE::A, TYPE::AAAA],
        };
        let (mut addresses, mut ttl, mut last) = (Vec::new(), None, LookupError::NoAddress(host.to_owned()));
        for kind in kinds {
            if self.family == AddressFamily::Auto && !addresses.is_empty() {
                break;
            }
            match self.search(host, *kind, records::chain).await {
                Ok(chain) => {
                    addresses.extend(chain.addresses);
                    ttl = [ttl, chain.ttl].into_iter().flatten().min();
                }
                Err(LookupError::NoAddress(_)) => {}
                Err(error) => last = error,
            }
        }
        if addresses.is_empty() { Err(last) } else { Ok((addresses, ttl)) }
    }

    /// The answer of the system, which knows names that are not in DNS.
    async fn addresses_of_system(&self, host: &str) -> Option<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((host, 0)).await.ok()?;
        let addresses = self.chosen(found.map(|address| address.ip()).collect());
        Some(addresses).filter(|addresses| !addresses.is_empty())
    }

    /// The addresses of the wanted family.
    fn chosen(&self, mut addresses: Vec<IpAddr>) -> Vec<IpAddr> {
        let has_ipv4 = addresses.iter().any(IpAddr::is_ipv4);
        addresses.retain(|address| match self.family {
            AddressFamily::Ipv4 => address.is_ipv4(),
            AddressFamily::Ipv6 => address.is_ipv6(),
            AddressFamily::Auto => address.is_ipv4() == has_ipv4,
            AddressFamily::All => true,
        });
        addresses
    }

    /// The hosts of a service: those of the lowest priority that have an address (RFC 2782).
    async fn service(&self, service: &str) -> Result<Found, LookupError> {
        let read = |packet: &Packet<'_>, name: &str| {
            let mut chain = records::chain(packet, name);
            chain.services.truncate(ADDRESSES_MAX);
            let added = chain.services.iter().map(|record| records::additional(packet, &record.target)).collect();
            (chain, added)
        };
        let (chain, added): (Chain, Vec<Vec<IpAddr>>) = self.search(service, TYPE::SRV, read).await?;
        let mut all: Vec<(ServiceRecord, Vec<IpAddr>)> = chain.services.into_iter().zip(added).collect();
        all.sort_by_key(|(record, _)| record.priority);
        let (mut addresses, mut ttl, mut last) = (Vec::new(), chain.ttl, LookupError::NoAddress(service.to_owned()));
        for group in all.chunk_by(|(one, _), (other, _)| one.priority == other.priority) {
            for (record, added) in group {
                let mut of_target = self.chosen(added.clone());
                if of_target.is_empty() && !record.target.is_empty() {
                    match self.addresses(&record.target).await {
                        Ok((found, ttl_of_target)) => {
                            of_target = found;
                            ttl = [ttl, ttl_of_target].into_iter().flatten().min();
                        }
                        Err(error) => last = error,
                    }
                }
                let weight = u32::from(record.weight).max(1);
                let with_port = |address| FoundAddress { address: SocketAddr::new(address, record.port), weight };
                addresses.extend(of_target.into_iter().map(with_port));
            }
            if !addresses.is_empty() {
                return Ok(Found { addresses, ttl });
            }
        }
        Err(last)
    }

    /// The records of a name, or of the first name that it may be short for.
    async fn search<T: HasRecords>(
        &self,
        name: &str,
        kind: TYPE,
        read: impl Fn(&Packet<'_>, &str) -> T,
    ) -> Result<T, LookupError> {
        let mut last = LookupError::NoSuchName(name.to_owned());
        for candidate in self.settings.candidates(name) {
            let error = match ask::ask(&self.settings.servers, &candidate, kind).await {
                Ok(answer) => {
                    let found = Packet::parse(&answer).ok().map(|packet| read(&packet, &candidate));
                    match found {
                        Some(found) if found.has_records() => return Ok(found),
                        _ => LookupError::NoAddress(name.to_owned()),
                    }
                }
                Err(error) => error,
            };
            // An answer that the name does not exist is the least helpful one.
            if !matches!(error, LookupError::NoSuchName(_)) {
                last = error;
            }
        }
        Err(last)
    }
}

/// Whether an answer has any record that was asked for.
trait HasRecords {
    fn has_records(&self) -> bool;
}

impl HasRecords for Chain {
    fn has_records(&self) -> bool {
        self.ttl.is_some()
    }
}

impl<T> HasRecords for (Chain, T) {
    fn has_records(&self) -> bool {
        self.0.has_records()
    }
}

// === impl SystemSettings ===

impl SystemSettings {
    /// The names to ask for, one after the other. A name with a dot at the end is complete.
    fn candidates(&self, name: &str) -> Vec<String> {
        let complete = name.trim_end_matches('.').to_owned();
        if complete.len() < name.len() {
            return vec![complete];
        }
        let is_short = complete.matches('.').count() < self.dots_min;
        let mut all: Vec<_> = self.search.iter().map(|domain| format!("{complete}.{domain}")).collect();
        all.insert(if is_short { all.len() } else { 0 }, complete);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_completed() {
        let search = vec!["shop.svc".to_owned(), "svc".to_owned()];
        let settings = SystemSettings { servers: Vec::new(), search, dots_min: 2 };
        assert_eq!(settings.candidates("app"), ["app.shop.svc", "app.svc", "app"]);
        assert_eq!(settings.candidates("app.shop.svc"), ["app.shop.svc", "app.shop.svc.shop.svc", "app.shop.svc.svc"]);
        assert_eq!(settings.candidates("app."), ["app"]);
    }
}
