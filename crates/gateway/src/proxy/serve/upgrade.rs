//! After an upgrade: copies bytes between client and upstream, in both directions.

use std::future::poll_fn;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};

use crate::http1::Wire;
use crate::proxy::worker::Worker;
use crate::timeouts::{Activity, IdleTimeout};

/// What one direction keeps at most.
const BUFFER: usize = 16 * 1024;

/// Copies until both directions have ended, one has failed, or neither has moved for `timeouts.upgradeIdle`.
pub(super) async fn run(client: Wire, upstream: Wire, worker: &Rc<Worker>) {
    between(client.input.freeze(), client.stream, upstream, worker).await;
}

/// The same for a client behind another kind of stream, from which these bytes have been read already.
pub(super) async fn between(
    client_first: Bytes,
    client: impl AsyncRead + AsyncWrite,
    upstream: Wire,
    worker: &Rc<Worker>,
) {
    let upstream_first = upstream.input.freeze();
    let (client_in, client_out) = split(client);
    let (upstream_in, upstream_out) = split(upstream.stream);
    let activity = Rc::<Activity>::default();
    let mut idle = IdleTimeout::new(&worker.timer, &activity, worker.config.timeouts.upgrade_idle);
    let both = async {
        tokio::try_join!(
            copy(client_first, client_in, upstream_out, worker, &activity),
            copy(upstream_first, upstream_in, client_out, worker, &activity)
        )
    };
    tokio::select! {
        _ = both => {}
        () = poll_fn(|context| idle.poll(context)) => {}
    }
}

/// Copies one direction to its end, and tells the other side of the end.
async fn copy(
    first: Bytes,
    mut input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    worker: &Worker,
    activity: &Activity,
) -> std::io::Result<()> {
    let stall = worker.config.timeouts.stall;
    let mut piece = first;
    loop {
        if !piece.is_empty() {
            // A side that does not read is ended sooner than one that does not write.
            let written = worker.timer.limit(stall, async {
                output.write_all(&piece).await?;
                output.flush().await
            });
            written.await.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))?;
        }
        let mut buffer = BytesMut::with_capacity(BUFFER);
        if input.read_buf(&mut buffer).await? == 0 {
            return output.shutdown().await;
        }
        activity.note(&worker.timer);
        piece = buffer.freeze();
    }
}
