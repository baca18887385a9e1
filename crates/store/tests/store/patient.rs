//! How to talk to etcd in tests that are not about its being slow.

use std::time::Duration;

use evenkeel_store::EtcdConfig;

/// Long enough for the slowest machine; nothing waits that long unless it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// As usual, but with deadlines that no stall of the machine meets.
pub(crate) fn patient(endpoints: impl IntoIterator<Item = impl Into<String>>) -> EtcdConfig {
    EtcdConfig { call_deadline: PATIENCE, attempt_deadline: PATIENCE, ..EtcdConfig::new(endpoints) }
}
