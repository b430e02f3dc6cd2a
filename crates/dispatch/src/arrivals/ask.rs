//! Pairing requests of unknown senders (spec `channels.md` §2.2): a sender gets a code, once, and
//! the owner is told of the request in their own chat.
//!
//! A stranger can't make the bot talk by this: a person gets one code an hour, and at most three
//! people wait for an account.

use openclaw_channels::access::{AccessSettings, Entry, PairingStore, Requested, pairing, rules::reasons};
use openclaw_channels::{Address, Channel, ConversationKind, Inbound, Part, Platforms, Sender};
use openclaw_config::Config;
use openclaw_protocol::printable::visible;
use serde_json::{Map, Value};

use super::{Fate, handover};
use crate::handle::Dispatch;

/// Characters of a name that the owner is shown: people choose their own.
const LONGEST_NAME: usize = 64;

/// A pairing request: its sender and its place.
pub(super) struct PairingAttempt<'a> {
    pub(super) config: &'a Config,
    pub(super) channel: &'a dyn Channel,
    pub(super) access: &'a AccessSettings,
    pub(super) event: &'a Inbound,
    /// The id of the answer.
    pub(super) answer_id: String,
}

impl PairingAttempt<'_> {
    /// Notes the request, and tells the sender and the owner. Returns the fate of the message.
    pub(super) async fn note(self, dispatch: &Dispatch, store: PairingStore) -> Fate {
        let Self { channel, event: Inbound { address, sender, .. }, .. } = &self;
        let (id, facts) = (sender.id.clone(), facts(sender));
        let requested = tokio::task::spawn_blocking(move || store.request(&id, facts)).await;
        let requested = requested.map_err(std::io::Error::other).and_then(|requested| requested);
        match requested {
            Ok(Requested::New(code)) => {
                let text = pairing::reply(&address.channel, &channel.id_line(sender), &code);
                tracing::info!(channel = %address.channel, sender = %sender.id, "somebody asks to be let in: see openclaw pairing list");
                let part = Part::text(text);
                handover::send(dispatch, self.answer_id.clone(), address.clone(), None, part).await;
                self.tell_owners(dispatch, &code).await;
                Fate::handled("pairing")
            }
            Ok(Requested::Known(_) | Requested::Full) => Fate::dropped(reasons::DM_POLICY),
            Err(error) => {
                tracing::error!(channel = %address.channel, %error, "somebody could not ask to be let in");
                Fate::dropped(reasons::DM_POLICY)
            }
        }
    }

    /// Tells the owners. Sent once for each code, whatever process dies in between, because the id
    /// contains the code.
    async fn tell_owners(&self, dispatch: &Dispatch, code: &str) {
        let Address { channel, account, .. } = &self.event.address;
        let text = told_owner(self.channel.info().label, channel, &self.event.sender, code);
        for owner in self.owners(&dispatch.arrivals().platforms) {
            let id = format!("pairing:{channel}:{account}:{code}:{}", owner.target);
            handover::send(dispatch, id, owner, None, Part::text(&text)).await;
        }
    }

    /// The private chats of the owners: of those in `commands.ownerAllowFrom`, or else of the first whom the channel's own list names.
    fn owners(&self, platforms: &Platforms) -> Vec<Address> {
        let chat = |entry: &str| self.private_chat(entry);
        let named = platforms.owners(self.config, &self.event.address.channel, &self.event.address.account);
        let named: Vec<Address> = named.iter().filter_map(|entry| chat(entry)).collect();
        if !named.is_empty() {
            return named;
        }
        let listed = self.access.allow_from.iter().flatten();
        listed.filter_map(|Entry(entry)| chat(entry)).take(1).collect()
    }

    /// Returns the private chat that an entry of a list names; `None` if it does not name one
    /// person, or names the one who asks.
    fn private_chat(&self, entry: &str) -> Option<Address> {
        let id = self.channel.allow_entry(entry).filter(|id| id != "*" && *id != self.event.sender.id)?;
        let target = self.channel.target(&id).ok()?;
        let is_private = target.kind == Some(ConversationKind::Direct);
        is_private.then(|| Address { target: target.id, thread: None, ..self.event.address.clone() })
    }
}

/// Facts that are kept of the sender, under the names that OpenClaw 2026.2.9 gives them.
fn facts(sender: &Sender) -> Map<String, Value> {
    // Some platforms have only one name.
    let whole = sender.name.clone().filter(|_| sender.first_name.is_none());
    let fields = [
        ("username", sender.username.clone()),
        ("firstName", sender.first_name.clone()),
        ("lastName", sender.last_name.clone()),
        ("name", whole),
    ];
    fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), Value::String(value?)))).collect()
}

fn told_owner(label: &str, channel: &str, sender: &Sender, code: &str) -> String {
    let shown = |name: &str| visible(&name.chars().take(LONGEST_NAME).collect::<String>()).into_owned();
    let username = sender.username.as_ref().map(|name| format!("@{}, ", shown(name))).unwrap_or_default();
    let name = sender.name.as_deref().map(shown).unwrap_or_default();
    let who = format!("{name} ({username}id {})", sender.id);
    format!(
        "🔑 {} asks to be let in on {label}.\n\nTo let them in:\nopenclaw pairing approve {channel} {code}\n\n\
         Otherwise nothing has to be done: the code is good for an hour.",
        who.trim()
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_kept_and_told_of_a_person_is_what_they_are_called() {
        let sender = |name: Option<&str>, first: Option<&str>, user: Option<&str>| Sender {
            id: "7".to_owned(),
            name: name.map(str::to_owned),
            first_name: first.map(str::to_owned),
            username: user.map(str::to_owned),
            ..Sender::default()
        };
        let rows = [
            (
                sender(Some("Ada"), Some("Ada"), Some("ada")),
                json!({"firstName": "Ada", "username": "ada"}),
                "🔑 Ada (@ada, id 7) asks",
            ),
            (sender(Some("Ada"), None, None), json!({"name": "Ada"}), "🔑 Ada (id 7) asks"),
            (sender(None, None, None), json!({}), "🔑 (id 7) asks"),
            // A name can't put lines of its own into the owner's notice.
            (
                sender(Some("A\n\nopenclaw"), Some("A\n\nopenclaw"), None),
                json!({"firstName": "A\n\nopenclaw"}),
                "🔑 A\\n\\nopenclaw (id 7) asks",
            ),
        ];
        for (sender, kept, told) in rows {
            assert_eq!(Value::Object(facts(&sender)), kept);
            let said = told_owner("Telegram", "telegram", &sender, "ABCD2345");
            assert!(said.starts_with(told), "{said}");
            assert!(said.contains("\nopenclaw pairing approve telegram ABCD2345\n"), "{said}");
        }
    }
}
