//! Certificates and keys in files, loaded again when a file changes.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Something is wrong with a certificate, a key or an authority.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file could not be read.
    #[error("{path}: {error}; name a file in PEM that the gateway may read")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        error: String,
    },
    /// What the file holds is not what is wanted.
    #[error("{path}: there is no {wanted} in PEM in this file")]
    Empty {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        wanted: &'static str,
    },
    /// The parts do not fit together, or are not supported.
    #[error("{path}: {error}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What TLS says of it.
        error: String,
    },
    /// A certificate for an upstream without a key, or the other way round.
    #[error("an upstream's `tls` needs both `certificate` and `key`, or neither")]
    Half,
    /// The name that an upstream's certificate must have cannot be one.
    #[error("{0:?} is not the name of a server; set `tls.serverName` of the upstream")]
    Name(String),
    /// The machine has no authorities.
    #[error("this machine has no certificate authorities; name a file with them as `tls.ca` of the upstream")]
    NoRoots,
}

/// Something that is made of files.
pub(crate) struct Fresh<T> {
    current: ArcSwap<T>,
    files: Vec<PathBuf>,
    seen: Mutex<Vec<Option<Vec<u8>>>>,
    make: Box<dyn Fn() -> Result<T, TlsError> + Send + Sync>,
}

/// Something that can be made again.
pub(crate) trait Refresh: Send + Sync {
    /// Looks at the files, and takes the new ones if they have changed and are usable.
    fn refresh(&self);
}

/// How often files are looked at.
const PERIOD: Duration = Duration::from_secs(1);

/// Looks after all of these until it is dropped.
pub(crate) async fn keep_fresh(all: Vec<Arc<dyn Refresh>>) {
    if all.is_empty() {
        return;
    }
    let all = Arc::new(all);
    let mut interval = tokio::time::interval(PERIOD);
    loop {
        interval.tick().await;
        let all = Arc::clone(&all);
        // Nothing is lost if that fails: the next time is in a second.
        let _ = tokio::task::spawn_blocking(move || all.iter().for_each(|fresh| fresh.refresh())).await;
    }
}

pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(path, &error))?;
    let all = all.collect::<Result<Vec<_>, _>>().map_err(|error| unreadable(path, &error))?;
    if all.is_empty() { Err(TlsError::Empty { path: path.into(), wanted: "certificate" }) } else { Ok(all) }
}

pub(super) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| match error {
        pem::Error::NoItemsFound => TlsError::Empty { path: path.into(), wanted: "private key" },
        other => unreadable(path, &other),
    })
}

pub(super) fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| TlsError::Unusable { path: path.into(), error: error.to_string() })?;
    }
    Ok(roots)
}

fn unreadable(path: &Path, error: &pem::Error) -> TlsError {
    let error = match error {
        pem::Error::Io(error) => error.to_string(),
        other => other.to_string(),
    };
    TlsError::Unreadable { path: path.into(), error }
}

// === impl Fresh ===

impl<T> Fresh<T> {
    /// Makes it now, and again whenever one of the files changes.
    pub(super) fn new(
        files: Vec<PathBuf>,
        make: impl Fn() -> Result<T, TlsError> + Send + Sync + 'static,
    ) -> Result<Arc<Self>, TlsError> {
        let seen = Mutex::new(contents(&files));
        Ok(Arc::new(Self { current: ArcSwap::from_pointee(make()?), files, seen, make: Box::new(make) }))
    }

    pub(super) fn get(&self) -> arc_swap::Guard<Arc<T>> {
        self.current.load()
    }
}

impl<T: Send + Sync> Refresh for Fresh<T> {
    fn refresh(&self) {
        let now = contents(&self.files);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == now {
            return;
        }
        *seen = now;
        match (self.make)() {
            Ok(made) => {
                self.current.store(Arc::new(made));
                tracing::info!(files = ?self.files, "the certificates changed and are in effect");
            }
            Err(error) => tracing::error!(%error, "the new certificates cannot be used; the old ones stay"),
        }
    }
}

/// What is in the files. They are small, and their times of change are not to be trusted when they are exchanged by
/// changing a link.
fn contents(files: &[PathBuf]) -> Vec<Option<Vec<u8>>> {
    files.iter().map(|file| std::fs::read(file).ok()).collect()
}

impl<T> fmt::Debug for Fresh<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fresh").field("files", &self.files).finish_non_exhaustive()
    }
}
