//! The first stage: makes the namespaces, starts what lives in them, and ends as the command does.

use std::fs;
use std::process::Command;

use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::{Pid, getegid, geteuid, setgroups};

use super::super::spec::{ENTER, FAILED, INNER_ID, Level, Network, Spec};
use super::status::{self, CommandStatus};
use super::{Doing as _, EnterArgs, EnterError, INIT, capabilities, inner};

pub(super) fn run(call: &EnterArgs) -> Result<u8, EnterError> {
    close_inherited()?;
    if let Some(group) = &call.spec.cgroup {
        // Before the namespaces: of those the group is the top, so that nothing inside can leave it.
        fs::write(group.join("cgroup.procs"), "0").doing("join the sandbox's cgroup")?;
    }
    match call.spec.level {
        Level::Landlock => inner::run(call),
        Level::Namespaces => in_namespaces(call),
    }
}

/// Closes what whoever started the gateway left open in it.
fn close_inherited() -> Result<(), EnterError> {
    let open = fs::read_dir("/proc/self/fd").doing("list open files")?;
    let numbers: Vec<i32> = open
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|number| *number > 2)
        .collect();
    for number in numbers {
        // The listing's own is among them, and closed already.
        let _ = nix::unistd::close(number);
    }
    Ok(())
}

fn in_namespaces(call: &EnterArgs) -> Result<u8, EnterError> {
    enter_namespaces(&call.spec)?;
    // The next stage is executed, and would lose what the namespace gave to this one.
    capabilities::keep_for_next().doing("keep capabilities")?;
    let (reader, writer, number) = status::pipe()?;
    let mut init = Command::new("/proc/self/exe");
    init.arg(ENTER).arg(INIT).arg(&call.text).arg(number).args(&call.command);
    let mut init = init.spawn().doing("start the first process inside")?;
    drop(writer);
    capabilities::give_up_own().doing("give up capabilities")?;
    // Keys of a terminal are for the command. Not before the start: it would inherit this.
    SigSet::all().thread_block().doing("block signals")?;
    match status::wait(reader) {
        Some(CommandStatus::Exited(code)) => Ok(code),
        Some(CommandStatus::Signalled(signal)) => end_by(signal),
        None => {
            let status = init.wait().doing("wait for the first process inside")?;
            Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED))
        }
    }
}

fn enter_namespaces(spec: &Spec) -> Result<(), EnterError> {
    let (user, group) = (geteuid(), getegid());
    // Only root may. For others the groups stay, and are nobody's inside.
    let _ = setgroups(&[]);
    let mut flags = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    if spec.network == Network::None {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    unshare(flags).doing("make namespaces")?;
    fs::write("/proc/self/setgroups", "deny").doing("give up groups")?;
    fs::write("/proc/self/uid_map", format!("{INNER_ID} {user} 1\n")).doing("map the user")?;
    fs::write("/proc/self/gid_map", format!("{INNER_ID} {group} 1\n")).doing("map the group")
}

/// Ends by the signal that ended the command, so that whoever waits sees the same.
fn end_by(number: u8) -> Result<u8, EnterError> {
    // The memory of this program is nobody's business.
    setrlimit(Resource::RLIMIT_CORE, 0, 0).doing("forbid a core dump")?;
    if let Ok(signal) = Signal::try_from(i32::from(number)) {
        SigSet::all().thread_unblock().doing("unblock signals")?;
        kill(Pid::this(), signal).doing("end by a signal")?;
    }
    Ok(128_u8.saturating_add(number))
}
