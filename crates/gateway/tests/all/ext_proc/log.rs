//! The log of this process.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The warnings of all gateways of this process, since the first test asked for them.
#[derive(Debug, Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<u8>>>);

// === impl Log ===

impl Log {
    /// Workers have threads of their own, so the log is that of the process.
    pub(super) fn begin() -> Self {
        static LOG: OnceLock<Log> = OnceLock::new();
        let begin = || {
            let log = Self::default();
            let writer = log.clone();
            let subscriber = tracing_subscriber::fmt()
                .with_max_level(tracing::Level::WARN)
                .with_ansi(false)
                .with_writer(move || writer.clone())
                .finish();
            tracing::subscriber::set_global_default(subscriber).unwrap();
            log
        };
        LOG.get_or_init(begin).clone()
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
