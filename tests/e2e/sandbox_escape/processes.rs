//! Processes: those outside are safe, those inside are bounded and end.

use std::path::Path;

use openclaw_tools::sandbox::Level;
use serde_json::json;

use super::bench::{attempt, bench, bench_with};
use crate::support::processes::until;

/// Host processes with this word among their arguments.
fn with_argument(word: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(Path::new(&entry.path()).join("cmdline")).ok());
    lines.filter(|line| line.split(|byte| *byte == 0).any(|part| part == word.as_bytes())).count()
}

#[tokio::test]
async fn processes_outside_are_neither_seen_nor_signalled() {
    let Some(bench) = bench(Level::Namespaces, json!({})).await else { return };
    let own = std::process::id();
    let rows = [
        attempt("a process outside", format!("kill -0 {}", own + 4_000_000), &["No such process"]),
        attempt("the first process", "kill -KILL 1; echo $?; sleep 0; echo here", &["here"]),
        attempt("all", "kill -TERM -1; echo here", &["here", "aborted by signal"]),
        attempt("the list", "ls /proc | grep -c '^[0-9]' | { read n; [ $n -lt 9 ] && echo few; }", &["few"]),
        attempt(
            "priority",
            "nice -n -5 id; renice -n -5 $$",
            &["Permission denied", "Operation not permitted"],
        ),
        attempt("real time", "chrt -f 50 id", &["Operation not permitted", "failed to set", "not found"]),
    ];
    bench.refuses(&rows).await;
}

#[tokio::test]
async fn a_fork_bomb_is_bounded() {
    let Some(bench) = bench(Level::Namespaces, json!({"docker": {"pidsLimit": 320}})).await else { return };
    let script = "import os,time\nn=0\ntry:\n while n<5000:\n  if os.fork()==0: time.sleep(600)\n  n+=1\nexcept OSError as e: print(n<400,e.strerror,flush=True)\nos.kill(-1,9)\n";
    std::fs::write(bench.box_dir().join("bomb.py"), script).unwrap();
    let said = bench.call("exec", json!({"command": "python3 bomb.py", "timeout": 60})).await;
    assert!(said.contains("True Resource temporarily unavailable"), "{said}");
}

#[tokio::test]
async fn endless_output_and_memory_are_bounded() {
    let docker =
        json!({"memory": "256m", "ulimits": {"fsize": 1_000_000, "nofile": 64}, "tmpfs": ["/tmp:size=1m"]});
    let Some(bench) = bench(Level::Namespaces, json!({"docker": docker})).await else { return };
    let args = json!({"command": "yes openclaw | head -c 10000000000", "timeout": 2});
    let said = bench.call("exec", args).await;
    assert!(said.contains("Command timed out after 2 seconds"), "{}", said.len());
    assert!(said.chars().count() < 210_000, "{}", said.chars().count());
    let rows = [
        attempt("memory", "python3 -c 'bytearray(1 << 30)'", &["MemoryError"]),
        attempt(
            "a big file",
            "head -c 2000000 /dev/zero > big; ls -l big | cut -d' ' -f5",
            &["File size limit", "1000000", "SIGXFSZ"],
        ),
        attempt(
            "the memory of /tmp",
            "head -c 2000000 /dev/zero > /tmp/big",
            &["No space left", "File size limit", "File too large"],
        ),
        attempt("open files", "ulimit -n; ulimit -Hn", &["64\n64"]),
    ];
    bench.refuses(&rows).await;
}

#[tokio::test]
async fn what_a_command_started_ends_with_it_wherever_it_hides() {
    let Some(bench) = bench(Level::Namespaces, json!({})).await else { return };
    let word = format!("98{}.5", std::process::id());
    let command = format!(
        "setsid nohup sleep {word} & (setsid sh -c 'trap \"\" TERM HUP; sleep {word}; :' &) ; sleep {word}"
    );
    let call = bench.call("exec", json!({"command": command, "timeout": 1}));
    let said = call.await;
    assert!(said.contains("timed out"), "{said}");
    until("the end of all", || with_argument(&word) == 0).await;
}

#[tokio::test]
async fn what_is_left_in_the_background_lives_on_until_it_is_killed() {
    let Some(bench) = bench(Level::Namespaces, json!({})).await else { return };
    let command = "(sleep 0.2; echo later > later) > /dev/null 2>&1 < /dev/null &";
    assert_eq!(bench.run(command).await, "(no output)");
    until("the file", || bench.box_dir().join("later").exists()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminal_and_a_fed_command_work_inside() {
    for level in [Level::Namespaces, Level::Landlock] {
        let Some(bench) = bench(level, json!({})).await else { continue };
        let args = json!({"command": "[ -t 0 ] && echo terminal; stty size; echo $TERM; echo typed > /dev/tty", "pty": true});
        let said = bench.call("exec", args).await.replace('\r', "");
        assert_eq!(said, "terminal\n30 120\nxterm-256color\ntyped", "{}", level.as_str());
        let started = bench
            .call("exec", json!({"command": "read -r line; echo heard $line", "background": true}))
            .await;
        let id =
            started.split("(session ").nth(1).and_then(|rest| rest.split(',').next()).unwrap().to_owned();
        bench.call("process", json!({"action": "write", "sessionId": id, "data": "hello\n"})).await;
        let mut said = String::new();
        while !said.contains("exited with code 0") {
            said += &bench.call("process", json!({"action": "poll", "sessionId": id})).await;
            assert!(said.len() < 100_000, "{}", &said[..2_000]);
        }
        assert!(said.contains("heard hello"), "{said}");
    }
}

#[tokio::test]
async fn endings_are_those_of_the_command() {
    for level in [Level::Namespaces, Level::Landlock] {
        let Some(bench) = bench(level, json!({})).await else { continue };
        for (command, says) in [
            ("echo out; exit 3", "error: out\n\nCommand exited with code 3"),
            ("kill -TERM $$", "error: Command aborted by signal SIGTERM"),
            ("kill -KILL $$", "error: Command aborted by signal SIGKILL"),
            ("cat; echo end", "end"),
            ("true", "(no output)"),
        ] {
            assert_eq!(bench.run(command).await, says, "{} {command}", level.as_str());
        }
    }
}

#[tokio::test]
async fn variables_of_a_call_work_on_the_command_alone() {
    let Some(bench) = bench(Level::Namespaces, json!({"docker": {"env": {"LANG": "C", "SET": "yes"}}})).await
    else {
        return;
    };
    let env = json!({"LD_PRELOAD": "/workspace/none.so", "A": "b", "PATH": "/own"});
    let said =
        bench.call("exec", json!({"command": "echo $A $SET $LANG $HOME; echo $PATH", "env": env})).await;
    let complaints = said.lines().filter(|line| line.contains("cannot be preloaded")).count();
    assert_eq!(complaints, 1, "{said}");
    assert!(said.contains("b yes C /workspace\n/own:/usr/local/sbin:"), "{said}");
}

#[tokio::test]
async fn a_setup_command_runs_once() {
    let setup = json!({"docker": {"setupCommand": "echo ran >> setup.log"}});
    let Some(bench) = bench(Level::Namespaces, setup).await else { return };
    assert_eq!(bench.run("cat setup.log").await, "ran");
}

#[tokio::test]
async fn commands_are_in_the_cgroup_that_has_the_limits() {
    // Stands for a part of the tree: the kernel would do the rest.
    let cgroup = tempfile::tempdir().unwrap();
    std::fs::write(cgroup.path().join("cgroup.controllers"), "cpu memory pids\n").unwrap();
    let docker = json!({"memory": "256m", "memorySwap": "300m", "cpus": 0.5, "pidsLimit": 77});
    for level in [Level::Namespaces, Level::Landlock] {
        let settings = json!({"docker": docker});
        let Some(bench) = bench_with(level, settings.clone(), |all| all.within(cgroup.path())).await else {
            continue;
        };
        let group =
            std::fs::read_dir(cgroup.path()).unwrap().flatten().find(|entry| entry.path().is_dir()).unwrap();
        let read = |file: &str| std::fs::read_to_string(group.path().join(file)).unwrap_or_default();
        assert_eq!(read("cgroup.procs"), "");
        assert_eq!(bench.run("ulimit -v").await.trim(), "unlimited");
        assert_eq!(read("cgroup.procs"), "0");
        std::fs::remove_file(group.path().join("cgroup.procs")).unwrap();
        let limits = ["pids.max", "memory.max", "memory.swap.max", "cpu.max"].map(read);
        assert_eq!(limits, ["77", "268435456", "46137344", "50000 100000"]);
        let noted = std::fs::read_to_string(bench.state().join("sandbox/local.json")).unwrap();
        assert!(noted.contains("\"limits\": \"cgroup: memory, pids and cpus"), "{noted}");
        // Nothing is run where the group can't be joined.
        std::fs::create_dir(group.path().join("cgroup.procs")).unwrap();
        let said = bench.run("echo ran").await;
        assert!(said.contains("join the sandbox's cgroup") && !said.contains("\nran"), "{said}");
        std::fs::remove_dir(group.path().join("cgroup.procs")).unwrap();
        let Some(bench) = bench_with(level, settings, |all| all).await else { continue };
        assert_eq!(bench.run("ulimit -v").await.trim(), "262144");
        let noted = std::fs::read_to_string(bench.state().join("sandbox/local.json")).unwrap();
        assert!(noted.contains("\"limits\": \"NOT by cgroups (this process has taken none)"), "{noted}");
    }
}
