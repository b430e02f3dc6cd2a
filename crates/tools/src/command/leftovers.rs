//! Processes that finished commands left in the background, with their output elsewhere: they live
//! as long as this process, as the command would have.
//!
//! The guard of such a command stays, so that it ends the rest when this process is gone. The check
//! for leftovers is made a moment later, away from the command's call: most commands leave nothing,
//! and then the guard goes.

use std::collections::HashSet;
use std::io;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;

use super::guard::Guard;

/// Time to the first look, and between looks while there is news.
const SOON: Duration = Duration::from_secs(1);
/// Between looks when nothing changes.
const SELDOM: Duration = Duration::from_secs(60);
/// Guards that are kept; the command that ended first makes room.
const MAX_KEPT: usize = 256;

/// The guards that are kept. Dropping it kills what they guard.
#[derive(Debug, Default)]
pub(super) struct Leftovers(Mutex<LeftoverState>);

#[derive(Debug, Default)]
struct LeftoverState {
    kept: Vec<LeftoverGuard>,
    /// True if a command was added since the last look.
    has_news: bool,
    /// Looks for groups that have ended; there while guards are kept.
    sweeper: Option<AbortOnDropHandle<()>>,
}

#[derive(Debug)]
struct LeftoverGuard {
    guard: Guard,
    /// True if the last look found no other process in the group. A single look may miss a process
    /// that is just being forked.
    was_alone: bool,
}

impl Leftovers {
    /// Keeps the guard of a finished command for as long as its group has others.
    pub(super) fn keep(self: &Arc<Self>, guard: Guard) {
        let mut state = self.state();
        if state.kept.len() >= MAX_KEPT {
            // The group is killed.
            state.kept.remove(0);
        }
        state.kept.push(LeftoverGuard { guard, was_alone: false });
        state.has_news = true;
        if state.sweeper.is_none() {
            state.sweeper = Some(AbortOnDropHandle::new(tokio::spawn(sweep(Arc::downgrade(self)))));
        }
    }

    /// Lets go of the guards that are alone for the second time. Returns true if any is left.
    fn release_lonely(&self, occupied: &HashSet<i32>) -> bool {
        let mut state = self.state();
        state.kept.retain_mut(|kept| {
            let is_alone = !occupied.contains(&kept.guard.group());
            let is_over = is_alone && kept.was_alone;
            kept.was_alone = is_alone;
            if is_over {
                kept.guard.release();
            }
            !is_over
        });
        state.has_news = state.kept.iter().any(|kept| kept.was_alone);
        if state.kept.is_empty() {
            // The caller is that task, and ends now.
            drop(state.sweeper.take().map(AbortOnDropHandle::detach));
        }
        !state.kept.is_empty()
    }

    fn has_news(&self) -> bool {
        self.state().has_news
    }

    fn state(&self) -> MutexGuard<'_, LeftoverState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn sweep(leftovers: Weak<Leftovers>) {
    let mut pause = SOON;
    loop {
        let waited = tokio::time::Instant::now();
        while waited.elapsed() < pause {
            tokio::time::sleep(SOON).await;
            let Some(leftovers) = leftovers.upgrade() else { return };
            if leftovers.has_news() {
                pause = SOON;
            }
        }
        let found = tokio::task::spawn_blocking(occupied_groups).await;
        let Some(leftovers) = leftovers.upgrade() else { return };
        // A process that can't be looked up counts as existing.
        if let Ok(Ok(occupied)) = found
            && !leftovers.release_lonely(&occupied)
        {
            return;
        }
        pause = (pause * 2).min(SELDOM);
    }
}

/// Process groups that have a living process besides the one they are named for. Blocking.
fn occupied_groups() -> io::Result<HashSet<i32>> {
    match of_proc() {
        Ok(groups) => Ok(groups),
        // Not on Linux.
        Err(_) => of_ps(),
    }
}

fn of_proc() -> io::Result<HashSet<i32>> {
    let mut groups = HashSet::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        // A process that has ended meanwhile is no member.
        let Ok(stat) = std::fs::read(format!("/proc/{pid}/stat")) else { continue };
        groups.extend(group_of_stat(pid, &String::from_utf8_lossy(&stat)));
    }
    Ok(groups)
}

/// Of `pid (name) state parent group …`; the name may hold anything.
fn group_of_stat(pid: i32, stat: &str) -> Option<i32> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let (state, group) = (fields.next()?, fields.nth(1)?.parse().ok()?);
    member(pid, state, group)
}

fn of_ps() -> io::Result<HashSet<i32>> {
    let mut ps = Command::new("ps");
    let output = ps.args(["-A", "-o", "pid=", "-o", "stat=", "-o", "pgid="]).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(io::ErrorKind::Other.into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(group_of_row).collect())
}

fn group_of_row(row: &str) -> Option<i32> {
    let mut fields = row.split_whitespace();
    let (pid, state, group) = (fields.next()?, fields.next()?, fields.next()?);
    member(pid.parse().ok()?, state, group.parse().ok()?)
}

fn member(pid: i32, state: &str, group: i32) -> Option<i32> {
    (pid != group && !state.starts_with(['Z', 'X'])).then_some(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_the_living_besides_the_leader() {
        for (pid, stat, expect) in [
            (5, "5 (sleep) S 1 4 4 0", Some(4)),
            (5, "5 (a) b) (c) R 1 4 4 0", Some(4)),
            (4, "4 (sh) S 1 4 4 0", None),
            (5, "5 (sleep) Z 1 4 4 0", None),
            (5, "5", None),
        ] {
            assert_eq!(group_of_stat(pid, stat), expect, "{stat}");
        }
        for (row, expect) in [("  5 S+    4", Some(4)), ("4 Ss 4", None), ("5 Z 4", None), ("", None)] {
            assert_eq!(group_of_row(row), expect, "{row}");
        }
    }
}
