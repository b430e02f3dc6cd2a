//! A tool asks the host of a real state directory, in the real loop, for a model that a server scripts.

use std::sync::Arc;

use std::path::PathBuf;

use openclaw_agent::compaction::CompactionSettings;
use openclaw_agent::hooks::RunHooks;
use openclaw_agent::pruning::Pruned;
use openclaw_agent::sent_images::SentImages;
use openclaw_agent::tool::{Catalogue, ToolFuture};
use openclaw_agent::transcript::{QueuedMessage, Written};
use openclaw_agent::{
    Limits, ReasoningVisibility, Redactor, RunModel, RunParams, Steering, Tool, ToolContext, ToolError,
    ToolFacts, ToolOutput, Toolbox, Transcript,
};
use openclaw_models::{Ask, KeptRequest};
use openclaw_protocol::message::UserMessage;
use openclaw_protocol::{AgentId, SessionId};
use openclaw_sessions::transcript::{Compaction, View};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::testing::{Answer, FakeModel, KEY, Rig, chat};

/// Says which sessions there are, or what was said in one.
struct AskSessions;

impl Tool for AskSessions {
    fn facts(&self) -> &ToolFacts {
        const FACTS: ToolFacts = ToolFacts::named("ask_sessions");
        &FACTS
    }

    fn schema(&self) -> openclaw_models::ToolSchema {
        json!({"type": "object", "properties": {"key": {"type": "string"}}}).into()
    }

    fn run(&self, args: Value, context: ToolContext) -> ToolFuture<'_> {
        Box::pin(async move {
            let sessions = context.host.sessions();
            let told = match args["key"].as_str() {
                None => sessions
                    .list(&Query::newest(10))
                    .await
                    .map(|rows| rows.iter().map(|row| row.key.to_string()).collect::<Vec<_>>()),
                Some(key) => sessions
                    .history(&SessionKey::parse(key).unwrap(), 2)
                    .await
                    .map(|messages| messages.iter().map(said).collect()),
            };
            told.map(|lines| ToolOutput::text(lines.join(" | ")))
                .map_err(|error| ToolError::Failed(error.to_string()))
        })
    }
}

fn said(message: &Message) -> String {
    match message {
        Message::User(user) => format!("user: {}", user.content.to_text()),
        Message::Assistant(assistant) => format!("assistant: {}", assistant.text()),
        Message::ToolResult(result) => format!("tool: {}", result.tool_name),
    }
}

struct InMemory(Arc<Vec<Arc<Message>>>);

impl Transcript for InMemory {
    fn context(&self) -> &Arc<Vec<Arc<Message>>> {
        &self.0
    }

    fn append<'a>(&'a mut self, message: &'a Message, _: Option<&'a str>) -> Written<'a, ()> {
        Arc::make_mut(&mut self.0).push(Arc::new(message.clone()));
        Box::pin(async { Ok(()) })
    }

    fn view(&mut self) -> Written<'_, View> {
        Box::pin(async { Ok(View::default()) })
    }

    fn compact(&mut self, _: Compaction) -> Written<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}

struct NothingSaid;

impl Steering for NothingSaid {
    fn poll(&self) -> Option<QueuedMessage> {
        None
    }
}

#[tokio::test]
async fn a_tool_asks_the_gateway_for_its_sessions_in_the_middle_of_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let ask = |args| Answer::Call("ask_sessions", args);
    let script = [
        Answer::Text("Hello"),
        ask(json!({})),
        ask(json!({"key": KEY})),
        ask(json!({"key": "agent:main:nowhere"})),
    ];
    let model = FakeModel::start(script).await;
    let rig = Rig::start(dir.path(), &model).await;
    drop(rig.chat(chat("r1", "hi there")).await.unwrap());
    rig.end("r1").await;

    static NAMES: std::sync::LazyLock<Catalogue> = std::sync::LazyLock::new(Catalogue::default);
    let tools = Toolbox::new(vec![Box::new(AskSessions)], &NAMES);
    let mut transcript = InMemory(Arc::new(vec![Message::User(UserMessage::text("look around", 1)).into()]));
    let agent_dir = dir.path().join("agents/main/agent");
    let agent = AgentId::default();
    let asked = Ask::new(&agent, &agent_dir);
    let selected = rig.models.select(&rig.settings.models, &asked).await.unwrap();
    let models: Vec<RunModel<'_>> = selected.candidates.iter().map(RunModel::from).collect();
    let (events, received) = mpsc::channel(1);
    drop(received);
    openclaw_agent::run(RunParams {
        session_id: SessionId::new("s"),
        models: &models,
        passed_over: &[],
        system_prompt: &"system".into(),
        tools: &tools,
        host: Arc::new(GatewayHost::new(Arc::clone(&rig.store), crate::testing::transcripts(dir.path()))),
        redactor: &Redactor::default(),
        hooks: RunHooks::none(),
        transcript: &mut transcript,
        kept: KeptRequest::default(),
        steering: &NothingSaid,
        reasoning: ReasoningVisibility::Off,
        limits: Limits::default(),
        compaction: CompactionSettings::default(),
        fixed_tokens: 0,
        pruning: None,
        pruned: &mut Pruned::default(),
        images: &mut SentImages::default(),
        history_limit: None,
        cancel: CancellationToken::new(),
        workspace: PathBuf::from("/"),
        events,
    })
    .await;

    let heard = model.heard(4);
    let results: Vec<&str> = heard.iter().filter_map(|line| line.strip_prefix("tool: ")).collect();
    let unknown =
        json!({"status": "error", "tool": "ask_sessions", "error": "no session agent:main:nowhere"});
    let unknown = serde_json::to_string_pretty(&unknown).unwrap();
    assert_eq!(results, [KEY, "user: hi there | assistant: Hello", &unknown]);
}
