use std::path::Path;
use std::sync::Arc;

use openclaw_config::Environment;
use openclaw_config::settings::{ExecAsk, ExecSecurity};
use openclaw_protocol::message::Block;
use tokio::sync::mpsc;

use super::*;
use crate::approvals::{Approvals, Decision};
use crate::command::sessions::CommandSessions;
use crate::command::slug;
use crate::testing::context;

struct Bench {
    dir: tempfile::TempDir,
    exec: Arc<Exec>,
    cancel: CancellationToken,
    updates: mpsc::Sender<Value>,
}

impl Bench {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut ExecSettings)) -> Self {
        let environment =
            Environment::new([("PATH", "/usr/bin:/bin"), ("SHELL", "/bin/sh"), ("KEPT", "yes")], "/");
        let mut settings = ExecSettings::new(&openclaw_config::settings::Exec::default(), environment);
        change(&mut settings);
        Self {
            dir: tempfile::tempdir().unwrap(),
            exec: Arc::new(Exec::new(&Arc::new(Setup {
                confinement: Confinement::Host,
                exec: settings,
                message: None,
                apply_patch: false,
                web: crate::testing::web(&openclaw_config::settings::WebTools::default()),
                image: None,
                has_gateway: false,
                writes: crate::setup::Writes::default(),
                memory_off: None,
                off_limits: Default::default(),
            }))),
            cancel: CancellationToken::new(),
            updates: mpsc::channel(1).0,
        }
    }

    fn home(&self) -> &Path {
        self.dir.path()
    }

    async fn call(&self, args: Value) -> Result<ToolOutput, ToolError> {
        let workspace = self.home().to_owned();
        let (cancel, updates) = (self.cancel.clone(), self.updates.clone());
        let context = ToolContext { cancel, updates, ..context(workspace) };
        self.exec.run(args, context).await
    }

    async fn says(&self, args: Value) -> String {
        match self.call(args).await {
            Ok(output) => match (&output.notice, output.content.as_slice()) {
                (None, [Block::Text(block)]) => block.text.clone(),
                (Some(notice), [Block::Text(block)]) => format!("{notice}\n\n{}", block.text),
                other => panic!("{other:?}"),
            },
            Err(error) => format!("error: {error}"),
        }
    }
}

#[tokio::test]
async fn each_ending_has_its_words() {
    let bench = Bench::new();
    let home = bench.home().display().to_string();
    std::fs::create_dir(bench.home().join("sub")).unwrap();
    for (args, says) in [
        (json!({"command": "echo hi"}), "hi".to_owned()),
        (json!({"command": "echo '  hi  '"}), "hi".into()),
        (json!({"command": "true"}), "(no output)".into()),
        (json!({"command": "echo out; echo err >&2; exit 3"}), "error: out\nerr\n\nCommand exited with code 3".into()),
        (json!({"command": "exit 3"}), "error: Command exited with code 3".into()),
        (json!({"command": "kill -TERM $$"}), "error: Command aborted by signal SIGTERM".into()),
        (json!({"command": "pwd -P", "workdir": "sub"}), format!("{home}/sub")),
        (json!({"command": "echo $KEPT-$A", "env": {"A": "b"}}), "yes-b".into()),
        (json!({"command": "cat; echo end"}), "end".into()),
        (json!({"command": "none-such-command 2>/dev/null"}), "error: Command exited with code 127".into()),
        (
            json!({"command": "pwd -P", "workdir": "gone", "background": true}),
            format!(
                "Warning: background execution is disabled; running synchronously.\nWarning: workdir \"gone\" is \
                 unavailable; using \"{home}\".\n\n{home}"
            ),
        ),
        (
            json!({"command": "exit 1", "yieldMs": 10}),
            "error: Warning: background execution is disabled; running synchronously.\n\nCommand exited with code 1"
                .into(),
        ),
    ] {
        assert_eq!(bench.says(args.clone()).await, says, "{args}");
    }
}

#[tokio::test]
async fn a_finished_command_tells_clients_its_details() {
    let bench = Bench::new();
    let mut details = bench.call(json!({"command": "echo hi"})).await.unwrap().details.unwrap();
    assert!(details["durationMs"].is_u64());
    details["durationMs"] = json!(0);
    let expect = json!({"status": "completed", "exitCode": 0, "durationMs": 0, "aggregated": "hi", "cwd": bench.home()});
    assert_eq!(details.to_string(), expect.to_string());
}

#[tokio::test]
async fn the_path_starts_with_the_configured_directories() {
    let bench = Bench::with(|settings| settings.path_prepend = vec!["/opt/mine".into()]);
    assert_eq!(bench.says(json!({"command": "echo $PATH"})).await, "/opt/mine:/usr/bin:/bin");
}

/// Settings of a host where everything not on the allowlist is asked about.
fn guarded(dir: &Path, people: &Arc<Approvals>) -> impl FnOnce(&mut ExecSettings) {
    let (store, people) = (ApprovalsStore::new(dir, dir), Arc::clone(people));
    move |settings: &mut ExecSettings| {
        settings.host = Some(ExecHost::Gateway);
        settings.approvals = Some(store);
        settings.people = people;
        settings.agent = "main".to_owned();
    }
}

/// The lines that the owner of a session is told.
fn heard(settings: &mut ExecSettings) -> mpsc::UnboundedReceiver<String> {
    let (send, told) = mpsc::unbounded_channel();
    let on_exit = move |_: &openclaw_protocol::SessionKey, line: &str| {
        let _ = send.send(line.to_owned());
    };
    settings.sessions = Arc::new(CommandSessions::new(Box::new(on_exit)));
    settings.owner = Some(openclaw_protocol::SessionKey::parse("agent:main:main").unwrap());
    told
}

async fn next(told: &mut mpsc::UnboundedReceiver<String>) -> String {
    tokio::time::timeout(Duration::from_secs(20), told.recv()).await.unwrap().unwrap()
}

#[tokio::test]
async fn the_host_runs_without_asking_only_what_its_rules_allow() {
    let dir = tempfile::tempdir().unwrap();
    let people = Arc::new(Approvals::default());
    let open = |settings: &mut ExecSettings| {
        guarded(dir.path(), &people)(settings);
        settings.security = Some(ExecSecurity::Full);
        settings.ask = Some(ExecAsk::Off);
    };
    assert_eq!(Bench::with(open).says(json!({"command": "echo hi"})).await, "hi");
    let file = dir.path().join("exec-approvals.json");
    let rules = |text: &str| std::fs::write(&file, text).unwrap();
    rules(r#"{"version": 1, "defaults": {"security": "deny"}}"#);
    let denied = "error: exec denied: host=gateway security=deny";
    assert_eq!(Bench::with(open).says(json!({"command": "echo hi"})).await, denied);
    let printf = std::fs::canonicalize("/usr/bin/printf").unwrap();
    rules(&json!({"version": 1, "defaults": {"security": "allowlist"}, "agents": {"main": {"allowlist": [{"pattern": printf}]}}}).to_string());
    assert_eq!(Bench::with(open).says(json!({"command": "/usr/bin/printf hi"})).await, "hi");
    let noted = std::fs::read_to_string(&file).unwrap();
    assert!(noted.contains("\"lastUsedCommand\": \"/usr/bin/printf hi\""), "{noted}");
    let miss = "error: exec denied: allowlist miss";
    assert_eq!(Bench::with(open).says(json!({"command": "/usr/bin/printf hi; ls"})).await, miss);
    rules("{");
    let torn = Bench::with(open).says(json!({"command": "echo hi"})).await;
    assert!(
        torn.contains("exec-approvals.json is invalid") && torn.contains("a person has to mend it"),
        "{torn}"
    );
    assert!(people.waiting().is_empty());
}

#[tokio::test]
async fn what_a_person_allows_runs_and_its_owner_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let people = Arc::new(Approvals::default());
    let mut told = None;
    let bench = Bench::with(|settings| {
        guarded(dir.path(), &people)(settings);
        told = Some(heard(settings));
    });
    let mut told = told.unwrap();
    let id = |command: &str| {
        let waiting = people.waiting();
        assert_eq!(waiting.last().unwrap().request.command, command);
        waiting.last().unwrap().id.clone()
    };
    let ask = async |command: &str| {
        let output = bench.call(json!({"command": command})).await.unwrap();
        let details = output.details.unwrap();
        let id = id(command);
        assert_eq!((&details["status"], &details["approvalId"]), (&json!("approval-pending"), &json!(id)));
        let [Block::Text(text)] = output.content.as_slice() else { panic!() };
        let expect = format!(
            "Approval required (id {}). Approve to run; updates will arrive after completion.",
            &id[..8]
        );
        assert!(text.text.starts_with(&expect), "{}", text.text);
        assert!(
            text.text.contains(&format!("/approve {} allow-once|allow-always|deny", &id[..8])),
            "{}",
            text.text
        );
        id
    };
    let first = ask("echo one > made; cat made").await;
    assert!(!bench.home().join("made").exists());
    people.resolve(&first, Decision::Deny, None).unwrap();
    assert_eq!(
        next(&mut told).await,
        format!("Exec denied (gateway id={first}, user-denied): echo one > made; cat made")
    );
    assert!(!bench.home().join("made").exists());

    let second = ask("echo one > made; cat made").await;
    people.resolve(&second, Decision::AllowOnce, None).unwrap();
    let line = next(&mut told).await;
    let session = slug::of("c");
    assert_eq!(line, format!("Exec finished (gateway id={second}, session={session}, code 0)\none"));
}

#[tokio::test]
async fn what_takes_long_after_a_person_allowed_it_says_so_first() {
    let dir = tempfile::tempdir().unwrap();
    let people = Arc::new(Approvals::default());
    let mut told = None;
    let bench = Bench::with(|settings| {
        guarded(dir.path(), &people)(settings);
        settings.running_notice = Duration::from_millis(20);
        told = Some(heard(settings));
    });
    let mut told = told.unwrap();
    bench.call(json!({"command": "until [ -e go ]; do sleep 0.01; done; exit 3"})).await.unwrap();
    let id = people.waiting()[0].id.clone();
    people.resolve(&id, Decision::AllowOnce, None).unwrap();
    let line = next(&mut told).await;
    let session = slug::of("c");
    assert!(line.starts_with(&format!("Exec running (gateway id={id}, session={session}, >0s)")), "{line}");
    std::fs::write(bench.home().join("go"), "").unwrap();
    assert!(next(&mut told).await.ends_with(", code 3)"));
}

#[tokio::test]
async fn what_is_always_allowed_is_not_asked_again() {
    let dir = tempfile::tempdir().unwrap();
    let people = Arc::new(Approvals::default());
    let mut told = None;
    let bench = Bench::with(|settings| {
        guarded(dir.path(), &people)(settings);
        told = Some(heard(settings));
    });
    let mut told = told.unwrap();
    bench.call(json!({"command": "/usr/bin/printf a"})).await.unwrap();
    people.resolve(&people.waiting()[0].id, Decision::AllowAlways, None).unwrap();
    assert!(next(&mut told).await.ends_with("code 0)\na"));
    assert_eq!(bench.says(json!({"command": "/usr/bin/printf b"})).await, "b");
    // Rules that are changed while a person thinks hold.
    bench.call(json!({"command": "ls"})).await.unwrap();
    std::fs::write(dir.path().join("exec-approvals.json"), r#"{"version":1,"defaults":{"security":"deny"}}"#)
        .unwrap();
    people.resolve(&people.waiting()[0].id, Decision::AllowOnce, None).unwrap();
    let line = next(&mut told).await;
    assert!(line.contains("exec denied: host=gateway security=deny): ls"), "{line}");
}

#[tokio::test]
async fn rules_of_the_instance_at_home_are_never_written() {
    let home = tempfile::tempdir().unwrap();
    let (state, at_home) = (home.path().join("state"), home.path().join(".openclaw/exec-approvals.json"));
    let printf = std::fs::canonicalize("/usr/bin/printf").unwrap();
    let rules = json!({"version": 1, "agents": {"main": {"allowlist": [{"pattern": printf}]}}}).to_string();
    std::fs::create_dir(home.path().join(".openclaw")).unwrap();
    std::fs::write(&at_home, &rules).unwrap();
    let people = Arc::new(Approvals::default());
    let mut told = None;
    let bench = Bench::with(|settings| {
        guarded(&state, &people)(settings);
        settings.approvals = Some(ApprovalsStore::new(&state, home.path()));
        told = Some(heard(settings));
    });
    assert_eq!(bench.says(json!({"command": "/usr/bin/printf a"})).await, "a");
    let own = state.join("exec-approvals.json");
    assert!(!own.exists(), "a use begins no file");
    let ls = std::fs::canonicalize("/usr/bin/ls").unwrap();
    bench.call(json!({"command": ls})).await.unwrap();
    people.resolve(&people.waiting()[0].id, Decision::AllowAlways, None).unwrap();
    next(told.as_mut().unwrap()).await;
    let begun = std::fs::read_to_string(own).unwrap();
    for program in [&printf, &ls] {
        assert!(begun.contains(program.to_str().unwrap()), "{begun}");
    }
    assert_eq!(std::fs::read_to_string(at_home).unwrap(), rules);
}

#[tokio::test]
async fn nobody_who_answers_means_no_unless_the_file_says_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    for (fallback, expect) in [
        ("deny", "Exec denied (gateway id=ID, approval-timeout): echo x"),
        ("allowlist", "Exec denied (gateway id=ID, approval-timeout (allowlist-miss)): echo x"),
        ("full", "Exec finished (gateway id=ID, session=SESSION, code 0)\nx"),
    ] {
        let rules = json!({"version": 1, "defaults": {"askFallback": fallback}}).to_string();
        std::fs::write(dir.path().join("exec-approvals.json"), rules).unwrap();
        let people = Arc::new(Approvals::default());
        let mut told = None;
        let bench = Bench::with(|settings| {
            guarded(dir.path(), &people)(settings);
            told = Some(heard(settings));
        });
        bench.call(json!({"command": "echo x"})).await.unwrap();
        let id = people.waiting()[0].id.clone();
        tokio::time::pause();
        while !people.waiting().is_empty() {
            tokio::time::advance(crate::approvals::DEFAULT_WAIT).await;
        }
        // The command is a real process: it needs a real clock.
        tokio::time::resume();
        let line = next(told.as_mut().unwrap()).await;
        assert_eq!(line, expect.replace("ID", &id).replace("SESSION", &slug::of("c")), "{fallback}");
    }
}

#[tokio::test]
async fn a_flood_keeps_its_end() {
    let bench = Bench::with(|settings| settings.max_output_chars = 1000);
    let text = bench.says(json!({"command": "yes flood | head -c 6000000; echo; echo last"})).await;
    assert!(
        text.ends_with("flood\n\nlast") && text.chars().count() <= 1000,
        "{} chars",
        text.chars().count()
    );
}

#[tokio::test]
async fn a_running_command_reports_its_output() {
    let (updates, mut received) = mpsc::channel(4);
    let mut bench = Bench::new();
    bench.updates = updates;
    let file = bench.home().join("go");
    let run = bench.call(json!({"command": "echo first; until [ -e go ]; do sleep 0.01; done; echo second"}));
    let watch = async {
        let update = received.recv().await.unwrap();
        std::fs::write(&file, "").unwrap();
        update
    };
    let (result, mut update) = tokio::join!(run, watch);
    assert!(result.is_ok());
    for volatile in ["pid", "startedAt"] {
        assert!(update["details"][volatile].as_u64().unwrap() > 0);
        update["details"][volatile] = json!(0);
    }
    let details = json!({"status": "running", "sessionId": slug::of("c"), "pid": 0, "startedAt": 0, "cwd": bench.home(), "tail": "first\n"});
    let expect = json!({"content": [{"type": "text", "text": "first\n"}], "details": details});
    assert_eq!(update.to_string(), expect.to_string());
}

/// Waits until no process of the group that wrote its id to `file` is left.
async fn group_is_gone(file: &Path) {
    let group: i32 = std::fs::read_to_string(file).unwrap().trim().parse().unwrap();
    let gone = async {
        while nix::sys::signal::killpg(nix::unistd::Pid::from_raw(group), None).is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), gone).await.expect("the group is still alive");
}

const TREE: &str = "echo $$ > group; sleep 600 & sleep 600 & echo ready; wait";

#[tokio::test]
async fn a_timeout_kills_the_whole_group() {
    let bench = Bench::new();
    // Long enough for a busy machine to begin.
    let text = bench.says(json!({"command": TREE, "timeout": 4.5})).await;
    assert_eq!(text, "error: ready\n\nCommand timed out after 4.5 seconds");
    group_is_gone(&bench.home().join("group")).await;
}

#[tokio::test]
async fn an_abort_kills_the_whole_group() {
    let (updates, mut received) = mpsc::channel(4);
    let mut bench = Bench::new();
    bench.updates = updates;
    let (result, ()) = tokio::join!(bench.call(json!({"command": TREE})), async {
        received.recv().await.unwrap();
        bench.cancel.cancel();
    });
    assert!(matches!(result, Err(ToolError::Aborted)));
    group_is_gone(&bench.home().join("group")).await;
}

#[tokio::test]
async fn a_dropped_call_kills_the_whole_group() {
    let (updates, mut received) = mpsc::channel(4);
    let mut bench = Bench::new();
    bench.updates = updates;
    tokio::select! {
        _ = bench.call(json!({"command": TREE})) => panic!("it waits"),
        _ = received.recv() => {}
    }
    group_is_gone(&bench.home().join("group")).await;
}

#[tokio::test]
async fn what_still_holds_the_output_is_stopped_and_what_does_not_lives() {
    let bench = Bench::new();
    let text = bench.says(json!({"command": "echo $$ > group; sleep 600 & echo done"})).await;
    assert_eq!(
        text,
        "Warning: background processes that still held the command's output were stopped. Redirect their output to keep \
         them.\n\ndone"
    );
    group_is_gone(&bench.home().join("group")).await;

    let detached = bench.says(json!({"command": "sleep 600 >/dev/null 2>&1 & echo $!"})).await;
    let pid = nix::unistd::Pid::from_raw(detached.parse().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::SIGKILL).expect("it lives");
}
