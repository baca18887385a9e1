//! The folder of an API server: its store, its certificate, the first administrator's token, and a kubeconfig with which
//! `kubectl` works at once.

mod access;
mod authority;
mod kubeconfig;
mod objects_copy;
mod secret_file;
mod validity;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use authority::Keep;
pub use objects_copy::ObjectsCopy;
use secret_file::{Access, make_folder, read_if_there, write};

/// The folder, with everything in it that a server needs.
///
/// Secrets are in files that only their owner can read. What is there is used; what is missing is made.
#[derive(Debug, Clone)]
pub struct DataDir {
    path: PathBuf,
}

/// The folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataDirError {
    /// The file system refuses.
    #[error("cannot {action} {path}: {source}; {}", advice(source), path = .path.display())]
    File {
        /// The action that failed.
        action: &'static str,
        /// The file that the action was for.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Others could exchange the content of the folder.
    #[error("{path} is not safe: {problem}", path = .path.display())]
    Unsafe {
        /// The folder.
        path: PathBuf,
        /// The users who have access, the kind of access, and the remedy.
        problem: String,
    },
    /// A file is invalid.
    #[error("{path} is invalid: {problem}; remove it, and the next start creates a new one", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault in the content.
        problem: String,
    },
    /// The certificate or the key of the CA is missing or invalid.
    #[error(
        "{path} {problem}; restore it from a backup, or remove both ca.crt and ca.key: the next start creates a new CA, and \
         all kubeconfigs and client certificates must be replaced",
        path = .path.display()
    )]
    Authority {
        /// The file.
        path: PathBuf,
        /// The fault.
        problem: String,
    },
}

/// The server's certificate and its private key, in PEM, which could not be written because of the disk.
///
/// Not `#[non_exhaustive]`: it is a pair.
#[derive(Clone)]
pub struct UnwrittenCertificate {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

/// The remedy when the file system refuses.
fn advice(error: &io::Error) -> &'static str {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match error.kind() {
        StorageFull => "the disk is full: free some space",
        QuotaExceeded => "the quota is used up: free some space, or raise it",
        FileTooLarge => "the file is larger than the system allows: raise the limit",
        ReadOnlyFilesystem => "the file system is read-only: make it writable, or use another folder",
        _ => "check that the folder exists and that it is yours",
    }
}

const ADMIN: &str = "evenkeel-admin";
const ADMIN_GROUP: &str = "system:masters";

// === impl DataDirError ===

impl DataDirError {
    /// Whether the disk is full or takes no writes, which has nothing to do with what is in the folder.
    pub fn is_of_the_disk(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let is_of_the_disk =
            |error: &io::Error| matches!(error.kind(), FileTooLarge | QuotaExceeded | ReadOnlyFilesystem | StorageFull);
        matches!(self, Self::File { source, .. } if is_of_the_disk(source))
    }
}

// === impl UnwrittenCertificate ===

impl fmt::Debug for UnwrittenCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnwrittenCertificate").finish_non_exhaustive()
    }
}

// === impl DataDir ===

impl DataDir {
    /// The folder, which is made for its owner only if it is not there. Secrets in it that others may read are made
    /// private; nothing else in it changes. A folder that others can write to is refused.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, DataDirError> {
        let this = Self { path: path.into() };
        make_folder(&this.path)?;
        access::check_folder(&this.path)?;
        for secret in [this.authority_key(), this.admin_tokens(), this.key()] {
            access::make_private(&secret);
        }
        Ok(this)
    }

    /// Makes everything that is missing, and a certificate for `address`, where the server listens, and for the `names` and
    /// addresses by which clients reach it otherwise. A valid certificate is kept. Only call it while you hold the store
    /// open: otherwise another server may be using the folder.
    ///
    /// If there is no room on the disk for the certificate, it is returned, to be used from memory.
    pub fn prepare(&self, address: IpAddr, names: &[String]) -> Result<Option<UnwrittenCertificate>, DataDirError> {
        self.admin_token()?;
        authority::prepare(self, address, names, Keep::WhileValid)
    }

    /// Renews the certificates from time to time, long before they end, for as long as the future lives. The server has to
    /// read the files again when they change.
    pub async fn keep_certificates(&self, address: IpAddr, names: &[String]) {
        loop {
            tokio::time::sleep(validity::RENEWAL_PERIOD).await;
            let (data, names) = (self.clone(), names.to_vec());
            let made =
                tokio::task::spawn_blocking(move || authority::prepare(&data, address, &names, Keep::Never)).await;
            match made {
                Ok(Ok(None)) => tracing::info!("the server's certificate was renewed"),
                // The failure has been logged, and the present certificate is valid until the next attempt.
                Ok(Ok(Some(_))) => {}
                Ok(Err(error)) => tracing::error!(%error, "cannot renew the server's certificate"),
                Err(error) => tracing::error!(%error, "the server's certificate was not renewed"),
            }
        }
    }

    /// Writes the kubeconfig for a server that listens on that address, and says where it is. On a disk that takes no writes,
    /// the one that is there stays.
    pub fn write_kubeconfig(&self, address: SocketAddr) -> Result<PathBuf, DataDirError> {
        let path = self.kubeconfig();
        let authority = read_if_there(&self.authority())?.unwrap_or_default();
        let text = kubeconfig::text(address, &authority, ADMIN, &self.admin_token()?);
        match write(&path, text.as_bytes(), Access::OwnerOnly) {
            Err(error) if error.is_of_the_disk() => {
                if read_if_there(&path)?.as_ref() != Some(&text) {
                    tracing::warn!(%error, "the kubeconfig is not up to date");
                }
            }
            written => written?,
        }
        Ok(path)
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the embedded store is.
    pub fn store(&self) -> PathBuf {
        self.path.join("store.redb")
    }

    /// The administrator's token, as a token file of Kubernetes.
    pub fn admin_tokens(&self) -> PathBuf {
        self.path.join("admin-token.csv")
    }

    /// The server's certificate.
    pub fn certificate(&self) -> PathBuf {
        self.path.join("serving.crt")
    }

    /// The private key of the server's certificate.
    pub fn key(&self) -> PathBuf {
        self.path.join("serving.key")
    }

    /// The authority that has signed the server's certificate, and whose client certificates are trusted.
    pub fn authority(&self) -> PathBuf {
        self.path.join("ca.crt")
    }

    /// The private key of the authority.
    pub fn authority_key(&self) -> PathBuf {
        self.path.join("ca.key")
    }

    /// The kubeconfig for `kubectl --kubeconfig`.
    pub fn kubeconfig(&self) -> PathBuf {
        self.path.join("kubeconfig")
    }

    /// The copy of the objects for a gateway that starts without its store.
    pub fn objects_copy(&self) -> PathBuf {
        self.path.join("objects.copy")
    }

    /// The administrator's token, made if there is none.
    fn admin_token(&self) -> Result<String, DataDirError> {
        let path = self.admin_tokens();
        if let Some(text) = read_if_there(&path)? {
            let token = text.split(',').next().unwrap_or_default().trim().trim_matches('"');
            return if token.is_empty() {
                Err(DataDirError::Damaged { path, problem: "it does not begin with a token".to_owned() })
            } else {
                Ok(token.to_owned())
            };
        }
        // Letters and digits only: a token that begins with a hyphen would be taken for a flag.
        let token = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        let line = format!("{token},{ADMIN},{ADMIN},\"{ADMIN_GROUP}\"\n");
        write(&path, line.as_bytes(), Access::OwnerOnly)?;
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn address() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 8443))
    }

    #[test]
    fn secrets_are_for_their_owner_only_and_stay_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path().join("data")).unwrap();
        data.prepare(address().ip(), &[]).unwrap();
        data.write_kubeconfig(address()).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(data.path()), 0o700);
        for secret in [data.admin_tokens(), data.key(), data.authority_key(), data.kubeconfig()] {
            assert_eq!(mode(&secret), 0o600, "{}", secret.display());
        }
        let kept = |data: &DataDir| {
            [data.admin_tokens(), data.authority(), data.authority_key(), data.certificate(), data.key()]
                .map(|path| std::fs::read(path).unwrap())
        };
        let before = kept(&data);
        let again = DataDir::open(data.path()).unwrap();
        again.prepare(address().ip(), &[]).unwrap();
        assert_eq!(kept(&again), before);
        let kubeconfig = std::fs::read_to_string(data.kubeconfig()).unwrap();
        assert!(kubeconfig.contains("server: https://127.0.0.1:8443"), "{kubeconfig}");
    }

    /// The first and the last day of a certificate, which are in it as `YYMMDDHHMMSSZ`.
    fn days(path: &Path) -> [String; 2] {
        let pem = std::fs::read_to_string(path).unwrap();
        let text: String =
            pem.lines().skip_while(|line| !line.starts_with('-')).filter(|line| !line.starts_with('-')).collect();
        let der = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text).unwrap();
        let times = der.windows(15).filter(|window| window.starts_with(&[0x17, 13]) && window.ends_with(b"Z"));
        let days: Vec<_> = times.map(|time| String::from_utf8(time[2..8].to_vec()).unwrap()).collect();
        days.try_into().unwrap()
    }

    /// The days from the first to the last, roughly.
    fn lifetime(path: &Path) -> i32 {
        let [first, last] = days(path).map(|day| {
            let number = |range: std::ops::Range<usize>| day[range].parse::<i32>().unwrap();
            number(0..2) * 365 + (number(2..4) * 30) + number(4..6)
        });
        last - first
    }

    #[test]
    fn certificates_are_valid_for_a_year_and_the_authority_for_ten() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        data.prepare(address().ip(), &[]).unwrap();
        let (server, authority) = (lifetime(&data.certificate()), lifetime(&data.authority()));
        assert!((360..375).contains(&server), "{server}");
        assert!((3640..3665).contains(&authority), "{authority}");
    }

    #[test]
    fn an_authority_that_ends_soon_is_renewed_with_the_same_key() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        data.prepare(address().ip(), &[]).unwrap();
        let key = std::fs::read_to_string(data.authority_key()).unwrap();
        // As it is made without a period: until the year 4096.
        let forever = rcgen::CertificateParams::default();
        let forever = forever.self_signed(&rcgen::KeyPair::from_pem(&key).unwrap()).unwrap().pem();
        std::fs::write(data.authority(), &forever).unwrap();
        data.prepare(address().ip(), &[]).unwrap();
        assert_ne!(std::fs::read_to_string(data.authority()).unwrap(), forever);
        assert!(lifetime(&data.authority()) < 3665);
        assert_eq!(std::fs::read_to_string(data.authority_key()).unwrap(), key);
        std::fs::write(data.authority(), "nonsense").unwrap();
        let error = data.prepare(address().ip(), &[]).unwrap_err().to_string();
        assert!(error.contains("ca.crt is invalid"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_runs_for_long_gets_new_certificates() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        data.prepare(address().ip(), &[]).unwrap();
        let read = |path: PathBuf| std::fs::read(path).unwrap();
        let (first, authority) = (read(data.certificate()), read(data.authority()));
        let names = ["gateway.example".to_owned()];
        let month = tokio::time::sleep(validity::RENEWAL_PERIOD + std::time::Duration::from_secs(60));
        tokio::select! {
            () = data.keep_certificates(address().ip(), &names) => {}
            () = month => {}
        }
        assert_ne!(read(data.certificate()), first);
        assert_eq!(read(data.authority()), authority);
    }

    #[test]
    fn a_certificate_is_made_again_when_it_does_not_fit() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
        let names = ["gateway.example".to_owned()];
        data.prepare(address().ip(), &names).unwrap();
        let damages: [(&str, &dyn Fn()); 5] = [
            ("other names", &|| {}),
            ("a damaged certificate", &|| {
                let text = read(data.certificate());
                std::fs::write(data.certificate(), text.replacen("MI", "MJ", 1)).unwrap();
            }),
            ("no key", &|| std::fs::remove_file(data.key()).unwrap()),
            ("the key of another certificate", &|| {
                std::fs::write(data.key(), rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap();
            }),
            ("another authority", &|| {
                for path in [data.authority(), data.authority_key()] {
                    std::fs::remove_file(path).unwrap();
                }
            }),
        ];
        for (name, damage) in damages {
            damage();
            let before = read(data.certificate());
            let unwritten = data.prepare(address().ip(), &[]).unwrap();
            assert!(unwritten.is_none());
            let after = read(data.certificate());
            assert_ne!(after, before, "{name}");
            data.prepare(address().ip(), &[]).unwrap();
            assert_eq!(read(data.certificate()), after, "{name}: it is kept");
        }
    }

    #[test]
    fn a_full_disk_is_called_so() {
        let full = DataDirError::File { action: "write", path: "a".into(), source: io::ErrorKind::StorageFull.into() };
        assert!(full.is_of_the_disk());
        assert!(full.to_string().ends_with("; the disk is full: free some space"), "{full}");
        let denied =
            DataDirError::File { action: "write", path: "a".into(), source: io::ErrorKind::PermissionDenied.into() };
        assert!(denied.to_string().ends_with("; check that the folder exists and that it is yours"), "{denied}");
    }

    #[test]
    fn a_folder_that_others_can_change_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let chmod = |mode| std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        for mode in [0o700, 0o755, 0o770, 0o2775] {
            chmod(mode);
            DataDir::open(folder.path()).unwrap();
        }
        for mode in [0o777, 0o1777, 0o702] {
            chmod(mode);
            let error = DataDir::open(folder.path()).unwrap_err().to_string();
            assert!(error.contains("it is world-writable; change that with `chmod o-w`"), "{error}");
        }
        chmod(0o700);
        // Only root can give a folder to somebody else.
        if std::os::unix::fs::chown(folder.path(), Some(12_345), None).is_ok() {
            let error = DataDir::open(folder.path()).unwrap_err().to_string();
            assert!(error.contains("it belongs to user 12345"), "{error}");
        }
    }

    #[test]
    fn secrets_that_others_may_read_are_made_private() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        data.prepare(address().ip(), &[]).unwrap();
        for secret in [data.authority_key(), data.admin_tokens()] {
            std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o644)).unwrap();
            DataDir::open(folder.path()).unwrap();
            assert_eq!(std::fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn damaged_files_are_named_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir { path: folder.path().to_owned() };
        std::fs::write(data.authority_key(), "nonsense").unwrap();
        std::fs::write(data.authority(), "nonsense").unwrap();
        let error = DataDir::open(folder.path()).unwrap().prepare(address().ip(), &[]).unwrap_err().to_string();
        assert!(error.contains("ca.key is invalid") && error.contains("remove both"), "{error}");
        assert_eq!(std::fs::read_to_string(data.authority_key()).unwrap(), "nonsense");
    }

    #[test]
    fn an_authority_without_its_key_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        data.prepare(address().ip(), &[]).unwrap();
        let key = std::fs::read(data.authority_key()).unwrap();
        let certificate = std::fs::read(data.authority()).unwrap();
        std::fs::remove_file(data.authority_key()).unwrap();
        let error = data.prepare(address().ip(), &[]).unwrap_err().to_string();
        assert!(error.contains("ca.key is missing") && error.contains("restore it from a backup"), "{error}");
        assert_eq!(std::fs::read(data.authority()).unwrap(), certificate);
        // The key is enough: clients that trusted the certificate trust what the key signs.
        std::fs::write(data.authority_key(), &key).unwrap();
        std::fs::remove_file(data.authority()).unwrap();
        data.prepare(address().ip(), &[]).unwrap();
        assert_eq!(std::fs::read(data.authority_key()).unwrap(), key);
        assert!(data.authority().exists());
    }
}
