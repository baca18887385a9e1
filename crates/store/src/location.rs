//! Where a store is, as it is written on a command line.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use crate::{EmbeddedStore, Error, EtcdConfig, EtcdStore, HistoryLimits, Store};

/// Where a store is: a file, or `etcd://host:port,host:port/prefix`.
///
/// ```
/// use evenkeel_store::Location;
///
/// assert!(matches!("objects.evenkeel".parse()?, Location::File(_)));
/// assert!(matches!("etcd://127.0.0.1:2379".parse()?, Location::Etcd(_)));
/// # Ok::<(), evenkeel_store::Error>(())
/// ```
///
/// Not `#[non_exhaustive]`: code that opens a store has to know every kind.
#[derive(Debug, Clone)]
pub enum Location {
    /// A file of this machine.
    File(PathBuf),
    /// A cluster of etcd.
    Etcd(Box<EtcdConfig>),
}

// === impl Location ===

impl Location {
    /// Opens the store, with as much history as given.
    ///
    /// Reading a file blocks; it is done on a thread for that.
    pub async fn open(self, history: HistoryLimits) -> Result<Arc<dyn Store>, Error> {
        match self {
            Self::File(path) => {
                let opened = tokio::task::spawn_blocking(move || EmbeddedStore::open(path, history)).await;
                let store = opened.map_err(|error| Error::Unavailable(error.to_string()))??;
                Ok(Arc::new(store))
            }
            Self::Etcd(config) => Ok(Arc::new(EtcdStore::open(&EtcdConfig { history, ..*config }).await?)),
        }
    }
}

impl FromStr for Location {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(Error::Location("the store needs a location: a file, or etcd://host:port".to_owned()));
        }
        if text.starts_with("etcd:") {
            return Ok(Self::Etcd(Box::new(text.parse()?)));
        }
        match text.split_once("://") {
            Some((scheme, _)) => Err(Error::Location(format!(
                "{scheme:?} is not a kind of store: use a file, or etcd://host:port,host:port/prefix"
            ))),
            None => Ok(Self::File(text.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_makes_no_sense_is_refused_in_words() {
        let problem = |text: &str| text.parse::<Location>().unwrap_err().to_string();
        assert_eq!(problem(""), "the store needs a location: a file, or etcd://host:port");
        let usage = "use a file, or etcd://host:port,host:port/prefix";
        assert_eq!(problem("redis://a:1"), format!(r#""redis" is not a kind of store: {usage}"#));
        assert!(problem("etcd:a").contains("does not begin with etcd://"));
    }

    #[tokio::test]
    async fn a_file_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::File(folder.path().join("store"));
        let store = location.open(HistoryLimits::default()).await.unwrap();
        assert_eq!(store.revision().await.unwrap(), 1);
    }
}
