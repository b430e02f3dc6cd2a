//! A disk that refuses one call, or some: what was said is sent, what was accepted ends. Every call in turn: `disk_faults.rs`.

use nix::errno::Errno;
use openclaw_testkit::faulty_disk::{DiskCall, DiskFault, FaultyDisk};
use openclaw_testkit::model_server::{Captured, Gate, ModelServer, Reply, Step};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use openclaw_testkit::{DEADLINE, GatewayUnderTest};
use serde_json::{Value, json};

use crate::support::conversation::{
    end, message, send, sessions_dir, told, transcript_path, turn, well_formed,
};
use crate::support::telegram::{last_said, texts};
use crate::support::trace::{numbered, traced};

/// Waits until Telegram has been asked for `count` messages. Panics with the gateway's log if that takes too long.
async fn seen(server: &TelegramServer, gateway: &GatewayUnderTest, count: usize) {
    let seen = tokio::time::timeout(2 * DEADLINE, server.sees(|made| made.len() >= count)).await;
    seen.unwrap_or_else(|_| panic!("{} of {count} were sent\n{}", server.made().len(), gateway.log()));
}

/// A gateway over a faulty disk, with a bot and a model that answers when the gate opens.
struct Stage {
    disk: FaultyDisk,
    server: TelegramServer,
    model: ModelServer,
    gate: Gate,
    gateway: GatewayUnderTest,
}

impl Stage {
    async fn new() -> Option<Self> {
        Self::answering(|_| "here I am".to_owned()).await
    }

    async fn answering(answer: fn(&Captured) -> String) -> Option<Self> {
        let disk = FaultyDisk::new().unwrap()?;
        let server = TelegramServer::start().await;
        let gate = Gate::new();
        let held = gate.clone();
        let model = ModelServer::answering(move |request| {
            Reply::text(&answer(request)).after(Step::Wait(held.clone()))
        })
        .await;
        let telegram = json!({
            "botToken": server.token(), "apiRoot": server.root(), "dmPolicy": "open", "allowFrom": ["*"],
        });
        let queue = json!({"mode": "followup", "debounceMs": 0});
        let config = json!({"channels": {"telegram": telegram}, "messages": {"queue": queue}});
        let setup = crate::gateway().fake_model(&model.v1()).config(config);
        let gateway = disk.under(setup).start().await.unwrap();
        Some(Self { disk, server, model, gate, gateway })
    }

    fn texts(&self) -> Vec<String> {
        texts(&self.server)
    }

    /// The only transcript.
    fn transcript(&self) -> Vec<Value> {
        let files = std::fs::read_dir(sessions_dir(&self.gateway)).unwrap();
        let files = files.map(|file| file.unwrap().path());
        let [transcript] = files
            .filter(|path| path.extension().is_some_and(|is| is == "jsonl"))
            .collect::<Vec<_>>()
            .try_into()
            .unwrap();
        well_formed(&transcript)
    }

    async fn wait(&self, run: &str) -> Value {
        let mut client = self.gateway.client().await.unwrap();
        client.request("agent.wait", json!({"runId": run, "timeoutMs": 20_000})).await.unwrap()
    }
}

/// Nothing else happens that could wake whoever sends.
#[tokio::test]
async fn an_answer_that_the_disk_refused_for_a_moment_is_sent_as_soon_as_it_is_stored() {
    for error in [Errno::EIO, Errno::ENOSPC] {
        let Some(stage) = Stage::new().await else { return };
        stage.server.push(private_message(5, "hello"));
        stage.model.arrived(1).await;
        let refused =
            DiskFault { error: Some(error), ..DiskFault::once(DiskCall::Write).of("gateway.sqlite-wal") };
        stage.disk.arm(&[refused]).unwrap();
        stage.gate.open();
        seen(&stage.server, &stage.gateway, 1).await;
        assert_eq!(stage.disk.disarm().unwrap().len(), 1, "nothing was refused");
    }
}

/// The end of the first of two runs can't be stored for some seconds, the end of the second behind it can.
#[tokio::test]
async fn answers_do_not_overtake_each_other_while_the_database_can_not_be_synced() {
    let word = |request: &Captured| last_said(request).split("] ").nth(1).unwrap_or_default()[..3].to_owned();
    for call in [DiskCall::Sync, DiskCall::Write] {
        let Some(stage) = Stage::answering(word).await else { return };
        for (id, words) in [(1, "one, please"), (2, "two, please"), (3, "six, please")] {
            stage.server.push(numbered(private_message(5, words), id));
            traced(&stage.gateway, id, |event| event["fate"] == "run").await;
        }
        let refused = DiskFault { times: 5, ..DiskFault::once(call).of("gateway.sqlite-wal") };
        stage.disk.arm(&[refused]).unwrap();
        stage.gate.open();
        seen(&stage.server, &stage.gateway, 3).await;
        assert_eq!(stage.disk.disarm().unwrap().len(), 1, "nothing was refused");
        assert_eq!(stage.gateway.fates().await.unwrap(), json!({"run": 3}));
        assert_eq!(stage.texts(), ["one", "two", "six"], "{call:?}\n{}", stage.gateway.log());
    }
}

/// The second time half a line is written before the disk refuses.
#[tokio::test]
async fn an_answer_that_its_transcript_refuses_at_first_is_written_and_sent_once() {
    let refused = || DiskFault { times: 3, ..DiskFault::once(DiskCall::Write).of(".jsonl") };
    let half = || DiskFault { error: None, ..DiskFault::once(DiskCall::Write).of(".jsonl") };
    for faults in [vec![refused()], vec![half(), refused()]] {
        let Some(stage) = Stage::new().await else { return };
        stage.server.push(private_message(5, "hello"));
        stage.model.arrived(1).await;
        stage.disk.arm(&faults).unwrap();
        stage.gate.open();
        seen(&stage.server, &stage.gateway, 1).await;
        assert_eq!(stage.disk.disarm().unwrap().len(), faults.len(), "nothing was refused");
        stage.server.push(private_message(5, "and now?"));
        seen(&stage.server, &stage.gateway, 2).await;
        stage.gateway.fates().await.unwrap();
        assert_eq!(stage.texts(), ["here I am", "here I am"], "{}", stage.gateway.log());
        assert_eq!(stage.model.requests().len(), 2);
        let told = told(&stage.transcript());
        assert_eq!(told.len(), 4, "{told:?}");
        assert_eq!((&*told[1], &*told[3]), ("assistant: here I am (stop)", "assistant: here I am (stop)"));
    }
}

#[tokio::test]
async fn a_message_whose_lock_or_first_write_is_refused_waits_and_is_answered() {
    use DiskCall::{Open, Write};
    let rows = [
        (Open, ".jsonl.lock", Errno::EMFILE),
        (Open, ".jsonl.lock", Errno::EROFS),
        (Write, ".jsonl.lock", Errno::EIO),
        (Open, ".jsonl", Errno::ENFILE),
        (Write, ".jsonl", Errno::EIO),
    ];
    for (call, suffix, error) in rows {
        let Some(stage) = Stage::new().await else { return };
        stage.gate.open();
        let fault = DiskFault { times: 3, error: Some(error), ..DiskFault::once(call).of(suffix) };
        stage.disk.arm(&[fault]).unwrap();
        stage.server.push(private_message(5, "hello"));
        seen(&stage.server, &stage.gateway, 1).await;
        assert_eq!(stage.disk.disarm().unwrap().len(), 1, "nothing was refused: {suffix}");
        stage.gateway.fates().await.unwrap();
        assert_eq!(stage.texts(), ["here I am"], "{suffix} {error}\n{}", stage.gateway.log());
        assert_eq!(told(&stage.transcript()).len(), 2);
    }
}

/// The log says where; what a chat is told does not.
#[tokio::test]
async fn a_chat_is_not_told_where_the_files_of_this_host_are() {
    let Some(stage) = Stage::new().await else { return };
    stage.gate.open();
    let refused =
        DiskFault { error: Some(Errno::EACCES), ..DiskFault::once(DiskCall::Open).of(".jsonl.lock") };
    stage.disk.arm(&[refused]).unwrap();
    stage.server.push(private_message(5, "hello"));
    seen(&stage.server, &stage.gateway, 1).await;
    let told = stage.texts().join("\n");
    assert!(told.contains("the disk refuses to lock the conversation: Permission denied"), "{told}");
    assert!(!told.contains(".jsonl"), "{told}");
    let log = stage.gateway.log();
    assert!(log.contains(".jsonl.lock"), "{log}");
}

/// Checks also that data which the system takes for written after a failed sync is written once more.
#[tokio::test]
async fn a_run_whose_transcript_is_not_synced_at_first_ends_and_the_next_comes_behind_it() {
    let Some(stage) = Stage::new().await else { return };
    let mut client = stage.gateway.client().await.unwrap();
    send(&mut client, "main", "hello", "run-1").await;
    stage.model.arrived(1).await;
    stage.disk.arm(&[DiskFault { times: 2, ..DiskFault::once(DiskCall::Sync).of(".jsonl") }]).unwrap();
    stage.gate.open();
    assert_eq!(end(&mut client, "run-1").await["state"], "final");
    assert_eq!(stage.disk.disarm().unwrap().len(), 1, "nothing was refused");
    assert_eq!(stage.wait("run-1").await["status"], "ok");
    let again = client.request("chat.send", message("main", "hello", "run-1")).await.unwrap();
    assert_eq!(again["status"], "ok", "{again}");
    assert_eq!(turn(&mut client, "main", "and now?", "run-2").await, "here I am");
    let path = transcript_path(&stage.gateway, "main").await.canonicalize().unwrap();
    let synced = stage.disk.synced().unwrap()[&path];
    assert_eq!(synced.length, std::fs::metadata(&path).unwrap().len());
}

/// Checks that the reader gets the answer and that the run's key ends, since the disk may never recover.
#[tokio::test]
async fn a_run_whose_transcript_is_never_synced_is_answered_all_the_same() {
    let Some(stage) = Stage::new().await else { return };
    stage.server.push(private_message(5, "hello"));
    stage.model.arrived(1).await;
    stage.disk.arm(&[DiskFault::once(DiskCall::Sync).of(".jsonl").for_good()]).unwrap();
    stage.gate.open();
    seen(&stage.server, &stage.gateway, 1).await;
    stage.gateway.logged("a power cut may take the end of it").await.unwrap();
    assert_eq!(stage.gateway.fates().await.unwrap(), json!({"run": 1}));
}

/// Checks that only locks of ours are removed, and only those of dead processes.
#[tokio::test]
async fn locks_that_a_killed_gateway_left_in_conversations_nobody_uses_are_gone_after_the_next_start() {
    let gate = Gate::new();
    let held = gate.clone();
    let model = ModelServer::answering(move |_| Reply::text("hi").after(Step::Wait(held.clone()))).await;
    let mut gateway = crate::gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "hello", "run-1").await;
    model.arrived(1).await;
    let dir = sessions_dir(&gateway);
    let locks = || {
        let names =
            std::fs::read_dir(&dir).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".jsonl.lock")).collect::<Vec<_>>()
    };
    let [own] = locks().try_into().unwrap();
    let ours = std::fs::read_to_string(dir.join(own)).unwrap();
    gateway.kill().await.unwrap();
    let alive = format!("{{\"pid\":{},\"createdAt\":\"2026-01-01T00:00:00.000Z\"}}", std::process::id());
    let theirs = "{\"pid\":2147483646,\"createdAt\":\"2026-01-01T00:00:00.000Z\"}";
    for (name, content) in [("dead", ours.as_str()), ("alive", &alive), ("theirs", theirs)] {
        std::fs::write(dir.join(format!("{name}.jsonl.lock")), content).unwrap();
    }
    gateway.start().await.unwrap();
    let left = locks();
    assert!(!left.contains(&"dead.jsonl.lock".to_owned()), "{left:?}");
    assert!(left.contains(&"alive.jsonl.lock".to_owned()), "{left:?}");
    assert!(left.contains(&"theirs.jsonl.lock".to_owned()), "{left:?}");
    gate.open();
}
