//! Execution of one action, from its arguments to its result.

use std::path::Path;
use std::sync::Arc;

use openclaw_agent::host::{FileReach, MessageCall};
use openclaw_channels::{ActionError, Address};
use openclaw_config::Config;
use openclaw_journal::delivery::Author;
use openclaw_journal::rights::{ANYBODY, Rights};
use openclaw_sessions::SessionKey;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::actions::{self, ActionSpec, Aim, BROADCAST};
use super::arguments::ActionArguments;
use super::broadcast::broadcast;
use super::files::{ClientFiles, OutgoingFiles, Reach};
use super::guard::{self, OriginMark};
use super::place::{Finder, MessageTarget, TargetWish};
use super::send;
use super::turn::{Bound, MessageTurn};
use super::{MessageError, MessageHost};

/// Request of a client of the gateway.
#[derive(Debug, Clone)]
pub struct MessageRequest {
    /// The action.
    pub action: String,
    /// Arguments of the action, as the `message` tool takes them.
    pub args: Value,
    /// Session for which it is done; the action counts as leaving the conversation of its route.
    pub session_key: Option<SessionKey>,
    /// Makes a repetition the same request.
    pub idempotency_key: String,
    /// True to only tell what would be done.
    pub dry_run: bool,
    /// Files of this machine that may be sent.
    pub files: ClientFiles,
}

/// Does the action that a run's call of the tool asks for.
pub async fn perform_for_run(
    host: &dyn MessageHost,
    turn: &MessageTurn,
    call: MessageCall<'_>,
) -> Result<Value, MessageError> {
    turn.said_before(call.call_id).await;
    let args = ActionArguments(call.args);
    let name = args.word("action").ok_or_else(|| MessageError::Invalid("action required".to_owned()))?;
    let config = host.config();
    let acting = Acting {
        id: turn.delivery_id(call.call_id, call.args),
        bound: turn.bound.clone(),
        is_operator: false,
        turn: Some(turn),
        session_key: Some(turn.session_key.clone()),
        files: OutgoingFiles::new(host.state_dir(), &config, reach(host, &config, call.files)),
        cancel: Some(call.cancel),
        needs_target: turn.needs_target,
        is_dry_run: args.flag("dryRun"),
        config,
        host,
    };
    acting.perform(&name, args).await
}

/// Does the action that a client asks for.
pub async fn perform_for_operator(
    host: &dyn MessageHost,
    request: &MessageRequest,
) -> Result<Value, MessageError> {
    let config = host.config();
    let bound = match &request.session_key {
        Some(key) => host.route_of(key).await.map(|address| Bound { address, message_id: None }),
        None => None,
    };
    let reach = Reach::of_client(request.files, host.state_dir(), &config);
    let acting = Acting {
        id: format!("action:{}", request.idempotency_key),
        bound,
        is_operator: true,
        turn: None,
        session_key: request.session_key.clone(),
        files: OutgoingFiles::new(host.state_dir(), &config, reach),
        cancel: None,
        needs_target: false,
        is_dry_run: request.dry_run,
        config,
        host,
    };
    acting.perform(&request.action, ActionArguments(&request.args)).await
}

fn reach(host: &dyn MessageHost, config: &Config, files: FileReach<'_>) -> Reach {
    let temp_dir: &Path = config.environment().temp_dir();
    match files {
        FileReach::Confined(root) => Reach::within(root),
        FileReach::Host { workspace } => Reach::of_agent(workspace, host.state_dir(), temp_dir),
    }
}

/// An action under way.
pub(super) struct Acting<'a> {
    pub(super) host: &'a dyn MessageHost,
    pub(super) config: Arc<Config>,
    /// Conversation of the caller.
    pub(super) bound: Option<Bound>,
    is_operator: bool,
    pub(super) turn: Option<&'a MessageTurn>,
    pub(super) session_key: Option<SessionKey>,
    /// Prefix of the ids of what it sends.
    pub(super) id: String,
    pub(super) files: OutgoingFiles,
    cancel: Option<&'a CancellationToken>,
    needs_target: bool,
    pub(super) is_dry_run: bool,
}

impl Acting<'_> {
    async fn perform(&self, name: &str, args: ActionArguments<'_>) -> Result<Value, MessageError> {
        let action =
            actions::find(name).ok_or_else(|| MessageError::Invalid(format!("Unknown action: {name}")))?;
        if self.needs_target {
            require_target(action, args)?;
        }
        if action.name == BROADCAST {
            return broadcast(self, args).await;
        }
        let (place, mark) = self.place(action, args)?;
        self.permit(action, &place)?;
        if !action.says {
            self.spare_gateways(&place, args).await?;
        }
        match action.name {
            "send" | "sendAttachment" | "reply" | "thread-reply" => {
                send::letter(self, &place, &mark, args).await
            }
            "poll" => send::poll(self, &place, args).await,
            "sticker" => send::sticker(self, &place, args).await,
            _ if self.is_dry_run => {
                let checked = place.account.check(action.name, &self.params(action, &place, args));
                checked.map_err(|error| refused(error, &place))?;
                Ok(send::dry(&place, json!({"action": action.name})))
            }
            "thread-create" => self.create_thread(action, &place, &mark, args).await,
            "edit" => {
                self.note_buttons(&place, args).await?;
                self.act(action, &place, args).await
            }
            _ => self.act(action, &place, args).await,
        }
    }

    /// Sends one message of a broadcast.
    pub(super) async fn send_one(&self, args: &Value) -> Result<Value, MessageError> {
        self.perform("send", ActionArguments(args)).await
    }

    /// Returns the action for one of several messages, with an id of its own.
    pub(super) fn one_of_many(&self, id: String) -> Acting<'_> {
        Acting {
            host: self.host,
            config: Arc::clone(&self.config),
            bound: self.bound.clone(),
            is_operator: self.is_operator,
            turn: self.turn,
            session_key: self.session_key.clone(),
            id,
            files: self.files.clone(),
            cancel: self.cancel,
            needs_target: self.needs_target,
            is_dry_run: self.is_dry_run,
        }
    }

    pub(super) fn finder(&self) -> Finder<'_> {
        Finder {
            platforms: self.host.platforms(),
            config: &self.config,
            bound: self.bound.as_ref().map(|bound| &bound.address),
        }
    }

    /// Returns the place of the action, if it may be done there.
    fn place(
        &self,
        action: &ActionSpec,
        args: ActionArguments<'_>,
    ) -> Result<(MessageTarget, OriginMark), MessageError> {
        let target = target(action, args)?;
        let wish = TargetWish {
            channel: args.word("channel"),
            account: args.word("accountId"),
            thread: args.word("threadId"),
            target,
        };
        let finder = self.finder();
        if action.aim == Aim::Nothing {
            let channel = finder.channel(wish.channel.as_deref())?;
            let (account_id, account, is_at_work) = finder.account(&channel, wish.account.as_deref())?;
            let address = Address {
                channel: channel.info().id.to_owned(),
                account: account_id,
                target: String::new(),
                thread: None,
            };
            return Ok((MessageTarget { channel, account, address, is_at_work }, OriginMark::default()));
        }
        if wish.target.is_none() {
            let channel = finder.channel(wish.channel.as_deref())?;
            let is_here = self.bound.as_ref().is_some_and(|bound| bound.address.channel == channel.info().id);
            // For a caller without a conversation, a platform that can't be reached is reported
            // first.
            if !is_here {
                return Err(MessageError::Invalid(format!("Action {} requires a target.", action.name)));
            }
        }
        let place = finder.find(&wish)?;
        let Some(bound) = &self.bound else { return Ok((place, OriginMark::default())) };
        let settings = &self.config.tools.message;
        let mark = guard::check(action.name, &place.address, &bound.address, settings, self.is_operator);
        Ok((place, mark.map_err(MessageError::Invalid)?))
    }

    /// Checks that agents may do it there. A client with the gateway's own protocol may send
    /// whatever agents may.
    fn permit(&self, action: &ActionSpec, place: &MessageTarget) -> Result<(), MessageError> {
        let by_hand = self.is_operator && matches!(action.name, "send" | "poll" | "thread-reply");
        if by_hand {
            return Ok(());
        }
        place.account.permits(action.name).map_err(|error| refused(error, place))
    }

    /// Refuses changes to a message of the gateway's own: a question about a command, say, has to
    /// stay as it was asked.
    async fn spare_gateways(
        &self,
        place: &MessageTarget,
        args: ActionArguments<'_>,
    ) -> Result<(), MessageError> {
        let Some(written) = args.word("messageId") else { return Ok(()) };
        // Of one that can't be an id the platform says so itself.
        let Ok(id) = place.channel.message_id(&written) else { return Ok(()) };
        let is_there = |at: &Address| place.account.may_mean(&place.address.target, &at.target);
        let author = self.host.outbox().author_of(&place.address.channel, &id, &is_there).await;
        match author.map_err(|error| MessageError::Failed(error.to_string()))? {
            Author::Gateway => Err(MessageError::Invalid(format!(
                "Message {id} is the gateway's own, such as the answer to a command or a question about one: it stays as it is."
            ))),
            Author::Buttons(_) | Author::Other => Ok(()),
        }
    }

    /// Notes the maker of the buttons that an edit puts below a message, before anybody can press
    /// them.
    async fn note_buttons(
        &self,
        place: &MessageTarget,
        args: ActionArguments<'_>,
    ) -> Result<(), MessageError> {
        let has_buttons = args.0.get("buttons").is_some_and(|buttons| !buttons.is_null());
        let written = args.word("messageId").filter(|_| has_buttons);
        let Some(id) = written.and_then(|written| place.channel.message_id(&written).ok()) else {
            return Ok(());
        };
        let is_there = |at: &Address| place.account.may_mean(&place.address.target, &at.target);
        let note = format!("{}.buttons", self.id);
        let outbox = self.host.outbox();
        let noted = outbox.note_buttons(note, (&place.address, &id), &is_there, self.rights()).await;
        noted.map_err(|error| MessageError::Failed(error.to_string()))
    }

    /// Returns the rights of the caller.
    pub(super) fn rights(&self) -> &Rights {
        self.turn.map_or(&ANYBODY, |turn| &turn.rights)
    }

    /// Asks the platform.
    async fn act(
        &self,
        action: &ActionSpec,
        place: &MessageTarget,
        args: ActionArguments<'_>,
    ) -> Result<Value, MessageError> {
        let params = self.params(action, place, args);
        let done = tokio::select! { biased;
            () = self.is_cancelled() => return Err(MessageError::Stopped),
            done = place.account.act(action.name, &params) => done,
        };
        done.map_err(|error| refused(error, place))
    }

    /// Returns the arguments as a platform takes them: the target in one place, the thread beside
    /// it.
    fn params(&self, action: &ActionSpec, place: &MessageTarget, args: ActionArguments<'_>) -> Value {
        let mut params: Map<String, Value> = args.0.as_object().cloned().unwrap_or_default();
        for key in ["action", "channel", "accountId", "target", "targets", "channelId", "dryRun", "to"] {
            params.remove(key);
        }
        if action.aim != Aim::Nothing {
            params.insert("to".to_owned(), json!(place.address.target));
        }
        if let Some(thread) = &place.address.thread {
            params.insert("threadId".to_owned(), json!(thread));
        }
        let bound = self.bound.as_ref().filter(|bound| {
            bound.address.channel == place.address.channel && bound.address.target == place.address.target
        });
        // A reaction without a message is one to what was just said.
        if action.name == "react"
            && args.word("messageId").is_none()
            && let Some(id) = bound.and_then(|bound| bound.message_id.as_ref())
        {
            params.insert("messageId".to_owned(), json!(id));
        }
        Value::Object(params)
    }

    /// Makes a thread, and says the first words in it.
    async fn create_thread(
        &self,
        action: &ActionSpec,
        place: &MessageTarget,
        mark: &OriginMark,
        args: ActionArguments<'_>,
    ) -> Result<Value, MessageError> {
        let mut made = self.act(action, place, args).await?;
        let thread = made.get("threadId").and_then(Value::as_str).map(str::to_owned);
        if args.text("message").is_none() || thread.is_none() {
            return Ok(made);
        }
        let mut inside = place.clone();
        inside.address.thread = thread;
        let said = send::letter(self, &inside, mark, args).await;
        if let Some(fields) = made.as_object_mut() {
            match said {
                Ok(said) => fields.insert("message".to_owned(), said),
                Err(MessageError::Stopped) => return Err(MessageError::Stopped),
                Err(error) => fields.insert("messageError".to_owned(), json!(error.to_string())),
            };
        }
        Ok(made)
    }

    pub(super) async fn is_cancelled(&self) {
        match self.cancel {
            Some(cancel) => cancel.cancelled().await,
            None => std::future::pending().await,
        }
    }
}

fn refused(error: ActionError, place: &MessageTarget) -> MessageError {
    match error {
        ActionError::Unsupported(action) => MessageError::Invalid(format!(
            "Message action {action} not supported for channel {}.",
            place.channel.info().id
        )),
        ActionError::Invalid(text) => MessageError::Invalid(text),
        ActionError::Failed(error) => MessageError::Failed(error.to_string()),
    }
}

/// Checks that a run that answers nobody names a target for its words.
fn require_target(action: &ActionSpec, args: ActionArguments<'_>) -> Result<(), MessageError> {
    if !action.says || has_target(args) {
        return Ok(());
    }
    let text =
        "Explicit message target required for this run. Provide target/targets (and channel when needed).";
    Err(MessageError::Invalid(text.to_owned()))
}

fn has_target(args: ActionArguments<'_>) -> bool {
    args.first(&["target", "to", "channelId"]).is_some() || !args.list("targets").is_empty()
}

/// Returns the target as it is written, under the names that models and older clients know it by.
fn target(action: &ActionSpec, args: ActionArguments<'_>) -> Result<Option<String>, MessageError> {
    let invalid = |text: String| Err(MessageError::Invalid(text));
    let named = args.word("target");
    let legacy = args.first(&["to", "channelId"]);
    if action.aim == Aim::Nothing {
        return match named {
            Some(_) => invalid(format!("Action {} does not accept a target.", action.name)),
            None => Ok(None),
        };
    }
    if named.is_some() && legacy.is_some() && named != legacy {
        return invalid("Use `target` instead of `to`/`channelId`.".to_owned());
    }
    let targets = args.list("targets");
    match (named.or(legacy), targets.as_slice()) {
        (Some(target), _) => Ok(Some(target)),
        (None, []) => Ok(None),
        (None, [only]) => Ok(Some(only.clone())),
        (None, _) => invalid("Use action=broadcast for several targets.".to_owned()),
    }
}

#[cfg(test)]
mod tests;
