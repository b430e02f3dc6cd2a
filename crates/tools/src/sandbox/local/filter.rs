//! seccomp: system calls that a command has no use for, and that have let others out.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};

use super::spec::{Level, Network, Spec};

/// Refused whatever the arguments.
const DENIED: &[i64] = &[
    // The file system and its mounts.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    // Namespaces. Those of `clone` are told by its flags.
    libc::SYS_unshare,
    libc::SYS_setns,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_vhangup,
    // Keys are not in a namespace: those of the gateway's user would be seen.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
];

#[cfg(target_arch = "x86_64")]
const DENIED_HERE: &[i64] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_HERE: &[i64] = &[];

const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// A file with one of these bits runs with the rights of its owner, also outside of the sandbox: the setuid and the setgid bit.
const PRIVILEGED_BITS: [u64; 2] = [0o4000, 0o2000];
/// Flags of `open` with which a file is made: `O_CREAT`, and the bit of `O_TMPFILE` alone. Without them nobody sets the mode.
const MAKING_FLAGS: [u64; 2] = [0o100, 0o20_000_000];

/// Calls that set the mode of a file, with the position of the mode and of the flags that decide if it counts.
const MODES: &[(i64, u8, Option<u8>)] = &[
    (libc::SYS_fchmod, 1, None),
    (libc::SYS_fchmodat, 2, None),
    (libc::SYS_fchmodat2, 2, None),
    (libc::SYS_mkdirat, 2, None),
    (libc::SYS_mknodat, 2, None),
    (libc::SYS_openat, 3, Some(2)),
];

#[cfg(target_arch = "x86_64")]
const MODES_HERE: &[(i64, u8, Option<u8>)] = &[
    (libc::SYS_chmod, 1, None),
    (libc::SYS_creat, 1, None),
    (libc::SYS_mkdir, 1, None),
    (libc::SYS_mknod, 1, None),
    (libc::SYS_open, 2, Some(1)),
];
#[cfg(not(target_arch = "x86_64"))]
const MODES_HERE: &[(i64, u8, Option<u8>)] = &[];

/// Typing into a terminal for somebody else, and changing what it speaks.
const DENIED_IOCTLS: &[u64] = &[0x5412, 0x541c, 0x5423];

type SeccompRules = BTreeMap<i64, Vec<SeccompRule>>;

/// Restricts this process for ever.
pub(super) fn restrict(spec: &Spec) -> io::Result<()> {
    for program in programs(spec).map_err(io::Error::other)? {
        apply_filter(&program).map_err(io::Error::other)?;
    }
    Ok(())
}

/// Builds the filter programs, one for each answer.
fn programs(spec: &Spec) -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
    let not_there = SeccompRules::from([(libc::SYS_clone3, Vec::new()), (libc::SYS_openat2, Vec::new())]);
    Ok(vec![
        program(denied(spec)?, libc::EPERM)?,
        program(sockets(spec)?, libc::EAFNOSUPPORT)?,
        // Flags of these calls are out of a filter's reach. Libraries then use `clone` and
        // `openat`.
        program(not_there, libc::ENOSYS)?,
    ])
}

fn program(rules: SeccompRules, errno: i32) -> Result<BpfProgram, seccompiler::BackendError> {
    let refusal = SeccompAction::Errno(u32::try_from(errno).unwrap_or_default());
    let here = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(with_other_numbers(rules), SeccompAction::Allow, refusal, here)?.try_into()
}

fn denied(spec: &Spec) -> Result<SeccompRules, seccompiler::BackendError> {
    let mut rules: SeccompRules = DENIED.iter().chain(DENIED_HERE).map(|call| (*call, Vec::new())).collect();
    let flags = NAMESPACES.iter().map(|flag| u64::try_from(*flag).unwrap_or_default());
    let clone = flags.map(|flag| rule(&[(0, SeccompCmpOp::MaskedEq(flag), flag)]));
    rules.insert(libc::SYS_clone, clone.collect::<Result<_, _>>()?);
    let ioctl = DENIED_IOCTLS.iter().map(|request| rule(&[(1, SeccompCmpOp::Eq, *request)]));
    rules.insert(libc::SYS_ioctl, ioctl.collect::<Result<_, _>>()?);
    for (call, mode, flags) in MODES.iter().chain(MODES_HERE) {
        rules.insert(*call, privileged(*mode, *flags)?);
    }
    if spec.level == Level::Landlock && !spec.terminal {
        // The guard ends the process group, and nothing else would end what left it.
        rules.extend([(libc::SYS_setsid, Vec::new()), (libc::SYS_setpgid, Vec::new())]);
    }
    Ok(rules)
}

/// A mode with a privileged bit, of a file that is made where there are flags.
fn privileged(mode: u8, flags: Option<u8>) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let has = |argument, bit| (argument, SeccompCmpOp::MaskedEq(bit), bit);
    let bits = PRIVILEGED_BITS.into_iter();
    let rules: Vec<Vec<_>> = match flags {
        None => bits.map(|bit| vec![has(mode, bit)]).collect(),
        Some(flags) => {
            bits.flat_map(|bit| MAKING_FLAGS.map(|making| vec![has(mode, bit), has(flags, making)])).collect()
        }
    };
    rules.iter().map(|conditions| rule(conditions)).collect()
}

/// Kinds of sockets that are refused: all that no namespace holds.
fn sockets(spec: &Spec) -> Result<SeccompRules, seccompiler::BackendError> {
    const UNIX: i32 = libc::AF_UNIX;
    const INTERNET: [i32; 3] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let allowed: Vec<i32> = match (spec.level, spec.network) {
        (Level::Namespaces, _) => INTERNET.into_iter().chain([UNIX]).collect(),
        // The host's own sockets are files, which Landlock does not guard.
        (Level::Landlock, Network::Host) => INTERNET.into(),
        (Level::Landlock, Network::None) => return Ok(SeccompRules::from([(libc::SYS_socket, Vec::new())])),
    };
    let numbers = allowed.into_iter().map(|family| u64::try_from(family).unwrap_or_default());
    let conditions: Vec<_> = numbers.map(|family| (0, SeccompCmpOp::Ne, family)).collect();
    Ok(SeccompRules::from([(libc::SYS_socket, vec![rule(&conditions)?])]))
}

/// All must hold.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions = conditions.iter().map(|(argument, operator, value)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operator.clone(), *value)
    });
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}

/// Adds the rules for the other numbers of each call: on this processor every call has a second
/// number, and some a third, for programs with short pointers.
#[cfg(target_arch = "x86_64")]
fn with_other_numbers(rules: SeccompRules) -> SeccompRules {
    const X32: i64 = 0x4000_0000;
    const OWN: std::ops::RangeInclusive<i64> = 512..=547;
    let mut all = rules.clone();
    all.extend(rules.into_iter().map(|(call, rules)| (call | X32, rules)));
    all.extend(OWN.map(|call| (call | X32, Vec::new())));
    all
}

#[cfg(not(target_arch = "x86_64"))]
fn with_other_numbers(rules: SeccompRules) -> SeccompRules {
    rules
}
