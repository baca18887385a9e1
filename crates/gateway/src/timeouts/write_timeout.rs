//! `WriteTimeout`: a stream whose writes fail when the other end does not read for too long.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A stream on which a write that waits for too long fails.
#[derive(Debug)]
pub(crate) struct WriteTimeout<T> {
    stream: T,
    limit: Duration,
    /// Runs while a write waits.
    timeout: Pin<Box<Sleep>>,
    is_waiting: bool,
}

// === impl WriteTimeout ===

impl<T> WriteTimeout<T> {
    pub(crate) fn new(stream: T, limit: Duration) -> Self {
        Self { stream, limit, timeout: Box::pin(sleep(limit)), is_waiting: false }
    }

    /// The result of a write, which is an error if writes have waited for too long.
    fn watched<R>(&mut self, result: Poll<io::Result<R>>, context: &mut Context<'_>) -> Poll<io::Result<R>> {
        if result.is_ready() {
            self.is_waiting = false;
            return result;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            self.timeout.as_mut().reset(Instant::now() + self.limit);
        }
        match self.timeout.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for WriteTimeout<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watched(result, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.watched(result, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(context);
        self.watched(result, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watched(result, context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_write_that_nobody_takes_fails() {
        let (ours, theirs) = tokio::io::duplex(4);
        let mut stream = WriteTimeout::new(ours, Duration::from_secs(30));
        let started_at = Instant::now();
        let error = stream.write_all(b"too much for it").await.unwrap_err();
        assert_eq!((error.kind(), started_at.elapsed().as_secs()), (io::ErrorKind::TimedOut, 30));
        drop(theirs);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_no_trouble() {
        let (ours, mut theirs) = tokio::io::duplex(4);
        let mut stream = WriteTimeout::new(ours, Duration::from_secs(30));
        let reader = tokio::spawn(async move {
            let mut text = Vec::new();
            while text.len() < 15 {
                sleep(Duration::from_secs(20)).await;
                tokio::io::AsyncReadExt::read_buf(&mut theirs, &mut text).await.unwrap();
            }
            text
        });
        stream.write_all(b"too much for it").await.unwrap();
        assert_eq!(reader.await.unwrap(), b"too much for it");
    }
}
