//! The contract, held by the store in a file and by the same store in memory.

mod in_a_file {
    use std::sync::Arc;

    use evenkeel_store::{EmbeddedStore, HistoryLimits, Store};
    use tempfile::TempDir;

    use crate::folder::folder;

    #[allow(clippy::unused_async, reason = "that of the other stores is one")]
    async fn open(limits: HistoryLimits) -> (TempDir, Arc<dyn Store>) {
        let folder = folder();
        let store = EmbeddedStore::open(folder.path().join("store"), limits).unwrap();
        (folder, Arc::new(store))
    }

    crate::contract::contract!(super::open);
}

mod in_memory {
    use std::sync::Arc;

    use evenkeel_store::{EmbeddedStore, HistoryLimits, Store};

    #[allow(clippy::unused_async, reason = "that of the other stores is one")]
    async fn open(limits: HistoryLimits) -> ((), Arc<dyn Store>) {
        ((), Arc::new(EmbeddedStore::in_memory(limits).unwrap()))
    }

    crate::contract::contract!(super::open);
}
