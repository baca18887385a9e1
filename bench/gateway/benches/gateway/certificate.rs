//! The certificate of a proxy that serves TLS: made for each run, and trusted by the clients of the benchmark.

use std::fs;
use std::io::{self, Error};
use std::path::{Path, PathBuf};

/// The name that clients expect.
pub(crate) const NAME: &str = "localhost";

/// The files of a certificate.
#[derive(Debug)]
pub(crate) struct Certificate {
    pub(crate) chain: PathBuf,
    pub(crate) key: PathBuf,
    /// Both in one file, as `HAProxy` wants them.
    pub(crate) both: PathBuf,
}

// === impl Certificate ===

impl Certificate {
    /// Writes a new one into this folder.
    pub(crate) fn write(folder: &Path) -> io::Result<Self> {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).map_err(Error::other)?;
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let files =
            Self { chain: folder.join("proxy.crt"), key: folder.join("proxy.key"), both: folder.join("proxy.pem") };
        fs::write(&files.chain, &certificate)?;
        fs::write(&files.key, &key)?;
        fs::write(&files.both, format!("{certificate}{key}"))?;
        Ok(files)
    }
}
