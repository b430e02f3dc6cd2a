//! Rights of a caller, and those of a sender on a chat platform by the lists of owners and people
//! (spec `messages.md` §6).

use openclaw_config::registry;

use serde::{Deserialize, Serialize};

/// Rights of a caller. Stored with a message as JSON: an absent flag grants nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CallerRights {
    /// True if the caller may give commands. Every client of the gateway's own protocol may.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_command: bool,
    /// True for one of the owners: a sender who is listed as such, or a client that may change the
    /// gateway.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_owner: bool,
    /// True if the sender was let in by hand to a direct chat while no owner is named, and so stands
    /// in for the owner there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_let_in: bool,
    /// True if a client may decide on commands that wait for approval.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_approve: bool,
}

impl CallerRights {
    /// Returns the rights of a client or program with these scopes.
    pub fn of_client(may_approve: bool, may_administer: bool) -> Self {
        Self { may_command: true, is_owner: may_administer, may_approve, is_let_in: false }
    }
}

/// The sender of a message, as a channel knows them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CommandSender<'a> {
    /// The channel.
    pub(super) channel: &'a str,
    /// The sender's names, the best one first: id, E.164 number, `From`.
    pub(super) ids: &'a [&'a str],
    /// True if the channel's own allowlists let the sender give commands.
    pub(super) allowed_by_channel: bool,
}

/// Rules on whose commands count.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OwnerRules<'a> {
    /// `commands.ownerAllowFrom`: `id`, `channel:id` or `*`.
    pub(super) owner_allow_from: &'a [&'a str],
    /// Owners that the channel names for this chat.
    pub(super) chat_owners: &'a [&'a str],
    /// The channel's `allowFrom`.
    pub(super) allow_from: &'a [&'a str],
    /// The bot's own address: the owner where nobody is named.
    pub(super) own_address: Option<&'a str>,
    /// True if the channel takes commands only from its owners (WhatsApp).
    pub(super) owners_only: bool,
}

/// Judges a sender.
pub(super) fn judge(sender: &CommandSender<'_>, rules: &OwnerRules<'_>) -> CallerRights {
    let own = |entries: &[&str]| -> Vec<String> {
        entries.iter().filter_map(|entry| entry_of(entry, sender.channel)).collect()
    };
    let explicit = own(rules.owner_allow_from);
    let anyone_owns = explicit.iter().any(|entry| entry == "*");
    let allow_from = own(rules.allow_from);
    let all_allowed = allow_from.is_empty() || allow_from.iter().any(|entry| entry == "*");
    let mut allowed: Vec<String> = allow_from.into_iter().filter(|entry| entry != "*").collect();
    if !all_allowed && allowed.is_empty() {
        allowed.extend(rules.own_address.and_then(|own| entry_of(own, sender.channel)));
    }
    let named: Vec<String> = explicit.iter().filter(|entry| *entry != "*").cloned().collect();
    let chat_owners = own(rules.chat_owners);
    let owners = [&named, &chat_owners, &allowed].into_iter().find(|list| !list.is_empty());
    let ids = own(sender.ids);
    let is_in = |list: &[String]| ids.iter().any(|id| list.contains(id));
    let is_owner = owners.is_some_and(|owners| is_in(owners));
    let is_configured = !rules.owner_allow_from.is_empty();
    let may = match () {
        () if anyone_owns => true,
        () if is_configured => is_owner && !named.is_empty(),
        () if rules.owners_only => all_allowed || allowed.is_empty() || is_in(&allowed),
        () => true,
    };
    CallerRights { may_command: sender.allowed_by_channel && may, is_owner, ..CallerRights::default() }
}

/// An entry of a list without its channel; `None` for one of another channel, or a blank one.
fn entry_of(entry: &str, channel: &str) -> Option<String> {
    let entry = entry.trim();
    let id = match entry.split_once(':') {
        Some((prefix, id)) if is_name_of(prefix, channel) => id.trim(),
        Some((prefix, _)) if registry::core_channels().any(|row| row.is_named_by(prefix.trim())) => {
            return None;
        }
        Some(_) | None => entry,
    };
    (!id.is_empty()).then(|| id.to_lowercase())
}

/// True if a prefix names a channel, which may be one that is not in the table.
fn is_name_of(prefix: &str, channel: &str) -> bool {
    let (prefix, channel) = (prefix.trim(), channel.trim().to_lowercase());
    prefix.to_lowercase() == channel || registry::by_id(&channel).is_some_and(|row| row.is_named_by(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of `messages.md` §6.
    #[test]
    fn commands_are_taken_from_those_the_channel_and_the_owner_lists_allow() {
        let granted = |channel, ids: &[&str], rules: OwnerRules<'_>| {
            judge(&CommandSender { channel, ids, allowed_by_channel: true }, &rules)
        };
        let whatsapp = |allow_from| OwnerRules { allow_from, owners_only: true, ..OwnerRules::default() };
        let telegram = OwnerRules { allow_from: &["1"], ..OwnerRules::default() };
        let owner = OwnerRules { owner_allow_from: &["telegram:7"], ..OwnerRules::default() };
        let anyone = OwnerRules { owner_allow_from: &["*"], ..OwnerRules::default() };
        let other = OwnerRules { owner_allow_from: &["discord:7"], ..OwnerRules::default() };
        let room = OwnerRules { owner_allow_from: &["telegram:group:-100"], ..OwnerRules::default() };
        let chat = OwnerRules { chat_owners: &["9"], allow_from: &["1"], ..OwnerRules::default() };
        let first = OwnerRules { chat_owners: &["9"], ..owner };
        let mine = OwnerRules { allow_from: &["discord:1"], own_address: Some("+41"), ..whatsapp(&[]) };
        let (yes, no) = (true, false);
        let rows = [
            ("whatsapp", &["x@lid"][..], whatsapp(&["*"]), (yes, false)),
            ("whatsapp", &["x@lid", "+41"], whatsapp(&["+41"]), (yes, true)),
            ("whatsapp", &["+99"], whatsapp(&["+41"]), (no, false)),
            ("whatsapp", &["+99"], whatsapp(&[]), (yes, false)),
            ("whatsapp", &["+41"], mine, (yes, false)),
            ("telegram", &["5"], telegram, (yes, false)),
            ("telegram", &["tg:1"], telegram, (yes, true)),
            ("telegram", &["7"], owner, (yes, true)),
            ("telegram", &["telegram:7"], owner, (yes, true)),
            ("telegram", &["8"], owner, (no, false)),
            ("telegram", &["8"], anyone, (yes, false)),
            // A group may be an owner.
            ("telegram", &["8", "telegram:group:-100"], room, (yes, true)),
            ("telegram", &["8", "telegram:group:-200"], room, (no, false)),
            // The order of the lists: configured, of the chat, of the channel.
            ("telegram", &["9"], first, (no, false)),
            ("telegram", &["9"], chat, (yes, true)),
            ("telegram", &["1"], chat, (yes, false)),
            // An owner elsewhere is none here.
            ("telegram", &["7"], other, (no, false)),
        ];
        for (channel, ids, rules, (may_command, is_owner)) in rows {
            assert_eq!(
                granted(channel, ids, rules),
                CallerRights { may_command, is_owner, ..CallerRights::default() },
                "{channel} {ids:?} {rules:?}"
            );
        }
        let refused = CommandSender { channel: "telegram", ids: &["7"], allowed_by_channel: false };
        for rules in [owner, anyone, telegram] {
            assert_eq!(judge(&refused, &rules).may_command, no);
        }
    }
}
