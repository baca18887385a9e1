//! The machine's own settings for names: `/etc/resolv.conf` and `/etc/hosts`.

use std::net::{IpAddr, SocketAddr};

/// The settings of `/etc/resolv.conf`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SystemSettings {
    pub(super) servers: Vec<SocketAddr>,
    /// Domains that are put behind short names.
    pub(super) search: Vec<String>,
    /// A name with fewer dots is short.
    pub(super) dots_min: usize,
}

const SETTINGS: &str = "/etc/resolv.conf";
const HOSTS: &str = "/etc/hosts";
const PORT: u16 = 53;
/// The most servers and domains that are used, as in other resolvers.
const SERVERS_MAX: usize = 3;
const SEARCH_MAX: usize = 32;
const DOTS_MAX: usize = 15;

// === impl SystemSettings ===

impl SystemSettings {
    /// The settings of the machine. They are read for each lookup: networks come and go.
    pub(super) fn read() -> Self {
        Self::parse(&std::fs::read_to_string(SETTINGS).unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let mut found = Self { servers: Vec::new(), search: Vec::new(), dots_min: 1 };
        for line in text.lines() {
            let mut words = line.split(['#', ';']).next().unwrap_or_default().split_whitespace();
            match words.next() {
                Some("nameserver") if found.servers.len() < SERVERS_MAX => {
                    // A zone, as in `fe80::1%eth0`, cannot be used here.
                    let address = words.next().and_then(|address| address.parse::<IpAddr>().ok());
                    found.servers.extend(address.map(|address| SocketAddr::from((address, PORT))));
                }
                // The last one of either counts.
                Some("search" | "domain") => {
                    found.search = words.take(SEARCH_MAX).map(|domain| domain.trim_matches('.').to_owned()).collect();
                    found.search.retain(|domain| !domain.is_empty());
                }
                Some("options") => {
                    let dots = words.filter_map(|option| option.strip_prefix("ndots:")?.parse().ok()).next_back();
                    found.dots_min = dots.map_or(found.dots_min, |dots: usize| dots.min(DOTS_MAX));
                }
                _ => {}
            }
        }
        found
    }
}

/// The addresses that the file of hosts has for a name.
pub(super) fn in_hosts(name: &str) -> Vec<IpAddr> {
    in_hosts_of(&std::fs::read_to_string(HOSTS).unwrap_or_default(), name)
}

fn in_hosts_of(text: &str, name: &str) -> Vec<IpAddr> {
    let name = name.trim_end_matches('.');
    let mut found = Vec::new();
    for line in text.lines() {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(Ok(address)) = words.next().map(str::parse::<IpAddr>) else { continue };
        if words.any(|other| other.eq_ignore_ascii_case(name)) {
            found.push(address);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_of_the_machine_are_read() {
        let text = "# of a cluster\nnameserver 10.96.0.10\nnameserver ::1 ; the second\nnameserver fe80::1%eth0\nnameserver x\n\
                    domain old.example\nsearch shop.svc.cluster.local svc.cluster.local. .\noptions timeout:1 ndots:5\n";
        let found = SystemSettings::parse(text);
        assert_eq!(found.servers, ["10.96.0.10:53".parse().unwrap(), "[::1]:53".parse().unwrap()]);
        assert_eq!(found.search, ["shop.svc.cluster.local", "svc.cluster.local"]);
        assert_eq!(found.dots_min, 5);
        assert_eq!(SystemSettings::parse(""), SystemSettings { servers: vec![], search: vec![], dots_min: 1 });
        assert_eq!(SystemSettings::parse("options ndots:99").dots_min, 15);
    }

    #[test]
    fn hosts_have_several_names() {
        let text = "127.0.0.1 localhost\n10.0.0.1 app app.example # Shop\n::1 app\nnonsense app\n10.0.0.2 #app\n";
        let found = |name| in_hosts_of(text, name).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(found("APP"), ["10.0.0.1", "::1"]);
        assert_eq!(found("app.example."), ["10.0.0.1"]);
        assert!(found("shop").is_empty());
    }
}
