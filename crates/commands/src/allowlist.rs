//! `/allowlist`: the allowlists of a channel, in the config file and by pairing (spec `messages.md`
//! §5).

use openclaw_journal::caller::Right;
use std::sync::Arc;

use openclaw_channels::Channel;
use openclaw_channels::access::{AccessSettings, Entry, GroupPolicy, PairingStore};
use openclaw_channels::account_keys::names_of;
use openclaw_channels::platforms::DEFAULT_ACCOUNT;
use openclaw_config::registry::{PolicyPlace, by_name};
use openclaw_config::write::{Actor, WriteError, set_value, unset_value};
use openclaw_config::{Config, Loaded, normalize_account_id, value_path};
use serde_json::Value;

use super::allowlist_words::{AllowlistAction, AllowlistRequest, Scope, Where, read};
use super::command::{Category, ChatCommand, Does, Offered, Takes};
use super::config::{NO_GATEWAY, on_disk, refused};
use super::{Answering, CommandContext};

pub(crate) const COMMAND: ChatCommand = ChatCommand {
    offered: Offered::Text,
    ..ChatCommand::new("allowlist", Category::Management, Does::Answers(run), "List or change who is heard.")
        .taking(
            Takes::Words,
            "[list|add|remove] [dm|group|all] [--config|--store] [channel=x] [account=y] <entry>",
        )
        .needing(Right::Administer)
};

const DISABLED: &str = "⚠️ /allowlist edits are disabled. Set commands.config=true to enable.";
const UNKNOWN: &str = "⚠️ Unknown channel. Add channel=<id> to the command.";
const ALREADY: &str = "✅ Already allowlisted.";
const NOT_FOUND: &str = "⚠️ Entry not found.";

fn run<'a>(context: &'a CommandContext<'a>, arguments: &'a str) -> Answering<'a> {
    Box::pin(async move {
        let asked = match read(arguments) {
            Ok(asked) => asked,
            Err(what) => return Ok(what),
        };
        let place = match AllowlistAccount::of(context, &asked) {
            Ok(place) => place,
            Err(what) => return Ok(what),
        };
        match asked.action {
            AllowlistAction::List => Ok(place.list(context, &asked).await),
            AllowlistAction::Add | AllowlistAction::Remove => place.edit(context, asked).await,
        }
    })
}

/// Account whose lists are meant.
#[derive(Clone)]
struct AllowlistAccount {
    channel: Arc<dyn Channel>,
    account: String,
    /// True if the account was named.
    is_named: bool,
}

impl AllowlistAccount {
    /// Returns the named account, else the one of the message's conversation; otherwise the text to
    /// answer with.
    fn of(context: &CommandContext<'_>, asked: &AllowlistRequest) -> Result<Self, String> {
        let origin = context.row.payload.source.origin();
        let id = match &asked.channel {
            Some(name) => by_name(name).map(|info| info.id),
            None => origin.map(|origin| origin.address.channel.as_str()),
        };
        let (config, platforms) = (&context.settings.config, &context.services.platforms);
        let channel = id.and_then(|id| platforms.channel(id)).cloned().ok_or(UNKNOWN)?;
        let id = channel.info().id;
        let here =
            origin.filter(|origin| origin.address.channel == id).map(|origin| origin.address.account.clone());
        let account = match &asked.account {
            Some(name) => known_account(channel.as_ref(), config, name)?,
            None => here
                .or_else(|| platforms.default_account(config, id))
                .unwrap_or_else(|| DEFAULT_ACCOUNT.to_owned()),
        };
        Ok(Self { channel, account, is_named: asked.account.is_some() })
    }

    fn id(&self) -> &'static str {
        self.channel.info().id
    }

    fn store(&self, config: &Config) -> PairingStore {
        PairingStore::new(config.paths().credentials_dir(), self.id(), &self.account)
    }

    async fn list(&self, context: &CommandContext<'_>, asked: &AllowlistRequest) -> String {
        let config = &context.settings.config;
        let access = match AccessSettings::of(config, self.id(), &self.account) {
            Ok(access) => access,
            Err(error) => return format!("⚠️ channels.{} can't be read: {error}", self.id()),
        };
        let store = self.store(config);
        let paired = tokio::task::spawn_blocking(move || store.guests()).await.unwrap_or_default();
        self.card(&access, &paired.entries, asked.scope)
    }

    fn card(&self, access: &AccessSettings, paired: &[String], scope: Scope) -> String {
        let account = if self.is_named { format!(" (account {})", self.account) } else { String::new() };
        let entries = |list: Option<&Vec<Entry>>| {
            named(&list.into_iter().flatten().map(|Entry(entry)| entry.clone()).collect::<Vec<_>>())
        };
        let mut lines = vec!["🧾 Allowlist".to_owned(), format!("Channel: {}{account}", self.id())];
        if scope != Scope::Group {
            lines.push(format!("DM policy: {}", access.dm_policy.as_str()));
        }
        if scope != Scope::Dm {
            let policy = match access.group_policy.unwrap_or_default() {
                GroupPolicy::Allowlist => "allowlist",
                GroupPolicy::Open => "open",
                GroupPolicy::Disabled => "disabled",
            };
            lines.push(format!("Group policy: {policy}"));
        }
        if scope != Scope::Group {
            lines.push(format!("DM allowFrom (config): {}", entries(access.allow_from.as_ref())));
            lines.push(format!("Paired allowFrom (store): {}", named(paired)));
        }
        if scope != Scope::Dm {
            let list = match (&access.group_allow_from, &access.allow_from) {
                (None, Some(_)) => "(none; groups go by DM allowFrom)".to_owned(),
                (list, _) => entries(list.as_ref()),
            };
            lines.push(format!("Group allowFrom (config): {list}"));
            let own =
                access.groups.iter().filter_map(|(id, group)| Some((id, group.rules.allow_from.as_ref()?)));
            let own: Vec<String> = own.map(|(id, list)| format!("- {id}: {}", entries(Some(list)))).collect();
            if !own.is_empty() {
                lines.push("Group overrides:".to_owned());
                lines.extend(own);
            }
        }
        lines.join("\n")
    }

    async fn edit(
        &self,
        context: &CommandContext<'_>,
        asked: AllowlistRequest,
    ) -> Result<String, super::CommandError> {
        if !context.settings.config.commands.config {
            return Ok(DISABLED.to_owned());
        }
        let refusal = AccessSettings::of(&context.settings.config, self.id(), &self.account)
            .ok()
            .filter(|access| !access.may_write_config())
            .map(|_| super::writes_refused_on(self.id()));
        if let Some(refusal) = refusal.or_else(|| context.writes_refused()) {
            return Ok(refusal);
        }
        let Some(entry) = self.channel.allow_entry(&asked.entry) else {
            return Ok(format!("⚠️ \"{}\" can match nobody on {}.", asked.entry, self.id()));
        };
        let Some(around) = &context.services.surroundings else { return Ok(NO_GATEWAY.to_owned()) };
        let (place, store) = (self.clone(), self.store(&context.settings.config));
        let work = move |loaded: &Loaded| place.change(loaded, &store, &asked, &entry);
        let answer = on_disk(around.environment(), work).await;
        around.reread().await;
        Ok(answer)
    }

    /// Changes the list of the file, and of pairings. Blocking.
    fn change(&self, loaded: &Loaded, store: &PairingStore, asked: &AllowlistRequest, entry: &str) -> String {
        let mut places = Vec::new();
        if asked.at != Where::Store {
            match self.change_file(loaded, asked, entry) {
                Ok(Some(path)) => places.push(path.join(".")),
                Ok(None) => {}
                Err(error) => return error,
            }
        }
        if asked.at != Where::Config && asked.scope == Scope::Dm {
            let changed = match asked.action {
                AllowlistAction::Add => store.allow(self.channel.as_ref(), entry),
                AllowlistAction::Remove => store.forget(self.channel.as_ref(), entry),
                AllowlistAction::List => Ok(false),
            };
            match changed {
                Ok(true) => places.push("pairing store".to_owned()),
                Ok(false) => {}
                Err(error) => return format!("⚠️ The pairing store can't be written: {error}"),
            }
        }
        let (scope, verb) = match (asked.scope, asked.action) {
            _ if places.is_empty() && asked.action == AllowlistAction::Add => return ALREADY.to_owned(),
            _ if places.is_empty() => return NOT_FOUND.to_owned(),
            (Scope::Group, AllowlistAction::Add) => ("Group", "added"),
            (_, AllowlistAction::Add) => ("DM", "added"),
            (Scope::Group, _) => ("Group", "removed"),
            (_, _) => ("DM", "removed"),
        };
        format!("✅ {scope} allowlist {verb}: {}.", places.join(" + "))
    }

    /// Changes the list of the file. An account without one uses its channel's, and groups without
    /// one use that of private chats: such a list is created, beginning with the one in use, so
    /// that the change shuts nobody else out and lets nobody else in. Entries in an included file
    /// have to be changed there, by hand. Returns the place of the list, if it was changed.
    fn change_file(
        &self,
        loaded: &Loaded,
        asked: &AllowlistRequest,
        entry: &str,
    ) -> Result<Option<Vec<String>>, String> {
        let channel = vec!["channels".to_owned(), self.id().to_owned()];
        let sections: Vec<_> =
            self.own_section(&loaded.snapshot.config, &channel).into_iter().chain([channel]).collect();
        let scopes: &[Scope] =
            if asked.scope == Scope::Group { &[Scope::Group, Scope::Dm] } else { &[asked.scope] };
        // The first that is there holds.
        let mut lists =
            scopes.iter().flat_map(|scope| sections.iter().map(|section| self.list_in(section, *scope)));
        let path = lists.next().unwrap_or_default();
        let inherited = lists.find_map(|list| ConfigList::at(loaded, &list));
        let is_inherited = inherited.is_some();
        let ConfigList { included, mut own } = match ConfigList::at(loaded, &path) {
            Some(list) => list,
            None => inherited.map(ConfigList::whole).unwrap_or_default(),
        };
        let is_it = |known: &ConfigListEntry| {
            let text = known.means.as_str().map_or_else(|| known.means.to_string(), str::to_owned);
            self.channel.allow_entry(&text).as_deref() == Some(entry)
        };
        let before = own.len();
        match asked.action {
            AllowlistAction::Add if included.iter().chain(&own).any(is_it) => {}
            AllowlistAction::Add => own.push(ConfigListEntry::new(&Value::from(entry))),
            AllowlistAction::Remove if included.iter().any(is_it) => {
                return Err(refused("remove", &WriteError::included(loaded, path.join("."))));
            }
            AllowlistAction::Remove => own.retain(|known| !is_it(known)),
            AllowlistAction::List => {}
        }
        if own.len() == before {
            return Ok(None);
        }
        // Without the key the channel's list would hold again.
        let written = if own.is_empty() && !is_inherited {
            unset_value(loaded, &path, Actor::Channel).map(|_| ())
        } else {
            let list = own.into_iter().map(|entry| entry.written).collect();
            set_value(loaded, &path, Value::Array(list), Actor::Channel).map(|_| ())
        };
        match written {
            Ok(()) => Ok(Some(path)),
            Err(error) => {
                Err(refused(if asked.action == AllowlistAction::Add { "add" } else { "remove" }, &error))
            }
        }
    }

    /// Returns the path of the account's own section in the config, as it is spelled there.
    fn own_section(&self, config: &Value, channel: &[String]) -> Option<Vec<String>> {
        let name = names_of(config, self.channel.as_ref(), &self.account).into_iter().next()?;
        Some([channel, &["accounts".to_owned(), name]].concat())
    }

    /// Returns the path of a list in a section.
    fn list_in(&self, section: &[String], scope: Scope) -> Vec<String> {
        let mut path = section.to_vec();
        match scope {
            Scope::Group => path.push("groupAllowFrom".to_owned()),
            Scope::Dm | Scope::All => {
                if let PolicyPlace::Within(key) = self.channel.info().private_policy {
                    path.push(key.to_owned());
                }
                path.push("allowFrom".to_owned());
            }
        }
        path
    }
}

/// A list of the config.
#[derive(Default)]
struct ConfigList {
    /// Beginning of the list, which stands in included files.
    included: Vec<ConfigListEntry>,
    /// Entries in the file itself.
    own: Vec<ConfigListEntry>,
}

/// An entry of it.
struct ConfigListEntry {
    /// Entry as it is written, perhaps with references to variables.
    written: Value,
    means: Value,
}

impl ConfigList {
    /// Reads the list at a path; `None` if there is none.
    fn at(loaded: &Loaded, path: &[String]) -> Option<Self> {
        let list = |document| value_path::get(document, path).and_then(Value::as_array);
        let means = list(&loaded.snapshot.config)?;
        let written = list(&loaded.snapshot.parsed).map(Vec::as_slice).unwrap_or_default();
        // Included entries stand before those that are written beside them.
        let (included, own) = means.split_at_checked(means.len().saturating_sub(written.len()))?;
        let own = written.iter().zip(own);
        let own =
            own.map(|(written, means)| ConfigListEntry { written: written.clone(), means: means.clone() });
        Some(Self { included: included.iter().map(ConfigListEntry::new).collect(), own: own.collect() })
    }

    /// Merges both parts, so that the list is written into the file as a whole.
    fn whole(self) -> Self {
        Self { included: Vec::new(), own: self.included.into_iter().chain(self.own).collect() }
    }
}

impl ConfigListEntry {
    fn new(entry: &Value) -> Self {
        Self { written: entry.clone(), means: entry.clone() }
    }
}

/// Returns the id of a named account; the error is the answer if there is none of that name.
fn known_account(channel: &dyn Channel, config: &Config, name: &str) -> Result<String, String> {
    let (id, known) = (normalize_account_id(name), channel.account_ids(config));
    if known.contains(&id) {
        return Ok(id);
    }
    let (channel, known) = (channel.info().id, known.join(", "));
    Err(format!("⚠️ Unknown account \"{id}\" on {channel}. Accounts: {known}."))
}

fn named(entries: &[String]) -> String {
    if entries.is_empty() { "(none)".to_owned() } else { entries.join(", ") }
}

#[cfg(test)]
mod tests {
    use openclaw_channel_telegram::Telegram;
    use openclaw_config::load;

    use super::*;
    use crate::testing::config_file;

    fn telegram() -> AllowlistAccount {
        AllowlistAccount { channel: Arc::new(Telegram), account: "default".to_owned(), is_named: false }
    }

    #[test]
    fn entries_come_and_go_in_both_places() {
        let (home, environment) =
            config_file(r#"{"channels": {"telegram": {"botToken": "1:x", "allowFrom": [7]}}}"#);
        let store = PairingStore::new(&home.path().join("credentials"), "telegram", "default");
        let say = |text: &str| {
            let asked = read(text).unwrap();
            let entry = telegram().channel.allow_entry(&asked.entry).unwrap();
            telegram().change(&load(&environment), &store, &asked, &entry)
        };
        let rows = [
            ("add tg:5", "✅ DM allowlist added: channels.telegram.allowFrom + pairing store."),
            ("add 5", "✅ Already allowlisted."),
            ("remove 9", "⚠️ Entry not found."),
            ("remove 5 --store", "✅ DM allowlist removed: pairing store."),
            ("remove 5", "✅ DM allowlist removed: channels.telegram.allowFrom."),
            ("add group 6", "✅ Group allowlist added: channels.telegram.groupAllowFrom."),
            ("add 8 --config", "✅ DM allowlist added: channels.telegram.allowFrom."),
            ("remove 7", "✅ DM allowlist removed: channels.telegram.allowFrom."),
        ];
        for (text, expect) in rows {
            assert_eq!(say(text), expect, "{text}");
        }
        let parsed = load(&environment).snapshot.parsed;
        assert_eq!(parsed["channels"]["telegram"]["allowFrom"], serde_json::json!(["8"]));
    }

    #[test]
    fn an_account_without_a_list_of_its_own_begins_with_its_channels() {
        let (home, environment) = config_file(
            r#"{"channels": {"telegram": {"botToken": "1:x", "allowFrom": [7, 8], "accounts": {"default": {}, "Work": {"botToken": "2:x"}}}}}"#,
        );
        let say = |account: &str, text: &str| {
            let place = AllowlistAccount { account: account.to_owned(), ..telegram() };
            let store = PairingStore::new(&home.path().join("credentials"), "telegram", account);
            let asked = read(text).unwrap();
            let entry = place.channel.allow_entry(&asked.entry).unwrap();
            place.change(&load(&environment), &store, &asked, &entry)
        };
        let list = |account: &str| {
            let config = Arc::clone(load(&environment).config().unwrap());
            let access = AccessSettings::of(&config, "telegram", account).unwrap();
            access.allow_from.into_iter().flatten().map(|Entry(entry)| entry).collect::<Vec<_>>()
        };
        let rows = [
            (
                "default",
                "add 9 --config",
                "✅ DM allowlist added: channels.telegram.accounts.default.allowFrom.",
            ),
            (
                "default",
                "remove 7 --config",
                "✅ DM allowlist removed: channels.telegram.accounts.default.allowFrom.",
            ),
            (
                "work",
                "remove 7 --config",
                "✅ DM allowlist removed: channels.telegram.accounts.Work.allowFrom.",
            ),
            (
                "work",
                "remove 8 --config",
                "✅ DM allowlist removed: channels.telegram.accounts.Work.allowFrom.",
            ),
            ("work", "add 8 --config", "✅ DM allowlist added: channels.telegram.accounts.Work.allowFrom."),
            ("work", "add 8 --config", ALREADY),
        ];
        for (account, text, expect) in rows {
            assert_eq!(say(account, text), expect, "{account}: {text}");
        }
        assert_eq!(list("default"), ["8", "9"]);
        assert_eq!(list("work"), ["8"], "an empty list of its own is not its channel's");
        assert_eq!(list("other"), ["7", "8"]);
        let of_groups = |account: &str| {
            let config = Arc::clone(load(&environment).config().unwrap());
            let access = AccessSettings::of(&config, "telegram", account).unwrap();
            access.group_allow_from.map(|list| list.into_iter().map(|Entry(entry)| entry).collect::<Vec<_>>())
        };
        assert_eq!(of_groups("work"), None, "groups go by the list of private chats");
        let rows = [
            ("work", "add group 5 --config", vec!["8", "5"]),
            ("work", "remove group 8 --config", vec!["5"]),
            ("work", "remove group 5 --config", vec![]),
            ("default", "remove group 8 --config", vec!["9"]),
        ];
        for (account, text, expect) in rows {
            say(account, text);
            assert_eq!(of_groups(account).unwrap(), expect, "{account}: {text}");
        }
    }

    #[test]
    fn an_empty_list_goes_where_nothing_is_inherited() {
        let (home, environment) = config_file(r#"{"channels": {"telegram": {"botToken": "1:x"}}}"#);
        let store = PairingStore::new(&home.path().join("credentials"), "telegram", "default");
        for text in ["add group 5 --config", "remove group 5 --config"] {
            let asked = read(text).unwrap();
            telegram().change(&load(&environment), &store, &asked, &asked.entry);
        }
        let parsed = load(&environment).snapshot.parsed;
        assert_eq!(parsed["channels"]["telegram"].get("groupAllowFrom"), None);
    }

    #[test]
    fn an_account_that_is_named_is_one() {
        let (_home, environment) = config_file(
            r#"{"channels": {"telegram": {"accounts": {"My Work": {"botToken": "2:x"}, "home": {"botToken": "3:x"}}}}}"#,
        );
        let config = Arc::clone(load(&environment).config().unwrap());
        let channel = telegram().channel;
        let known = |name: &str| known_account(channel.as_ref(), &config, name);
        assert_eq!(known("my work"), Ok("my-work".to_owned()));
        assert_eq!(
            known("wrok"),
            Err("⚠️ Unknown account \"wrok\" on telegram. Accounts: home, my-work.".to_owned())
        );
    }

    /// Spec `config.md` §3.2: lists of included files and of the file are joined.
    #[test]
    fn what_is_included_is_begun_with_and_changed_where_it_stands() {
        const REFUSED: &str = "⚠️ channels.telegram.{} comes from an included file; change it there: {}";
        let refused = |key: &str, file: &str| REFUSED.replacen("{}", key, 1).replacen("{}", file, 1);
        // The root file, the included one, what is said for which account, and who is heard there then.
        let rows = [
            (
                r#"{"$include": "./more.json", "accounts": {"work": {}}}"#,
                r#"{"allowFrom": [7, 8]}"#,
                "work",
                "add 9",
                Ok("accounts.work.allowFrom"),
                "7 8 9",
            ),
            (
                r#"{"$include": "./more.json", "accounts": {"work": {}}}"#,
                r#"{"allowFrom": [7, 8]}"#,
                "work",
                "remove 7",
                Ok("accounts.work.allowFrom"),
                "8",
            ),
            (
                r#"{"$include": "./more.json", "allowFrom": [9], "accounts": {"work": {}}}"#,
                r#"{"allowFrom": [7]}"#,
                "work",
                "add 8",
                Ok("accounts.work.allowFrom"),
                "7 9 8",
            ),
            // The account itself is included.
            (
                r#"{"$include": "./more.json", "allowFrom": [7]}"#,
                r#"{"accounts": {"work": {}}}"#,
                "work",
                "add 9",
                Ok("accounts.work.allowFrom"),
                "7 9",
            ),
            (
                r#"{"$include": "./more.json"}"#,
                r#"{"accounts": {"work": {"allowFrom": [7]}}}"#,
                "work",
                "add 9",
                Err("accounts.work.allowFrom"),
                "7",
            ),
            (
                r#"{"$include": "./more.json"}"#,
                r#"{"allowFrom": [7]}"#,
                "default",
                "add 9",
                Err("allowFrom"),
                "7",
            ),
            (
                r#"{"$include": "./more.json"}"#,
                r#"{"allowFrom": [7]}"#,
                "default",
                "remove 7",
                Err("allowFrom"),
                "7",
            ),
            // Both have a part of it.
            (
                r#"{"$include": "./more.json", "allowFrom": [8]}"#,
                r#"{"allowFrom": [7]}"#,
                "default",
                "add 9",
                Ok("allowFrom"),
                "7 8 9",
            ),
            (
                r#"{"$include": "./more.json", "allowFrom": [8]}"#,
                r#"{"allowFrom": [7]}"#,
                "default",
                "remove 8",
                Ok("allowFrom"),
                "7",
            ),
            (
                r#"{"$include": "./more.json", "allowFrom": [8]}"#,
                r#"{"allowFrom": [7]}"#,
                "default",
                "remove 7",
                Err("allowFrom"),
                "7 8",
            ),
        ];
        for (root, included, account, text, expect, heard) in rows {
            let (home, environment) = config_file(&format!(r#"{{"channels": {{"telegram": {root}}}}}"#));
            let file = home.path().join("more.json");
            std::fs::write(&file, included).unwrap();
            let place = AllowlistAccount { account: account.to_owned(), ..telegram() };
            let store = PairingStore::new(&home.path().join("credentials"), "telegram", account);
            let asked = read(&format!("{text} --config")).unwrap();
            let said = place.change(&load(&environment), &store, &asked, &asked.entry);
            let verb = if text.starts_with("add") { "added" } else { "removed" };
            let expect = match expect {
                Ok(key) => format!("✅ DM allowlist {verb}: channels.telegram.{key}."),
                Err(key) => refused(key, &file.display().to_string()),
            };
            assert_eq!(said, expect, "{root} {included} {text}");
            let config = Arc::clone(load(&environment).config().unwrap());
            let access = AccessSettings::of(&config, "telegram", account).unwrap();
            let entries: Vec<String> =
                access.allow_from.into_iter().flatten().map(|Entry(entry)| entry).collect();
            assert_eq!(entries.join(" "), heard, "{root} {included} {text}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), included);
        }
        let (home, environment) = config_file(
            r#"{"env": {"vars": {"BOSS": "7"}}, "channels": {"telegram": {"allowFrom": ["${BOSS}", 8], "accounts": {"work": {}}}}}"#,
        );
        let place = AllowlistAccount { account: "work".to_owned(), ..telegram() };
        let store = PairingStore::new(&home.path().join("credentials"), "telegram", "work");
        let say = |text: &str| {
            let asked = read(text).unwrap();
            place.change(&load(&environment), &store, &asked, &asked.entry)
        };
        assert_eq!(say("add 7 --config"), ALREADY, "by what a variable holds");
        say("remove 8 --config");
        let parsed = load(&environment).snapshot.parsed;
        assert_eq!(
            parsed["channels"]["telegram"]["accounts"]["work"]["allowFrom"],
            serde_json::json!(["${BOSS}"]),
            "what was a reference is one"
        );
    }

    #[test]
    fn the_card_tells_who_is_heard() {
        let (_home, environment) = config_file(
            r#"{"channels": {"telegram": {"botToken": "1:x", "allowFrom": [7, "8"], "groups": {"-1": {"allowFrom": ["9"]}}}}}"#,
        );
        let config = Arc::clone(load(&environment).config().unwrap());
        let access = AccessSettings::of(&config, "telegram", "default").unwrap();
        assert_eq!(
            telegram().card(&access, &[], Scope::Dm),
            "🧾 Allowlist\nChannel: telegram\nDM policy: pairing\nDM allowFrom (config): 7, 8\nPaired allowFrom (store): (none)"
        );
        assert_eq!(
            telegram().card(&access, &["3".to_owned()], Scope::All),
            "🧾 Allowlist\nChannel: telegram\nDM policy: pairing\nGroup policy: allowlist\nDM allowFrom (config): 7, 8\n\
             Paired allowFrom (store): 3\nGroup allowFrom (config): (none; groups go by DM allowFrom)\nGroup overrides:\n- -1: 9"
        );
    }
}
