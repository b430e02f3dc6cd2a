//! Identity of the process that a lock file means. A number alone does not tell: it is used again
//! after a process ends, and another container on the same volume counts its own. So ours also say
//! when the process started and in which scope its number is valid. By `/proc`; without it a number
//! and the time of the file have to do.

use std::sync::{LazyLock, OnceLock};

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::time::now_ms;

/// Clock ticks a second in `/proc`: the same on every Linux we build for.
const TICKS_PER_SECOND: i64 = 100;

/// A process as our lock files name it. Other programs write the number alone, and read nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessIdentity {
    /// Process id.
    pub pid: u32,
    /// Field 22 of `/proc/<pid>/stat`: tells it from a later process with its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<u64>,
    /// Boot and PID namespace: where the number means this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid_scope: Option<String>,
}

/// State of a process as seen by its id, in our own scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sighting {
    /// The process does not exist, or nothing but its exit code is left.
    Gone,
    /// The process is alive.
    Alive(Started),
}

/// Start time of a process, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Started {
    /// Field 22 of `/proc/<pid>/stat`.
    pub ticks: Option<u64>,
    /// The same in Unix milliseconds by today's clock.
    pub at_ms: Option<i64>,
}

struct Current {
    identity: ProcessIdentity,
    /// Time at which the identity was first asked for, Unix milliseconds.
    asked_ms: i64,
}

/// Read once: every turn makes a lock file.
static CURRENT: LazyLock<Current> = LazyLock::new(|| {
    let pid = std::process::id();
    let start_time = stat(pid).and_then(|stat| stat.ticks);
    Current { identity: ProcessIdentity { pid, start_time, pid_scope: pid_scope() }, asked_ms: now_ms() }
});

static INSTANCE: OnceLock<String> = OnceLock::new();

/// Identity of the current process.
pub fn current() -> &'static ProcessIdentity {
    &CURRENT.identity
}

/// Says that this process has a state directory to itself. `instance` is the same for all gateways that took over from each
/// other after a crash: their locks are ours. Only the first call counts.
pub fn set_instance(instance: &str) {
    INSTANCE.get_or_init(|| instance.to_owned());
}

/// Instance id set by [`set_instance`].
pub(crate) fn instance() -> Option<&'static str> {
    INSTANCE.get().map(String::as_str)
}

/// Looks at a process of our own scope. A process that can't be looked at counts as alive.
pub fn look(pid: u32) -> Sighting {
    let Ok(number @ 1..) = i32::try_from(pid) else { return Sighting::Gone };
    if kill(Pid::from_raw(number), None) == Err(Errno::ESRCH) {
        return Sighting::Gone;
    }
    match stat(pid) {
        Some(stat) if stat.is_zombie => Sighting::Gone,
        Some(Stat { ticks, .. }) => {
            Sighting::Alive(Started { ticks, at_ms: ticks.and_then(|ticks| started_ms(ticks, uptime_ms()?)) })
        }
        None if pid == current().pid => {
            Sighting::Alive(Started { ticks: None, at_ms: Some(CURRENT.asked_ms) })
        }
        None => Sighting::Alive(Started::default()),
    }
}

/// Fields of `/proc/<pid>/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    is_zombie: bool,
    ticks: Option<u64>,
}

fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name in field 2 may hold anything, so fields count from its last bracket.
fn parse_stat(text: &str) -> Option<Stat> {
    let (_, after_name) = text.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace();
    let is_zombie = matches!(fields.next()?, "Z" | "X" | "x");
    Some(Stat { is_zombie, ticks: fields.nth(18).and_then(|field| field.parse().ok()) })
}

/// Time since the machine started, in milliseconds.
fn uptime_ms() -> Option<i64> {
    let text = std::fs::read_to_string("/proc/uptime").ok()?;
    let (seconds, hundredths) = text.split_whitespace().next()?.split_once('.')?;
    Some(seconds.parse::<i64>().ok()? * 1_000 + hundredths.parse::<i64>().ok()? * 10)
}

/// `None` where both are not of one clock, as in a container that is shown an uptime of its own.
fn started_ms(ticks: u64, uptime_ms: i64) -> Option<i64> {
    let since_boot_ms = i64::try_from(ticks).ok()?.checked_mul(1_000 / TICKS_PER_SECOND)?;
    let age_ms = uptime_ms - since_boot_ms;
    // Both are cut off to a hundredth of a second.
    (age_ms >= -10).then(|| now_ms() - age_ms)
}

fn pid_scope() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), namespace.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_count_from_the_last_bracket() {
        let rest = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        let rows = [
            (format!("1 (node) S {rest}"), Some((false, Some(4_711)))),
            (format!("1 (a) Z (b) R {rest}"), Some((false, Some(4_711)))),
            (format!("1 (node) Z {rest}"), Some((true, Some(4_711)))),
            ("1 (node) X".to_owned(), Some((true, None))),
            ("1 (node)".to_owned(), None),
            (String::new(), None),
        ];
        for (text, expect) in rows {
            let stat = parse_stat(&text).map(|stat| (stat.is_zombie, stat.ticks));
            assert_eq!(stat, expect, "{text}");
        }
    }

    #[test]
    fn a_start_that_is_yet_to_come_is_no_start() {
        assert_eq!(started_ms(200, 1_000), None);
        let ago = now_ms() - started_ms(200, 5_000).unwrap();
        assert!((3_000..4_000).contains(&ago), "{ago}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_seen_as_it_names_itself_and_a_zombie_is_gone() {
        let me = current();
        let Sighting::Alive(started) = look(me.pid) else { panic!("this test runs") };
        assert_eq!((started.ticks, started.ticks.is_some()), (me.start_time, true));
        assert!(started.at_ms.is_some_and(|at| at <= now_ms() + 10));
        assert!(me.pid_scope.is_some());
        let mut child = std::process::Command::new("true").spawn().unwrap();
        while look(child.id()) != Sighting::Gone {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        for nobody in [0, u32::MAX, 2_147_483_646] {
            assert_eq!(look(nobody), Sighting::Gone, "{nobody}");
        }
    }
}
