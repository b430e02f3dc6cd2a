//! What something that happened on a platform comes to, once the [`super::door`] has let it pass: which session it is for, who may give
//! commands, and whether a group speaks to the agent (spec `channels.md` §2). An error drops: nobody is let in because something could not
//! be read.

use std::sync::Arc;
use std::time::Duration;

use openclaw_channels::access::rules::{Addressed, may_command, reasons};
use openclaw_channels::access::{
    AccessSettings, Admission, Denial, DmPolicy, Entry, GroupView, Mentioned, PairingStore,
    ReactionNotifications, written_owners,
};
use openclaw_channels::{
    Address, Conversation, ConversationKind, Inbound, InboundEvent, InboundMessage, Mentions, Platforms,
};
use openclaw_config::Config;
use openclaw_protocol::params::sessions::GroupActivation;
use openclaw_sessions::key::{Peer, PeerKind};
use openclaw_sessions::reset::authority::{
    Authority, CommandSender, OwnerRules, Standing, judge as judge_sender,
};
use openclaw_sessions::routing::{self, Route};
use tokio::sync::OwnedSemaphorePermit;

use super::ask::Asking;
use super::desks::Waiting;
use super::door::{Seen, UNREADABLE, access};
use super::offline::Lateness;
use super::{Fate, MovedGroup, handover, offline};
use crate::ack_reaction;
use crate::commands::{self, Intent, Names, Spoken, TextCommands, buttons};
use crate::handle::Dispatch;
use crate::incoming::debounce::{Gather, Piece};
use crate::incoming::{Utterance, compose};
use crate::journal::Update;

/// Messages of a group that are told with the next one, unless configured.
const HISTORY: u32 = 50;
const ROUTE: &str = "route";
const REACTION: &str = "reaction-notifications";

/// What becomes of an event.
pub(super) enum Verdict {
    /// It is known already.
    Decided(Fate),
    /// It gives a message other words, which the inbox has by now.
    Edited { message_id: String, text: String },
    /// It is a message for a session.
    Admitted(Box<Admitted>),
}

impl From<Fate> for Verdict {
    fn from(fate: Fate) -> Self {
        Self::Decided(fate)
    }
}

/// Something that was let in.
pub(super) struct Admitted {
    pub(super) number: i64,
    /// What happened; a message.
    pub(super) event: Inbound,
    pub(super) route: Route,
    pub(super) standing: Standing,
    /// The names in lists that mean its sender.
    pub(super) listed_as: Vec<String>,
    /// How late it is.
    pub(super) lateness: Lateness,
    /// Whether whoever reads there may know why something failed.
    pub(super) hears_reasons: bool,
    pub(super) group: Option<GroupView>,
    /// Whether it speaks to the agent.
    pub(super) was_mentioned: bool,
    /// The emoji it is acknowledged with.
    pub(super) ack: Option<String>,
    /// Whether it does so by its words, and not by being a command.
    pub(super) is_named: bool,
    pub(super) names: Arc<Mentioned>,
    pub(super) command_text: String,
    /// How many messages of the group are told with it.
    pub(super) history: u32,
    window: Duration,
    /// A button of a list of the gateway's own, and the message it is below of.
    pressed: Option<(String, buttons::Press)>,
    /// What becomes of it where nothing that it belongs to speaks to the agent; `None` where it does so itself, or need not.
    pub(super) left_out: Option<Fate>,
    /// Its part of what may be in memory.
    pub(super) in_memory: Option<OwnedSemaphorePermit>,
}

impl Admitted {
    /// Its words, which it has.
    pub(super) fn message(&self) -> Option<&InboundMessage> {
        Utterance::of(&self.event).map(|one| one.message)
    }

    /// Its words as commands are read from them; `None` where they are somebody else's, passed on.
    pub(super) fn spoken(&self, text_commands: Option<bool>) -> Option<Spoken<'_>> {
        let message = self.message().filter(|message| message.forwarded.is_none())?;
        let command = self.command_text.trim();
        Some(Spoken {
            text: if is_told_apart(command) { command } else { &message.text },
            attached: !message.media.is_empty(),
            by: self.standing.commands,
            is_addressed: self.is_named,
            commands: TextCommands::on(&self.event.address.channel, text_commands),
        })
    }

    /// Puts other words in the place of its own.
    pub(super) fn reword(&mut self, words: String) {
        self.command_text.clone_from(&words);
        if let InboundEvent::Message(message) = &mut self.event.event {
            message.text = words;
        }
    }

    /// Its sender has written other words in the place of its own. Whether it speaks to the agent stays as it is: an edit asks for nothing.
    pub(super) fn edit(&mut self, text: &str) {
        // The commands are taken out of what is late, which needs a look at the session.
        let may_command = self.lateness != Lateness::OnTime && text.contains(['/', '!']);
        if !may_command && self.event.reword(text) {
            self.command_text = command_text(&self.event, &self.names);
        }
    }

    /// Nothing in it is taken for a command from now on.
    pub(super) fn obeys_nothing(&mut self) {
        self.standing.commands = Authority::Denied;
    }

    /// Whether it asks the agent to stop, and may.
    pub(super) fn is_stop(&self) -> bool {
        self.standing.commands == Authority::Granted
            && !self.is_left_out()
            && commands::stop::is_stop(&self.command_text)
    }

    /// Whether it does not speak to the agent by itself, where it has to.
    pub(super) fn is_left_out(&self) -> bool {
        self.left_out.is_some()
    }

    /// The button of a list of the gateway's own that was pressed, with the message it is below of.
    pub(super) fn press(&self) -> Option<(&str, buttons::Press)> {
        let (message_id, press) = self.pressed.as_ref()?;
        Some((message_id, press.clone()))
    }

    /// Who says it: only what one person says belongs together.
    pub(super) fn gathering_key(&self) -> String {
        self.event.sender.id.clone()
    }

    /// What it is of a longer text that its platform cut.
    pub(super) fn piece(&self) -> Piece {
        let (number, text) = match self.message() {
            Some(message) => (message.message_id.parse().ok(), message.text.as_str()),
            None => (None, ""),
        };
        let is_late = self.lateness != Lateness::OnTime;
        Piece { number, chars: text.chars().count(), said_at: self.event.at, is_late }
    }

    /// With what it is gathered.
    pub(super) fn gathering(&self) -> Gather {
        let Some(message) = self.message() else { return Gather::Alone };
        if let Some(album) = &message.album {
            return Gather::Album(album.clone());
        }
        let is_stop = !self.is_left_out() && commands::stop::is_stop(&self.command_text);
        if is_stop || commands::begins_as_one(&self.command_text) {
            return Gather::Alone;
        }
        if message.goes_on {
            return Gather::GoesOn;
        }
        let is_text =
            message.media.is_empty() && message.location.is_none() && !message.text.trim().is_empty();
        if is_text { Gather::Text(self.window) } else { Gather::Alone }
    }
}

/// Decides about an event.
pub(super) async fn judge(dispatch: &Dispatch, waiting: Waiting) -> Verdict {
    match decide(dispatch, waiting).await {
        // What is said to nobody is no command: nothing is answered to it, whatever it may belong to.
        Ok(mut admitted) if admitted.is_left_out() => {
            if admitted.lateness != Lateness::OnTime {
                admitted.obeys_nothing();
            }
            match admitted.left_out.take_if(|_| admitted.lateness == Lateness::Stale) {
                Some(fate) => Verdict::Decided(fate),
                None => Verdict::Admitted(Box::new(admitted)),
            }
        }
        Ok(mut admitted) => match offline::settle(dispatch, &mut admitted).await {
            Some(fate) => Verdict::Decided(fate),
            None if is_ignored(dispatch, &admitted).await => {
                Verdict::Decided(Fate::dropped(reasons::COMMAND_UNAUTHORISED))
            }
            None => Verdict::Admitted(Box::new(admitted)),
        },
        Err(verdict) => verdict,
    }
}

/// Whether it is nothing but commands of somebody who may give none.
async fn is_ignored(dispatch: &Dispatch, admitted: &Admitted) -> bool {
    if admitted.standing.commands == Authority::Granted {
        return false;
    }
    let text_commands = dispatch.runner().settings().config.commands.text;
    let Some(spoken) = admitted.spoken(text_commands).filter(|spoken| spoken.text.contains(['/', '!']))
    else {
        return false;
    };
    let (key, agent) = (&admitted.route.session_key, &admitted.route.agent_id);
    let read = |names: Names<'_>| commands::read(spoken, names) == Intent::Ignored;
    dispatch.runner().read_words(key, agent, spoken.text, read).await
}

async fn decide(dispatch: &Dispatch, waiting: Waiting) -> Result<Admitted, Verdict> {
    let Waiting { number, event, received_at, seen, in_memory } = waiting;
    let settings = dispatch.runner().settings();
    let config = &settings.config;
    let address = &event.address;
    let platforms = &dispatch.runner().deps.platforms;
    let now = || access(dispatch, config, &address.channel, &address.account);
    let (admission, access) = match seen {
        Seen::Heard { admission, access } => (admission, access),
        Seen::Asks(place) => {
            let access = now()?;
            let fate = ask(dispatch, config, &access, &event, (number, received_at)).await;
            drop(place);
            return Err(fate.into());
        }
        Seen::Refused(fate) | Seen::Denied { fate, .. } => return Err(fate.into()),
        Seen::Unsaid => return Err(unsaid(dispatch, &now()?, &event).await.into()),
    };
    let inbound = routed(address, &event.conversation);
    let route = routing::resolve(&settings.sessions, &inbound).map_err(|error| {
        tracing::warn!(channel = %address.channel, %error, "a message has no session it could be for");
        Fate::dropped(ROUTE)
    })?;
    may_press(platforms, config, &event, &admission)?;
    let pressed = pressed(&event);
    let event = match message_of(event) {
        Ok(event) => event,
        Err(other) => return Err(noticed(dispatch, &access, &route, *other).await),
    };
    let names = Arc::new(names(config, &route));
    let command_text = command_text(&event, &names);
    let standing = standing(platforms, config, &access, &event, &admission);
    if standing.commands == Authority::Denied && is_from_menu(platforms, config, &event) {
        handover::refuse_command(dispatch, &event, Denial::Unauthorised.text("")).await;
        return Err(Fate::handled(reasons::COMMAND_UNAUTHORISED).into());
    }
    let hears_reasons = hears_reasons(config, &access, &event, standing);
    let history = access
        .history_limit
        .or(config.messages.group_chat.history_limit.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX)))
        .unwrap_or(HISTORY);
    if pressed.is_some() && standing.commands == Authority::Denied {
        return Err(Fate::dropped(reasons::COMMAND_UNAUTHORISED).into());
    }
    let admission = activated(dispatch, admission, &route).await;
    let facts = match &admission.group {
        None => None,
        Some(group) => Some(addressed(group, &event, &names, &command_text, standing)?),
    };
    let left_out = facts.filter(|facts| facts.is_skipped()).map(|_| match history {
        0 => Fate::dropped(reasons::NO_MENTION),
        _ => Fate::Noted,
    });
    let ack = ack_reaction::emoji(config, &route.agent_id, facts.as_ref());
    let is_named = facts.as_ref().is_none_or(|facts| facts.was_mentioned || facts.is_reply);
    let was_mentioned = facts.is_none_or(Addressed::is_addressed);
    let inbound = &config.messages.inbound;
    let window = inbound.by_channel.get(&event.address.channel).copied().or(inbound.debounce_ms).unwrap_or(0);
    let window = Duration::from_millis(window);
    let group = admission.group;
    let at_work = platforms.at_work(&event.address.channel, &event.address.account);
    let listed_as = at_work.as_ref().map(|at_work| at_work.account.names_of(&event.sender.id));
    let lateness = Lateness::of(event.at, received_at);
    Ok(Admitted {
        number,
        event,
        route,
        standing,
        listed_as: listed_as.unwrap_or_default(),
        lateness,
        hears_reasons,
        group,
        was_mentioned,
        ack,
        is_named,
        names,
        command_text,
        history,
        window,
        pressed,
        left_out,
        in_memory,
    })
}

/// The words of a message as commands are read from them.
fn command_text(event: &Inbound, names: &Mentioned) -> String {
    let said = Utterance::of(event);
    said.map(|one| compose::command_text(&one.message.text, &[one], names)).unwrap_or_default()
}

/// Where it goes, as routing wants to know it.
fn routed(address: &Address, conversation: &Conversation) -> routing::Inbound {
    let kind = match conversation.kind {
        ConversationKind::Direct => PeerKind::Direct,
        ConversationKind::Group => PeerKind::Group,
        ConversationKind::Channel => PeerKind::Channel,
    };
    let is_direct = kind == PeerKind::Direct;
    let thread_id = address.thread.clone().filter(|_| is_direct || conversation.is_forum);
    routing::Inbound {
        channel: address.channel.clone(),
        account_id: Some(address.account.clone()),
        peer: Some(Peer::new(kind, &address.target)),
        thread_id,
        ..routing::Inbound::default()
    }
}

/// Somebody asks to be let in.
async fn ask(
    dispatch: &Dispatch,
    config: &Config,
    access: &AccessSettings,
    event: &Inbound,
    (number, received_at): (i64, i64),
) -> Fate {
    let Address { channel, account, .. } = &event.address;
    let Some(platform) = dispatch.runner().deps.platforms.channel(channel) else {
        return Fate::dropped(reasons::DM_POLICY);
    };
    let answer_id = handover::code_id(number, received_at);
    let store = PairingStore::new(config.paths().credentials_dir(), channel, account);
    Asking { config, channel: platform.as_ref(), access, event, answer_id }.note(dispatch, store).await
}

/// What happened without anybody who did it.
async fn unsaid(dispatch: &Dispatch, access: &AccessSettings, event: &Inbound) -> Fate {
    match &event.event {
        InboundEvent::Moved { to } => moved(dispatch, access, &event.address, to).await,
        InboundEvent::Message(_)
        | InboundEvent::Button { .. }
        | InboundEvent::Edited { .. }
        | InboundEvent::Reaction { .. }
        | InboundEvent::Unreadable { .. } => Fate::dropped(UNREADABLE),
    }
}

/// The event as a message: a button that is pressed says what it carries, to the agent. What is no message is given back.
fn message_of(event: Inbound) -> Result<Inbound, Box<Inbound>> {
    match event.event {
        InboundEvent::Message(_) => Ok(event),
        InboundEvent::Button { message_id, data } => {
            let mentions = Mentions { ours: true, any: true, can_tell: true };
            let text = buttons::typed(&data).unwrap_or(data);
            let message = InboundMessage { message_id, text, mentions, ..InboundMessage::default() };
            Ok(Inbound { event: InboundEvent::Message(Box::new(message)), ..event })
        }
        InboundEvent::Edited { .. }
        | InboundEvent::Reaction { .. }
        | InboundEvent::Moved { .. }
        | InboundEvent::Unreadable { .. } => Err(Box::new(event)),
    }
}

/// Whether a button may be pressed where it is, by whom. The platform has told its presser already that the press was taken.
fn may_press(
    platforms: &Platforms,
    config: &Config,
    event: &Inbound,
    admission: &Admission,
) -> Result<(), Fate> {
    if !matches!(event.event, InboundEvent::Button { .. }) {
        return Ok(());
    }
    let Address { channel, account, .. } = &event.address;
    let at_work = platforms.account(config, channel, account);
    let refusal = match at_work.map(|at_work| at_work.permits_press(&event.address, admission)) {
        Some(Ok(())) => return Ok(()),
        Some(Err(why)) => why.to_string(),
        None => "its account is not there any more".to_owned(),
    };
    tracing::debug!(%channel, %account, sender = %event.sender.id, why = refusal, "a pressed button is not heard");
    Err(Fate::dropped(reasons::INLINE_BUTTONS))
}

/// The button of a list of the gateway's own that an event presses.
fn pressed(event: &Inbound) -> Option<(String, buttons::Press)> {
    match &event.event {
        InboundEvent::Button { message_id, data } => Some((message_id.clone(), buttons::read(data)?)),
        InboundEvent::Message(_)
        | InboundEvent::Edited { .. }
        | InboundEvent::Reaction { .. }
        | InboundEvent::Moved { .. }
        | InboundEvent::Unreadable { .. } => None,
    }
}

/// With `/activation`, which overrides what is configured for a group.
async fn activated(dispatch: &Dispatch, mut admission: Admission, route: &Route) -> Admission {
    if let Some(group) = &mut admission.group {
        let entry = dispatch.runner().entry_or_none(&route.session_key).await;
        match entry.and_then(|entry| entry.group_activation) {
            Some(GroupActivation::Always) => group.requires_mention = false,
            Some(GroupActivation::Mention) => group.requires_mention = true,
            None => {}
        }
    }
    admission
}

/// A group has another id now, and its settings are to follow it.
async fn moved(dispatch: &Dispatch, access: &AccessSettings, from: &Address, to: &str) -> Fate {
    tracing::info!(channel = %from.channel, from = %from.target, %to, "a group has another id now");
    if access.may_write_config() {
        let moved = MovedGroup {
            channel: from.channel.clone(),
            account: from.account.clone(),
            from: from.target.clone(),
            to: to.to_owned(),
        };
        dispatch.shared().group_moved(moved).await;
    }
    Fate::handled("moved")
}

/// What is no message: of a reaction the agent hears with its next turn; what waits says what it says now.
async fn noticed(dispatch: &Dispatch, access: &AccessSettings, route: &Route, event: Inbound) -> Verdict {
    let Inbound { address, conversation, sender, event, at, .. } = event;
    match event {
        InboundEvent::Reaction { message_id, emoji, removed } => {
            let ours = match access.reaction_notifications {
                ReactionNotifications::Off => return Fate::dropped(REACTION).into(),
                ReactionNotifications::All | ReactionNotifications::Own => {
                    sent_to(dispatch, &address, &message_id).await
                }
            };
            if ours.is_none() && access.reaction_notifications == ReactionNotifications::Own {
                return Fate::dropped(REACTION).into();
            }
            // Telegram does not say in which topic somebody reacts: we know where we sent the message.
            let there = ours.filter(|ours| ours.thread.is_some()).and_then(|ours| {
                let settings = dispatch.runner().settings();
                routing::resolve(&settings.sessions, &routed(&ours, &conversation)).ok()
            });
            let key = there.map_or_else(|| route.session_key.clone(), |there| there.session_key);
            let name = sender.name.as_deref().unwrap_or(&sender.id);
            let by =
                sender.username.as_ref().map_or_else(|| name.to_owned(), |user| format!("{name} (@{user})"));
            let verb = if removed { "removed" } else { "added" };
            let channel = dispatch.runner().deps.platforms.channel(&address.channel);
            let label = channel.map_or(address.channel.as_str(), |channel| channel.info().label);
            let text = format!("{label} reaction {verb}: {emoji} by {by} on msg {message_id}");
            let context = format!(
                "{}:reaction:{}:{}:{message_id}:{}:{emoji}",
                address.channel,
                if removed { "remove" } else { "add" },
                address.target,
                sender.id
            );
            dispatch.runner().deps.system_events.enqueue(&key, &text, Some(&context), at);
            Fate::handled("reaction").into()
        }
        InboundEvent::Edited { message_id, text } => {
            let (conversation, id, words) = (address, message_id.clone(), text.clone());
            let reworded = Update::Reworded { conversation, message_id: id, text: words };
            if let Err(error) = dispatch.shared().journal.update(reworded).await {
                tracing::warn!(%error, "what waits keeps the words that it had");
            }
            Verdict::Edited { message_id, text }
        }
        InboundEvent::Unreadable { .. } => Fate::dropped(UNREADABLE).into(),
        InboundEvent::Message(_) | InboundEvent::Button { .. } | InboundEvent::Moved { .. } => {
            Fate::handled("moved").into()
        }
    }
}

/// Where we sent a message to: where nobody can tell, it is not ours.
async fn sent_to(dispatch: &Dispatch, at: &Address, message_id: &str) -> Option<Address> {
    let sent = dispatch.shared().journal.sent_to(at, message_id).await;
    sent.inspect_err(|error| tracing::warn!(%error, "whose message a reaction is to can't be told"))
        .unwrap_or_default()
}

/// The ways in which the agent of a route is named.
fn names(config: &Config, route: &Route) -> Mentioned {
    let agent = config.agent(&route.agent_id);
    let own = config.group_chat_of(&route.agent_id).mention_patterns;
    match own.or_else(|| config.messages.group_chat.mention_patterns.clone()) {
        Some(patterns) => {
            let (names, wrong) = Mentioned::by(&patterns);
            for pattern in wrong {
                tracing::warn!(pattern, "a mention pattern is no regular expression and matches nothing");
            }
            names
        }
        None => Mentioned::by_identity(agent.identity.name.as_deref(), agent.identity.emoji.as_deref()),
    }
}

/// What the sender may do (spec `messages.md` §6).
fn standing(
    platforms: &Platforms,
    config: &Config,
    access: &AccessSettings,
    event: &Inbound,
    admission: &Admission,
) -> Standing {
    let sender = &event.sender;
    let use_groups = config.commands.use_access_groups.unwrap_or(true);
    let owners = owners(platforms, config, &event.address);
    let allow_from: Vec<&str> =
        access.allow_from.iter().flatten().map(|Entry(entry)| entry.as_str()).collect();
    let Address { channel, target, .. } = &event.address;
    let from = match event.conversation.kind {
        ConversationKind::Direct => format!("{channel}:{target}"),
        ConversationKind::Group => format!("{channel}:group:{target}"),
        ConversationKind::Channel => format!("{channel}:channel:{target}"),
    };
    let ids = [Some(sender.id.as_str()), sender.phone.as_deref(), Some(from.as_str())];
    let ids: Vec<&str> = ids.into_iter().flatten().collect();
    let allowed_by_channel = may_command(use_groups, admission);
    let by = CommandSender { channel: &event.address.channel, ids: &ids, allowed_by_channel };
    let owners: Vec<&str> = owners.iter().map(String::as_str).collect();
    let rules = OwnerRules { owner_allow_from: &owners, allow_from: &allow_from, ..OwnerRules::default() };
    judge_sender(&by, &rules)
}

/// Whether it is a command that the platform's own menu offers; such a one is answered, also where it is refused (spec `channels.md` §7.5).
pub(super) fn is_from_menu(platforms: &Platforms, config: &Config, event: &Inbound) -> bool {
    let is_native = Utterance::of(event).is_some_and(|one| one.message.is_native_command);
    let Address { channel, account, .. } = &event.address;
    is_native
        // No name of the agent stands before it.
        && commands::is_in_menu(&command_text(event, &Mentioned::default()), &config.commands)
        && platforms.account(config, channel, account).is_some_and(|account| account.has_menu())
}

/// Whether this is the owner's own chat. Where nobody is named as owner it is that of everybody who was let in by hand.
fn hears_reasons(config: &Config, access: &AccessSettings, event: &Inbound, standing: Standing) -> bool {
    let is_named = |Entry(entry): &Entry| entry != "*";
    let names_owners = !written_owners(config).is_empty() || access.allow_from.iter().flatten().any(is_named);
    let is_let_in = !names_owners && access.dm_policy != DmPolicy::Open;
    event.conversation.kind == ConversationKind::Direct && (standing.is_owner || is_let_in)
}

/// `commands.ownerAllowFrom`, with the ids in the place of names that the account of a message has looked up (decision 21).
pub(super) fn owners(platforms: &Platforms, config: &Config, at: &Address) -> Vec<String> {
    let owners = written_owners(config);
    let Some(at_work) = platforms.at_work(&at.channel, &at.account) else { return owners };
    owners.into_iter().map(|entry| at_work.account.id_of_name(&entry).unwrap_or(entry)).collect()
}

/// Whether a text without the names of the agent is a command or a stop: those are read from it.
fn is_told_apart(command: &str) -> bool {
    command.starts_with(['/', '!']) || commands::stop::is_stop(command)
}

/// How a group's message speaks to the agent; or else what becomes of it. Of what is said to others only a command is one: `wait` is said
/// to people too.
fn addressed(
    group: &GroupView,
    event: &Inbound,
    names: &Mentioned,
    command_text: &str,
    standing: Standing,
) -> Result<Addressed, Fate> {
    let Some(Utterance { message, .. }) = Utterance::of(event) else { return Ok(Addressed::default()) };
    let is_command = commands::is_one(command_text);
    let may_command = standing.commands == Authority::Granted;
    if is_command && !may_command {
        return Err(Fate::dropped(reasons::COMMAND_UNAUTHORISED));
    }
    let requires_mention = group.requires_mention;
    let facts = Addressed {
        requires_mention,
        can_detect: message.mentions.can_tell || !names.is_empty(),
        was_mentioned: message.mentions.ours || names.is_in(&message.text),
        is_reply: message.reply_to.as_ref().is_some_and(|answered| answered.is_ours),
        has_any_mention: message.mentions.any,
        is_command: is_command && may_command,
    };
    if facts.is_skipped() && !facts.can_detect {
        tracing::warn!(channel = %event.address.channel, "nobody can tell whether a group speaks to the agent: set messages.groupChat.mentionPatterns");
    }
    Ok(facts)
}
