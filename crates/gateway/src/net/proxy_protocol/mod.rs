//! The PROXY protocol: a header in front of a connection, in which a TCP balancer says who has connected to it.
//!
//! The gateway never guesses whether there is a header: the sources that the settings name have to send one, and bytes from other
//! sources are taken for a request.

mod header;

use std::io;
use std::net::SocketAddr;

use tokio::io::AsyncReadExt;

use super::Socket;

pub(crate) use header::{Header, InvalidHeader};

/// Why there is no header.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoHeader {
    /// The connection was closed before the first byte, as by balancers that only check whether a port is open.
    #[error("the connection was closed before its first byte")]
    Silent,
    #[error(transparent)]
    Invalid(#[from] InvalidHeader),
    #[error("the connection failed within its PROXY protocol header: {0}")]
    Connection(#[from] io::Error),
}

/// Reads the header of a connection, and nothing behind it. Returns the client that the header names, if it names one.
pub(crate) async fn read_header(socket: &mut Socket) -> Result<Option<SocketAddr>, NoHeader> {
    let mut bytes = [0; Header::BYTES_MAX];
    let mut taken = 0;
    loop {
        let seen = match socket.peek(&mut bytes[taken..]).await? {
            0 if taken == 0 => return Err(NoHeader::Silent),
            0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            seen => taken + seen,
        };
        match Header::read(&bytes[..seen])? {
            Some(header) => {
                skip(socket, header.length - taken).await?;
                return Ok(header.client);
            }
            // All of it belongs to the header.
            None => {
                socket.read_exact(&mut bytes[taken..seen]).await?;
                taken = seen;
            }
        }
    }
}

/// Reads so many bytes and drops them.
async fn skip(socket: &mut Socket, mut left: usize) -> io::Result<()> {
    let mut ignored = [0; 256];
    while left > 0 {
        let next = left.min(ignored.len());
        left -= socket.read_exact(&mut ignored[..next]).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream, UnixStream};

    use super::*;

    /// A TCP connection and one of Unix sockets: both ends of each.
    async fn pairs() -> Vec<(Socket, Socket)> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let served = listener.accept().await.unwrap().0;
        let (one, other) = UnixStream::pair().unwrap();
        vec![(Socket::Tcp(client), Socket::Tcp(served)), (Socket::Unix(one), Socket::Unix(other))]
    }

    #[tokio::test]
    async fn nothing_behind_the_header_is_read() {
        let mut long = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xea\x6c".to_vec();
        long.extend([192, 0, 2, 7, 192, 0, 2, 1, 0, 80, 0, 81]);
        long.resize(16 + 0xea6c, 0);
        for (header, client) in
            [(b"PROXY TCP4 192.0.2.7 192.0.2.1 80 81\r\n".to_vec(), "192.0.2.7:80"), (long, "192.0.2.7:80")]
        {
            for (mut sender, mut receiver) in pairs().await {
                let sent = [&header[..], b"GET / HTTP/1.1"].concat();
                let sending = async {
                    // In pieces that end anywhere.
                    let (first, rest) = sent.split_at(9);
                    sender.write_all(first).await.unwrap();
                    tokio::task::yield_now().await;
                    sender.write_all(rest).await.unwrap();
                };
                let ((), found) = tokio::join!(sending, read_header(&mut receiver));
                assert_eq!(found.unwrap(), Some(client.parse().unwrap()));
                let mut behind = [0; 14];
                receiver.read_exact(&mut behind).await.unwrap();
                assert_eq!(&behind, b"GET / HTTP/1.1");
            }
        }
    }

    #[tokio::test]
    async fn a_header_that_ends_early_is_told_from_a_connection_that_says_nothing() {
        for (sent, is_silent) in [(&b""[..], true), (b"PROXY TCP4 192.", false)] {
            for (mut sender, mut receiver) in pairs().await {
                sender.write_all(sent).await.unwrap();
                drop(sender);
                let error = read_header(&mut receiver).await.unwrap_err();
                assert_eq!(matches!(error, NoHeader::Silent), is_silent, "{error}");
            }
        }
    }
}
