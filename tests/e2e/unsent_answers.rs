//! Answers that were whole in the transcript when the gateway was killed, before the end of their run was stored: the next start sends
//! them, also where a newer message (queue mode `interrupt`) or a person stops the run before it is taken up again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use openclaw_testkit::faulty_disk::{DiskCall, DiskFault, FaultyDisk};
use openclaw_testkit::model_server::{Gate, ModelServer, Reply, Step};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use openclaw_testkit::{DEADLINE, GatewayUnderTest};
use serde_json::json;

use crate::support::conversation::{end, history, send, sessions_dir};
use crate::support::locks::{WAITS, plant};
use crate::support::telegram::{bot_setup, open, texts};
use crate::support::trace::{numbered, traced};

/// A gateway whose disk refuses the end of a run, until it is told otherwise.
struct Stage {
    disk: FaultyDisk,
    server: TelegramServer,
    model: ModelServer,
    gate: Gate,
    gateway: GatewayUnderTest,
}

impl Stage {
    async fn new() -> Option<Self> {
        let disk = FaultyDisk::new().unwrap()?;
        let (server, gate) = (TelegramServer::start().await, Gate::new());
        let held = gate.clone();
        let model = ModelServer::answering(move |request| {
            let said = request.last_user_text();
            let word = if said.contains("two") { "two" } else { "one" };
            Reply::text(&format!("re {word}")).after(Step::Wait(held.clone()))
        })
        .await;
        let interrupt = json!({"messages": {"queue": {"mode": "interrupt"}}});
        let setup = bot_setup(&server, &model, open(), interrupt);
        let gateway = disk.under(setup).start().await.unwrap();
        Some(Self { disk, server, model, gate, gateway })
    }

    /// Kills the gateway once the answer to its first message is in the transcript, and starts it
    /// while another program has that. Returns the lock.
    async fn dies_behind_the_answer(&mut self) -> PathBuf {
        let transcript = self.answers().await;
        self.dies(&transcript).await
    }

    /// Waits for the answer to the first message, whose end the disk refuses. Returns the
    /// transcript.
    async fn answers(&self) -> PathBuf {
        self.model.arrived(1).await;
        let refused = DiskFault::once(DiskCall::Write).of("gateway.sqlite-wal").for_good();
        self.disk.arm(&[refused]).unwrap();
        self.gate.open();
        answered_transcripts(&self.gateway, 1).await.remove(0)
    }

    async fn dies(&mut self, transcript: &Path) -> PathBuf {
        self.gateway.kill().await.unwrap();
        self.disk.disarm().unwrap();
        let lock = PathBuf::from(format!("{}.lock", transcript.display()));
        plant(&lock, std::process::id(), Duration::ZERO);
        self.gateway.start().await.unwrap();
        self.gateway.logged(WAITS).await.unwrap();
        lock
    }

    fn texts(&self) -> Vec<String> {
        texts(&self.server)
    }
}

/// Waits for the answer in so many transcripts.
async fn answered_transcripts(gateway: &GatewayUnderTest, count: usize) -> Vec<PathBuf> {
    let dir = sessions_dir(gateway);
    let looking = async {
        loop {
            let files = std::fs::read_dir(&dir).unwrap().map(|file| file.unwrap().path());
            let transcripts = files.filter(|path| path.extension().is_some_and(|is| is == "jsonl"));
            let is_answered =
                |path: &PathBuf| std::fs::read_to_string(path).unwrap_or_default().contains("re one");
            let answered: Vec<PathBuf> = transcripts.filter(is_answered).collect();
            if answered.len() == count {
                return answered;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, looking).await.expect("the answer is in the transcripts")
}

/// The second time the stop of the run is stored already when the gateway is killed once more.
#[tokio::test]
async fn an_answer_is_sent_to_a_chat_although_a_newer_message_interrupts_its_run() {
    for dies_again in [false, true] {
        let Some(mut stage) = Stage::new().await else { return };
        stage.server.push(numbered(private_message(5, "one"), 1));
        let lock = stage.dies_behind_the_answer().await;
        assert_eq!(stage.texts(), [""; 0]);
        stage.server.push(numbered(private_message(5, "two"), 2));
        traced(&stage.gateway, 2, |event| event["fate"] == "run").await;
        if dies_again {
            stage.gateway.crash_and_restart().await.unwrap();
        }
        std::fs::remove_file(&lock).unwrap();
        let all = stage.server.sees(|made| made.iter().any(|made| made["text"] == "re two"));
        let all = tokio::time::timeout(2 * DEADLINE, all).await;
        assert!(all.is_ok(), "{:?}\n{}", stage.texts(), stage.gateway.log());
        assert_eq!(stage.texts(), ["re one", "re two"], "{}", stage.gateway.log());
        for id in [1, 2] {
            traced(&stage.gateway, id, |event| event["run"]["state"] == "ok").await;
        }
        assert_eq!(stage.model.requests().len(), 2, "an answer that is there is not asked for");
    }
}

#[tokio::test]
async fn a_client_hears_the_answer_although_a_newer_message_interrupts_its_run() {
    let Some(mut stage) = Stage::new().await else { return };
    let mut client = stage.gateway.client().await.unwrap();
    send(&mut client, "main", "one", "run-1").await;
    let lock = stage.dies_behind_the_answer().await;
    let mut client = stage.gateway.client().await.unwrap();
    send(&mut client, "main", "two", "run-2").await;
    std::fs::remove_file(&lock).unwrap();
    for run in ["run-1", "run-2"] {
        assert_eq!(end(&mut client, run).await["state"], "final", "{run}\n{}", stage.gateway.log());
    }
    let done = client.request("agent.wait", json!({"runId": "run-1"})).await.unwrap();
    assert_eq!(done["status"], "ok", "{done}");
    let told = ["user: one", "assistant: re one", "user: two", "assistant: re two"];
    assert_eq!(history(&mut client, "main").await, told);
}

/// The second time the stop is stored already when the gateway is killed once more.
#[tokio::test]
async fn a_client_that_was_told_the_answer_is_not_told_of_a_stop_after_a_crash() {
    for dies_again in [false, true] {
        let Some(mut stage) = Stage::new().await else { return };
        let mut client = stage.gateway.client().await.unwrap();
        send(&mut client, "main", "one", "run-1").await;
        let transcript = stage.answers().await;
        assert_eq!(end(&mut client, "run-1").await["state"], "final", "{}", stage.gateway.log());
        let lock = stage.dies(&transcript).await;
        let mut client = stage.gateway.client().await.unwrap();
        let stop = json!({"sessionKey": "main", "runId": "run-1"});
        let stopped = client.request("chat.abort", stop).await.unwrap();
        assert_eq!(stopped["aborted"], true, "{stopped}");
        if dies_again {
            stage.gateway.crash_and_restart().await.unwrap();
            client = stage.gateway.client().await.unwrap();
        }
        std::fs::remove_file(&lock).unwrap();
        assert_eq!(end(&mut client, "run-1").await["state"], "final", "{}", stage.gateway.log());
        let done = client.request("agent.wait", json!({"runId": "run-1"})).await.unwrap();
        assert_eq!(done["status"], "ok", "{done}\n{}", stage.gateway.log());
        assert_eq!(history(&mut client, "main").await, ["user: one", "assistant: re one"]);
        assert_eq!(stage.model.requests().len(), 1, "an answer that is there is not asked for");
    }
}

/// Gone is the key of the model; the run ended well, and its client was told.
#[tokio::test]
async fn an_answer_that_is_there_is_the_end_of_its_run_although_its_model_is_gone() {
    let Some(disk) = FaultyDisk::new().unwrap() else { return };
    let (server, gate) = (TelegramServer::start().await, Gate::new());
    let held = gate.clone();
    let model = ModelServer::answering(move |_| Reply::text("re one").after(Step::Wait(held.clone()))).await;
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    std::fs::write(&key, "a-key").unwrap();
    let keyed = json!({
        "baseUrl": model.v1(), "apiKey": format!("!cat '{}'", key.display()), "api": "openai-completions",
        "models": [{"id": "keyed-1", "name": "Keyed"}],
    });
    let config = json!({
        "models": {"providers": {"keyed": keyed}}, "agents": {"defaults": {"model": {"primary": "keyed/keyed-1"}}},
    });
    let mut gateway = disk.under(bot_setup(&server, &model, open(), config)).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    server.push(numbered(private_message(5, "one"), 1));
    model.arrived(1).await;
    send(&mut client, "other", "one", "run-1").await;
    model.arrived(2).await;
    disk.arm(&[DiskFault::once(DiskCall::Write).of("gateway.sqlite-wal").for_good()]).unwrap();
    gate.open();
    assert_eq!(end(&mut client, "run-1").await["state"], "final", "{}", gateway.log());
    answered_transcripts(&gateway, 2).await;
    gateway.kill().await.unwrap();
    disk.disarm().unwrap();
    std::fs::remove_file(&key).unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let wait = json!({"runId": "run-1", "timeoutMs": 20_000});
    let done = client.request("agent.wait", wait).await.unwrap();
    assert_eq!(done["status"], "ok", "{done}\n{}", gateway.log());
    server.has_made("the answer", |made| made.iter().any(|made| made["text"] == "re one")).await;
    traced(&gateway, 1, |event| event["run"]["state"] == "ok").await;
    assert_eq!(history(&mut client, "other").await, ["user: one", "assistant: re one"]);
    assert_eq!(model.requests().len(), 2, "no model is asked");
}
