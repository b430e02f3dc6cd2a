//! Holder named by a lock file, and the time for which its claim counts.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::LockKind;
use crate::process::{self, ProcessIdentity, Sighting};

/// Age after which a lock that is empty or cut off counts as left behind, whatever it locks: its
/// maker was stopped between making and writing it, which takes a millisecond, or the machine
/// stopped before the content was on disk.
const TORN_FOR: Duration = Duration::from_secs(2);
/// Age up to which a living process keeps a lock that does not prove to be its own (spec `sessions.md` §4.7: runs end after
/// ten minutes).
const UNPROVEN_FOR: Duration = Duration::from_secs(30 * 60);
/// Tolerance between the clocks of files and processes, in milliseconds.
const SLACK_MS: i64 = 2_000;

/// Process that made a lock. Other programs write the number alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holder {
    #[serde(flatten)]
    pub(crate) process: ProcessIdentity,
    /// Instance id shared by all gateways that took over a state directory from each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) instance: Option<String>,
}

impl Holder {
    /// Holder for the current process.
    pub(crate) fn current() -> Self {
        Self { process: process::current().clone(), instance: process::instance().map(str::to_owned) }
    }

    /// True if this program wrote it: others write the number alone.
    pub(super) fn is_one_of_ours(&self) -> bool {
        self.instance.is_some() || self.process.pid_scope.is_some()
    }
}

/// A lock file as it was found. No part of this process has it.
pub(super) struct FoundLock<'a> {
    pub(super) kind: LockKind,
    pub(super) holder: Option<&'a Holder>,
    /// True if the file is empty or cut off.
    pub(super) is_torn: bool,
    /// Time of the last write, Unix milliseconds.
    pub(super) made_ms: Option<i64>,
}

impl FoundLock<'_> {
    /// Age up to which it counts, for `us`; `look` sees processes by their number.
    pub(super) fn counts_for(&self, us: &Holder, look: impl Fn(u32) -> Sighting) -> Duration {
        let untold = self.kind.counts_unheld_for();
        let Some(holder) = self.holder else {
            return if self.is_torn { TORN_FOR.min(untold) } else { untold };
        };
        // A gateway we took over from. That it is gone is known by the lock of the state directory.
        if holder.instance.is_some() && holder.instance == us.instance {
            return Duration::ZERO;
        }
        let (they, we) = (&holder.process, &us.process);
        let is_proven = they.pid_scope.is_some();
        if is_proven && they.pid_scope != we.pid_scope {
            // In another container, on another machine, or from before a reboot: it can't be seen from here.
            return untold;
        }
        if is_proven && they == we {
            return Duration::ZERO;
        }
        match look(they.pid) {
            Sighting::Gone => Duration::ZERO,
            Sighting::Alive(now) => match (they.start_time, now.ticks) {
                (Some(then), Some(now)) if is_proven => {
                    if then == now {
                        Duration::MAX
                    } else {
                        Duration::ZERO
                    }
                }
                _ if now.at_ms.zip(self.made_ms).is_some_and(|(at, made)| at > made + SLACK_MS) => {
                    Duration::ZERO
                }
                _ => UNPROVEN_FOR,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Started;

    const MINUTE: i64 = 60_000;
    const NOW: i64 = 1_800_000_000_000;

    fn holder(pid: u32, start: Option<u64>, scope: Option<&str>, instance: Option<&str>) -> Holder {
        let process = ProcessIdentity { pid, start_time: start, pid_scope: scope.map(str::to_owned) };
        Holder { process, instance: instance.map(str::to_owned) }
    }

    /// Fake sightings: 7 is us and 8 another process; both started at tick 70, ten minutes ago. 9
    /// is no more.
    fn look(pid: u32) -> Sighting {
        let started = Started { ticks: Some(70), at_ms: Some(NOW - 10 * MINUTE) };
        if pid == 9 { Sighting::Gone } else { Sighting::Alive(started) }
    }

    /// Holder, minutes since the lock was made, and what it is worth to a gateway and to a program without an instance.
    #[test]
    fn a_lock_counts_as_long_as_its_holder_may_live() {
        let (ours, theirs) = (Some("boot-1 pid:[1]"), Some("boot-1 pid:[2]"));
        let rebooted = Some("boot-2 pid:[1]");
        let (old, half_hour, ever, none) =
            (LockKind::Transcript.counts_unheld_for(), UNPROVEN_FOR, Duration::MAX, Duration::ZERO);
        let rows = [
            ("a process that lives", holder(8, Some(70), ours, None), 600, ever, ever),
            ("another gateway that lives", holder(8, Some(70), ours, Some("b")), 600, ever, ever),
            ("a process that is no more", holder(9, Some(70), ours, None), 0, none, none),
            ("a number used again", holder(8, Some(69), ours, None), 0, none, none),
            ("our own number, used before", holder(7, Some(69), ours, None), 0, none, none),
            ("what this process lost sight of", holder(7, Some(70), ours, None), 0, none, none),
            ("our number in another container", holder(7, Some(70), theirs, None), 0, old, old),
            ("a number of another container", holder(9, Some(70), theirs, Some("b")), 0, old, old),
            ("our number before a reboot", holder(7, Some(70), rebooted, None), 0, old, old),
            ("a gateway before us", holder(8, Some(70), ours, Some("a")), 0, none, ever),
            ("one before us, elsewhere", holder(7, Some(70), theirs, Some("a")), 0, none, old),
            ("one before us and a reboot", holder(8, Some(1), rebooted, Some("a")), 0, none, old),
            ("another program that lives", holder(8, None, None, None), 5, half_hour, half_hour),
            ("another program that is gone", holder(9, None, None, None), 0, none, none),
            ("a number used again since", holder(8, None, None, None), 11, none, none),
            ("our own number, before we were", holder(7, None, None, None), 11, none, none),
            ("our own number in another container", holder(7, None, None, None), 5, half_hour, half_hour),
        ];
        let gateway = holder(7, Some(70), ours, Some("a"));
        let program = holder(7, Some(70), ours, None);
        for (name, holder, age, to_gateway, to_program) in rows {
            let found = FoundLock {
                kind: LockKind::Transcript,
                holder: Some(&holder),
                is_torn: false,
                made_ms: Some(NOW - age * MINUTE),
            };
            let got = (found.counts_for(&gateway, look), found.counts_for(&program, look));
            assert_eq!(got, (to_gateway, to_program), "{name}");
        }
    }

    #[test]
    fn a_lock_without_a_name_counts_by_its_age_alone() {
        let us = holder(7, None, None, None);
        for (kind, is_torn, expect) in [
            (LockKind::Transcript, true, TORN_FOR),
            (LockKind::Transcript, false, Duration::from_secs(30 * 60)),
            (LockKind::Store, true, TORN_FOR),
            (LockKind::Store, false, Duration::from_secs(30)),
        ] {
            let found = FoundLock { kind, holder: None, is_torn, made_ms: None };
            assert_eq!(found.counts_for(&us, |_| Sighting::Gone), expect, "{kind:?} {is_torn}");
        }
    }

    /// Checks that a system without `/proc` knows a living process by its id alone.
    #[test]
    fn what_can_not_be_looked_at_keeps_its_lock_for_half_an_hour() {
        let us = holder(7, None, None, None);
        let found = FoundLock {
            kind: LockKind::Store,
            holder: Some(&holder(8, None, None, None)),
            is_torn: false,
            made_ms: Some(NOW),
        };
        assert_eq!(found.counts_for(&us, |_| Sighting::Alive(Started::default())), UNPROVEN_FOR);
    }

    #[test]
    fn other_programs_are_read_and_told_what_they_know() {
        for text in [r#"{"pid":8,"createdAt":"x"}"#, r#"{"pid":8,"startedAt":1,"more":[2]}"#] {
            assert_eq!(serde_json::from_str::<Holder>(text).unwrap(), holder(8, None, None, None), "{text}");
        }
        for text in ["", "{", "{}", r#"{"pid":-8}"#, r#"{"pid":"8"}"#, "[]"] {
            assert!(serde_json::from_str::<Holder>(text).is_err(), "{text}");
        }
        let ours = holder(8, Some(70), Some("boot pid:[1]"), Some("a"));
        let text = serde_json::to_string(&ours).unwrap();
        assert_eq!(text, r#"{"pid":8,"startTime":70,"pidScope":"boot pid:[1]","instance":"a"}"#);
        assert_eq!(serde_json::from_str::<Holder>(&text).unwrap(), ours);
    }
}
