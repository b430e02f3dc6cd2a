//! Decisions about an event of a platform, once the [`super::door`] has let it pass with the rights
//! of its sender: its session, and whether a group addresses the agent (spec `channels.md` §2). On an
//! error the event is dropped, so that nobody is let in because something could not be read.

use std::sync::Arc;
use std::time::Duration;

use openclaw_channels::access::rules::{Addressed, reasons};
use openclaw_channels::access::{
    AccessSettings, CallerRights, Denial, GroupView, Mentioned, PairingStore, ReactionNotifications,
};
use openclaw_channels::{
    Address, ConversationInfo, ConversationKind, Inbound, InboundEvent, InboundMessage, Mentions, Platforms,
};
use openclaw_config::Config;
use openclaw_delivery::ack_reaction;
use openclaw_delivery::incoming::debounce::{Gather, TextFragment};
use openclaw_delivery::incoming::{Utterance, compose};
use openclaw_journal::delivery::{Author, LaneKey};
use openclaw_journal::frames::framed_name;
use openclaw_journal::intent::Intent;
use openclaw_journal::journal::Update;
use openclaw_journal::rights::Maker;
use openclaw_protocol::params::sessions::GroupActivation;
use openclaw_sessions::key::{Peer, PeerKind};
use openclaw_sessions::routing::{self, Route};
use openclaw_sessions::store::spelled;
use tokio::sync::OwnedSemaphorePermit;

use super::ask::PairingAttempt;
use super::desks::UndecidedEvent;
use super::door::{DoorDecision, UNREADABLE, access};
use super::offline::Lateness;
use super::{Fate, handover, offline};
use crate::handle::Dispatch;
use crate::known_chats::MovedGroup;
use openclaw_commands::{KnownNames, Spoken, TextCommands, buttons};

/// Default number of earlier messages of a group that are shown with the next one.
const HISTORY: u32 = 50;
const ROUTE: &str = "route";
const REACTION: &str = "reaction-notifications";

/// Outcome of an event.
pub(super) enum GateOutcome {
    /// The fate of the event is already known.
    Decided(Fate),
    /// An edit of a message that the inbox already has.
    Edited { message_id: String, text: String },
    /// A message for a session.
    Admitted(Box<Admitted>),
}

impl From<Fate> for GateOutcome {
    fn from(fate: Fate) -> Self {
        Self::Decided(fate)
    }
}

/// A message that was let in.
pub(super) struct Admitted {
    pub(super) number: i64,
    /// The event, which is a message.
    pub(super) event: Inbound,
    pub(super) route: Route,
    /// Rights of its sender.
    pub(super) rights: CallerRights,
    /// Names in lists that mean its sender.
    pub(super) listed_as: Vec<String>,
    /// Lateness of the event.
    pub(super) lateness: Lateness,
    pub(super) group: Option<GroupView>,
    /// True if it addresses the agent.
    pub(super) was_mentioned: bool,
    /// The emoji it is acknowledged with.
    pub(super) ack: Option<String>,
    /// True if its words address the agent, rather than its being a command.
    pub(super) is_named: bool,
    pub(super) names: Arc<Mentioned>,
    pub(super) command: CommandText,
    /// Number of earlier messages of the group that are shown with it.
    pub(super) history: u32,
    window: Duration,
    /// Pressed button of one of the gateway's own lists, and the id of the message with the list.
    pressed: Option<(String, buttons::ListButton)>,
    /// Maker of the button that was pressed, unless that is the gateway.
    pub(super) button: Option<Maker>,
    /// Fate if no message that it is put together with addresses the agent; `None` if it does so itself or need not.
    pub(super) left_out: Option<Fate>,
    /// Permit for keeping it in memory.
    pub(super) in_memory: Option<OwnedSemaphorePermit>,
}

/// Words of a message in the form that commands are read from: without the agent's names.
#[derive(Default)]
pub(super) struct CommandText {
    pub(super) text: String,
    /// True if they ask to stop.
    is_stop: bool,
}

impl CommandText {
    fn of(text: String) -> Self {
        Self { is_stop: openclaw_commands::stop::is_stop(&text), text }
    }

    /// Returns those of the message in an event.
    fn in_event(event: &Inbound, names: &Mentioned) -> Self {
        let said = Utterance::of(event);
        let is_stop = openclaw_commands::stop::is_stop;
        let text = said.map(|one| compose::command_text(&one.message.text, &[one], names, is_stop));
        text.map(Self::of).unwrap_or_default()
    }

    /// True for a command or a stop: those are read from the words without the agent's names.
    fn is_told_apart(&self) -> bool {
        self.is_stop || self.text.trim().starts_with(['/', '!'])
    }
}

impl Admitted {
    /// Returns the message in the event.
    pub(super) fn message(&self) -> Option<&InboundMessage> {
        Utterance::of(&self.event).map(|one| one.message)
    }

    /// Returns the words that commands are read from; `None` if they are not the sender's own.
    pub(super) fn spoken(&self, text_commands: Option<bool>) -> Option<Spoken<'_>> {
        let message = self.message().filter(|message| !message.has_foreign_words())?;
        Some(Spoken {
            text: if self.command.is_told_apart() { self.command.text.trim() } else { &message.text },
            attached: !message.media.is_empty(),
            may_command: self.rights.may_command,
            is_addressed: self.is_named,
            commands: TextCommands::on(&self.event.address.channel, text_commands),
        })
    }

    /// Puts other words in the place of its own.
    pub(super) fn reword(&mut self, words: String) {
        self.command = CommandText::of(words.clone());
        if let InboundEvent::Message(message) = &mut self.event.event {
            message.text = words;
        }
    }

    /// Replaces the text after the sender has edited the message. Whether it addresses the agent
    /// stays as it is, because an edit asks for nothing.
    pub(super) fn edit(&mut self, text: &str) {
        // The commands are taken out of what is late, which needs a look at the session.
        let may_command = self.lateness != Lateness::OnTime && text.contains(['/', '!']);
        if !may_command && self.event.reword(text) {
            self.command = CommandText::in_event(&self.event, &self.names);
        }
    }

    /// Treats nothing in the message as a command from now on.
    pub(super) fn obeys_nothing(&mut self) {
        self.rights.may_command = false;
    }

    /// True if it asks the agent to stop and its sender may do so.
    pub(super) fn is_stop(&self) -> bool {
        self.rights.may_command && !self.is_left_out() && self.command.is_stop
    }

    /// True if it does not address the agent by itself although it has to.
    pub(super) fn is_left_out(&self) -> bool {
        self.left_out.is_some()
    }

    /// Returns the pressed button of one of the gateway's own lists, and the id of the message
    /// below which it is.
    pub(super) fn press(&self) -> Option<(&str, buttons::ListButton)> {
        let (message_id, press) = self.pressed.as_ref()?;
        Some((message_id, press.clone()))
    }

    /// Returns the sender's id: only messages of one sender are gathered together.
    pub(super) fn gathering_key(&self) -> String {
        self.event.sender.id.clone()
    }

    /// Returns the data by which pieces of a longer text that its platform cut are put together.
    pub(super) fn piece(&self) -> TextFragment {
        let (number, text) = match self.message() {
            Some(message) => (message.message_id.parse().ok(), message.text.as_str()),
            None => (None, ""),
        };
        let is_late = self.lateness != Lateness::OnTime;
        TextFragment { number, chars: text.chars().count(), said_at: self.event.at, is_late }
    }

    /// Returns the kind of messages it is gathered with.
    pub(super) fn gathering(&self) -> Gather {
        let Some(message) = self.message() else { return Gather::Alone };
        if let Some(album) = &message.album {
            return Gather::Album(album.clone());
        }
        let is_stop = !self.is_left_out() && self.command.is_stop;
        if is_stop || message.is_press || openclaw_commands::begins_as_one(&self.command.text) {
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

/// Judges an event: decides its session and its fate.
pub(super) async fn judge(dispatch: &Dispatch, waiting: UndecidedEvent) -> GateOutcome {
    match decide(dispatch, waiting).await {
        // A message to nobody is no command: it is not answered, whatever it may belong to.
        Ok(mut admitted) if admitted.is_left_out() => {
            if admitted.lateness != Lateness::OnTime {
                admitted.obeys_nothing();
            }
            match admitted.left_out.take_if(|_| admitted.lateness == Lateness::Stale) {
                Some(fate) => GateOutcome::Decided(fate),
                None => GateOutcome::Admitted(Box::new(admitted)),
            }
        }
        Ok(mut admitted) => match offline::settle(dispatch, &mut admitted).await {
            Some(fate) => GateOutcome::Decided(fate),
            None if is_ignored(dispatch, &admitted).await => {
                GateOutcome::Decided(Fate::dropped(reasons::COMMAND_UNAUTHORISED))
            }
            None => GateOutcome::Admitted(Box::new(admitted)),
        },
        Err(verdict) => verdict,
    }
}

/// True if the message consists only of commands, of a sender who may not give any.
async fn is_ignored(dispatch: &Dispatch, admitted: &Admitted) -> bool {
    if admitted.rights.may_command {
        return false;
    }
    let text_commands = dispatch.arrivals().settings.now().config.commands.text;
    let Some(spoken) = admitted.spoken(text_commands).filter(|spoken| spoken.text.contains(['/', '!']))
    else {
        return false;
    };
    let (key, agent) = (&admitted.route.session_key, &admitted.route.agent_id);
    let read = |names: KnownNames<'_>| openclaw_commands::read(spoken, names) == Intent::Ignored;
    dispatch.arrivals().decider.read_words(key, agent, spoken.text, read).await
}

async fn decide(dispatch: &Dispatch, waiting: UndecidedEvent) -> Result<Admitted, GateOutcome> {
    let UndecidedEvent { number, event, received_at, seen, in_memory } = waiting;
    let settings = dispatch.arrivals().settings.now();
    let config = &settings.config;
    let address = &event.address;
    let platforms = &dispatch.arrivals().platforms;
    let now = || access(dispatch, config, &address.channel, &address.account);
    let (rights, mut group, access) = match seen {
        DoorDecision::Heard { rights, group, access } => (rights, group, access),
        DoorDecision::Asks(place) => {
            let access = now()?;
            let fate = ask(dispatch, config, &access, &event, (number, received_at)).await;
            drop(place);
            return Err(fate.into());
        }
        DoorDecision::Refused(fate) | DoorDecision::Denied { fate, .. } => return Err(fate.into()),
        DoorDecision::Unsaid => return Err(unsaid(dispatch, &now()?, &event).await.into()),
    };
    let inbound = routed(address, &event.conversation);
    let mut route = routing::resolve(&settings.sessions, &inbound).map_err(|error| {
        tracing::warn!(channel = %address.channel, %error, "a message has no session it could be for");
        Fate::dropped(ROUTE)
    })?;
    route.session_key = spelled(&*dispatch.arrivals().store, route.session_key).await;
    let (press, button) = match press_of(&event) {
        Some(press) => match author_of(dispatch, &event.address, press.message_id).await {
            Author::Gateway => (Some(press), None),
            Author::Buttons(rights) => (None, Some(Maker::Known(rights))),
            Author::Other => (None, Some(Maker::Unknown)),
        },
        None => (None, None),
    };
    let pressed = press.and_then(|press| Some((press.message_id.to_owned(), buttons::read(press.data)?)));
    let typed = press.map(|press| buttons::typed(press.data));
    let event = match message_of(event, typed) {
        Ok(event) => event,
        Err(other) => return Err(noticed(dispatch, &access, &route, *other).await),
    };
    let names = Arc::new(names(config, &route));
    let command = CommandText::in_event(&event, &names);
    if !rights.may_command && is_from_menu(platforms, config, &event) {
        handover::refuse_command(dispatch, &event, Denial::Unauthorised.text("")).await;
        return Err(Fate::handled(reasons::COMMAND_UNAUTHORISED).into());
    }
    let history = access
        .history_limit
        .or(config.messages.group_chat.history_limit.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX)))
        .unwrap_or(HISTORY);
    if pressed.is_some() && !rights.may_command {
        return Err(Fate::dropped(reasons::COMMAND_UNAUTHORISED).into());
    }
    let facts = match &mut group {
        None => None,
        Some(group) => {
            activate(dispatch, group, &route).await;
            Some(addressed(group, &event, &names, &command.text, rights.may_command)?)
        }
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
    let at_work = platforms.at_work(&event.address.channel, &event.address.account);
    let listed_as = at_work.as_ref().map(|at_work| at_work.account.names_of(&event.sender.id));
    let lateness = Lateness::of(event.at, received_at);
    Ok(Admitted {
        number,
        event,
        route,
        rights,
        listed_as: listed_as.unwrap_or_default(),
        lateness,
        group,
        was_mentioned,
        ack,
        is_named,
        names,
        command,
        history,
        window,
        pressed,
        button,
        left_out,
        in_memory,
    })
}

/// Converts the address into the form that routing takes.
fn routed(address: &Address, conversation: &ConversationInfo) -> routing::Inbound {
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

/// Handles a sender who asks to be let in.
async fn ask(
    dispatch: &Dispatch,
    config: &Config,
    access: &AccessSettings,
    event: &Inbound,
    (number, received_at): (i64, i64),
) -> Fate {
    let Address { channel, account, .. } = &event.address;
    let Some(platform) = dispatch.arrivals().platforms.channel(channel) else {
        return Fate::dropped(reasons::DM_POLICY);
    };
    let answer_id = handover::code_id(number, received_at);
    let store = PairingStore::new(config.paths().credentials_dir(), channel, account);
    PairingAttempt { config, channel: platform.as_ref(), access, event, answer_id }
        .note(dispatch, store)
        .await
}

/// Handles an event without a sender.
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

/// Turns the event into a message: a pressed button says the text that it carries, to the agent,
/// and one of the gateway's own says the text that could be `typed`. An event that is no message is
/// given back.
fn message_of(event: Inbound, typed: Option<String>) -> Result<Inbound, Box<Inbound>> {
    match event.event {
        InboundEvent::Message(_) => Ok(event),
        InboundEvent::Button { message_id, data } => {
            let mentions = Mentions { ours: true, any: true, can_tell: true };
            let is_press = typed.is_none();
            let text = typed.unwrap_or(data);
            let message =
                InboundMessage { message_id, text, mentions, is_press, ..InboundMessage::default() };
            Ok(Inbound { event: InboundEvent::Message(Box::new(message)), ..event })
        }
        InboundEvent::Edited { .. }
        | InboundEvent::Reaction { .. }
        | InboundEvent::Moved { .. }
        | InboundEvent::Unreadable { .. } => Err(Box::new(event)),
    }
}

/// A button that was pressed.
#[derive(Clone, Copy)]
struct Pressed<'a> {
    /// Id of the message below which it is.
    message_id: &'a str,
    data: &'a str,
}

fn press_of(event: &Inbound) -> Option<Pressed<'_>> {
    match &event.event {
        InboundEvent::Button { message_id, data } => Some(Pressed { message_id, data }),
        InboundEvent::Message(_)
        | InboundEvent::Edited { .. }
        | InboundEvent::Reaction { .. }
        | InboundEvent::Moved { .. }
        | InboundEvent::Unreadable { .. } => None,
    }
}

/// Returns the author of a message; the default author if the outbox can't be read.
async fn author_of(dispatch: &Dispatch, at: &Address, message_id: &str) -> Author {
    let is_there = |to: &Address| LaneKey::from(to) == LaneKey::from(at);
    let found = dispatch.outbox().author_of(&at.channel, message_id, &is_there).await;
    found
        .inspect_err(|error| tracing::warn!(%error, "whose button was pressed can't be told: it says words"))
        .unwrap_or_default()
}

/// Applies `/activation`, which overrides what is configured for a group.
async fn activate(dispatch: &Dispatch, group: &mut GroupView, route: &Route) {
    let entry = dispatch.arrivals().rows.entry_or_none(&route.session_key).await;
    match entry.and_then(|entry| entry.group_activation) {
        Some(GroupActivation::Always) => group.requires_mention = false,
        Some(GroupActivation::Mention) => group.requires_mention = true,
        None => {}
    }
}

/// Lets a group's settings follow it after it has got another id.
async fn moved(dispatch: &Dispatch, access: &AccessSettings, from: &Address, to: &str) -> Fate {
    tracing::info!(channel = %from.channel, from = %from.target, %to, "a group has another id now");
    if access.may_write_config() {
        let moved = MovedGroup {
            channel: from.channel.clone(),
            account: from.account.clone(),
            from: from.target.clone(),
            to: to.to_owned(),
        };
        dispatch.chats().group_moved(moved).await;
    }
    Fate::handled("moved")
}

/// Handles events that are no messages: a reaction is told to the agent with its next turn; an edit
/// changes the message that waits.
async fn noticed(dispatch: &Dispatch, access: &AccessSettings, route: &Route, event: Inbound) -> GateOutcome {
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
                let settings = dispatch.arrivals().settings.now();
                routing::resolve(&settings.sessions, &routed(&ours, &conversation)).ok()
            });
            let key = there.map_or_else(|| route.session_key.clone(), |there| there.session_key);
            let name = framed_name(sender.name.as_deref().unwrap_or(&sender.id));
            let user = sender.username.as_deref().map(framed_name);
            let by = user.map_or_else(|| name.clone(), |user| format!("{name} (@{user})"));
            let verb = if removed { "removed" } else { "added" };
            let channel = dispatch.arrivals().platforms.channel(&address.channel);
            let label = channel.map_or(address.channel.as_str(), |channel| channel.info().label);
            let text =
                format!("{label} reaction {verb}: {} by {by} on msg {message_id}", framed_name(&emoji));
            let context = format!(
                "{}:reaction:{}:{}:{message_id}:{}:{emoji}",
                address.channel,
                if removed { "remove" } else { "add" },
                address.target,
                sender.id
            );
            dispatch.arrivals().system_events.enqueue(&key, &text, Some(&context), at);
            Fate::handled("reaction").into()
        }
        InboundEvent::Edited { message_id, text } => {
            let (conversation, id, words) = (address, message_id.clone(), text.clone());
            let reworded = Update::Reworded { conversation, message_id: id, text: words };
            if let Err(error) = dispatch.arrivals().journal.update(reworded).await {
                tracing::warn!(%error, "what waits keeps the words that it had");
            }
            GateOutcome::Edited { message_id, text }
        }
        InboundEvent::Unreadable { .. } => Fate::dropped(UNREADABLE).into(),
        InboundEvent::Message(_) | InboundEvent::Button { .. } | InboundEvent::Moved { .. } => {
            Fate::handled("moved").into()
        }
    }
}

/// Returns the address to which we sent the message; `None` if that can't be found out, in which
/// case it does not count as ours.
async fn sent_to(dispatch: &Dispatch, at: &Address, message_id: &str) -> Option<Address> {
    let is_there = |to: &Address| LaneKey::from(to) == LaneKey::from(at);
    let sent = dispatch.outbox().sent(&at.channel, message_id, &is_there).await;
    let sent = sent
        .inspect_err(|error| tracing::warn!(%error, "whose message a reaction is to can't be told"))
        .unwrap_or_default();
    sent.map(|sent| sent.address)
}

/// Returns the names by which the agent of a route may be mentioned.
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

/// True if it is a command that the platform's own menu offers; such a command is answered, also if
/// it is refused (spec `channels.md` §7.5).
pub(super) fn is_from_menu(platforms: &Platforms, config: &Config, event: &Inbound) -> bool {
    let is_native = Utterance::of(event).is_some_and(|one| one.message.is_native_command);
    let Address { channel, account, .. } = &event.address;
    // No name of the agent stands before it.
    let command = || CommandText::in_event(event, &Mentioned::default()).text;
    is_native
        && openclaw_commands::is_in_menu(&command(), &config.commands)
        && platforms.account(config, channel, account).is_some_and(|account| account.has_menu())
}

/// Returns how a group's message addresses the agent, or else its fate (mention gating). Of
/// messages to others only a command is taken for one: `wait` is said to people too.
fn addressed(
    group: &GroupView,
    event: &Inbound,
    names: &Mentioned,
    command_text: &str,
    may_command: bool,
) -> Result<Addressed, Fate> {
    let Some(Utterance { message, .. }) = Utterance::of(event) else { return Ok(Addressed::default()) };
    let is_command = openclaw_commands::is_one(command_text);
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
