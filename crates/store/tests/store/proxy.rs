//! A connection that can be cut.

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Forwards connections to an address, while it is let.
pub(crate) struct Proxy {
    endpoint: String,
    /// Counted up to cut all connections; odd while new ones are refused.
    state: watch::Sender<u64>,
    listener: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn start(target: String) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = socket.local_addr().unwrap().to_string();
        let state = watch::Sender::new(0);
        let listener = tokio::spawn(forward(socket, target, state.subscribe()));
        Self { endpoint, state, listener }
    }

    pub(crate) fn endpoint(&self) -> String {
        self.endpoint.clone()
    }

    /// Cuts all connections and refuses further ones.
    pub(crate) fn cut(&self) {
        self.state.send_modify(|state| *state |= 1);
    }

    pub(crate) fn heal(&self) {
        self.state.send_modify(|state| *state += *state & 1);
    }

    /// Cuts all connections and accepts new ones.
    pub(crate) fn cut_once(&self) {
        self.state.send_modify(|state| *state += 2);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

async fn forward(socket: TcpListener, target: String, state: watch::Receiver<u64>) {
    while let Ok((mut client, _)) = socket.accept().await {
        let mut state = state.clone();
        let now = *state.borrow_and_update();
        if now % 2 == 1 {
            continue;
        }
        let target = target.clone();
        tokio::spawn(async move {
            let pipe = async {
                let mut server = TcpStream::connect(target).await?;
                copy_bidirectional(&mut client, &mut server).await
            };
            tokio::select! {
                _ = pipe => {}
                _ = state.wait_for(|state| *state != now) => {}
            }
        });
    }
}
