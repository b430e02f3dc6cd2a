//! Asking and telling the handlers of hook points and events, one after the other or beside the work.

use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::message::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::answer::{self, EventAnswer};
use super::event::Event;
use super::merge::{self, SendingGate, StartChanges, ToolCallGate};
use super::payload::{
    BeforeAgentStart, BeforeToolCall, HookContext, MessageSending, Payload, ToldPayload, ToolResultPersist,
};
use super::point::HookPoint;
use super::program::{Program, Programs};
use super::set::{Action, HookSet};

/// A handler of a hook point has this long (spec `agent-runtime.md` §8.4).
pub const POINT_LIMIT: Duration = Duration::from_secs(10);
/// A handler of an event has this long (§8.1).
pub const EVENT_LIMIT: Duration = Duration::from_secs(30);
/// Handlers that are told of something beside the work, at the same time.
const AT_ONCE: usize = 8;
/// Largest number of handlers that wait for a place. Further ones are not told: events are coming
/// faster than the handlers can take them.
const WAITING: usize = 256;

/// The tasks in which handlers are told of something beside the work.
#[derive(Debug)]
pub struct HookTasks {
    tracker: TaskTracker,
    running: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    stop: CancellationToken,
}

impl Default for HookTasks {
    fn default() -> Self {
        Self {
            tracker: TaskTracker::new(),
            running: Arc::new(Semaphore::new(AT_ONCE)),
            waiting: Arc::new(Semaphore::new(WAITING)),
            stop: CancellationToken::new(),
        }
    }
}

impl HookTasks {
    /// Does something beside the work. It ends when the gateway stops.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let Ok(place) = Arc::clone(&self.waiting).try_acquire_owned() else {
            tracing::warn!("hooks are told of more than they can listen to; one of them is not told of this");
            return;
        };
        let stop = self.stop.clone();
        self.tracker.spawn(async move {
            let _place = place;
            tokio::select! { biased;
                () = stop.cancelled() => {}
                () = work => {}
            }
        });
    }

    /// Waits for what was begun, up to a deadline; ends the rest.
    pub async fn end(&self, deadline: Duration) {
        self.tracker.close();
        if tokio::time::timeout(deadline, self.tracker.wait()).await.is_err() {
            tracing::warn!(hooks = self.tracker.len(), "hooks did not end in time");
            self.stop.cancel();
            self.tracker.wait().await;
        }
    }
}

/// The hooks in use, and what runs them.
#[derive(Clone)]
pub struct HookBus {
    set: Arc<HookSet>,
    programs: Arc<dyn Programs>,
    tasks: Arc<HookTasks>,
}

/// JSON input of a program at a hook point.
#[derive(Serialize)]
struct HookInput<'a, P> {
    hook: &'static str,
    payload: &'a P,
    context: &'a HookContext,
}

impl HookBus {
    /// A bus.
    pub fn new(set: Arc<HookSet>, programs: Arc<dyn Programs>, tasks: Arc<HookTasks>) -> Self {
        Self { set, programs, tasks }
    }

    /// Returns true if there is a handler at a point. Ask before gathering what is costly to
    /// gather.
    pub fn asks(&self, point: HookPoint) -> bool {
        self.set.asks(point)
    }

    /// The hooks in use.
    pub fn set(&self) -> &HookSet {
        &self.set
    }

    /// Task runner for work that handlers need done in the background.
    pub fn tasks(&self) -> &HookTasks {
        &self.tasks
    }

    /// Tells every handler of a point, beside the work.
    pub fn tell<P: ToldPayload>(&self, payload: &P, context: &HookContext) {
        if !self.asks(P::POINT) {
            return;
        }
        let Some(input) = input(payload, context) else { return };
        for program in self.set.at_point(P::POINT) {
            let (programs, program, input) = (Arc::clone(&self.programs), Arc::clone(program), input.clone());
            let running = Arc::clone(&self.tasks.running);
            self.tasks.spawn(async move {
                let Ok(_permit) = running.acquire_owned().await else { return };
                // The program's output has no meaning here.
                let _ = run(&*programs, &program, P::POINT.as_str(), input, POINT_LIMIT).await;
            });
        }
    }

    /// Asks what is to be changed of a run that begins.
    pub async fn before_agent_start(
        &self,
        payload: &BeforeAgentStart<'_>,
        context: &HookContext,
    ) -> StartChanges {
        let mut changes = StartChanges::default();
        for program in self.set.at_point(HookPoint::BeforeAgentStart) {
            if let Some(answer) = self.ask(program, payload, context).await {
                changes.take(answer);
            }
        }
        changes
    }

    /// Asks whether and how a tool is called.
    pub async fn before_tool_call(
        &self,
        tool_name: &str,
        params: Value,
        context: &HookContext,
    ) -> ToolCallGate {
        let mut gate = ToolCallGate::new(params);
        for program in self.set.at_point(HookPoint::BeforeToolCall) {
            let payload = BeforeToolCall { tool_name, params: &gate.params };
            if let Some(answer) = self.ask(program, &payload, context).await {
                gate.take(answer);
            }
            if gate.blocked.is_some() {
                break;
            }
        }
        gate
    }

    /// Asks whether and how a message is sent.
    pub async fn message_sending(
        &self,
        to: &str,
        content: String,
        metadata: &Map<String, Value>,
        context: &HookContext,
    ) -> SendingGate {
        let mut gate = SendingGate::new(content);
        for program in self.set.at_point(HookPoint::MessageSending) {
            let payload = MessageSending { to, content: &gate.content, metadata };
            if let Some(answer) = self.ask(program, &payload, context).await {
                gate.take(answer);
            }
        }
        gate
    }

    /// Asks how a tool's result is written; `None` where nobody changes it.
    pub async fn tool_result_persist(
        &self,
        message: &Message,
        origin: ResultOrigin,
        context: &HookContext,
    ) -> Option<Message> {
        let Message::ToolResult(result) = message else { return None };
        let (tool_name, tool_call_id) = (result.tool_name.as_str(), result.tool_call_id.as_str());
        let mut changed: Option<Message> = None;
        for program in self.set.at_point(HookPoint::ToolResultPersist) {
            let current = changed.as_ref().unwrap_or(message);
            let is_synthetic = origin == ResultOrigin::Gateway;
            let payload = ToolResultPersist { tool_name, tool_call_id, message: current, is_synthetic };
            let Some(answer) = self.ask(program, &payload, context).await else { continue };
            match merge::persisted(current, answer) {
                Ok(next) => changed = next.or(changed),
                Err(why) => {
                    tracing::warn!("[hooks] tool_result_persist handler from {} failed: {why}", program.hook)
                }
            }
        }
        changed
    }

    /// Tells the programs that hear an event, one after the other. Gives what is to be said in the chat it came from.
    pub fn tell_programs(&self, mut event: Event) -> impl Future<Output = Vec<String>> + Send + use<> {
        let bus = self.clone();
        async move {
            for action in bus.set.of_event(event.kind) {
                if let Action::Program(program) = action {
                    bus.tell_event(program, &mut event).await;
                }
            }
            event.messages
        }
    }

    /// Tells a program of an event and takes its answer: what is to be said goes into the event.
    pub async fn tell_event(&self, program: &Program, event: &mut Event) -> Option<EventAnswer> {
        let input = event.to_json().to_string().into_bytes();
        let name = event.kind.to_string();
        let printed = match self.programs.run(program, input, EVENT_LIMIT).await {
            Ok(printed) => printed,
            Err(error) => {
                tracing::warn!(hook = %program.hook, "Hook error [{name}]: {error}");
                return None;
            }
        };
        match answer::read::<EventAnswer>(&printed).map(EventAnswer::bounded) {
            Ok(answer) => {
                // A handler that only adds may leave out what was there.
                if answer.messages.starts_with(&event.messages) {
                    event.messages.clone_from(&answer.messages);
                } else {
                    event.messages.extend(answer.messages.iter().cloned());
                }
                Some(answer)
            }
            Err(error) => {
                tracing::warn!(hook = %program.hook, "Hook error [{name}]: {error}");
                None
            }
        }
    }

    /// Asks one program. Any failure is logged and counts as no answer.
    async fn ask<P: Payload, T: DeserializeOwned + Default>(
        &self,
        program: &Program,
        payload: &P,
        context: &HookContext,
    ) -> Option<T> {
        let (name, input) = (P::POINT.as_str(), input(payload, context)?);
        let printed = run(&*self.programs, program, name, input, POINT_LIMIT).await?;
        match answer::read(&printed) {
            Ok(answer) => Some(answer),
            Err(error) => {
                failed(name, program, &error);
                None
            }
        }
    }
}

/// Author of a tool's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultOrigin {
    /// The tool.
    Tool,
    /// The gateway, in place of a tool that gave none.
    Gateway,
}

fn input<P: Payload>(payload: &P, context: &HookContext) -> Option<Vec<u8>> {
    let asked = HookInput { hook: P::POINT.as_str(), payload, context };
    match serde_json::to_vec(&asked) {
        Ok(input) => Some(input),
        Err(error) => {
            tracing::warn!(%error, "hooks are not asked at {}", P::POINT.as_str());
            None
        }
    }
}

async fn run(
    programs: &dyn Programs,
    program: &Program,
    name: &str,
    input: Vec<u8>,
    limit: Duration,
) -> Option<Vec<u8>> {
    match programs.run(program, input, limit).await {
        Ok(printed) => Some(printed),
        Err(error) => {
            failed(name, program, &error);
            None
        }
    }
}

fn failed(name: &str, program: &Program, error: &dyn std::fmt::Display) {
    tracing::warn!("[hooks] {name} handler from {} failed: {error}", program.hook);
}

/// The files of `agent:bootstrap` as handlers read them.
pub fn bootstrap_files(files: &[crate::bootstrap::RawFile]) -> Value {
    let one = |file: &crate::bootstrap::RawFile| {
        let mut value = json!({"name": file.name, "path": file.path.display().to_string(), "missing": file.content.is_none()});
        if let (Value::Object(map), Some(content)) = (&mut value, &file.content) {
            map.insert("content".to_owned(), Value::String(content.text().to_owned()));
        }
        value
    };
    Value::Array(files.iter().map(one).collect())
}

#[cfg(test)]
mod tests;
