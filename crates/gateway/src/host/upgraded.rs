//! Keeps counting connections that have been upgraded to another protocol, such as `WebSocket`.

use std::convert::Infallible;
use std::task::{Context, Poll};

use http::Request;
use http::header::UPGRADE;
use tokio::sync::mpsc;
use tower_service::Service;

/// A token that a service keeps for as long as it uses an upgraded connection. It is among the extensions of the request, and is
/// never looked at.
#[derive(Debug, Clone)]
struct InUse {
    _connection: mpsc::Sender<Infallible>,
}

/// Waits until the connection is no longer used.
#[derive(Debug)]
pub(super) struct Unused(mpsc::Receiver<Infallible>);

/// A service whose requests carry [`InUse`], if they ask for an upgrade.
#[derive(Debug, Clone)]
pub(super) struct Upgradable<S> {
    service: S,
    in_use: InUse,
}

/// The service, and a handle that tells when its last connection is no longer used. The service has to be dropped first.
pub(super) fn upgradable<S>(service: S) -> (Upgradable<S>, Unused) {
    let (connection, unused) = mpsc::channel(1);
    (Upgradable { service, in_use: InUse { _connection: connection } }, Unused(unused))
}

// === impl Unused ===

impl Unused {
    pub(super) async fn wait(mut self) {
        // Nothing can be sent: this ends with the last sender.
        let _ = self.0.recv().await;
    }
}

// === impl Upgradable ===

impl<S: Service<Request<B>>, B> Service<Request<B>> for Upgradable<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        if request.headers().contains_key(UPGRADE) {
            request.extensions_mut().insert(self.in_use.clone());
        }
        self.service.call(request)
    }
}
