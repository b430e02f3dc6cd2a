use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::tz::TimeZone;
use openclaw_channels::{
    Address, ChannelFuture, OutgoingPart, Part, Receipt, Repeats, SendAttempt, SendError,
};
use openclaw_delivery::outbox::Enqueued;
use openclaw_delivery::testing::send_only::{SendOnly, Sends};
use openclaw_journal::clock::Clock;
use openclaw_journal::delivery::{Author, Delivery};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::testing::{FakeModel, KEY, Rig, chat, key_of};

const DAY: i64 = 24 * 60 * 60_000;

/// Programs of the configuration: a point or an event with the text of a shell script.
fn commands(rows: &[(&str, String)]) -> Value {
    let row = |(event, script): &(&str, String)| json!({"event": event, "command": ["sh", "-c", script]});
    json!({"hooks": {"internal": {"enabled": true, "commands": rows.iter().map(row).collect::<Vec<_>>()}}})
}

/// Script that notes its input.
fn noting(dir: &Path) -> String {
    format!("given=$(cat); printf '%s\\n' \"$given\" >> {}", dir.join("noted").display())
}

/// Ends the hooks and returns what they noted.
async fn noted(rig: &Rig, dir: &Path) -> Vec<Value> {
    rig.dispatch.shutdown(std::time::Duration::from_secs(30)).await;
    rig.dispatch.hook_parts().hooks.tasks().end(std::time::Duration::from_secs(30)).await;
    let text = std::fs::read_to_string(dir.join("noted")).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

async fn say(rig: &Rig, run: &str, text: &str) {
    drop(rig.chat(chat(run, text)).await.unwrap());
    rig.end(run).await;
}

#[tokio::test]
async fn a_conversation_that_expired_is_told_as_the_gateways_own_command() {
    let dir = tempfile::tempdir().unwrap();
    let model = FakeModel::start([]).await;
    let now = Arc::new(AtomicI64::new(1_770_650_000_000));
    let clock = Arc::clone(&now);
    let clock = Clock::set(move || clock.load(Ordering::SeqCst), TimeZone::UTC);
    let rows = [("command", noting(dir.path()))];
    let rig = Rig::at(dir.path(), &model, commands(&rows), clock).await;
    say(&rig, "r1", "hello").await;
    let first = rig.entry().await.session_id;
    say(&rig, "r2", "still here").await;
    now.fetch_add(2 * DAY, Ordering::SeqCst);
    say(&rig, "r3", "hello again").await;
    let second = rig.entry().await.session_id;
    say(&rig, "r4", "/reset").await;
    let told = noted(&rig, dir.path()).await;
    let line = |told: &Value| {
        let context = &told["context"];
        json!([told["action"], context["commandSource"], context["previousSessionEntry"]["sessionId"]])
    };
    let lines: Vec<Value> = told.iter().map(line).collect();
    assert_eq!(lines, [json!(["new", "auto", first]), json!(["reset", "webchat", second])]);
    assert_eq!(told[1]["context"]["senderId"], "golden");
}

/// Platform that passes each message to the test, and refuses those with the word `nowhere`.
struct Platform(mpsc::UnboundedSender<String>);

impl Sends for Platform {
    fn repeats(&self) -> Repeats {
        Repeats::Recognised
    }

    fn send<'a>(
        &'a self,
        outgoing: OutgoingPart<'a>,
        _: SendAttempt,
    ) -> ChannelFuture<'a, Result<Receipt, SendError>> {
        Box::pin(async move {
            let words = outgoing.part.words().unwrap().to_owned();
            if words.contains("nowhere") {
                return Err(SendError::Final { reason: "no such chat".to_owned() });
            }
            self.0.send(words).unwrap();
            Ok(Receipt::default())
        })
    }
}

#[tokio::test]
async fn what_goes_to_a_platform_can_be_changed_and_kept_back_and_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let model = FakeModel::start([]).await;
    let changes =
        r#"case $(cat) in *keep*) echo '{"cancel": true}';; *secret*) echo '{"content": "***"}';; esac"#;
    let rows = [("message_sending", changes.to_owned()), ("message_sent", noting(dir.path()))];
    let rig = Rig::with_config(dir.path(), &model, commands(&rows)).await;
    let outbox = rig.dispatch.outbox();
    let (sender, mut sent) = mpsc::unbounded_channel();
    outbox.register("fake", "default", Arc::new(SendOnly(Arc::new(Platform(sender)))));
    let deliver = async |id: &str, words: &str| {
        let (channel, account) = ("fake".to_owned(), "default".to_owned());
        let address = Address { channel, account, target: "room".to_owned(), thread: None };
        let part = Part::text(words);
        let session_key = Some(key_of(KEY));
        let (id, author) = (id.to_owned(), Author::Other);
        let delivery = Delivery { id, address, session_key, author, part, expires_at: None, asked: None };
        rig.dispatch.deliver(delivery).await.unwrap()
    };
    assert_eq!(deliver("d1", "plain").await, Enqueued::New);
    assert_eq!(deliver("d2", "a secret").await, Enqueued::New);
    assert_eq!(deliver("d3", "keep it").await, Enqueued::Withheld);
    assert_eq!(deliver("d4", "to nowhere").await, Enqueued::New);
    assert_eq!((sent.recv().await.as_deref(), sent.recv().await.as_deref()), (Some("plain"), Some("***")));
    let failed = async {
        while outbox.failed(1).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), failed).await.unwrap();
    let mut told: Vec<String> = noted(&rig, dir.path())
        .await
        .iter()
        .map(|told| {
            let payload = &told["payload"];
            format!("{} {} {} {}", payload["to"], payload["content"], payload["success"], payload["error"])
        })
        .collect();
    told.sort();
    assert_eq!(
        told,
        [
            r#""room" "***" true null"#,
            r#""room" "plain" true null"#,
            r#""room" "to nowhere" false "no such chat""#
        ]
    );
}
