//! Whether the memory of this process suffices for what the settings allow clients to take of it.

use evenkeel_gateway::Config;
use evenkeel_gateway::config::{Limits, memory_limit, memory_of_connections};

const MIB: u64 = 1 << 20;

/// Warns if the limits allow more than there is, and says which limits follow from the memory.
pub(super) fn report(config: &Config) {
    let Some(memory) = memory_limit() else { return };
    let Limits { connections, buffer_bytes, .. } = config.limits;
    let needed = memory_of_connections(connections).saturating_add(buffer_bytes as u64);
    let (memory_mib, needed_mib) = (memory / MIB, needed.div_ceil(MIB));
    if needed > memory {
        tracing::warn!(
            "clients can take up to {needed_mib} MiB of memory by limits.connections ({connections}) and \
             limits.bufferBytes ({buffer_bytes}), and this process may use {memory_mib} MiB; remove the two settings, so \
             that they follow from the memory, or give the process more"
        );
    } else if connections < Limits::CONNECTIONS_MAX && connections == Limits::default().connections {
        tracing::info!(
            connections,
            buffer_bytes,
            "the limits of connections and buffers follow from the {memory_mib} MiB of memory that this process may use"
        );
    }
}
