//! What the system knows of this process. Where there is no `/proc`, most of it stays unknown.

use crate::admin::Process;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::fs;

/// What the system knows; `started` is when the proxy was started, in seconds since 1970.
pub(super) fn read(started: f64) -> Process {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let cpu = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
    let files = fs::read_dir("/proc/self/fd").ok();
    Process {
        cpu: Some(cpu),
        resident: resident(),
        // One of them is the directory that is being read.
        open_files: files.map(|files| files.count().saturating_sub(1) as u64),
        most_files: getrlimit(Resource::Nofile).current,
        started: Some(started),
    }
}

/// The second number of `statm` is that of the resident pages.
fn resident() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_knows_this_process() {
        let process = read(1.0);
        assert!(process.cpu.unwrap() > 0.0);
        if cfg!(target_os = "linux") {
            assert!(process.resident.unwrap() > 1 << 20);
            let open = process.open_files.unwrap();
            assert!(open >= 3 && process.most_files.unwrap() >= open, "{open}");
        }
    }
}
