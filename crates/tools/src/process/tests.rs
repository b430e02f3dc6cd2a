use std::path::Path;

use openclaw_config::Environment;
use openclaw_protocol::message::Block;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::command::sessions::CommandSessions;
use crate::exec::settings::{Elevated, ElevatedMode};
use crate::path::Confinement;
use crate::testing::context;

/// `exec` and `process` of one agent.
struct Bench {
    dir: tempfile::TempDir,
    exec: Box<dyn Tool>,
    process: Process,
}

fn settings(change: impl FnOnce(&mut ExecSettings)) -> ExecSettings {
    let environment = Environment::new([("PATH", "/usr/bin:/bin"), ("SHELL", "/bin/sh")], "/");
    let mut settings = ExecSettings::new(&openclaw_config::settings::Exec::default(), environment);
    settings.may_background = true;
    settings.scope = "agent:main".to_owned();
    change(&mut settings);
    settings
}

impl Bench {
    fn new() -> Self {
        Self::with(settings(|_| {}))
    }

    fn with(exec: ExecSettings) -> Self {
        let setup = Arc::new(Setup {
            confinement: Confinement::Host,
            exec,
            message: None,
            apply_patch: false,
            web: crate::testing::web(&Default::default()),
            image: None,
            has_gateway: false,
            writes: crate::setup::Writes::default(),
            memory_off: None,
            off_limits: Default::default(),
        });
        Self {
            dir: tempfile::tempdir().unwrap(),
            exec: Box::new(crate::exec_tool::Exec::new(&setup)),
            process: Process(setup),
        }
    }

    fn home(&self) -> &Path {
        self.dir.path()
    }

    /// Starts a command in the background; its id.
    async fn start(&self, command: &str, more: Value) -> String {
        let mut args = json!({"command": command, "background": true});
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let started = self.exec.run(args, context(self.home().to_owned())).await.unwrap();
        let details = started.details.unwrap();
        assert_eq!(details["status"], "running");
        details["sessionId"].as_str().unwrap().to_owned()
    }

    async fn call(&self, args: Value) -> (String, Value) {
        let output = self.process.run(args, context(self.home().to_owned())).await.unwrap();
        let [Block::Text(text)] = output.content.as_slice() else { panic!("{output:?}") };
        (text.text.clone(), output.details.unwrap())
    }

    async fn says(&self, args: Value) -> String {
        self.call(args).await.0
    }

    async fn act(&self, action: &str, id: &str) -> String {
        self.says(json!({"action": action, "sessionId": id})).await
    }

    /// Polls until all that was new satisfies.
    async fn polled(&self, id: &str, is: impl Fn(&str) -> bool) -> String {
        let mut all = String::new();
        let polling = async {
            loop {
                let polled = self.act("poll", id).await;
                all.push_str(polled.strip_suffix("\n\nProcess still running.").unwrap_or(&polled));
                all = all.replace("(no new output)", "");
                if is(&all) {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        let found = tokio::time::timeout(Duration::from_secs(20), polling).await;
        assert!(found.is_ok(), "{all}");
        all
    }
}

#[tokio::test]
async fn a_command_in_the_background_is_watched_and_fed_to_its_end() {
    let bench = Bench::new();
    assert_eq!(bench.says(json!({"action": "list"})).await, "No running or recent sessions.");
    let id = bench.start("while read -r line; do echo got $line; done; echo over; exit 3", json!({})).await;
    let (text, details) = bench.call(json!({"action": "list"})).await;
    assert!(text.starts_with(&format!("{id} running   ")) && text.contains(" :: while read"), "{text}");
    assert_eq!(
        (&details["sessions"][0]["sessionId"], &details["sessions"][0]["status"]),
        (&json!(id), &json!("running"))
    );
    assert_eq!(bench.act("poll", &id).await, "(no new output)\n\nProcess still running.");
    let write = json!({"action": "write", "sessionId": id, "data": "one\n"});
    assert_eq!(bench.says(write).await, format!("Wrote 4 bytes to session {id}."));
    bench.polled(&id, |all| all.contains("got one")).await;
    let keys = json!({"action": "send-keys", "sessionId": id, "literal": "two", "hex": ["0a", "zz"]});
    assert_eq!(
        bench.says(keys).await,
        format!("Sent 4 bytes to session {id}.\nWarnings:\n- Invalid hex byte: zz")
    );
    assert_eq!(bench.act("send-keys", &id).await, "No key data provided.");
    let words =
        json!({"action": "send-keys", "sessionId": id, "literal": "x", "keys": ["entr", "enter", "ctrl-c"]});
    let refused = bench.says(words).await;
    assert!(refused.starts_with("Unknown keys: entr, ctrl-c. Nothing was sent. Keys are "), "{refused}");
    let paste = json!({"action": "paste", "sessionId": id, "text": "three\n", "bracketed": false});
    assert_eq!(bench.says(paste).await, format!("Pasted 6 chars to session {id}."));
    bench.polled(&id, |all| all.contains("got three")).await;
    let end = json!({"action": "write", "sessionId": id, "eof": true});
    assert_eq!(bench.says(end).await, format!("Wrote 0 bytes to session {id}. (stdin closed)"));
    let last = bench.polled(&id, |all| all.contains("exited")).await;
    assert!(last.ends_with("Process exited with code 3."), "{last}");
    let (text, details) = bench.call(json!({"action": "log", "sessionId": id})).await;
    assert_eq!(text, "got one\ngot two\ngot three\nover");
    assert_eq!(
        (&details["totalLines"], &details["exitCode"], &details["truncated"]),
        (&json!(4), &json!(3), &json!(false))
    );
    let some = json!({"action": "log", "sessionId": id, "offset": 1, "limit": 2});
    assert_eq!(bench.says(some).await, "got two\ngot three");
    let past = json!({"action": "log", "sessionId": id, "offset": 4});
    assert_eq!(bench.says(past).await, "(offset 4 is past the end: the log has 4 lines, 0 to 3)");
    assert_eq!(bench.says(json!({"action": "log", "sessionId": id, "limit": 1})).await, "over");
    assert_eq!(bench.act("write", &id).await, format!("No active session found for {id}"));
    assert_eq!(bench.act("kill", &id).await, format!("No active session found for {id}"));
    assert_eq!(bench.act("clear", &id).await, format!("Cleared session {id}."));
    assert_eq!(bench.act("poll", &id).await, format!("No session found for {id}"));
}

#[tokio::test]
async fn what_can_not_be_done_is_told() {
    let bench = Bench::new();
    let id = bench.start("sleep 600", json!({})).await;
    let rows = [
        (json!({"action": "dance"}), "Unknown action dance".to_owned()),
        (json!({}), "Unknown action ".to_owned()),
        (json!({"action": "poll"}), "sessionId is required for this action.".to_owned()),
        (json!({"action": "log", "sessionId": "x"}), "No session found for x".to_owned()),
        (json!({"action": "write", "sessionId": "x"}), "No active session found for x".to_owned()),
        (json!({"action": "clear", "sessionId": "x"}), "No finished session found for x".to_owned()),
        (json!({"action": "clear", "sessionId": id}), format!("No finished session found for {id}")),
        (json!({"action": "paste", "sessionId": id}), "No paste text provided.".to_owned()),
        (json!({"action": "log", "sessionId": id}), "(no output yet)".to_owned()),
    ];
    for (args, text) in rows {
        assert_eq!(bench.says(args.clone()).await, text, "{args}");
    }
    let (text, details) = bench.call(json!({"action": "kill", "sessionId": id})).await;
    assert_eq!((text, &details["status"]), (format!("Killed session {id}."), &json!("failed")));
    let other = bench.start("sleep 600", json!({})).await;
    assert_eq!(other, format!("{id}-2"), "the name is taken");
    assert_eq!(bench.act("remove", &other).await, format!("Removed session {other}."));
    assert_eq!(bench.act("remove", &other).await, format!("No session found for {other}"));
}

/// Spec `tools.md` §4: the newest first, each with all that is known of it.
#[tokio::test]
async fn a_list_tells_all_of_each_command_and_the_newest_first() {
    let bench = Bench::new();
    let long = format!("read -r line; exit 3 # {}", "x".repeat(100));
    let first = bench.start(&long, json!({})).await;
    let second = bench.start("echo shown; sleep 600", json!({})).await;
    bench.polled(&second, |all| all.contains("shown")).await;
    bench.says(json!({"action": "write", "sessionId": first, "data": "\n"})).await;
    bench.polled(&first, |all| all.contains("exited")).await;
    let (text, details) = bench.call(json!({"action": "list"})).await;
    let lines: Vec<&str> = text.lines().collect();
    let name: String = long.chars().take(80).collect();
    assert!(lines[0].starts_with(&format!("{second} running   ")), "{text}");
    assert!(
        lines[1].starts_with(&format!("{first} failed    ")) && lines[1].ends_with(&format!(" :: {name}")),
        "{text}"
    );
    let mut rows = details["sessions"].as_array().unwrap().clone();
    for row in &mut rows {
        for volatile in ["pid", "startedAt", "endedAt", "runtimeMs"] {
            if let Some(value) = row.get_mut(volatile) {
                assert!(value.is_u64(), "{volatile}");
                *value = json!(0);
            }
        }
    }
    let expect = [
        json!({
            "sessionId": second, "status": "running", "pid": 0, "startedAt": 0, "runtimeMs": 0, "cwd": bench.home(),
            "command": "echo shown; sleep 600", "name": "echo shown; sleep 600", "tail": "shown\n", "truncated": false,
        }),
        json!({
            "sessionId": first, "status": "failed", "pid": 0, "startedAt": 0, "endedAt": 0, "runtimeMs": 0,
            "cwd": bench.home(), "command": long, "name": name, "tail": "", "truncated": false, "exitCode": 3,
        }),
    ];
    assert_eq!(rows, expect);
    assert_eq!(
        bench.act("remove", &first).await,
        format!("Removed session {first}."),
        "also one that has ended"
    );
    assert_eq!(bench.act("poll", &first).await, format!("No session found for {first}"));
}

/// A mistake is told in the details too: nothing is thrown.
#[tokio::test]
async fn what_did_not_work_is_marked_as_failed() {
    let bench = Bench::new();
    // The command went to the background by itself, and nothing can be written to it.
    let slow = json!({"command": "sleep 600"});
    let mut quick = settings(|_| {});
    quick.background = Duration::from_millis(20);
    let by_itself = Bench::with(quick);
    let output = by_itself.exec.run(slow, context(by_itself.home().to_owned())).await.unwrap();
    let id = output.details.unwrap()["sessionId"].as_str().unwrap().to_owned();
    for action in ["write", "submit", "paste", "send-keys"] {
        let args = json!({"action": action, "sessionId": id, "data": "x", "text": "x", "keys": "enter"});
        let (text, details) = by_itself.call(args).await;
        assert_eq!(text, format!("Session {id} stdin is not writable."), "{action}");
        assert_eq!(details, json!({"status": "failed"}), "{action}");
    }
    // A command that a call still waits for belongs to that call. It has the name that is free
    // again.
    let id = bench.start("sleep 600", json!({})).await;
    bench.act("remove", &id).await;
    let waiting =
        bench.exec.run(json!({"command": "echo begun > begun; sleep 600"}), context(bench.home().to_owned()));
    let asking = async {
        while !bench.home().join("begun").exists() {
            tokio::task::yield_now().await;
        }
        let mut told = Vec::new();
        for action in ["poll", "log", "write", "submit", "paste", "send-keys", "kill", "clear", "remove"] {
            told.push(bench.call(json!({"action": action, "sessionId": id})).await);
        }
        told
    };
    let told = tokio::select! {
        _ = waiting => panic!("it waits"),
        told = asking => told,
    };
    for (text, details) in told {
        assert_eq!(
            (text, &details["status"]),
            (format!("Session {id} is not backgrounded."), &json!("failed"))
        );
    }
}

/// Spec `tools.md` §1: a list may be one text.
#[tokio::test]
async fn one_key_needs_no_list() {
    let bench = Bench::new();
    let id = bench.start("read -r line; echo got $line", json!({})).await;
    for (args, bytes) in [(json!({"literal": "a"}), 1), (json!({"hex": "62"}), 1), (json!({"hex": "0a"}), 1)]
    {
        let mut args = args;
        args["action"] = json!("send-keys");
        args["sessionId"] = json!(id);
        assert_eq!(bench.says(args).await, format!("Sent {bytes} bytes to session {id}."));
    }
    bench.polled(&id, |all| all.contains("got ab")).await;
    let other = bench.start("read -r line; echo got $line", json!({"pty": true})).await;
    let enter = json!({"action": "send-keys", "sessionId": other, "keys": "enter"});
    assert_eq!(bench.says(enter).await, format!("Sent 1 bytes to session {other}."));
    bench.polled(&other, |all| all.contains("exited with code 0")).await;
}

/// Spec `tools.md` §3.2: the time of a command goes on in the background.
#[tokio::test]
async fn the_time_of_a_command_goes_on_in_the_background() {
    for pty in [false, true] {
        let bench = Bench::new();
        let script = "trap '' TERM HUP INT; echo $$ > group; sleep 600 & echo ready; wait";
        // Long enough for a busy machine to begin.
        let id = bench.start(script, json!({"timeout": 4.5, "pty": pty})).await;
        let all = bench.polled(&id, |all| all.contains("exited")).await;
        assert!(
            all.ends_with("Process exited with signal SIGKILL (it ran out of time)."),
            "pty {pty}: {all}"
        );
        gone(&std::fs::read_to_string(bench.home().join("group")).unwrap()).await;
    }
}

/// A thousand commands in the background: as many as are allowed run, and the others are told.
#[tokio::test]
async fn no_more_commands_run_than_the_machine_can_bear() {
    const MOST: usize = 256;
    let bench = Bench::new();
    let mut refused = Vec::new();
    for _ in 0..1_000 {
        let args = json!({"command": "exec sleep 600", "background": true});
        if let Err(error) = bench.exec.run(args, context(bench.home().to_owned())).await {
            refused.push(error.to_string());
        }
    }
    assert_eq!(refused.len(), 1_000 - MOST);
    let told = "Too many commands run at once. Wait for some, or end them with process action=kill.";
    assert!(refused.iter().all(|error| error == told), "{refused:?}");
    let (_, details) = bench.call(json!({"action": "list"})).await;
    let sessions = details["sessions"].as_array().unwrap().clone();
    assert_eq!(sessions.len(), MOST);
    // There is room again, and nothing is left when the gateway goes.
    bench.act("kill", sessions[0]["sessionId"].as_str().unwrap()).await;
    bench.start("exec sleep 600", json!({})).await;
    let groups: Vec<String> = sessions.iter().map(|session| session["pid"].to_string()).collect();
    drop(bench);
    for pid in groups {
        let pid = nix::unistd::Pid::from_raw(pid.parse().unwrap());
        let is_gone = async {
            while nix::sys::signal::kill(pid, None).is_ok() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), is_gone).await.expect("it is still there");
    }
}

#[tokio::test]
async fn others_do_not_see_it_and_a_call_that_ended_leaves_nothing() {
    let sessions = Arc::new(CommandSessions::new(Box::new(|_, _| {})));
    let shared = |scope: &str| {
        Bench::with(settings(|settings| {
            settings.sessions = Arc::clone(&sessions);
            settings.scope = scope.to_owned();
        }))
    };
    let (one, two) = (shared("agent:one"), shared("agent:two"));
    let id = one.start("sleep 600", json!({})).await;
    assert_eq!(two.act("kill", &id).await, format!("No active session found for {id}"));
    assert_eq!(two.says(json!({"action": "list"})).await, "No running or recent sessions.");
    one.exec.run(json!({"command": "true"}), context(one.home().to_owned())).await.unwrap();
    let (_, details) = one.call(json!({"action": "list"})).await;
    assert_eq!(details["sessions"].as_array().unwrap().len(), 1, "{details}");
}

#[tokio::test]
async fn a_program_has_a_terminal_of_its_own() {
    let bench = Bench::new();
    let script = "test -t 0 && test -t 1 && echo yes; stty size; echo $TERM; printf '\\033[6n'; read -r answer; \
                  printf %s \"$answer\" | od -An -c; read -r line; echo said $line";
    let id = bench.start(script, json!({"pty": true})).await;
    let all = bench.polled(&id, |all| all.contains("xterm-256color") && all.contains(";1R")).await;
    assert!(all.contains("yes") && all.contains("30 120"), "{all:?}");
    // The reply about its cursor waits for the end of the line.
    let keys = json!({"action": "send-keys", "sessionId": id, "keys": ["enter"]});
    bench.says(keys).await;
    bench.polled(&id, |all| all.contains("[   1   ;   1   R")).await;
    bench.says(json!({"action": "write", "sessionId": id, "data": "hello"})).await;
    assert_eq!(bench.act("submit", &id).await, format!("Submitted session {id} (sent CR)."));
    let all = bench.polled(&id, |all| all.contains("exited")).await;
    assert!(all.contains("said hello") && all.ends_with("Process exited with code 0."), "{all:?}");
}

#[tokio::test]
async fn what_hides_in_a_terminal_is_killed_with_all_it_started() {
    let bench = Bench::new();
    let script = "trap '' HUP TERM INT; echo $$ > group; sleep 600 & sleep 600 & echo ready; wait";
    let id = bench.start(script, json!({"pty": true})).await;
    bench.polled(&id, |all| all.contains("ready")).await;
    let group = std::fs::read_to_string(bench.home().join("group")).unwrap();
    bench.act("kill", &id).await;
    gone(&group).await;
}

#[tokio::test]
async fn commands_end_with_the_gateway() {
    let bench = Bench::new();
    for pty in [false, true] {
        let id = bench.start("echo $$ > group; sleep 600 & echo ready; wait", json!({"pty": pty})).await;
        bench.polled(&id, |all| all.contains("ready")).await;
        std::fs::rename(bench.home().join("group"), bench.home().join(format!("group-{pty}"))).unwrap();
    }
    let Bench { dir, exec, process } = bench;
    drop((exec, process));
    for pty in [false, true] {
        gone(&std::fs::read_to_string(dir.path().join(format!("group-{pty}"))).unwrap()).await;
    }
}

/// Waits until no process of a group is left.
async fn gone(group: &str) {
    let group = nix::unistd::Pid::from_raw(group.trim().parse().unwrap());
    let gone = async {
        while nix::sys::signal::killpg(group, None).is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("the group is still alive");
}

#[tokio::test]
async fn its_owner_is_told_of_its_end_unless_it_ended_it() {
    let (send, mut told) = tokio::sync::mpsc::unbounded_channel();
    let on_exit = move |key: &openclaw_protocol::SessionKey, line: &str| {
        let _ = send.send((key.as_str().to_owned(), line.to_owned()));
    };
    let sessions = Arc::new(CommandSessions::new(Box::new(on_exit)));
    let key = openclaw_protocol::SessionKey::parse("agent:main:main").unwrap();
    let bench = Bench::with(settings(|settings| {
        settings.sessions = sessions;
        settings.owner = Some(key);
    }));
    let long = "x".repeat(500);
    for (command, how) in [
        ("echo a; echo '  b'", "completed (ID, code 0) :: a b".to_owned()),
        ("exit 7", "failed (ID, code 7)".to_owned()),
        ("kill -TERM $$", "failed (ID, signal SIGTERM)".to_owned()),
        (&format!("echo {long}"), format!("completed (ID, code 0) :: {}", "x".repeat(400))),
    ] {
        let id = bench.start(&format!("read -r line; {command}"), json!({})).await;
        bench.says(json!({"action": "submit", "sessionId": id})).await;
        bench.says(json!({"action": "write", "sessionId": id, "data": "\n"})).await;
        let line = tokio::time::timeout(Duration::from_secs(20), told.recv()).await.unwrap().unwrap();
        let short: String = id.chars().take(8).collect();
        assert_eq!(
            line,
            ("agent:main:main".to_owned(), format!("Exec {}", how.replace("ID", &short))),
            "{command}"
        );
        bench.act("remove", &id).await;
    }
    let id = bench.start("sleep 600", json!({})).await;
    bench.act("kill", &id).await;
    assert!(told.try_recv().is_err(), "it was ended by who would be told");
}

#[tokio::test]
async fn a_call_that_takes_long_goes_on_in_the_background_and_one_that_is_stopped_does_not() {
    let bench = Bench::new();
    let slow = json!({"command": "echo first; read -r line", "yieldMs": 10});
    let output = bench.exec.run(slow, context(bench.home().to_owned())).await.unwrap();
    let details = output.details.unwrap();
    let id = details["sessionId"].as_str().unwrap().to_owned();
    let [Block::Text(text)] = output.content.as_slice() else { panic!() };
    assert_eq!(
        text.text,
        format!(
            "Command still running (session {id}, pid {}). Use process (list/poll/log/write/kill/clear/remove) for follow-up.",
            details["pid"]
        )
    );
    let cancel = CancellationToken::new();
    let stopped = ToolContext { cancel: cancel.clone(), ..context(bench.home().to_owned()) };
    let run = bench.exec.run(json!({"command": "echo $$ > group; exec sleep 600"}), stopped);
    let stop = async {
        while !std::fs::read_to_string(bench.home().join("group")).is_ok_and(|group| group.ends_with('\n')) {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let (ended, ()) = tokio::join!(run, stop);
    assert!(matches!(ended, Err(ToolError::Aborted)));
    let (_, details) = bench.call(json!({"action": "list"})).await;
    assert_eq!(details["sessions"].as_array().unwrap().len(), 1, "the one in the background: {details}");
}

#[test]
fn times_are_short() {
    let rows = [(5, "5ms"), (12_000, "12s"), (185_000, "3m5s"), (7_800_000, "2h10m")];
    for (ms, text) in rows {
        assert_eq!(duration(Duration::from_millis(ms)), text);
    }
}

#[tokio::test]
async fn an_elevated_command_is_fed_only_by_whom_the_elevated_list_names() {
    let owners = settings(|settings| {
        settings.elevated = Elevated { mode: ElevatedMode::Full, refusal: None };
    });
    let guests = settings(|settings| {
        settings.sessions = Arc::clone(&owners.sessions);
        settings.elevated.refusal = Some("no".to_owned());
    });
    let (owners, guests) = (Bench::with(owners), Bench::with(guests));
    let id = owners.start("read -r line; echo got $line", json!({})).await;
    for action in ["write", "submit", "paste", "send-keys"] {
        let args = json!({"action": action, "sessionId": id, "data": "x\n", "text": "x", "keys": ["enter"]});
        let said = guests.says(args).await;
        assert!(said.starts_with(&format!("Nothing was written to session {id}")), "{action}: {said}");
    }
    assert!(guests.act("poll", &id).await.contains("still running"));
    owners.says(json!({"action": "write", "sessionId": id, "data": "home\n"})).await;
    owners.polled(&id, |printed| printed.contains("got home")).await;
}
