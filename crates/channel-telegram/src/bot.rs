//! Telegram bot at work: its identity, its calls of the Bot API with their retries, and the state of
//! its chats.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use openclaw_channels::{
    Activity, Address, Inbound, InboundEvent, MediaKind, RateTurn, SendError, UnknownAccount, Unusable,
};
use openclaw_config::Config;
use parking_lot::Mutex;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::addresses::addresses;
use crate::api_root::{self, ApiRoot};
use crate::client::{Client, Transport};
use crate::credentials::BotToken;
use crate::entities::Me;
use crate::failure::{ApiRefusal, BotApiError};
use crate::keyboards::Keyboards;
use crate::names::NameLookups;
use crate::pace::BotPace;
use crate::params::{chat_id, set};
use crate::settings::{self, AccountSettings};
use crate::wire::Wire as _;
use crate::{target, thread};

/// Groups that were moved and are remembered; each is told by Telegram again when it is forgotten.
const MOVED_REMEMBERED: usize = 1000;
/// Messages that the agent has reacted to and are remembered.
const REACTED_REMEMBERED: usize = 1000;
/// A longer wait for a chat's turn is left to the caller.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Time for which a call is retried: the caller of an action, such as `openclaw message`, waits a
/// little longer than this.
const PATIENCE: Duration = Duration::from_secs(25);
/// Time for which an attempt may bring no data if another attempt follows.
const TRY: Duration = Duration::from_secs(10);

/// Effect of repeating a call after one of unknown fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    /// The effect is the same as that of one call.
    Same,
    /// The effect occurs twice.
    Twice,
}

/// Telegram bot.
pub(super) struct Bot {
    pub(super) id: String,
    pub(super) settings: AccountSettings,
    pub(super) client: Client,
    pub(super) state_dir: PathBuf,
    pub(super) keyboards: Keyboards,
    pub(super) names: NameLookups,
    pace: Mutex<BotPace>,
    moved: Mutex<HashMap<String, String>>,
    me: Mutex<Option<Me>>,
    /// Messages that the agent has reacted to: its reaction took the place of an acknowledgement, which is not to be taken back then.
    reacted: Mutex<VecDeque<(String, String)>>,
}

impl Bot {
    pub(super) fn of(config: &Config, id: &str) -> Result<Self, Unusable> {
        let settings = AccountSettings::of(config, id).ok_or_else(|| {
            Unusable::Unknown(UnknownAccount { id: id.to_owned(), known: settings::account_ids(config) })
        })?;
        let wrong = |why: String, fix: Option<String>| Unusable::NotConfigured { why, fix };
        let settings = settings.map_err(|error| {
            wrong(
                format!("channels.telegram can't be read: {error}"),
                Some("Run: openclaw doctor".to_owned()),
            )
        })?;
        if !settings.is_enabled {
            return Err(Unusable::Disabled);
        }
        let token = BotToken::look_up(config, id).map_err(|why| wrong(why.to_string(), None))?;
        let set = |key: &str, to: &str| {
            format!("Run: openclaw config set {} {to}", settings::place_of(config, id, key))
        };
        let root = ApiRoot::find(settings.api_root.as_deref(), config.environment()).map_err(|why| {
            let fix = match settings.api_root.as_deref().map(str::trim) {
                Some("") | None => format!("Unset {}, or set it to an https address", api_root::VARIABLE),
                Some(_) => set("apiRoot", "<address>"),
            };
            wrong(why, Some(fix))
        })?;
        let proxy = settings.proxy.as_ref().map(|proxy| proxy.expose_secret());
        let timeout = settings.timeout_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let transport = Transport {
            proxy,
            timeout: timeout.filter(|timeout| !timeout.is_zero()),
            addresses: addresses(&settings.network, config.environment()),
        };
        let client = Client::new(root, token, transport)
            .map_err(|why| wrong(why, proxy.map(|_| set("proxy", "<address>"))))?;
        let keyboards = Keyboards::new(config.paths().state_dir(), id);
        Ok(Self {
            id: id.to_owned(),
            keyboards,
            names: NameLookups::of(config, &settings.access),
            settings,
            client,
            state_dir: config.paths().state_dir().to_owned(),
            pace: Mutex::default(),
            moved: Mutex::default(),
            me: Mutex::default(),
            reacted: Mutex::default(),
        })
    }

    /// Returns the bot's own identity, requested once.
    pub(super) async fn me(&self) -> Result<Me, BotApiError> {
        if let Some(me) = self.me.lock().clone() {
            return Ok(me);
        }
        let me = Me::read(&self.client.call("getMe", &json!({})).await?)?;
        *self.me.lock() = Some(me.clone());
        Ok(me)
    }

    /// Calls a method that does the same however often it is called, such as one that edits or
    /// reads: again, also where it may have been done (spec `channels.md` §5.4). Messages are tried
    /// again by the outbox, which counts the attempts.
    pub(super) async fn call(&self, method: &str, params: &Value) -> Result<Value, BotApiError> {
        self.tried(method, params, Again::Same).await
    }

    /// Calls a method that makes something, such as a topic: again only where it is certain that nothing was done.
    pub(super) async fn make(&self, method: &str, params: &Value) -> Result<Value, BotApiError> {
        self.tried(method, params, Again::Twice).await
    }

    async fn tried(&self, method: &str, params: &Value, again: Again) -> Result<Value, BotApiError> {
        let begun = Instant::now();
        let mut params = Cow::Borrowed(params);
        let retry = &self.settings.retry;
        let (mut tries, mut may_be_done) = (1, false);
        loop {
            let next = retry.backoff(tries, rand::random());
            let usual = self.client.call_limit();
            let limit = match again {
                Again::Same if next.is_some() => usual.min(TRY),
                Again::Same | Again::Twice if tries == 1 => usual,
                Again::Same | Again::Twice => usual.min(PATIENCE.saturating_sub(begun.elapsed())),
            };
            let error = match self.client.call_within(method, &params, limit).await {
                Ok(done) => return Ok(done),
                Err(error) if may_be_done && error.says_it_is_done() => return Ok(Value::Bool(true)),
                Err(error) => error,
            };
            if let (Some(ApiRefusal::Moved(to)), Cow::Borrowed(_)) = (error.refusal(), &params) {
                // Once: where it is now is known then.
                let from = params.int("chat_id").map(|from| from.to_string()).unwrap_or_default();
                self.has_moved(&from, to);
                set(params.to_mut(), "chat_id", to);
                continue;
            }
            let is_uncertain = error.is_uncertain();
            may_be_done |= is_uncertain;
            let pause = match error.refusal() {
                Some(ApiRefusal::Slower(wish)) => next.map(|_| retry.requested_backoff(wish)),
                _ if is_uncertain => next.filter(|_| again == Again::Same),
                Some(ApiRefusal::Trouble) => next,
                Some(_) => None,
                None => next.filter(|_| matches!(error, BotApiError::Unreachable(_))),
            };
            let pause = pause.filter(|pause| begun.elapsed() + *pause < PATIENCE);
            let Some(pause) = pause else { return Err(error) };
            tracing::info!(method, %error, ?pause, "asked again");
            tokio::time::sleep(pause).await;
            tries += 1;
        }
    }

    /// The agent has reacted to the message that `params` name.
    pub(super) fn note_reaction(&self, params: &Value) {
        let mut reacted = self.reacted.lock();
        if reacted.len() >= REACTED_REMEMBERED {
            reacted.pop_front();
        }
        reacted.extend(message_of(params));
    }

    /// Returns true if the bot has reacted to this message.
    pub(super) fn has_reacted(&self, params: &Value) -> bool {
        message_of(params).is_some_and(|message| self.reacted.lock().contains(&message))
    }

    /// The id a chat has now.
    pub(super) fn current(&self, target: &str) -> String {
        self.moved.lock().get(target).cloned().unwrap_or_else(|| target.to_owned())
    }

    /// A group has got another id.
    pub(super) fn has_moved(&self, from: &str, to: i64) -> String {
        let mut moved = self.moved.lock();
        if moved.len() >= MOVED_REMEMBERED {
            moved.clear();
        }
        moved.insert(from.to_owned(), to.to_string());
        to.to_string()
    }

    /// Takes note of groups that have got another id: what is on its way to the old one goes to the new one.
    pub(super) fn follow(&self, events: &[Inbound]) {
        for event in events {
            if let InboundEvent::Moved { to } = &event.event
                && let Ok(to) = to.parse()
            {
                self.has_moved(&event.address.target, to);
            }
        }
    }

    /// Returns the turn of a chat in the rate limits, and reserves it if it is now.
    pub(super) fn turn_of(&self, at: &Address) -> RateTurn {
        let chat = self.current(&at.target);
        match self.pace.lock().try_reserve(&chat, Instant::now()) {
            Ok(()) => RateTurn::Now,
            Err(wait) => RateTurn::After(wait),
        }
    }

    /// Waits for a chat's turn.
    pub(super) async fn wait_turn(&self, chat: &str) -> Result<(), SendError> {
        let now = Instant::now();
        if let Some(left) = self.pace.lock().parked(chat, now).filter(|left| *left > LONGEST_WAIT) {
            let reason = format!("Telegram asked to send less to chat {chat}");
            return Err(SendError::Retry { reason, after: Some(left) });
        }
        let at = self.pace.lock().reserve(chat, now);
        tokio::time::sleep_until(at).await;
        Ok(())
    }

    /// Remembers what an error says of a chat, and turns it into what becomes of the message.
    pub(super) fn failed(&self, chat: &str, error: BotApiError) -> SendError {
        if let Some(ApiRefusal::Slower(wait)) = error.refusal() {
            self.pace.lock().park(chat, wait, Instant::now());
        }
        error.of_send(chat)
    }

    fn is_parked(&self, chat: &str) -> bool {
        self.pace.lock().parked(chat, Instant::now()).is_some()
    }

    /// Shows what is done. An activity that Telegram refuses is not requested again.
    pub(super) async fn activity(&self, at: &Address, activity: Activity) -> Result<(), SendError> {
        let chat = self.current(&at.target);
        if self.is_parked(&chat) {
            // Not worth a request where there are too many already.
            return Ok(());
        }
        let action = match activity {
            Activity::Typing => "typing",
            Activity::Uploading(MediaKind::Image) => "upload_photo",
            Activity::Uploading(MediaKind::Video | MediaKind::Animation) => "upload_video",
            Activity::Uploading(MediaKind::VideoNote) => "upload_video_note",
            Activity::Uploading(MediaKind::Voice) => "record_voice",
            Activity::Uploading(MediaKind::Audio | MediaKind::Document | MediaKind::Sticker) => {
                "upload_document"
            }
        };
        let mut params = json!({"chat_id": chat_id(&chat), "action": action});
        if let Some(thread) = thread::to_show(at) {
            set(&mut params, "message_thread_id", thread);
        }
        let done = self.client.call("sendChatAction", &params).await;
        done.map(drop).map_err(|error| self.failed(&chat, error))
    }
}

/// Chat and message of an action.
fn message_of(params: &Value) -> Option<(String, String)> {
    let text = |key: &str| match params.at(key) {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let chat = ["to", "target", "chatId", "channelId"].iter().find_map(|key| text(key))?;
    let chat = target::read(&chat).ok()?.id;
    Some((chat, text("messageId")?))
}
