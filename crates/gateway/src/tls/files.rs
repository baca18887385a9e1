//! Certificates and keys in files, loaded again when a file changes.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use arc_swap::ArcSwap;
use evenkeel_files::advice;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{Error, InconsistentKeys, RootCertStore};

/// Something is wrong with a certificate, a key or an authority.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file could not be read.
    #[error("{file}: {error}; {}", advice(error))]
    Unreadable {
        /// The file.
        file: TlsFile,
        /// The error of the system.
        error: io::Error,
    },
    /// A file is damaged.
    #[error("{file}: not a PEM file: {error}")]
    Damaged {
        /// The file.
        file: TlsFile,
        /// The fault in the file.
        error: String,
    },
    /// The file holds something else than it should.
    #[error("{file}: this file contains no {wanted} in PEM")]
    Empty {
        /// The file.
        file: TlsFile,
        /// The missing content, in words.
        wanted: &'static str,
    },
    /// The file of a certificate holds a key.
    #[error("{0}: this is a private key, and a certificate is wanted; are the two files swapped?")]
    KeyForCertificate(TlsFile),
    /// The file of a key holds a certificate.
    #[error("{0}: this is a certificate, and its private key is wanted; are the two files swapped?")]
    CertificateForKey(TlsFile),
    /// A key is protected by a password.
    #[error(
        "{file}: the key is encrypted, which is not supported; decrypt it with `openssl pkey -in {} -out new.key`, and keep \
         the new file private",
        file.path.display()
    )]
    EncryptedKey {
        /// The file.
        file: TlsFile,
    },
    /// A key is that of another certificate.
    #[error("{key}: the key does not belong to the certificate in {}; name the key that belongs to it", certificate.display())]
    KeyMismatch {
        /// The file of the key.
        key: TlsFile,
        /// The file of the certificate.
        certificate: PathBuf,
    },
    /// Something is not supported.
    #[error("{file}: {error}")]
    Unusable {
        /// The file.
        file: TlsFile,
        /// The error of the TLS library.
        error: String,
    },
    /// The versions of TLS that are wanted cannot be had.
    #[error("TLS cannot be set up: {0}")]
    Unsupported(String),
    /// A certificate for an upstream without a key, or the other way round.
    #[error("an upstream's `tls` needs both `certificate` and `key`, or neither")]
    Half,
    /// The name that an upstream's certificate must have cannot be one.
    #[error("{0:?} is not a valid server name; set `tls.serverName` of the upstream")]
    Name(String),
    /// The machine has no authorities.
    #[error("this machine has no certificate authorities; name a file with them as `tls.ca` of the upstream")]
    NoRoots,
}

/// A file, and the setting that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsFile {
    /// The setting, as `listen[0].tls.key`.
    pub setting: String,
    /// The file.
    pub path: PathBuf,
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

pub(super) fn certificates(file: &TlsFile) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = file.read()?;
    let all = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|error| TlsError::Damaged { file: file.clone(), error: error.to_string() })?;
    match all.is_empty() {
        false => Ok(all),
        true if holds(&text, b"PRIVATE KEY-----") => Err(TlsError::KeyForCertificate(file.clone())),
        true => Err(TlsError::Empty { file: file.clone(), wanted: "certificate" }),
    }
}

pub(super) fn key(file: &TlsFile) -> Result<PrivateKeyDer<'static>, TlsError> {
    let text = file.read()?;
    // The second is how OpenSSL marked them before it wrote PKCS #8.
    if holds(&text, b"ENCRYPTED PRIVATE KEY-----") || holds(&text, b"Proc-Type: 4,ENCRYPTED") {
        return Err(TlsError::EncryptedKey { file: file.clone() });
    }
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound if holds(&text, b"BEGIN CERTIFICATE-----") => {
            TlsError::CertificateForKey(file.clone())
        }
        pem::Error::NoItemsFound => TlsError::Empty { file: file.clone(), wanted: "private key" },
        other => TlsError::Damaged { file: file.clone(), error: other.to_string() },
    })
}

pub(super) fn authorities(file: &TlsFile) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|error| file.unusable(&error))?;
    }
    Ok(roots)
}

/// Why a certificate and its key cannot be used.
pub(super) fn pair_error(error: &Error, certificate: &TlsFile, key: &TlsFile) -> TlsError {
    match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            TlsError::KeyMismatch { key: key.clone(), certificate: certificate.path.clone() }
        }
        Error::InvalidCertificate(_) => certificate.unusable(error),
        _ => key.unusable(error),
    }
}

/// Whether a text has this in it.
fn holds(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

// === impl TlsFile ===

impl TlsFile {
    /// The file that this setting of a group names. Without a group, errors show the setting alone.
    pub(super) fn new(group: &str, setting: &str, path: impl Into<PathBuf>) -> Self {
        let dot = if group.is_empty() { "" } else { "." };
        Self { setting: format!("{group}{dot}{setting}"), path: path.into() }
    }

    pub(super) fn unusable(&self, error: &dyn fmt::Display) -> TlsError {
        TlsError::Unusable { file: self.clone(), error: error.to_string() }
    }

    fn read(&self) -> Result<Vec<u8>, TlsError> {
        evenkeel_files::read(&self.path).map_err(|error| TlsError::Unreadable { file: self.clone(), error })
    }
}

impl fmt::Display for TlsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.setting, self.path.display())
    }
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

/// The contents of the files. They are small, and times of change cannot be trusted when files are exchanged by changing a link.
fn contents(files: &[PathBuf]) -> Vec<Option<Vec<u8>>> {
    files.iter().map(|file| evenkeel_files::read(file).ok()).collect()
}

impl<T> fmt::Debug for Fresh<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fresh").field("files", &self.files).finish_non_exhaustive()
    }
}
