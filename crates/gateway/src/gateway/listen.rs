//! Opens the listeners of the settings, for every worker.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use super::{StartError, each_of};
use crate::config::{Config, ListenAddress, ListenConfig};
use crate::proxy::worker::{ListenerRules, Listening, Spoken};
use crate::sockets::{InheritedSockets, ListenSocket, SocketFile, bind_tcp, bind_unix, distribute};
use crate::tls::{ListenerTls, Refresh};

/// The listeners of all workers.
#[derive(Default)]
pub(super) struct Listeners {
    pub(super) addresses: ListeningAddresses,
    pub(super) of_workers: Vec<Vec<Listening>>,
    /// Certificates and keys.
    pub(super) tls_files: Vec<Arc<dyn Refresh>>,
    /// The files of Unix sockets.
    pub(super) socket_files: Vec<SocketFile>,
    /// Every socket once more, for a successor.
    pub(super) offered: Vec<ListenSocket>,
}

/// The addresses of the listeners.
#[derive(Debug, Default)]
pub(super) struct ListeningAddresses {
    pub(super) for_clients: Vec<SocketAddr>,
    /// The addresses for Envoy.
    pub(super) for_envoy: Vec<SocketAddr>,
}

/// Opens all listeners. Sockets that listen there already are used.
pub(super) fn listen(
    config: &Config,
    workers: usize,
    inherited: &mut InheritedSockets,
) -> Result<Listeners, StartError> {
    let mut listeners = Listeners { of_workers: (0..workers).map(|_| Vec::new()).collect(), ..Listeners::default() };
    // Without upstreams there is nothing that clients could ask for.
    let for_clients = if config.has_upstreams() { &*config.listen } else { &[] };
    for (index, listen) in for_clients.iter().enumerate() {
        listeners.open(listen, &format!("listen[{index}]"), Spoken::Http, inherited)?;
    }
    if let Some(listen) = &config.ext_proc {
        listeners.open(&listen.listen(), "extProc", Spoken::ExtProc, inherited)?;
    }
    Ok(listeners)
}

// === impl ListeningAddresses ===

impl ListeningAddresses {
    fn add(&mut self, address: SocketAddr, spoken: Spoken) {
        match spoken {
            Spoken::Http => self.for_clients.push(address),
            Spoken::ExtProc => self.for_envoy.push(address),
        }
    }
}

// === impl Listeners ===

impl Listeners {
    /// Opens one of the settings' listeners, which errors call by this name.
    fn open(
        &mut self,
        listen: &ListenConfig,
        name: &str,
        spoken: Spoken,
        inherited: &mut InheritedSockets,
    ) -> Result<(), StartError> {
        let open = |tls| ListenerTls::open(tls, &format!("{name}.tls"));
        let tls = listen.tls.as_ref().map(open).transpose()?.map(Arc::new);
        self.tls_files.extend(tls.as_ref().map(|tls| tls.files()));
        let rules = Arc::new(ListenerRules { tls, proxy_protocol_from: listen.proxy_protocol_from.clone(), spoken });
        match &listen.address {
            ListenAddress::Unix(path) => self.open_unix(listen, path, &rules, inherited),
            address => self.open_tcp(address, &rules, inherited),
        }
    }

    fn open_tcp(
        &mut self,
        listen: &ListenAddress,
        rules: &Arc<ListenerRules>,
        inherited: &mut InheritedSockets,
    ) -> Result<(), StartError> {
        let workers = self.of_workers.len();
        let fault = |address: SocketAddr, error| StartError::Listen { address: address.into(), error };
        let bind = |address: SocketAddr| {
            let mut sockets = inherited.take(&address.to_string());
            if sockets.is_empty() {
                sockets = bind_tcp(address, workers)?;
            }
            // The port may be the system's choice.
            Ok((sockets.first().and_then(|socket| socket.name().parse().ok()).unwrap_or(address), sockets))
        };
        for (address, sockets) in each_of(listen, bind, fault)? {
            self.addresses.add(address, rules.spoken);
            self.add(sockets, rules).map_err(|error| fault(address, error))?;
        }
        Ok(())
    }

    fn open_unix(
        &mut self,
        listen: &ListenConfig,
        path: &Path,
        rules: &Arc<ListenerRules>,
        inherited: &mut InheritedSockets,
    ) -> Result<(), StartError> {
        let fault = |error| StartError::ListenUnix { address: listen.address.clone(), error };
        let mut sockets = inherited.take(&listen.address.to_string());
        if sockets.is_empty() {
            let (socket, file) = bind_unix(path, listen.mode.unwrap_or_default()).map_err(fault)?;
            self.socket_files.push(file);
            sockets.push(socket);
        } else if !sockets.iter().any(|socket| socket.is_kept) {
            self.socket_files.push(SocketFile::of(path).map_err(fault)?);
        }
        self.add(sockets, rules).map_err(fault)
    }

    /// Spreads sockets over the workers.
    fn add(&mut self, sockets: Vec<ListenSocket>, rules: &Arc<ListenerRules>) -> std::io::Result<()> {
        for socket in &sockets {
            self.offered.push(socket.try_clone()?);
        }
        let of_workers = distribute(sockets, self.of_workers.len())?;
        for (of_worker, sockets) in self.of_workers.iter_mut().zip(of_workers) {
            let listening = sockets.into_iter().map(|socket| Listening { socket, rules: Arc::clone(rules) });
            of_worker.extend(listening);
        }
        Ok(())
    }
}
