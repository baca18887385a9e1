//! `Digests`: the digests of all layers of a flow control, so that dumps show requests as their layer saw them.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use evenkeel_engine::RequestInfo;
use http::request::Parts;
use http::{Method, Uri};

/// The digests of all layers that there are. Requests carry a number only.
#[derive(Default)]
pub(crate) struct Digests(Mutex<Vec<Weak<SharedDigest>>>);

/// The number of a digest; zero is none. When a layer is gone its number goes to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DigestId(u16);

/// A digest, whatever its extra is.
pub(crate) type SharedDigest = dyn DigestInfo + Send + Sync;

/// A digest, as far as dumps need it.
pub(crate) trait DigestInfo {
    fn info<'a>(&'a self, parts: &'a Parts) -> Option<RequestInfo<'a>>;
}

// === impl Digests ===

impl Digests {
    /// Remembers a digest for as long as there is a layer with it. Beyond 65,535 layers at a time it is not remembered.
    pub(crate) fn add(&self, digest: Weak<SharedDigest>) -> DigestId {
        let mut digests = self.lock();
        let free = digests.iter().position(|digest| digest.strong_count() == 0).unwrap_or(digests.len());
        let Ok(id) = u16::try_from(free + 1) else { return DigestId::default() };
        match digests.get_mut(free) {
            Some(place) => *place = digest,
            None => digests.push(digest),
        }
        DigestId(id)
    }

    /// The digest of that number, if there is one.
    pub(crate) fn get(&self, id: DigestId) -> Option<Arc<SharedDigest>> {
        self.lock().get(usize::from(id.0).checked_sub(1)?)?.upgrade()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<SharedDigest>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Digests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Digests").field(&self.lock().len()).finish()
    }
}

/// The head of a request of which only the method and the URI are left.
pub(crate) fn head(method: Method, uri: Uri) -> Parts {
    let mut request = http::Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    request.into_parts().0
}

#[cfg(test)]
mod tests {
    use evenkeel_engine::digest::Kubernetes;

    use super::*;

    #[test]
    fn a_number_is_given_again_when_its_layer_is_gone() {
        let digests = Digests::default();
        let add = |digest: &Arc<SharedDigest>| digests.add(Arc::downgrade(digest));
        let layers: Vec<Arc<SharedDigest>> = (0..3).map(|_| Arc::new(Kubernetes::default()) as _).collect();
        let ids: Vec<_> = layers.iter().map(add).collect();
        assert_eq!(ids, [DigestId(1), DigestId(2), DigestId(3)]);
        let mut layers = layers.into_iter();
        drop(layers.next());
        assert!(digests.get(ids[0]).is_none() && digests.get(ids[1]).is_some());
        assert!(digests.get(DigestId::default()).is_none());
        let new: Arc<SharedDigest> = Arc::new(Kubernetes::default());
        assert_eq!(add(&new), ids[0]);
        assert_eq!(digests.lock().len(), 3, "it does not grow");
    }
}
