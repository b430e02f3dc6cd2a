//! The door decides whether a sender is heard at all, and with which rights (spec `channels.md` §2),
//! before their event is stored, so that the event is stored together with its fate. Events of senders who are not heard
//! wait nowhere, however many there are.
//!
//! The cost is a check whether the lists have changed since they were read: one check for all
//! events that come together, one at a time for each account.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use openclaw_channels::access::rules::reasons;
use openclaw_channels::access::{
    AccessSettings, CallerRights, DmPolicy, GroupView, HeardSender, PairingLook, PairingStore, SenderVerdict,
    Speaker,
};
use openclaw_channels::{Address, Channel, ConversationKind, Inbound, InboundEvent, Platforms, Pressers};
use openclaw_config::Config;
use parking_lot::Mutex;

use super::{Fate, gate};
use crate::handle::Dispatch;

const NO_CHANNEL: &str = "no-channel";
const CONFIG: &str = "config";
pub(super) const UNREADABLE: &str = "unreadable";

/// Decision made at the door.
#[derive(Debug)]
pub(super) enum DoorDecision {
    /// The event goes no further.
    Refused(Fate),
    /// The event goes no further, and its sender is told this text.
    Denied { fate: Fate, text: String },
    /// The sender is heard.
    Heard {
        /// Rights of the sender.
        rights: CallerRights,
        /// The group, where it is one.
        group: Option<GroupView>,
        /// Settings by which that was decided.
        access: Arc<AccessSettings>,
    },
    /// The sender asks to be let in, and has a place among those who wait for that.
    Asks(PairingSlot),
    /// The event has no sender.
    Unsaid,
}

impl DoorDecision {
    /// Returns the fate of the event if it is already known.
    pub(super) fn fate(&self) -> Option<&Fate> {
        match self {
            Self::Refused(fate) | Self::Denied { fate, .. } => Some(fate),
            Self::Heard { .. } | Self::Asks(_) | Self::Unsaid => None,
        }
    }
}

/// Place of a sender who is about to be noted as asking to be let in. At most as many exist at a
/// time as may wait.
#[derive(Debug)]
pub(super) struct PairingSlot {
    id: String,
    asking: Arc<Mutex<BTreeSet<String>>>,
}

impl Drop for PairingSlot {
    fn drop(&mut self) {
        self.asking.lock().remove(&self.id);
    }
}

/// State kept for each account.
#[derive(Debug, Default)]
pub(super) struct Door {
    accounts: Mutex<HashMap<DoorAccount, Arc<Lists>>>,
}

/// Channel and account.
type DoorAccount = (String, String);

/// People let in to an account by a code, and people who ask to be.
#[derive(Debug, Default)]
struct Lists {
    /// Held while files are looked at: a crowd makes one thread wait for the disk, not all.
    look: tokio::sync::Mutex<Option<Arc<PairingLook>>>,
    asking: Arc<Mutex<BTreeSet<String>>>,
}

/// An account as it is at this moment.
struct AccountView {
    account: DoorAccount,
    rules: Result<DoorRules, Fate>,
    lists: Arc<Lists>,
    /// Lists as they were looked at; `None` before the first look.
    look: Option<Arc<PairingLook>>,
}

struct DoorRules {
    channel: Arc<dyn Channel>,
    access: Arc<AccessSettings>,
    /// Owners of commands, with ids in the place of names.
    owners: Vec<String>,
    store: PairingStore,
}

impl Door {
    /// Decides for each event, in order, if it passes the door.
    pub(super) async fn see(&self, dispatch: &Dispatch, events: &[&Inbound]) -> Vec<DoorDecision> {
        let settings = dispatch.arrivals().settings.now();
        let mut seen = Vec::with_capacity(events.len());
        let mut view: Option<AccountView> = None;
        for event in events {
            let Address { channel, account, .. } = &event.address;
            // Events that come together are of one account.
            let is_same =
                view.as_ref().is_some_and(|view| view.account.0 == *channel && view.account.1 == *account);
            if !is_same {
                view = Some(self.view(dispatch, &settings.config, channel, account));
            }
            if let Some(view) = &mut view {
                seen.push(
                    view.see(dispatch, &settings.config, event).await.unwrap_or_else(DoorDecision::Refused),
                );
            }
        }
        seen
    }

    fn view(&self, dispatch: &Dispatch, config: &Config, channel: &str, account: &str) -> AccountView {
        let key = (channel.to_owned(), account.to_owned());
        let lists = Arc::clone(self.accounts.lock().entry(key.clone()).or_default());
        AccountView { rules: rules(dispatch, config, channel, account), account: key, lists, look: None }
    }
}

fn rules(dispatch: &Dispatch, config: &Config, channel: &str, account: &str) -> Result<DoorRules, Fate> {
    let platforms = &dispatch.arrivals().platforms;
    let Some(platform) = platforms.channel(channel).cloned() else { return Err(Fate::dropped(NO_CHANNEL)) };
    Ok(DoorRules {
        channel: platform,
        access: Arc::new(access(dispatch, config, channel, account)?),
        owners: platforms.owners(config, channel, account),
        store: PairingStore::new(config.paths().credentials_dir(), channel, account),
    })
}

/// Returns the account's access settings, with names replaced by ids.
pub(super) fn access(
    dispatch: &Dispatch,
    config: &Config,
    channel: &str,
    account: &str,
) -> Result<AccessSettings, Fate> {
    let access = AccessSettings::of(config, channel, account).map_err(|error| {
        tracing::error!(%channel, %error, "nobody is heard: the channel's section can't be read");
        Fate::dropped(CONFIG)
    })?;
    Ok(match dispatch.arrivals().platforms.at_work(channel, account) {
        Some(at_work) => access.with_ids(at_work.account.as_ref()),
        None => access,
    })
}

impl AccountView {
    async fn see(
        &mut self,
        dispatch: &Dispatch,
        config: &Config,
        event: &Inbound,
    ) -> Result<DoorDecision, Fate> {
        let platforms = &dispatch.arrivals().platforms;
        let DoorRules { channel, access, owners, store } = self.rules.as_ref().map_err(Clone::clone)?;
        let Inbound { address, conversation, sender, .. } = event;
        match &event.event {
            InboundEvent::Unreadable { why } => {
                tracing::debug!(channel = %address.channel, account = %address.account, event = %event.native_id, why, "unreadable");
                return Err(Fate::dropped(UNREADABLE));
            }
            InboundEvent::Moved { .. } => return Ok(DoorDecision::Unsaid),
            InboundEvent::Message(_)
            | InboundEvent::Button { .. }
            | InboundEvent::Edited { .. }
            | InboundEvent::Reaction { .. } => {}
        }
        let is_direct = conversation.kind == ConversationKind::Direct;
        let asks_store = is_direct && !matches!(access.dm_policy, DmPolicy::Open | DmPolicy::Disabled);
        if asks_store && self.look.is_none() {
            self.look = Some(self.lists.look(store).await?);
        }
        let look = self.look.as_ref().filter(|_| asks_store);
        let paired = look.map(|look| look.guests.entries.as_slice()).unwrap_or_default();
        let unreadable = look.and_then(|look| look.guests.unreadable.as_ref());
        let channel = channel.as_ref();
        let speaker =
            Speaker { channel, config, settings: access, owners, paired, address, conversation, sender };
        match speaker.gate() {
            SenderVerdict::Heard(HeardSender { rights, is_listed, group }) => {
                dispatch.chats().silent_groups.forget(address);
                if matches!(event.event, InboundEvent::Button { .. }) {
                    may_press(platforms, config, event, is_listed)?;
                }
                Ok(DoorDecision::Heard { rights, group, access: Arc::clone(access) })
            }
            // A sender who is not in the lists that can be read may be in the one that can't:
            // nothing is told to them.
            SenderVerdict::Unheard(_) | SenderVerdict::Pairing if unreadable.is_some() => {
                Err(Fate::dropped(reasons::PAIRING_UNREADABLE))
            }
            SenderVerdict::Unheard(why) => {
                if let Some(silence) = speaker.silence().filter(|_| why == reasons::GROUP_POLICY) {
                    dispatch.chats().silent_groups.note(address, conversation, silence);
                }
                tracing::debug!(channel = %address.channel, account = %address.account, sender = %sender.id, why, "a message is not heard");
                if why == reasons::GROUP_POLICY
                    && gate::is_from_menu(platforms, config, event)
                    && let Some(denial) = speaker.denial()
                {
                    let text = denial.text(channel.info().label);
                    return Ok(DoorDecision::Denied { fate: Fate::handled(why), text });
                }
                Err(Fate::dropped(why))
            }
            SenderVerdict::Pairing => {
                let is_said = matches!(event.event, InboundEvent::Message(_));
                // A sender who only reacts, edits or presses asks for nothing.
                let place = look.filter(|_| is_said).and_then(|look| self.lists.place(look, &sender.id));
                if place.is_none() {
                    tracing::debug!(channel = %address.channel, account = %address.account, sender = %sender.id, "what a stranger does is not heard");
                }
                place.map(DoorDecision::Asks).ok_or_else(|| Fate::dropped(reasons::DM_POLICY))
            }
        }
    }
}

/// Checks that a sender may press buttons in a conversation. The platform has already confirmed the
/// press to them.
fn may_press(platforms: &Platforms, config: &Config, event: &Inbound, is_listed: bool) -> Result<(), Fate> {
    let Address { channel, account, .. } = &event.address;
    let at_work = platforms.account(config, channel, account);
    let why = match at_work.map(|at_work| at_work.pressers(&event.address)) {
        Some(Ok(Pressers::Listed)) if !is_listed => "only listed people may press it".to_owned(),
        Some(Ok(Pressers::Heard | Pressers::Listed)) => return Ok(()),
        Some(Err(why)) => why.to_string(),
        None => "its account is not there any more".to_owned(),
    };
    tracing::debug!(%channel, %account, sender = %event.sender.id, why, "a pressed button is not heard");
    Err(Fate::dropped(reasons::INLINE_BUTTONS))
}

impl Lists {
    /// Returns the current lists. A list that can't be read is reported when that is found out.
    async fn look(&self, store: &PairingStore) -> Result<Arc<PairingLook>, Fate> {
        let mut kept = self.look.lock().await;
        let (store, known) = (store.clone(), kept.clone());
        let look = tokio::task::spawn_blocking(move || store.look(known.as_deref())).await;
        match look {
            Ok(Some(new)) => {
                if let Some(error) = &new.guests.unreadable {
                    tracing::error!(%error, "who is let in by pairing can't be read: nobody of them is heard");
                }
                let new = Arc::new(new);
                *kept = Some(Arc::clone(&new));
                Ok(new)
            }
            Ok(None) => kept.clone().ok_or_else(|| Fate::dropped(reasons::PAIRING_UNREADABLE)),
            Err(error) => {
                tracing::error!(%error, "who is let in by pairing could not be read");
                Err(Fate::dropped(reasons::PAIRING_UNREADABLE))
            }
        }
    }

    /// Returns a place for a sender who asks to be let in. `None`: they have their code already, or
    /// no place is free.
    fn place(&self, look: &PairingLook, id: &str) -> Option<PairingSlot> {
        let mut asking = self.asking.lock();
        if look.settled(id, &asking).is_some() || !asking.insert(id.to_owned()) {
            return None;
        }
        Some(PairingSlot { id: id.to_owned(), asking: Arc::clone(&self.asking) })
    }
}
