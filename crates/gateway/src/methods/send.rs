//! `send`, `poll` and `message.action`: messages that no run answers with (spec `gateway-protocol.md` §6.5), and what else can be done on a
//! platform.

use std::sync::Arc;
use std::time::Duration;

use openclaw_channels::{
    Account, Address, Answer, Button, Channel, Content, Part, Platforms, Target, TargetError, told_unusable,
};
use openclaw_config::{normalize_account_id, registry};
use openclaw_delivery::outbox::{Enqueued, Posted};
use openclaw_dispatch::delivery::{Author, Delivery};
use openclaw_dispatch::{ClientFiles, Digest, Dispatch, MessageError, MessageRequest, Mirrored};
use openclaw_protocol::ErrorShape;
use openclaw_protocol::access::Access;
use openclaw_protocol::params::channels::{
    ButtonParams, MessageActionParams, PollParams, SendParams, SendResult,
};
use openclaw_sessions::{SessionKey, SessionStore};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::keys::session_key_of;
use crate::channels::standing::why_not;
use crate::current_settings::CurrentSettings;
use crate::request::{RequestContext, RequestFailure};

/// Time that the platform has before the client is told that the message waits.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes that a button carries.
const MOST_OF_BUTTON: usize = 64;

/// Parts of the gateway that `send`, `poll` and `message.action` use.
pub(super) struct SendMethods {
    pub(super) settings: CurrentSettings,
    pub(super) sessions: Arc<dyn SessionStore>,
    pub(super) platforms: Arc<Platforms>,
    pub(super) dispatch: Dispatch,
}

/// Target of a message.
struct SendTarget {
    channel: Arc<dyn Channel>,
    account: Arc<dyn Account>,
    address: Address,
    target: Target,
}

pub(super) async fn send(
    parts: &SendMethods,
    ctx: RequestContext,
    params: SendParams,
) -> Result<SendResult, RequestFailure> {
    let digest = digest(&SendParams { idempotency_key: String::new(), ..params.clone() })?;
    let place =
        place(parts, &params.to, params.channel.as_deref(), params.account_id.as_deref(), "channel").await?;
    let mut address = place.address;
    let named = |id: Option<String>| id.map(|id| id.trim().to_owned()).filter(|id| !id.is_empty());
    let (thread, reply_to) = (named(params.thread_id), named(params.reply_to));
    if let Some(thread) = &thread {
        checked("threadId", place.channel.check_thread_id(thread))?;
    }
    if let Some(message) = &reply_to {
        checked("replyTo", place.channel.message_id(message).map(drop))?;
    }
    address.thread = thread.or(address.thread);
    let urls = params.media_url.iter().chain(params.media_urls.iter().flatten());
    let urls: Vec<String> = urls.filter(|url| !url.trim().is_empty()).cloned().collect();
    if params.message.trim().is_empty() && urls.is_empty() {
        return Err(ErrorShape::invalid("invalid send params: message or media is required").into());
    }
    let media = parts.dispatch.load_files(urls, files_for(&ctx)).await.map_err(ErrorShape::invalid)?;
    let answer = Answer {
        text: params.message,
        media,
        reply_to,
        silent: params.silent.unwrap_or_default(),
        buttons: buttons(params.buttons.unwrap_or_default())?,
        ..Answer::default()
    };
    if !answer.buttons.is_empty() {
        let permitted = place.account.permits_buttons(&address);
        permitted.map_err(|error| ErrorShape::invalid(error.to_string()))?;
    }
    let mut pieces = place.account.parts(&answer);
    if params.gif_playback == Some(true) {
        pieces.iter_mut().for_each(Part::play_as_gif);
    }
    let session_key = session_key_of(&*parts.sessions, params.session_key.as_deref()).await?;
    let key = SendKey { digest, name: params.idempotency_key };
    let mirrored = Mirrored {
        session_key: session_key.clone(),
        address: address.clone(),
        target: place.target,
        text: answer.text,
        media: answer.media.into_iter().map(|media| media.name).collect(),
    };
    let handed = hand_over(parts, pieces, &address, session_key, &key).await?;
    // The parts that arrived belong in the conversation, even if another part was refused.
    if handed.is_new && handed.posted.sent > 0 {
        parts.dispatch.mirror(mirrored).await;
    }
    sent(parts, &handed, &address, &key)
}

/// Files of this machine that a client may send: a client with admin rights can read all of them
/// anyway.
fn files_for(ctx: &RequestContext) -> ClientFiles {
    match Access::Admin.is_granted_by(&ctx.connection().scopes) {
        true => ClientFiles::Any,
        false => ClientFiles::OfAgent,
    }
}

/// Any other action, as the `message` tool does it.
pub(super) async fn action(
    parts: &SendMethods,
    ctx: RequestContext,
    params: MessageActionParams,
) -> Result<Value, RequestFailure> {
    let mut args = params.params;
    let named = [("channel", params.channel), ("accountId", params.account_id)];
    args.extend(named.into_iter().filter_map(|(key, value)| Some((key.to_owned(), Value::from(value?)))));
    let request = MessageRequest {
        action: params.action,
        args: Value::Object(args),
        session_key: session_key_of(&*parts.sessions, params.session_key.as_deref()).await?,
        idempotency_key: params.idempotency_key,
        dry_run: params.dry_run.unwrap_or_default(),
        files: files_for(&ctx),
    };
    let done = parts.dispatch.message_action(&request).await;
    Ok(done.map_err(|error| match error {
        MessageError::Invalid(text) => ErrorShape::invalid(text),
        MessageError::Failed(text) => ErrorShape::unavailable(format!("Error: {text}")),
        MessageError::Stopped => ErrorShape::unavailable("the gateway is stopping"),
    })?)
}

/// An id that the platform can have.
fn checked(what: &str, id: Result<(), TargetError>) -> Result<(), RequestFailure> {
    Ok(id.map_err(|error| ErrorShape::invalid(format!("invalid send params: {what} {error}")))?)
}

fn buttons(rows: Vec<Vec<ButtonParams>>) -> Result<Vec<Vec<Button>>, RequestFailure> {
    let too_long = |button: &ButtonParams| button.callback_data.len() > MOST_OF_BUTTON;
    if rows.iter().flatten().any(too_long) {
        return Err(ErrorShape::invalid("invalid send params: callback_data too long (max 64 bytes)").into());
    }
    let button = |button: ButtonParams| Button { text: button.text, data: button.callback_data };
    Ok(rows.into_iter().map(|row| row.into_iter().map(button).collect()).collect())
}

pub(super) async fn poll(parts: &SendMethods, params: PollParams) -> Result<SendResult, RequestFailure> {
    let digest = digest(&PollParams { idempotency_key: String::new(), ..params.clone() })?;
    let key = SendKey { digest, name: params.idempotency_key };
    let place =
        place(parts, &params.to, params.channel.as_deref(), params.account_id.as_deref(), "poll channel")
            .await?;
    let info = place.channel.info();
    let most = place.channel.capabilities().poll_options;
    let Some(most) = most else {
        return Err(ErrorShape::invalid(format!("unsupported poll channel: {}", info.id)).into());
    };
    if params.options.len() > most {
        return Err(ErrorShape::invalid(format!("{} takes at most {most} options", info.label)).into());
    }
    let content = Content::Poll {
        question: params.question,
        options: params.options,
        multiple: params.max_selections.is_some_and(|most| most > 1),
        hours: params.duration_hours,
    };
    let part = Part { content, ..Part::text("") };
    let handed = hand_over(parts, vec![part], &place.address, None, &key).await?;
    sent(parts, &handed, &place.address, &key)
}

async fn place(
    parts: &SendMethods,
    to: &str,
    channel: Option<&str>,
    account: Option<&str>,
    what: &str,
) -> Result<SendTarget, RequestFailure> {
    let config = parts.settings.config();
    let platforms = &parts.platforms;
    let name = channel.map(str::trim).filter(|name| !name.is_empty());
    let id = match name {
        Some(name) => registry::by_name(name).map_or(name, |info| info.id).to_owned(),
        None => match platforms.usable(&config).as_slice() {
            [] => return Err(ErrorShape::invalid(platforms.none_usable(&config)).into()),
            [only] => (*only).to_owned(),
            several => {
                let list = several.join(", ");
                let text = format!("Channel is required when multiple channels are configured: {list}");
                return Err(ErrorShape::invalid(text).into());
            }
        },
    };
    if id == registry::WEBCHAT {
        let text = format!("unsupported {what}: webchat. Use `chat.send` for WebChat internal messages.");
        return Err(ErrorShape::invalid(text).into());
    }
    let Some(channel) = platforms.channel(&id).cloned() else {
        return Err(ErrorShape::invalid(format!("unsupported {what}: {id}")).into());
    };
    let account_id = account.map(str::trim).filter(|id| !id.is_empty()).map(normalize_account_id);
    let account_id = account_id.or_else(|| platforms.sending_account(&config, &id)).unwrap_or_default();
    let account = match platforms.at_work(&id, &account_id) {
        Some(at_work) => at_work.account,
        None => channel
            .account(&config, &account_id)
            .map_err(|why| told_unusable(&config, &id, &account_id, &why))
            .map_err(|why| ErrorShape::unavailable(format!("Error: {why}")))?,
    };
    let target = channel.target(to).map_err(|error| ErrorShape::invalid(error.to_string()))?;
    let address = Address {
        channel: id,
        account: account_id,
        target: target.id.clone(),
        thread: target.thread.clone(),
    };
    Ok(SendTarget { channel, account, address, target })
}

/// A client's key, and what it asked for with it.
struct SendKey {
    name: String,
    digest: Digest,
}

/// Digest of all params but the idempotency key.
fn digest(params: &impl Serialize) -> Result<Digest, RequestFailure> {
    let json =
        serde_json::to_vec(params).map_err(|error| ErrorShape::unavailable(format!("Error: {error}")))?;
    Ok(Sha256::digest(json).into())
}

/// A message that is in the outbox.
struct Handed {
    /// Ids of its deliveries, one for each part.
    ids: Vec<String>,
    /// Outcome of the deliveries.
    posted: Posted,
    /// True if it is not a repetition.
    is_new: bool,
}

/// Puts the parts into the outbox and waits for the platform: what became of them. A repetition of the key hears of the first. A key that
/// was used for something else is refused.
async fn hand_over(
    parts: &SendMethods,
    pieces: Vec<Part>,
    address: &Address,
    session_key: Option<SessionKey>,
    key: &SendKey,
) -> Result<Handed, RequestFailure> {
    let dispatch = &parts.dispatch;
    let (mut ids, mut is_new) = (Vec::new(), false);
    for (at, part) in pieces.into_iter().enumerate() {
        let id = format!("send:{}:{}", key.name, at + 1);
        let delivery = Delivery {
            id: id.clone(),
            address: address.clone(),
            session_key: session_key.clone(),
            author: Author::of_client(&part),
            part,
            expires_at: None,
            asked: Some(key.digest),
        };
        let taken = dispatch.deliver(delivery).await;
        match taken.map_err(|error| ErrorShape::unavailable(format!("Error: {error}")))? {
            Enqueued::New => {
                is_new = true;
                ids.push(id);
            }
            Enqueued::Known(first) if first.asked.is_some_and(|asked| asked != key.digest) => {
                let text = format!(
                    "idempotencyKey \"{}\" was used for something else; send this with a key of its own",
                    key.name
                );
                return Err(ErrorShape::invalid(text).into());
            }
            Enqueued::Known(_) => ids.push(id),
            Enqueued::Withheld => {}
        }
    }
    if ids.is_empty() {
        return Err(ErrorShape::unavailable("Error: a hook keeps the message back").into());
    }
    // An account that is not at work may stay so for any time.
    let is_at_work = parts.platforms.at_work(&address.channel, &address.account).is_some();
    let patience = if is_at_work { PATIENCE } else { Duration::ZERO };
    let posted = dispatch.outbox().posted(&ids, patience).await;
    let posted = posted.map_err(|error| ErrorShape::unavailable(format!("Error: {error}")))?;
    Ok(Handed { ids, posted, is_new })
}

/// Success where the platform has all of it. Otherwise the details say what of it arrived, and by which ids the outbox knows it.
fn sent(
    parts: &SendMethods,
    handed: &Handed,
    address: &Address,
    key: &SendKey,
) -> Result<SendResult, RequestFailure> {
    let Handed { ids, posted, .. } = handed;
    let refusal = match (posted.failure(), posted.waiting.first()) {
        (Some(why), _) => format!("Error: {why}"),
        (None, Some(reason)) => {
            let known =
                || why_not(&parts.platforms, &parts.settings.config(), &address.channel, &address.account);
            let why = reason.clone().or_else(known).map(|why| format!(" ({why})")).unwrap_or_default();
            format!(
                "the message is stored and waits for {} account \"{}\"{why}; it is sent by itself as soon as that works, do not send it again",
                address.channel, address.account
            )
        }
        (None, None) => {
            return Ok(SendResult {
                run_id: key.name.clone(),
                message_id: posted.message_ids.last().cloned().unwrap_or_default(),
                channel: address.channel.clone(),
                chat_id: Some(address.target.clone()),
            });
        }
    };
    let details = json!({
        "runId": key.name, "channel": address.channel, "chatId": address.target, "messageIds": posted.message_ids,
        "sent": posted.sent, "failed": posted.failures, "leftOut": posted.left_out, "waiting": posted.waiting.len(),
        "deliveryIds": ids,
    });
    Err(ErrorShape::unavailable(refusal).with_details(details).into())
}
