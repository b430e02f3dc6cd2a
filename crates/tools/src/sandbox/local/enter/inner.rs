//! The last stage: gives up all rights and becomes the command.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::setsid;

use super::super::spec::{Level, ProcessLimits, Spec, VARIABLE};
use super::super::{filter, rules};
use super::{Doing as _, EnterArgs, EnterError, bad, capabilities};

pub(super) fn run(call: &EnterArgs) -> Result<u8, EnterError> {
    let (program, arguments) = call.command.split_first().ok_or_else(|| bad("no command"))?;
    let spec = &call.spec;
    // Away from the terminal of the gateway. Where no namespace holds the processes together, they stay in their guard's group.
    if !spec.terminal && spec.level == Level::Namespaces {
        setsid().doing("leave the session")?;
    }
    start_in(spec)?;
    capabilities::give_up_all().doing("give up capabilities")?;
    prctl::set_no_new_privs().doing("forbid new privileges")?;
    rules::restrict(spec).doing("restrict files (Landlock)")?;
    filter::restrict(spec).doing("restrict system calls (seccomp)")?;
    limit(&spec.limits)?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear();
    for (name, value) in std::env::vars_os() {
        if let Some(own) = name.as_bytes().strip_prefix(VARIABLE.as_bytes()) {
            command.env(OsStr::from_bytes(own), value);
        }
    }
    Err(command.exec()).doing(format!("execute {}", Path::new(program).display()))
}

/// Enters the requested directory, or else the workspace.
fn start_in(spec: &Spec) -> Result<(), EnterError> {
    let workspace = spec.workspace().unwrap_or(Path::new("/"));
    std::env::set_current_dir(&spec.workdir)
        .or_else(|_| std::env::set_current_dir(workspace))
        .doing("enter the working directory")
}

fn limit(limits: &ProcessLimits) -> Result<(), EnterError> {
    let mut all = vec![(Resource::RLIMIT_CORE, 0, 0)];
    all.extend(limits.processes.map(|most| (Resource::RLIMIT_NPROC, most, most)));
    all.extend(limits.memory.map(|most| (Resource::RLIMIT_AS, most, most)));
    for (name, soft, hard) in &limits.others {
        let resource = resource(name).ok_or_else(|| bad(&format!("no limit is called {name:?}")))?;
        all.push((resource, *soft, *hard));
    }
    for (resource, soft, hard) in all {
        let (_, highest) = getrlimit(resource).doing("read a limit")?;
        let hard = hard.min(highest);
        setrlimit(resource, soft.min(hard), hard).doing(format!("set {resource:?}"))?;
    }
    Ok(())
}

/// Returns the resource by Docker's name of it.
fn resource(name: &str) -> Option<Resource> {
    const NAMES: &[(&str, Resource)] = &[
        ("as", Resource::RLIMIT_AS),
        ("core", Resource::RLIMIT_CORE),
        ("cpu", Resource::RLIMIT_CPU),
        ("data", Resource::RLIMIT_DATA),
        ("fsize", Resource::RLIMIT_FSIZE),
        ("locks", Resource::RLIMIT_LOCKS),
        ("memlock", Resource::RLIMIT_MEMLOCK),
        ("msgqueue", Resource::RLIMIT_MSGQUEUE),
        ("nice", Resource::RLIMIT_NICE),
        ("nofile", Resource::RLIMIT_NOFILE),
        ("nproc", Resource::RLIMIT_NPROC),
        ("rss", Resource::RLIMIT_RSS),
        ("rtprio", Resource::RLIMIT_RTPRIO),
        ("rttime", Resource::RLIMIT_RTTIME),
        ("sigpending", Resource::RLIMIT_SIGPENDING),
        ("stack", Resource::RLIMIT_STACK),
    ];
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, resource)| *resource)
}
