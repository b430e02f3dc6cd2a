//! System calls that have let others out.

use std::fmt::Write as _;

use openclaw_config::Environment;
use openclaw_config::settings::Config;
use openclaw_protocol::AgentId;
use openclaw_tools::sandbox::{Level, Sandboxes, Wanted};
use serde_json::json;

use super::bench::{attempt, bench};

/// Called with arguments that do no harm if they are let through.
const REFUSED: &[(&str, i64, &str)] = &[
    ("mount", libc::SYS_mount, "0,0,0,0,0"),
    ("umount2", libc::SYS_umount2, "b'/tmp',2"),
    ("pivot_root", libc::SYS_pivot_root, "b'.',b'.'"),
    ("chroot", libc::SYS_chroot, "b'/tmp'"),
    ("move_mount", libc::SYS_move_mount, "-1,0,-1,0,0"),
    ("open_tree", libc::SYS_open_tree, "-100,b'/',1"),
    ("fsopen", libc::SYS_fsopen, "b'tmpfs',0"),
    ("fsmount", libc::SYS_fsmount, "-1,0,0"),
    ("mount_setattr", libc::SYS_mount_setattr, "-1,0,0,0,0"),
    ("swapon", libc::SYS_swapon, "b'/x',0"),
    ("quotactl", libc::SYS_quotactl, "0,0,0,0"),
    ("open_by_handle_at", libc::SYS_open_by_handle_at, "-1,0,0"),
    ("name_to_handle_at", libc::SYS_name_to_handle_at, "-1,0,0,0,0"),
    ("fanotify_init", libc::SYS_fanotify_init, "0,0"),
    ("unshare of users", libc::SYS_unshare, "0x10000000"),
    ("unshare of mounts", libc::SYS_unshare, "0x00020000"),
    ("setns", libc::SYS_setns, "0,0"),
    ("clone of users", libc::SYS_clone, "0x10000000|17,0,0,0,0"),
    ("clone of mounts", libc::SYS_clone, "0x00020000|17,0,0,0,0"),
    ("ptrace", libc::SYS_ptrace, "16,1,0,0"),
    ("process_vm_readv", libc::SYS_process_vm_readv, "1,0,0,0,0,0"),
    ("process_vm_writev", libc::SYS_process_vm_writev, "1,0,0,0,0,0"),
    ("kcmp", libc::SYS_kcmp, "1,1,0,0,0"),
    ("pidfd_getfd", libc::SYS_pidfd_getfd, "-1,0,0"),
    ("bpf", libc::SYS_bpf, "0,0,0"),
    ("perf_event_open", libc::SYS_perf_event_open, "0,0,-1,-1,0"),
    ("userfaultfd", libc::SYS_userfaultfd, "1"),
    ("io_uring_setup", libc::SYS_io_uring_setup, "1,0"),
    ("io_uring_enter", libc::SYS_io_uring_enter, "-1,0,0,0,0,0"),
    ("kexec_load", libc::SYS_kexec_load, "0,0,0,0"),
    ("init_module", libc::SYS_init_module, "0,0,0"),
    ("finit_module", libc::SYS_finit_module, "-1,0,0"),
    ("delete_module", libc::SYS_delete_module, "b'x',0"),
    ("reboot", libc::SYS_reboot, "0,0,0,0"),
    ("syslog", libc::SYS_syslog, "10,0,0"),
    ("acct", libc::SYS_acct, "b'/x'"),
    ("sethostname", libc::SYS_sethostname, "b'x',1"),
    ("settimeofday", libc::SYS_settimeofday, "0,0"),
    ("clock_settime", libc::SYS_clock_settime, "0,0"),
    ("keyctl", libc::SYS_keyctl, "0,-4,0,0,0"),
    ("add_key", libc::SYS_add_key, "0,0,0,0,0"),
    ("request_key", libc::SYS_request_key, "0,0,0,0"),
];

#[tokio::test]
async fn dangerous_system_calls_are_refused_at_each_level() {
    let mut script =
        "import ctypes,os\nl=ctypes.CDLL(None,use_errno=True)\ndef t(n,c,*a):\n r=l.syscall(c,*a)\n \
                      print(n+':',os.strerror(ctypes.get_errno()) if r==-1 else 'LET THROUGH',flush=True)\n"
            .to_owned();
    for (name, call, arguments) in REFUSED {
        writeln!(script, "t('{name}',{call},{arguments})").unwrap();
    }
    writeln!(script, "t('clone3',{},0,0)", libc::SYS_clone3).unwrap();
    if cfg!(target_arch = "x86_64") {
        writeln!(script, "t('mount, short pointers',{},0,0,0,0,0)", libc::SYS_mount | 0x4000_0000).unwrap();
        writeln!(script, "t('ptrace, short pointers',{},16,1,0,0)", 0x4000_0000 + 521).unwrap();
    }
    for level in [Level::Namespaces, Level::Landlock] {
        let Some(bench) = bench(level, json!({})).await else { continue };
        std::fs::write(bench.box_dir().join("calls.py"), &script).unwrap();
        let said = bench.run("python3 calls.py").await;
        if said.contains("python3: not found") {
            eprintln!("SKIPPED: there is no python3 to make system calls with");
            return;
        }
        let wrong: Vec<&str> = said
            .lines()
            .filter(|line| !line.ends_with(": Operation not permitted") && !is_not_there(line))
            .collect();
        assert_eq!(wrong, Vec::<&str>::new(), "{}", level.as_str());
        assert!(said.lines().count() > REFUSED.len(), "{said}");
    }
}

/// Ways to a file that runs with its owner's rights, whoever starts it: `f` and `fd` are a file
/// that is there. Ways of other processors are left out.
fn ways_to_privileged_files() -> Vec<(&'static str, i64, &'static str)> {
    let mut ways = vec![
        ("fchmod", libc::SYS_fchmod, "fd,0o4755"),
        ("fchmod of groups", libc::SYS_fchmod, "fd,0o2755"),
        ("fchmodat", libc::SYS_fchmodat, "-100,b'f',0o6777"),
        ("fchmodat2", libc::SYS_fchmodat2, "-100,b'f',0o4755,0"),
        ("mkdirat", libc::SYS_mkdirat, "-100,b'a',0o2777"),
        ("mknodat", libc::SYS_mknodat, "-100,b'b',0o104755,0"),
        ("openat", libc::SYS_openat, "-100,b'c',os.O_CREAT|os.O_WRONLY,0o4755"),
        ("openat without a name", libc::SYS_openat, "-100,b'.',os.O_TMPFILE|os.O_WRONLY,0o4755"),
        ("openat2", libc::SYS_openat2, "-100,b'd',struct.pack('QQQ',os.O_CREAT|os.O_WRONLY,0o4755,0),24"),
    ];
    #[cfg(target_arch = "x86_64")]
    ways.extend([
        ("chmod", libc::SYS_chmod, "b'f',0o6777"),
        ("creat", libc::SYS_creat, "b'e',0o4755"),
        ("mkdir", libc::SYS_mkdir, "b'g',0o2777"),
        ("mknod", libc::SYS_mknod, "b'h',0o102755,0"),
        ("open", libc::SYS_open, "b'i',os.O_CREAT|os.O_WRONLY,0o2755"),
    ]);
    ways
}

#[tokio::test]
async fn no_file_is_made_that_runs_with_its_owners_rights() {
    let mut script =
        "import ctypes,os,struct\nl=ctypes.CDLL(None,use_errno=True)\nfd=os.open('f',os.O_CREAT|os.O_RDWR,0o755)\ndef t(n,c,*a):\n \
         r=l.syscall(c,*a)\n print(n+':',os.strerror(ctypes.get_errno()) if r==-1 else 'LET THROUGH',flush=True)\n"
            .to_owned();
    let ways = ways_to_privileged_files();
    for (name, call, arguments) in &ways {
        writeln!(script, "t('{name}',{call},{arguments})").unwrap();
    }
    // Arguments that are no mode do not count as one, and other modes are set.
    writeln!(script, "t('no file made',{},-100,b'f',os.O_RDONLY,0o7777)", libc::SYS_openat).unwrap();
    writeln!(script, "os.chmod('f',0o700); os.mkdir('k',0o1777); print('plain modes: set')").unwrap();
    for level in [Level::Namespaces, Level::Landlock] {
        let Some(bench) = bench(level, json!({})).await else { continue };
        std::fs::write(bench.box_dir().join("modes.py"), &script).unwrap();
        let said = bench.run("python3 modes.py").await;
        if said.contains("python3: not found") {
            eprintln!("SKIPPED: there is no python3 to make system calls with");
            return;
        }
        let expect = ways.iter().map(|(name, ..)| match *name {
            "openat2" => "openat2: Function not implemented".to_owned(),
            name => format!("{name}: Operation not permitted"),
        });
        let expect = expect.chain(["no file made: LET THROUGH".to_owned(), "plain modes: set".to_owned()]);
        assert_eq!(said.lines().collect::<Vec<_>>(), expect.collect::<Vec<_>>(), "{}", level.as_str());
        // Complaints come by another pipe, and may come last.
        let commands = "{ cp /bin/sh s; chmod 6755 s; chmod u+s s; install -m 4755 /bin/sh s2; find . -perm /6000 | grep . || echo none; } 2>/dev/null";
        let said = bench.run(commands).await;
        assert!(said.ends_with("none"), "{}: {said}", level.as_str());
    }
}

/// Libraries do without, and so must those who would do harm.
fn is_not_there(line: &str) -> bool {
    matches!(line.split_once(": "), Some(("clone3" | "ptrace, short pointers", "Function not implemented")))
}

#[tokio::test]
async fn no_program_brings_rights_with_it() {
    let Some(bench) = bench(Level::Namespaces, json!({})).await else { return };
    let rows = [
        attempt("capabilities", "grep -c '^Cap.*0000000000000000' /proc/self/status", &["5"]),
        attempt("new privileges", "grep NoNewPrivs /proc/self/status", &["NoNewPrivs:\t1"]),
        attempt("filters", "grep '^Seccomp:' /proc/self/status", &["Seccomp:\t2"]),
        attempt("programs of root", "grep ' /usr ' /proc/self/mounts", &["nosuid"]),
        attempt(
            "su",
            "su root -c id < /dev/null",
            &[
                "must be run from a terminal",
                "Authentication failure",
                "Cannot",
                "cannot",
                "not found",
                "su:",
            ],
        ),
        attempt(
            "becoming root",
            "python3 -c 'import os; os.setuid(0)'",
            &["Operation not permitted", "Invalid argument"],
        ),
        attempt("unshare", "unshare -Ur id", &["Operation not permitted"]),
        attempt(
            "mount",
            "mount -t tmpfs x /tmp",
            &["permission denied", "Operation not permitted", "must be superuser"],
        ),
        attempt("a program of root of its own", "cp /usr/bin/id i; chmod 4755 i; ./i -u", &["1000"]),
        attempt(
            "typing into the terminal",
            "python3 -c \"import fcntl; fcntl.ioctl(0, 0x5412, b'x')\"",
            &["Operation not permitted"],
        ),
        attempt("a core dump", "ulimit -c; ulimit -Hc", &["0\n0"]),
    ];
    bench.refuses(&rows).await;
}

#[tokio::test]
async fn a_kernel_that_gives_nothing_is_said_with_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    let environment = Environment::new([("HOME", home.path().to_str().unwrap()), ("PATH", "/nowhere")], "/");
    let document = json!({"agents": {"defaults": {"sandbox": {"mode": "all"}}}}).to_string();
    let config = Config::from_json5(&document, &environment).unwrap();
    let agent = AgentId::default();
    let wanted = Wanted {
        config: &config,
        agent: &agent,
        agent_workspace: home.path(),
        session_key: "agent:main:main",
        skills: &[],
    };
    // A program that shuts nothing in stands for a kernel that lets it not.
    for program in ["/no/program", "/bin/true", "/bin/echo"] {
        let error = Sandboxes::new(program, home.path()).open(wanted).await.unwrap_err().to_string();
        assert!(
            error.starts_with("this system gives no sandbox without containers (namespaces: "),
            "{error}"
        );
        for words in
            ["; landlock: ", "kernel.unprivileged_userns_clone=1", "a kernel with Landlock", "install Docker"]
        {
            assert!(error.contains(words), "{program}: {error}");
        }
    }
}
