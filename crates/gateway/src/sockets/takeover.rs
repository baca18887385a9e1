//! Hands the listening sockets of a gateway over to the process that takes its place, so that no connection is refused.
//!
//! The two talk over a Unix socket that only their user can connect to. The successor says [`HELLO`]. The predecessor sends the
//! names of its sockets, a line each, with their descriptors (`SCM_RIGHTS`), and [`END`]. When the successor accepts connections
//! on them, it says [`READY`]; the predecessor stops accepting and says [`GONE`]. If the successor leaves before that, the
//! predecessor goes on as before.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use tokio::task::JoinHandle;

use super::{InheritedSockets, ListenSocket, SocketFile, bind_unix};
use crate::config::SocketMode;
use crate::net::{Listener, Socket};

/// The gateway that this process takes the place of. If this is dropped, that gateway goes on as before.
#[derive(Debug)]
pub struct Predecessor {
    stream: UnixStream,
    path: PathBuf,
}

/// The socket on which a gateway offers its sockets to a successor.
#[derive(Debug)]
pub struct Offer {
    listener: Listener,
    path: PathBuf,
    sockets: Vec<ListenSocket>,
    /// The takeover that has begun.
    handing: Option<JoinHandle<io::Result<UnixStream>>>,
    /// Removed when the offer ends.
    _file: SocketFile,
}

/// A gateway cannot be taken over from, or be taken over.
#[derive(Debug, thiserror::Error)]
#[error("takeoverSocket: {}: {error}; {advice}", path.display())]
pub struct TakeoverError {
    path: PathBuf,
    error: io::Error,
    advice: &'static str,
}

const HELLO: &[u8] = b"evenkeel takeover 1\n";
const READY: &[u8] = b"ready\n";
const GONE: &[u8] = b"gone\n";
/// Ends the list of sockets.
const END: &str = "end\n";
/// The prefix of the name of a socket that a third process keeps.
const KEPT: &str = "kept ";
/// The system passes at most 253 descriptors at a time.
const DESCRIPTORS_MAX: usize = 100;
/// No gateway has more sockets: 64 listeners with a socket for each of 1,024 workers.
const SOCKETS_MAX: usize = 65_536;
/// How long either side waits for a message that the other sends at once.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it waits after a takeover that failed.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a successor may take to start: it may fetch keys, and read many objects.
const START_MAX: Duration = Duration::from_secs(300);

// === impl Predecessor ===

impl Predecessor {
    /// Asks the gateway that offers its sockets here. None if there is none.
    pub fn ask(path: &Path) -> Result<Option<(Self, InheritedSockets)>, TakeoverError> {
        let fault =
            |error| TakeoverError::new(path, error, "stop the gateway that runs, or start without `--takeover`");
        let stream = match UnixStream::connect(path) {
            Ok(stream) => stream,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                return Ok(None);
            }
            Err(error) => return Err(fault(error)),
        };
        let sockets = receive(&stream).map_err(fault)?;
        Ok(Some((Self { stream, path: path.to_owned() }, InheritedSockets::of(sockets))))
    }

    /// Tells it that this process accepts connections now, and waits until it does not any more. It finishes its requests and
    /// ends.
    pub fn release(mut self) -> Result<(), TakeoverError> {
        let released = self.stream.write_all(READY).and_then(|()| expect(&mut self.stream, GONE));
        released.map_err(|error| TakeoverError::new(&self.path, error, "see whether the previous gateway still runs"))
    }
}

// === impl Offer ===

impl Offer {
    /// Offers these sockets.
    pub(crate) fn new(path: &Path, sockets: Vec<ListenSocket>) -> Result<Self, TakeoverError> {
        let fault = |error: io::Error| {
            let advice = match error.kind() {
                io::ErrorKind::AddrInUse => "another gateway runs; take over from it with `--takeover`",
                io::ErrorKind::NotFound => "make its folder",
                _ => "name a file in a folder that the gateway may write to",
            };
            TakeoverError::new(path, error, advice)
        };
        let (socket, file) = bind_unix(path, SocketMode::default()).map_err(fault)?;
        let listener = socket.into_listener().map_err(fault)?;
        Ok(Self { listener, path: path.to_owned(), sockets, handing: None, _file: file })
    }

    /// Waits until a successor accepts connections. Returns the handle by which the successor is told that this process does not
    /// any more. Nothing is lost if the future is dropped.
    pub async fn taken(&mut self) -> Successor {
        loop {
            match self.try_taken().await {
                Ok(stream) => return Successor { stream },
                Err(error) => {
                    let socket = self.path.display();
                    tracing::warn!(%error, %socket, "a takeover failed; this gateway goes on");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn try_taken(&mut self) -> io::Result<UnixStream> {
        let handing = match &mut self.handing {
            Some(handing) => handing,
            None => {
                let Socket::Unix(stream) = self.listener.accept().await?.0 else {
                    return Err(io::ErrorKind::Unsupported.into());
                };
                let stream = stream.into_std()?;
                let sockets = self.sockets.iter().map(ListenSocket::try_clone).collect::<io::Result<Vec<_>>>()?;
                self.handing.insert(tokio::task::spawn_blocking(move || send_to_successor(stream, &sockets)))
            }
        };
        let handed = handing.await;
        self.handing = None;
        handed.map_err(io::Error::other)?
    }
}

/// The process that takes this one's place.
#[derive(Debug)]
pub struct Successor {
    stream: UnixStream,
}

// === impl Successor ===

impl Successor {
    /// Tells it that this process accepts no connections any more, and does not need its files.
    pub fn confirm(mut self) {
        // The new process has everything that it needs.
        let _ = self.stream.write_all(GONE);
    }
}

// === impl TakeoverError ===

impl TakeoverError {
    fn new(path: &Path, error: io::Error, advice: &'static str) -> Self {
        Self { path: path.to_owned(), error, advice }
    }
}

/// Sends the sockets, and waits until the successor accepts connections.
fn send_to_successor(mut stream: UnixStream, sockets: &[ListenSocket]) -> io::Result<UnixStream> {
    stream.set_nonblocking(false)?;
    set_patience(&stream, PATIENCE)?;
    ensure_same_user(&stream)?;
    expect(&mut stream, HELLO)?;
    for some in sockets.chunks(DESCRIPTORS_MAX) {
        send(&stream, some)?;
    }
    stream.write_all(END.as_bytes())?;
    set_patience(&stream, START_MAX)?;
    expect(&mut stream, READY)?;
    Ok(stream)
}

/// Receives the sockets.
fn receive(stream: &UnixStream) -> io::Result<Vec<ListenSocket>> {
    set_patience(stream, PATIENCE)?;
    ensure_same_user(stream)?;
    (&*stream).write_all(HELLO)?;
    let (mut text, mut descriptors) = (Vec::new(), Vec::new());
    while !text.ends_with(END.as_bytes()) {
        receive_some(stream, &mut text, &mut descriptors)?;
    }
    set_patience(stream, START_MAX)?;
    let text = String::from_utf8(text).map_err(io::Error::other)?;
    let names: Vec<&str> = text.lines().collect();
    let Some((_, names)) = names.split_last().filter(|(_, names)| names.len() == descriptors.len()) else {
        return Err(io::Error::other("the other process sent other sockets than it says"));
    };
    let open = |(descriptor, name): (OwnedFd, &&str)| {
        let (name, is_kept) = name.strip_prefix(KEPT).map_or((*name, false), |name| (name, true));
        let socket = ListenSocket::from_descriptor(descriptor)?;
        if socket.name() != name {
            return Err(io::Error::other("the other process sent other sockets than it says"));
        }
        Ok(if is_kept { socket.kept() } else { socket })
    };
    descriptors.into_iter().zip(names).map(open).collect()
}

/// Sends some sockets with their names.
fn send(stream: &UnixStream, sockets: &[ListenSocket]) -> io::Result<()> {
    let line = |socket: &ListenSocket| format!("{}{socket}\n", if socket.is_kept { KEPT } else { "" });
    let text: String = sockets.iter().map(line).collect();
    let descriptors: Vec<BorrowedFd<'_>> = sockets.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("too many descriptors at a time"));
    }
    let sent = rustix::net::sendmsg(stream, &[IoSlice::new(text.as_bytes())], &mut ancillary, SendFlags::empty())?;
    // The descriptors have left with the first byte.
    (&*stream).write_all(&text.as_bytes()[sent..])
}

fn receive_some(stream: &UnixStream, text: &mut Vec<u8>, descriptors: &mut Vec<OwnedFd>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0; 4096];
    let received =
        rustix::net::recvmsg(stream, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            descriptors.extend(passed);
        }
    }
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    text.extend_from_slice(&bytes[..received.bytes]);
    if descriptors.len() > SOCKETS_MAX || text.len() > SOCKETS_MAX * 128 {
        return Err(io::Error::other("the other process sends too much"));
    }
    Ok(())
}

fn set_patience(stream: &UnixStream, patience: Duration) -> io::Result<()> {
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))
}

/// Waits for these words, and takes no others.
fn expect(stream: &mut UnixStream, words: &[u8]) -> io::Result<()> {
    let mut said = vec![0; words.len()];
    stream.read_exact(&mut said)?;
    if said == words { Ok(()) } else { Err(io::Error::other("the other process does not speak this protocol")) }
}

/// Checks that the peer has the same user. The permissions of the file ensure that too, unless they were changed.
#[cfg(target_os = "linux")]
fn ensure_same_user(stream: &UnixStream) -> io::Result<()> {
    let other = rustix::net::sockopt::socket_peercred(stream)?.uid;
    if other == rustix::process::geteuid() || other.is_root() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "the other process runs as another user"))
}

#[cfg(not(target_os = "linux"))]
fn ensure_same_user(_stream: &UnixStream) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::bind_tcp;
    use super::*;

    fn sockets(count: usize) -> Vec<ListenSocket> {
        let mut all = bind_tcp("127.0.0.1:0".parse().unwrap(), count).unwrap();
        let last = all.pop().unwrap().kept();
        all.push(last);
        all
    }

    #[tokio::test]
    async fn a_successor_gets_every_socket_and_releases_its_predecessor() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("takeover.sock");
        assert!(Predecessor::ask(&path).unwrap().is_none());
        for count in [1, 3, DESCRIPTORS_MAX, DESCRIPTORS_MAX + 1] {
            let offered = sockets(count);
            let name = offered[0].name().to_owned();
            let mut offer = Offer::new(&path, offered).unwrap();
            assert!(
                Offer::new(&path, Vec::new()).unwrap_err().to_string().contains("take over from it with `--takeover`")
            );
            let asked = path.clone();
            let succeeding = tokio::task::spawn_blocking(move || {
                let (predecessor, mut sockets) = Predecessor::ask(&asked).unwrap().unwrap();
                assert_eq!(sockets.unused(), Some(&*name), "one of them is kept by somebody else");
                assert_eq!(sockets.take("127.0.0.1:1").len(), 0);
                let taken = sockets.take(&name);
                assert!(sockets.is_empty());
                predecessor.release().unwrap();
                taken.len()
            });
            let successor = offer.taken().await;
            drop(offer);
            assert!(!path.exists(), "the successor offers its own sockets there");
            successor.confirm();
            assert_eq!(succeeding.await.unwrap(), count);
        }
    }

    #[tokio::test]
    async fn a_successor_that_gives_up_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("takeover.sock");
        let mut offer = Offer::new(&path, sockets(2)).unwrap();
        let asked = path.clone();
        let giving_up = tokio::task::spawn_blocking(move || {
            drop(Predecessor::ask(&asked).unwrap().unwrap());
            let mut stranger = UnixStream::connect(&asked).unwrap();
            stranger.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
            assert_eq!(stranger.read(&mut [0]).unwrap_or(0), 0);
            Predecessor::ask(&asked).unwrap().unwrap().0.release()
        });
        offer.taken().await.confirm();
        giving_up.await.unwrap().unwrap();
    }
}
