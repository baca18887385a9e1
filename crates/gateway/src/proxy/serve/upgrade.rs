//! After an upgrade: copies bytes between client and upstream, in both directions.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};

use crate::http1::Wire;
use crate::net::EagerWrites;
use crate::proxy::worker::Worker;
use crate::timeouts::{Activity, Elapsed, IdleTimeout};

/// The buffer of one direction.
const BUFFER: usize = 16 * 1024;

/// Copies until both directions have ended, one has failed, or neither has moved for `timeouts.upgradeIdle`. A side that does not
/// read for `stall` ends it too.
pub(super) async fn run(client: Wire, upstream: Wire, worker: &Rc<Worker>, stall: Duration) {
    let stream = EagerWrites::new(client.stream, &worker.timer);
    between(client.input.freeze(), stream, upstream, worker, stall).await;
}

/// Copies bytes between an upstream and a client behind any kind of stream, from which these bytes have been read already.
pub(super) async fn between(
    client_first: Bytes,
    client: impl AsyncRead + AsyncWrite,
    upstream: Wire,
    worker: &Rc<Worker>,
    stall: Duration,
) {
    let upstream_first = upstream.input.freeze();
    let (client_in, client_out) = split(client);
    let (upstream_in, upstream_out) = split(EagerWrites::new(upstream.stream, &worker.timer));
    let activity = Rc::<Activity>::default();
    let mut idle = IdleTimeout::new(&worker.timer, &activity, worker.config.timeouts.upgrade_idle);
    let both = async {
        tokio::try_join!(
            copy(client_first, client_in, upstream_out, worker, &activity, stall),
            copy(upstream_first, upstream_in, client_out, worker, &activity, stall)
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
    stall: Duration,
) -> io::Result<()> {
    let mut piece = first;
    loop {
        // A side that does not read is ended sooner than one that does not write.
        while !piece.is_empty() {
            match worker.timer.limit(stall, output.write(&piece)).await.unwrap_or_else(timed_out)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => piece.advance(count),
            }
            activity.note(&worker.timer);
        }
        worker.timer.limit(stall, output.flush()).await.unwrap_or_else(timed_out)?;
        let mut buffer = BytesMut::with_capacity(BUFFER);
        if input.read_buf(&mut buffer).await? == 0 {
            return output.shutdown().await;
        }
        activity.note(&worker.timer);
        piece = buffer.freeze();
    }
}

fn timed_out<T>(_: Elapsed) -> io::Result<T> {
    Err(io::ErrorKind::TimedOut.into())
}
