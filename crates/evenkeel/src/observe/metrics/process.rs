//! Metrics of the process from the operating system, under the names that Prometheus' own clients use.

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;

use super::exposition::Exposition;
use super::{Metric, MetricKind};

/// Reads `/proc` at every scrape. Where there is none, there are no such metrics.
#[derive(Debug)]
struct ProcessCollector;

/// The figures of `/proc`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Process {
    cpu_seconds: f64,
    /// Unknown where the process may see nothing of `/proc` but itself.
    start_seconds: Option<f64>,
    resident_bytes: f64,
    virtual_bytes: f64,
    threads: f64,
    open_files: f64,
    open_files_max: f64,
}

const fn metric(name: &'static str, kind: MetricKind, help: &'static str) -> Metric {
    Metric { name, kind, labels: &[], help }
}

const CPU: Metric =
    metric("process_cpu_seconds", MetricKind::Counter, "Processor time that the process has used, in seconds");
const START: Metric =
    metric("process_start_time_seconds", MetricKind::Gauge, "When the process started, in seconds since 1970");
const RESIDENT: Metric =
    metric("process_resident_memory_bytes", MetricKind::Gauge, "Memory of the process that is in RAM, in bytes");
const VIRTUAL: Metric =
    metric("process_virtual_memory_bytes", MetricKind::Gauge, "Address space of the process, in bytes");
const THREADS: Metric = metric("process_threads", MetricKind::Gauge, "Threads of the process");
const OPEN_FILES: Metric = metric("process_open_fds", MetricKind::Gauge, "Open files and sockets of the process");
const OPEN_FILES_MAX: Metric =
    metric("process_max_fds", MetricKind::Gauge, "Files and sockets that the process may have open at a time");

/// All of them.
pub(super) const ALL: &[Metric] = &[CPU, START, RESIDENT, VIRTUAL, THREADS, OPEN_FILES, OPEN_FILES_MAX];

/// What Linux counts times in, whatever the kernel's own clock is.
const TICKS_A_SECOND: f64 = 100.0;

/// Registers `process_cpu_seconds_total`, `process_resident_memory_bytes` and the others of this process.
pub fn register_process(registry: &mut Registry) {
    registry.register_collector(Box::new(ProcessCollector));
}

// === impl ProcessCollector ===

impl Collector for ProcessCollector {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let Some(process) = Process::read() else { return Ok(()) };
        let mut out = Exposition::new(encoder);
        out.family(CPU)?.lone_counter(process.cpu_seconds)?;
        for (metric, value) in [
            (START, process.start_seconds),
            (RESIDENT, Some(process.resident_bytes)),
            (VIRTUAL, Some(process.virtual_bytes)),
            (THREADS, Some(process.threads)),
            (OPEN_FILES, Some(process.open_files)),
            (OPEN_FILES_MAX, Some(process.open_files_max)),
        ] {
            if let Some(value) = value {
                out.family(metric)?.lone_gauge(value)?;
            }
        }
        Ok(())
    }
}

// === impl Process ===

impl Process {
    fn read() -> Option<Self> {
        let read = |path: &str| fs::read_to_string(path).ok();
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let open_files = fs::read_dir("/proc/self/fd").ok()?.count() as f64;
        Self::parse(
            &read("/proc/self/stat")?,
            &read("/proc/self/status")?,
            &read("/proc/self/limits")?,
            &read("/proc/stat").unwrap_or_default(),
            open_files,
        )
    }

    fn parse(stat: &str, status: &str, limits: &str, system: &str, open_files: f64) -> Option<Self> {
        // The name of the program is in parentheses, and may contain anything.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        // Fields are counted from the first one after the name, which is the third of all.
        let ticks = |field: usize| fields.get(field - 3)?.parse::<f64>().ok();
        let word = |line: &str, index: usize| line.split_ascii_whitespace().nth(index)?.parse::<f64>().ok();
        let find = |text: &str, name: &str, index: usize| {
            text.lines().find(|line| line.starts_with(name)).and_then(|line| word(line, index))
        };
        Some(Self {
            cpu_seconds: (ticks(14)? + ticks(15)?) / TICKS_A_SECOND,
            start_seconds: find(system, "btime ", 1).zip(ticks(22)).map(|(boot, ticks)| boot + ticks / TICKS_A_SECOND),
            resident_bytes: find(status, "VmRSS:", 1)? * 1024.0,
            virtual_bytes: find(status, "VmSize:", 1)? * 1024.0,
            threads: find(status, "Threads:", 1)?,
            open_files,
            open_files_max: find(limits, "Max open files", 3).unwrap_or(f64::INFINITY),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_proc_says_is_read() {
        let stat = "7 (a) b) c) S 1 7 7 0 -1 4194560 111 0 0 0 250 50 0 0 20 0 9 0 1000 22 3 4";
        let status = "Name:\tx\nVmSize:\t    2048 kB\nVmRSS:\t     1024 kB\nThreads:\t9\n";
        let limits = "Limit   Soft   Hard\nMax open files            1024                 4096                 files\n";
        let process = Process::parse(stat, status, limits, "cpu 1\nbtime 1700000000\n", 5.0).unwrap();
        assert_eq!(
            process,
            Process {
                cpu_seconds: 3.0,
                start_seconds: Some(1_700_000_010.0),
                resident_bytes: 1_048_576.0,
                virtual_bytes: 2_097_152.0,
                threads: 9.0,
                open_files: 5.0,
                open_files_max: 1024.0,
            }
        );
        let alone = Process { start_seconds: None, ..process };
        assert_eq!(Process::parse(stat, status, limits, "", 5.0), Some(alone), "under systemd's ProcSubset=pid");
        assert_eq!(Process::parse("7 x", status, limits, "", 5.0), None);
    }
}
