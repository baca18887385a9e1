//! Reads an answer: the records of a name, through the names that it is an alias for.

use std::net::IpAddr;
use std::time::Duration;

use simple_dns::rdata::RData;
use simple_dns::{Packet, ResourceRecord};

/// The records at the end of a chain of names, and for how long they are valid.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) addresses: Vec<IpAddr>,
    pub(super) services: Vec<ServiceRecord>,
    /// None if there are no records.
    pub(super) ttl: Option<Duration>,
}

/// An SRV record (RFC 2782).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServiceRecord {
    pub(super) priority: u16,
    pub(super) weight: u16,
    pub(super) port: u16,
    pub(super) target: String,
}

/// A name may stand for another one that often.
const CHAIN_MAX: usize = 16;

/// The records of a name in the section of answers.
pub(super) fn chain(packet: &Packet<'_>, name: &str) -> Chain {
    let (mut found, mut name, mut ttl) =
        (Chain { addresses: Vec::new(), services: Vec::new(), ttl: None }, name.to_owned(), u32::MAX);
    for _ in 0..CHAIN_MAX {
        let mut next = None;
        for record in packet.answers.iter().filter(|record| is_of(record, &name)) {
            match &record.rdata {
                RData::CNAME(other) => next = Some(other.0.to_string()),
                RData::SRV(service) => found.services.push(ServiceRecord {
                    priority: service.priority,
                    weight: service.weight,
                    port: service.port,
                    target: service.target.to_string(),
                }),
                rdata => match address(rdata) {
                    Some(address) => found.addresses.push(address),
                    None => continue,
                },
            }
            ttl = ttl.min(record.ttl);
        }
        match next {
            Some(next) if found.is_empty() => name = next,
            _ => break,
        }
    }
    if !found.is_empty() {
        found.ttl = Some(Duration::from_secs(ttl.into()));
    }
    found
}

/// The addresses of a name that a server has added, because it was going to be asked for them.
pub(super) fn additional(packet: &Packet<'_>, name: &str) -> Vec<IpAddr> {
    let records = packet.additional_records.iter().filter(|record| is_of(record, name));
    records.filter_map(|record| address(&record.rdata)).collect()
}

fn is_of(record: &ResourceRecord<'_>, name: &str) -> bool {
    record.name.to_string().eq_ignore_ascii_case(name.trim_end_matches('.'))
}

fn address(rdata: &RData<'_>) -> Option<IpAddr> {
    match rdata {
        RData::A(address) => Some(IpAddr::V4(address.address.into())),
        RData::AAAA(address) => Some(IpAddr::V6(address.address.into())),
        _ => None,
    }
}

// === impl Chain ===

impl Chain {
    fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.services.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use simple_dns::rdata::{A, CNAME, SRV};
    use simple_dns::{CLASS, Name};

    use super::*;

    fn record(name: &'static str, ttl: u32, rdata: RData<'static>) -> ResourceRecord<'static> {
        ResourceRecord::new(Name::new_unchecked(name), CLASS::IN, ttl, rdata)
    }

    fn a(last: u32) -> RData<'static> {
        RData::A(A { address: 0x0a00_0000 | last })
    }

    fn alias(name: &'static str) -> RData<'static> {
        RData::CNAME(CNAME(Name::new_unchecked(name)))
    }

    #[test]
    fn names_that_stand_for_others_are_followed() {
        let mut packet = Packet::new_reply(1);
        packet.answers = vec![
            record("app.example", 60, alias("www.example")),
            record("other.example", 1, a(9)),
            record("WWW.example", 30, a(1)),
            record("www.example", 90, a(2)),
        ];
        let found = chain(&packet, "app.example.");
        assert_eq!(found.addresses, ["10.0.0.1".parse::<IpAddr>().unwrap(), "10.0.0.2".parse().unwrap()]);
        assert_eq!(found.ttl, Some(Duration::from_secs(30)));
        packet.answers = vec![record("a.example", 60, alias("b.example")), record("b.example", 60, alias("a.example"))];
        assert_eq!(chain(&packet, "a.example"), Chain { addresses: vec![], services: vec![], ttl: None });
    }

    #[test]
    fn services_have_ports_and_weights() {
        let target = Name::new_unchecked("node.example");
        let mut packet = Packet::new_reply(1);
        packet.answers =
            vec![record("_http._tcp.app.example", 5, RData::SRV(SRV { priority: 1, weight: 2, port: 3, target }))];
        packet.additional_records = vec![record("node.example", 5, a(4)), record("x.example", 5, a(5))];
        let found = chain(&packet, "_http._tcp.app.example");
        let target = "node.example".to_owned();
        assert_eq!(found.services, [ServiceRecord { priority: 1, weight: 2, port: 3, target }]);
        assert_eq!(additional(&packet, "node.example"), ["10.0.0.4".parse::<IpAddr>().unwrap()]);
    }
}
