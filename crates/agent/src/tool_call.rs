//! Making one tool call: the only place where a tool is executed (spec `agent-runtime.md` §2.4).

use std::path::Path;
use std::sync::Arc;

use openclaw_models::ToolSpec;
use openclaw_protocol::message::{Block, ToolCall, ToolResultMessage};
use openclaw_protocol::schema::{Schema, Violation, ViolationKind, coerce};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::event::RunEvent;
use crate::gateway_result::{STOPPED_RUNNING, STOPPED_WAITING};
use crate::hooks::RunHooks;
use crate::host::Host;
use crate::redaction::{CutEnds, Redactor};
use crate::tool::{ToolContext, ToolError, ToolOutput};
use crate::tool_event;
use crate::toolbox::Toolbox;
use crate::turn::Executed;

/// Partial results that may wait for the event channel; more are dropped by the tool.
const UPDATES: usize = 16;

/// Environment in which a call is made.
#[derive(Clone, Copy)]
pub(crate) struct CallFrame<'a> {
    pub(crate) tools: &'a Toolbox,
    pub(crate) redactor: &'a Redactor,
    pub(crate) hooks: &'a RunHooks,
    pub(crate) host: &'a Arc<dyn Host>,
    pub(crate) workspace: &'a Path,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) events: &'a mpsc::Sender<RunEvent>,
}

/// Validates the arguments, runs the tool, passes its updates on, all without known secrets. Never fails: whatever goes
/// wrong is the result.
pub(crate) async fn execute(frame: CallFrame<'_>, call: &ToolCall, now: impl Fn() -> i64) -> Executed {
    let meta = frame.tools.meta(&call.name, &call.arguments);
    let begun = now();
    let mut told = None;
    let outcome = match checked(frame.tools, call) {
        Ok(args) => match hooked(frame, call, args).await {
            Ok(args) => {
                told = frame.hooks.kept_params(&args);
                CallOutcome::of(run(frame, call, args).await, &call.name, frame.redactor)
            }
            Err(Withheld::Blocked(reason)) => {
                CallOutcome::failed(&call.name, &frame.redactor.redact_text(&reason))
            }
            Err(Withheld::Unfit(why)) => CallOutcome::refused(why).redacted(frame.redactor),
            Err(Withheld::Stopped) => CallOutcome::refused(STOPPED_WAITING),
        },
        Err(why) => CallOutcome::refused(why).redacted(frame.redactor),
    };
    let executed = outcome.executed(call, meta, now());
    let took = u64::try_from(executed.result.timestamp - begun).unwrap_or_default();
    frame.hooks.after_tool_call(call, told, &executed.result, took);
    executed
}

/// Reason why a call is not made although its arguments are valid.
enum Withheld {
    /// A hook does not want it, for this reason.
    Blocked(String),
    /// A hook changed the arguments to something that does not fit the tool's schema.
    Unfit(String),
    /// The run was stopped while hooks were asked.
    Stopped,
}

/// The arguments after the hooks had them; they have to fit the tool's schema still. A run that is stopped does not wait for hooks.
async fn hooked(frame: CallFrame<'_>, call: &ToolCall, args: Value) -> Result<Value, Withheld> {
    if !frame.hooks.ask_before_tool_calls() {
        return Ok(args);
    }
    let answer = tokio::select! { biased;
        () = frame.cancel.cancelled() => return Err(Withheld::Stopped),
        answer = frame.hooks.before_tool_call(call, args.clone()) => answer,
    };
    let changed = match answer {
        Ok(changed) if changed == args => return Ok(args),
        Ok(changed) => changed,
        Err(reason) => return Err(Withheld::Blocked(reason)),
    };
    let changed = ToolCall { arguments: changed, ..call.clone() };
    checked(frame.tools, &changed).map_err(Withheld::Unfit)
}

/// A call that a person asks for, without a model.
#[derive(Clone, Copy)]
pub struct DirectCall<'a> {
    /// The tools that the policy leaves.
    pub tools: &'a Toolbox,
    /// Takes secrets out of what the tool says.
    pub redactor: &'a Redactor,
    /// Hooks that are asked before the call.
    pub hooks: &'a RunHooks,
    /// Interface of the tool to the gateway.
    pub host: &'a Arc<dyn Host>,
    /// Base directory of relative paths.
    pub workspace: &'a Path,
    /// Ends the call.
    pub cancel: &'a CancellationToken,
    /// Channel for the events of the call: start, updates and end.
    pub events: &'a mpsc::Sender<RunEvent>,
}

impl DirectCall<'_> {
    /// Makes the call. Gives what the tool says in words, without known secrets; nothing if it says nothing. Clients and hooks are told
    /// as of a model's call.
    ///
    /// # Errors
    /// [`ToolError`]; its text has no known secrets either. Of a tool that is not there nobody is told.
    pub async fn make(self, call: &ToolCall, now: impl Fn() -> i64) -> Result<Option<String>, ToolError> {
        let made = self.made(call, now, ArgumentCheck::Checked).await?;
        Ok(words(&made.content))
    }

    /// Makes the call of a program. Gives what the tool says, without known secrets. Invalid
    /// arguments are reported by the tool itself, in its own words.
    ///
    /// # Errors
    /// As [`DirectCall::make`].
    pub async fn result(
        self,
        call: &ToolCall,
        now: impl Fn() -> i64,
    ) -> Result<ToolResultMessage, ToolError> {
        self.made(call, now, ArgumentCheck::AsGiven).await
    }

    async fn made(
        self,
        call: &ToolCall,
        now: impl Fn() -> i64,
        arguments: ArgumentCheck,
    ) -> Result<ToolResultMessage, ToolError> {
        let Self { tools, redactor, hooks, host, workspace, cancel, events } = self;
        if !tools.specs().iter().any(|spec| spec.name == call.name) {
            return Err(tools.missing(&call.name));
        }
        let frame = CallFrame { tools, redactor, hooks, host, workspace, cancel, events };
        let begun = now();
        tell(frame, tool_event::start(call)).await;
        let (params, given) = attempt(frame, call, arguments).await;
        let error = given.as_ref().err().map(|error| error.redacted(redactor));
        let meta = tools.meta(&call.name, &call.arguments);
        let Executed { result, meta } =
            CallOutcome::of(given, &call.name, redactor).executed(call, meta, now());
        tell(frame, tool_event::result(call, &result, meta)).await;
        let took = u64::try_from(result.timestamp - begun).unwrap_or_default();
        hooks.after_tool_call(call, params, &result, took);
        error.map_or(Ok(result), Err)
    }
}

/// Treatment of arguments before the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArgumentCheck {
    /// Arguments are fitted to the schema; a call that does not fit is refused.
    Checked,
    /// Arguments are passed on unchanged.
    AsGiven,
}

/// The arguments as far as hooks are told them, and what came of the call.
async fn attempt(
    frame: CallFrame<'_>,
    call: &ToolCall,
    arguments: ArgumentCheck,
) -> (Option<Value>, Result<ToolOutput, ToolError>) {
    let args = match arguments {
        ArgumentCheck::Checked => checked(frame.tools, call),
        ArgumentCheck::AsGiven => Ok(call.arguments.clone()),
    };
    let args = match args {
        Ok(args) => args,
        Err(why) => return (None, Err(ToolError::Failed(why))),
    };
    match hooked(frame, call, args).await {
        Ok(args) => (frame.hooks.kept_params(&args), run(frame, call, args).await),
        Err(Withheld::Blocked(why) | Withheld::Unfit(why)) => (None, Err(ToolError::Failed(why))),
        Err(Withheld::Stopped) => (None, Err(ToolError::Aborted)),
    }
}

async fn tell(frame: CallFrame<'_>, event: RunEvent) {
    // A missing listener is no reason to stop the tool.
    let _ = frame.events.send(tool_event::canonical(event, frame.tools.catalogue())).await;
}

fn words(said: &[Block]) -> Option<String> {
    let text = |block: &'_ Block| match block {
        Block::Text(text) => Some(text.text.clone()),
        Block::Image(_) | Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => None,
    };
    let texts: Vec<String> = said.iter().filter_map(text).collect();
    Some(texts.join("\n").trim().to_owned()).filter(|text| !text.is_empty())
}

impl ToolError {
    /// Returns the same error without known secrets.
    fn redacted(&self, redactor: &Redactor) -> Self {
        match self {
            Self::Failed(error) => Self::Failed(redactor.redact_text(error)),
            Self::FailedWithNotice { notice, error } => Self::FailedWithNotice {
                notice: redactor.redact_text(notice),
                error: redactor.redact_text(error),
            },
            Self::Unknown(_) | Self::Aborted => self.clone(),
        }
    }
}

/// The result of a call that did not come back after it was told to stop.
pub(crate) fn abandoned(tools: &Toolbox, call: &ToolCall, now: i64) -> Executed {
    CallOutcome::refused(STOPPED_RUNNING).executed(call, tools.meta(&call.name, &call.arguments), now)
}

struct CallOutcome {
    output: ToolOutput,
    is_error: bool,
}

impl CallOutcome {
    /// Redacts the result of a tool. Secrets are removed from the text as the tool printed it,
    /// before anything is put around it: long output keeps its end, and the rest of a cut secret
    /// can be recognised only where that end begins.
    fn of(given: Result<ToolOutput, ToolError>, tool: &str, redactor: &Redactor) -> Self {
        match given {
            Ok(output) => Self { output, is_error: false }.redacted(redactor),
            Err(ToolError::Unknown(name)) => {
                Self::refused(ToolError::Unknown(name).to_string()).redacted(redactor)
            }
            Err(ToolError::Failed(error)) => Self::failed(tool, &redactor.redact_text(&error)),
            Err(ToolError::FailedWithNotice { notice, error }) => {
                let (notice, error) = (redactor.redact_text(&notice), redactor.redact_text(&error));
                Self::failed(tool, &format!("{notice}\n\n{error}"))
            }
            Err(ToolError::Aborted) => Self::refused(STOPPED_RUNNING),
        }
    }

    /// An error the model is told in these words.
    fn refused(text: impl Into<String>) -> Self {
        let output = ToolOutput { details: Some(json!({})), ..ToolOutput::text(text) };
        Self { output, is_error: true }
    }

    fn redacted(mut self, redactor: &Redactor) -> Self {
        self.output.content.iter_mut().for_each(|block| redactor.redact_block(block));
        if let Some(details) = &mut self.output.details {
            redactor.redact(details, CutEnds::Start);
        }
        if let Some(notice) = self.output.notice.take() {
            let notice = redactor.redact_text(&notice);
            let text = self.output.content.iter_mut().find_map(|block| match block {
                Block::Text(text) => Some(&mut text.text),
                _ => None,
            });
            match text {
                Some(text) => *text = format!("{notice}\n\n{text}"),
                None => self.output.content.insert(0, Block::text(notice)),
            }
        }
        self
    }

    fn executed(self, call: &ToolCall, meta: Option<String>, now: i64) -> Executed {
        let result = ToolResultMessage {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            content: self.output.content,
            details: self.output.details,
            is_error: self.is_error,
            timestamp: now,
            ..ToolResultMessage::default()
        };
        Executed { result, meta }
    }

    /// Builds the result of a failed tool: a normal result that reports the failure.
    fn failed(tool: &str, error: &str) -> Self {
        Self {
            output: ToolOutput::json(json!({ "status": "error", "tool": tool, "error": error })),
            is_error: false,
        }
    }
}

async fn run(frame: CallFrame<'_>, call: &ToolCall, args: Value) -> Result<ToolOutput, ToolError> {
    let (updates, mut partials) = mpsc::channel(UPDATES);
    let context = ToolContext {
        call_id: call.id.clone(),
        workspace: frame.workspace.to_path_buf(),
        cancel: frame.cancel.clone(),
        updates,
        host: Arc::clone(frame.host),
    };
    let mut running = Box::pin(frame.tools.call(&call.name, args, context));
    let outcome = loop {
        tokio::select! { biased;
            Some(partial) = partials.recv() => report(frame, call, partial).await,
            outcome = &mut running => break outcome,
        }
    };
    drop(running);
    while let Ok(partial) = partials.try_recv() {
        report(frame, call, partial).await;
    }
    outcome
}

async fn report(frame: CallFrame<'_>, call: &ToolCall, mut partial: Value) {
    frame.redactor.redact(&mut partial, CutEnds::Both);
    tell(frame, tool_event::update(call, partial)).await;
}

/// The arguments fitted to the tool's schema, or what the model is told.
fn checked(tools: &Toolbox, call: &ToolCall) -> Result<Value, String> {
    match tools.specs().iter().find(|spec| spec.name == call.name) {
        Some(spec) => fitted(spec, call),
        None => Err(tools.missing(&call.name).to_string()),
    }
}

/// The arguments fitted to a schema.
fn fitted(spec: &ToolSpec, call: &ToolCall) -> Result<Value, String> {
    if let Some(received) = openclaw_models::invalid_arguments(call) {
        return Err(format!(
            "Validation failed for tool \"{}\":\n  - root: must be a JSON object\n\nReceived arguments:\n{received}",
            call.name
        ));
    }
    let schema = Schema::compile(spec.parameters.cleaned());
    let mut args = call.arguments.clone();
    coerce(&schema, &mut args);
    let violations = schema.validate(&args);
    if violations.is_empty() {
        return Ok(args);
    }
    let lines: Vec<String> = violations.flat().into_iter().map(line).collect();
    let received = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
    Err(format!(
        "Validation failed for tool \"{}\":\n{}\n\nReceived arguments:\n{received}",
        call.name,
        lines.join("\n")
    ))
}

fn line(violation: &Violation<'_>) -> String {
    let pointer = violation.pointer();
    let path = match (pointer.strip_prefix('/'), &violation.kind) {
        (Some(path), _) => path,
        (None, ViolationKind::Missing(name)) => name,
        (None, _) => "root",
    };
    format!("  - {path}: {}", violation.message())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> ToolSpec {
        ToolSpec {
            name: "exec".into(),
            description: "".into(),
            parameters: json!({
                "type": "object",
                "required": ["command"],
                "properties": {"command": {"type": "string"}, "timeout": {"type": "number"}, "pty": {"type": "boolean"}},
            }).into(),
        }
    }

    fn text(name: &str, args: Value) -> Result<Value, String> {
        let call = ToolCall { id: "c".into(), name: name.into(), arguments: args, ..ToolCall::default() };
        fitted(&spec(), &call)
    }

    #[test]
    fn arguments_that_are_no_json_are_answered_and_not_run() {
        let mut call = ToolCall { name: "exec".into(), arguments: json!({}), ..ToolCall::default() };
        call.extra.insert("invalidArguments".into(), json!("{\"command\": \"rm"));
        let text = "Validation failed for tool \"exec\":\n  - root: must be a JSON object\n\nReceived arguments:\n{\"command\": \"rm";
        assert_eq!(fitted(&spec(), &call), Err(text.to_owned()));
    }

    #[test]
    fn scalars_are_coerced() {
        let args = json!({"command": 5, "timeout": "5", "pty": "true"});
        assert_eq!(text("exec", args), Ok(json!({"command": "5", "timeout": 5, "pty": true})));
    }

    #[test]
    fn bad_arguments_are_refused_in_the_known_words() {
        let expect = "Validation failed for tool \"exec\":\n  - command: must have required property 'command'\n  - timeout: must be number\n\nReceived arguments:\n{\n  \"timeout\": \"soon\"\n}";
        assert_eq!(text("exec", json!({"timeout": "soon"})), Err(expect.to_owned()));
        let expect =
            "Validation failed for tool \"exec\":\n  - root: must be object\n\nReceived arguments:\n\"ls\"";
        assert_eq!(text("exec", json!("ls")), Err(expect.to_owned()));
    }

    #[test]
    fn the_rest_of_a_secret_is_found_where_the_output_begins() {
        let redactor = Redactor::new(["sk-0123456789"]).unwrap();
        let says = |given| match CallOutcome::of(given, "exec", &redactor).output.content.as_slice() {
            [Block::Text(text)] => text.text.clone(),
            other => format!("{other:?}"),
        };
        let hidden = openclaw_config::redact::REDACTED;
        let cut = "0123456789\n\nCommand exited with code 1";
        let error = |text: &str| {
            let quoted = Value::from(text).to_string();
            format!("{{\n  \"status\": \"error\",\n  \"tool\": \"exec\",\n  \"error\": {quoted}\n}}")
        };
        let (notice, noticed) = ("Warning: sk-0123456789".to_owned(), ToolOutput::text(cut));
        let after = format!("{hidden}\n\nCommand exited with code 1");
        let warned = format!("Warning: {hidden}\n\n{after}");
        for (given, expect) in [
            (Ok(ToolOutput::text(cut)), after.clone()),
            (Ok(ToolOutput { notice: Some(notice.clone()), ..noticed }), warned.clone()),
            (Err(ToolError::Failed(cut.to_owned())), error(&after)),
            (Err(ToolError::FailedWithNotice { notice, error: cut.to_owned() }), error(&warned)),
        ] {
            assert_eq!(says(given), expect);
        }
        let outcome = CallOutcome::of(Err(ToolError::Failed(cut.to_owned())), "exec", &redactor);
        assert_eq!(outcome.output.details.unwrap()["error"], after);
    }

    #[test]
    fn an_unknown_tool_is_named() {
        let call = ToolCall { name: "fly".into(), arguments: json!({}), ..ToolCall::default() };
        assert_eq!(checked(<&Toolbox>::default(), &call), Err("Tool fly not found".to_owned()));
        static NO_NAMES: crate::tool::Catalogue = crate::tool::Catalogue::empty();
        let told = vec![("fly".to_owned(), "Not from in here.".to_owned())];
        let tools = Toolbox::new(Vec::new(), &NO_NAMES).explaining(told);
        assert_eq!(checked(&tools, &call), Err("Not from in here.".to_owned()));
    }
}
