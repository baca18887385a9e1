//! The memory that this process may use, and the limits that follow from it where the settings name none: a container with
//! little memory must survive as many clients as it accepts.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// The connections that even a very small process accepts, and the bytes that it buffers.
const LEAST: (u64, u64) = (256, 4 * MIB);

/// The memory that this process may use, in bytes: the limit of its control group or all that the machine has. `None` where
/// the system does not say.
pub fn memory_limit() -> Option<u64> {
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();
    let read = |path: &Path| fs::read_to_string(path).ok();
    *LIMIT.get_or_init(|| of_control_group(read).into_iter().chain(of_machine(read)).min())
}

/// The most memory that connections take beside buffered bytes: with TLS, while a request arrives.
pub fn memory_of_connections(connections: usize) -> u64 {
    (connections as u64).saturating_mul(16 * KIB)
}

/// The connections that fit: at most a half of the memory is for them.
pub(crate) fn connections(memory: Option<u64>, most: usize) -> usize {
    at_most(memory.map(|memory| (memory / 2 / (16 * KIB)).max(LEAST.0)), most)
}

/// The bytes of buffers that fit: at most a quarter of the memory is for them.
pub(crate) fn buffer_bytes(memory: Option<u64>, most: usize) -> usize {
    at_most(memory.map(|memory| (memory / 4).max(LEAST.1)), most)
}

fn at_most(fits: Option<u64>, most: usize) -> usize {
    fits.and_then(|fits| usize::try_from(fits).ok()).map_or(most, |fits| fits.min(most))
}

/// The least limit of the control groups that this process is in. A container may see its own group as the root, or see
/// paths that do not exist in it, so every folder above is asked too.
fn of_control_group(read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let groups = read(Path::new("/proc/self/cgroup"))?;
    let limits = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (root, file) = if controllers.is_empty() {
            ("/sys/fs/cgroup", "memory.max")
        } else if controllers.split(',').any(|controller| controller == "memory") {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        } else {
            return None;
        };
        let folder = PathBuf::from(format!("{root}{path}"));
        let folders = folder.ancestors().take_while(|folder| folder.starts_with(root));
        folders.filter_map(|folder| read(&folder.join(file))?.trim().parse::<u64>().ok()).min()
    });
    limits.min()
}

fn of_machine(read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let text = read(Path::new("/proc/meminfo"))?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(KIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a>(files: &'a [(&'a str, &'a str)]) -> impl Fn(&Path) -> Option<String> + 'a {
        |path| files.iter().find(|(name, _)| path == Path::new(name)).map(|(_, text)| (*text).to_owned())
    }

    #[test]
    fn the_least_limit_of_all_groups_above_counts() {
        let files = [
            ("/proc/self/cgroup", "0::/system.slice/evenkeel.service\n"),
            ("/sys/fs/cgroup/system.slice/evenkeel.service/memory.max", "max\n"),
            ("/sys/fs/cgroup/system.slice/memory.max", "268435456\n"),
        ];
        assert_eq!(of_control_group(read(&files)), Some(256 * MIB));
        // A container that sees its own group as the root.
        let files = [("/proc/self/cgroup", "0::/\n"), ("/sys/fs/cgroup/memory.max", "134217728\n")];
        assert_eq!(of_control_group(read(&files)), Some(128 * MIB));
        let files = [("/proc/self/cgroup", "0::/\n"), ("/sys/fs/cgroup/memory.max", "max\n")];
        assert_eq!(of_control_group(read(&files)), None);
    }

    #[test]
    fn the_first_version_of_control_groups_is_known_too() {
        // The path is that of the machine; in the container its folder is the root.
        let groups = "9:name=systemd:/docker/1f\n4:cpu,memory:/docker/1f\n3:cpuset:/\n0::/\n";
        let limit = "/sys/fs/cgroup/memory/memory.limit_in_bytes";
        let files = [("/proc/self/cgroup", groups), (limit, "536870912\n")];
        assert_eq!(of_control_group(read(&files)), Some(512 * MIB));
    }

    #[test]
    fn the_machine_has_a_limit_where_no_group_has() {
        let files = [("/proc/meminfo", "MemTotal:        1048576 kB\nMemFree:          524288 kB\n")];
        assert_eq!(of_machine(read(&files)), Some(1024 * MIB));
        assert_eq!(of_machine(read(&[])), None);
        assert_eq!(of_control_group(read(&[])), None);
    }

    #[test]
    fn limits_follow_from_the_memory_up_to_a_maximum() {
        let limits = |memory| (connections(memory, 65_536), buffer_bytes(memory, 1 << 27));
        assert_eq!(limits(None), (65_536, 1 << 27));
        assert_eq!(limits(Some(4096 * MIB)), (65_536, 1 << 27));
        assert_eq!(limits(Some(2048 * MIB)), (65_536, 1 << 27));
        assert_eq!(limits(Some(256 * MIB)), (8192, 1 << 26));
        assert_eq!(limits(Some(MIB)), (256, 1 << 22), "even the smallest can serve");
        // Both fit together, with a quarter to spare.
        for mib in 16..4096 {
            let memory = mib * MIB;
            let (connections, buffers) = limits(Some(memory));
            assert!(memory_of_connections(connections) + buffers as u64 <= memory / 4 * 3, "{mib} MiB");
        }
    }
}
