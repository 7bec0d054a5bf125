//! How much CPU time a process and its children have used, read from `/proc` (Linux).

use std::fs;
use std::time::Duration;

/// `/proc` counts in ticks of `USER_HZ`, which is 100 on every Linux architecture in use.
const TICK: Duration = Duration::from_millis(10);
/// Attempts at a reading during which no child ended.
const ATTEMPTS: usize = 5;

/// User and system time of process `pid`, of its live children, and of its dead ones.
///
/// `None` where there is no `/proc`, or no such process. Grandchildren count once their parent
/// has waited for them. Of live processes with one thread, such as a server's, it is exact, where
/// the kernel keeps `schedstat`; of others it is in ticks of 10 ms.
#[must_use]
pub fn tree_time(pid: u32) -> Option<Duration> {
    let mut time = None;
    for _ in 0..ATTEMPTS {
        let before = stat(pid)?;
        let live = children(pid);
        // A child that ends between the two readings would be counted twice or not at all.
        let after = stat(pid)?;
        time = Some(own(pid, &after) + ticks(after.reaped) + live);
        if before.reaped == after.reaped {
            break;
        }
    }
    time
}

/// The time of all live children of `parent`.
fn children(parent: u32) -> Duration {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Duration::ZERO;
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, stat(pid)?)))
        .filter(|(_, stat)| stat.parent == parent)
        .map(|(pid, stat)| own(pid, &stat) + ticks(stat.reaped))
        .sum()
}

/// The time of process `pid` itself, of which `stat` was read.
fn own(pid: u32, stat: &Stat) -> Duration {
    // A process's `schedstat` is that of its first thread.
    let exact = || {
        let line = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
        line.split_ascii_whitespace().next()?.parse().ok()
    };
    match stat.threads {
        1 => exact().map_or_else(|| ticks(stat.own), Duration::from_nanos),
        _ => ticks(stat.own),
    }
}

fn ticks(count: u64) -> Duration {
    TICK.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX))
}

/// What is used of one `/proc/PID/stat`, in ticks.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    own: u64,
    reaped: u64,
    threads: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Parses a stat line. The second field, the name, may itself hold spaces and parentheses.
fn parse(line: &str) -> Option<Stat> {
    let mut fields = line.get(line.rfind(')')? + 1..)?.split_ascii_whitespace();
    let mut number = |skipped| fields.nth(skipped)?.parse::<u64>().ok();
    let parent = u32::try_from(number(1)?).ok()?;
    let own = number(9)? + number(0)?;
    let reaped = number(0)? + number(0)?;
    let threads = number(2)?;
    Some(Stat {
        parent,
        own,
        reaped,
        threads,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_a_name_with_spaces_and_parentheses() {
        let line = "4711 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18\n";
        assert_eq!(
            parse(line),
            Some(Stat {
                parent: 1,
                own: 23,
                reaped: 27,
                threads: 17
            })
        );
        assert_eq!(parse("4711 (short) S 1 2"), None);
        assert_eq!(parse(""), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn counts_itself_and_a_child_that_has_ended() {
        let pid = std::process::id();
        let before = tree_time(pid).unwrap();
        let burn = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        std::process::Command::new("/bin/sh")
            .args(["-c", burn])
            .status()
            .unwrap();
        assert!(tree_time(pid).unwrap() > before);
        assert_eq!(tree_time(u32::MAX), None);
    }
}
