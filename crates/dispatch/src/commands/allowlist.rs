//! `/allowlist`: who is heard on a channel, in the config file and by pairing (spec `messages.md` §5).

use std::sync::Arc;

use openclaw_channels::access::{AccessSettings, Entry, GroupPolicy, PairingStore};
use openclaw_channels::account_keys::names_of;
use openclaw_channels::{Channel, by_name};
use openclaw_config::write::{Actor, set_value, unset_value};
use openclaw_config::{Config, Loaded, value_path};
use serde_json::Value;

use super::allowlist_words::{Action, Asked, Scope, Where, read};
use super::config::{NO_GATEWAY, on_disk, refused};
use super::table::{Category, Command, Does, Needs, Offered, Takes};
use super::{Answering, Context};

pub(super) const COMMAND: Command = Command {
    offered: Offered::Text,
    ..Command::new("allowlist", Category::Management, Does::Answers(run), "List or change who is heard.")
        .taking(
            Takes::Words,
            "[list|add|remove] [dm|group|all] [--config|--store] [channel=x] [account=y] <entry>",
        )
        .needing(Needs::Admin)
};

const DISABLED: &str = "⚠️ /allowlist edits are disabled. Set commands.config=true to enable.";
const UNKNOWN: &str = "⚠️ Unknown channel. Add channel=<id> to the command.";
const ALREADY: &str = "✅ Already allowlisted.";
const NOT_FOUND: &str = "⚠️ Entry not found.";
/// Channels whose private list lies in an object of its own.
const NESTED: [&str; 3] = ["discord", "googlechat", "slack"];

fn run<'a>(context: &'a Context<'a>, arguments: &'a str) -> Answering<'a> {
    Box::pin(async move {
        let asked = match read(arguments) {
            Ok(asked) => asked,
            Err(what) => return Ok(what),
        };
        let Some(place) = Place::of(context, &asked) else { return Ok(UNKNOWN.to_owned()) };
        match asked.action {
            Action::List => Ok(place.list(context, &asked).await),
            Action::Add | Action::Remove => place.edit(context, asked).await,
        }
    })
}

/// The account whose lists are meant.
#[derive(Clone)]
struct Place {
    channel: Arc<dyn Channel>,
    account: String,
    /// Whether the account was named.
    is_named: bool,
}

impl Place {
    /// The one that is named, else where it is said.
    fn of(context: &Context<'_>, asked: &Asked) -> Option<Self> {
        let origin = context.row.payload.origin.as_deref();
        let id = match &asked.channel {
            Some(name) => by_name(name)?.id,
            None => origin?.address.channel.as_str(),
        };
        let platforms = &context.runner.deps.platforms;
        let channel = platforms.channel(id).cloned()?;
        let here =
            origin.filter(|origin| origin.address.channel == id).map(|origin| origin.address.account.clone());
        let default = || platforms.default_account(&context.settings.config, id);
        let account = asked.account.clone().or(here).or_else(default).unwrap_or_else(|| "default".to_owned());
        Some(Self { channel, account, is_named: asked.account.is_some() })
    }

    fn id(&self) -> &'static str {
        self.channel.info().id
    }

    fn store(&self, config: &Config) -> PairingStore {
        PairingStore::new(config.paths().credentials_dir(), self.id(), &self.account)
    }

    async fn list(&self, context: &Context<'_>, asked: &Asked) -> String {
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
            lines.push(format!("Group allowFrom (config): {}", entries(access.group_allow_from.as_ref())));
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

    async fn edit(&self, context: &Context<'_>, asked: Asked) -> Result<String, super::CommandError> {
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
        let Some(around) = &context.runner.deps.surroundings else { return Ok(NO_GATEWAY.to_owned()) };
        let (place, store) = (self.clone(), self.store(&context.settings.config));
        let work = move |loaded: &Loaded| place.change(loaded, &store, &asked, &entry);
        let answer = on_disk(around.environment(), work).await;
        around.reread().await;
        Ok(answer)
    }

    /// Changes the list of the file, and of pairings. Blocking.
    fn change(&self, loaded: &Loaded, store: &PairingStore, asked: &Asked, entry: &str) -> String {
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
                Action::Add => store.allow(self.channel.as_ref(), entry),
                Action::Remove => store.forget(self.channel.as_ref(), entry),
                Action::List => Ok(false),
            };
            match changed {
                Ok(true) => places.push("pairing store".to_owned()),
                Ok(false) => {}
                Err(error) => return format!("⚠️ The pairing store can't be written: {error}"),
            }
        }
        let (scope, verb) = match (asked.scope, asked.action) {
            _ if places.is_empty() && asked.action == Action::Add => return ALREADY.to_owned(),
            _ if places.is_empty() => return NOT_FOUND.to_owned(),
            (Scope::Group, Action::Add) => ("Group", "added"),
            (_, Action::Add) => ("DM", "added"),
            (Scope::Group, _) => ("Group", "removed"),
            (_, _) => ("DM", "removed"),
        };
        format!("✅ {scope} allowlist {verb}: {}.", places.join(" + "))
    }

    /// Changes the list of the file. An account without one has its channel's: it gets a list of its own that begins with that, so that
    /// nobody else is shut out or let in by the change. Where the list is, if it was changed.
    fn change_file(
        &self,
        loaded: &Loaded,
        asked: &Asked,
        entry: &str,
    ) -> Result<Option<Vec<String>>, String> {
        let parsed = &loaded.snapshot.parsed;
        let channel = vec!["channels".to_owned(), self.id().to_owned()];
        let shared = self.list_in(&channel, asked.scope);
        let section = self.own_section(parsed, &channel);
        let path = section.as_ref().map_or_else(|| shared.clone(), |own| self.list_in(own, asked.scope));
        let list = |path: &[String]| value_path::get(parsed, path).and_then(Value::as_array);
        let inherited = list(&shared).filter(|_| section.is_some());
        let mut list = list(&path).or(inherited).cloned().unwrap_or_default();
        let is_it = |known: &Value| {
            let text = known.as_str().map_or_else(|| known.to_string(), str::to_owned);
            self.channel.allow_entry(&text).as_deref() == Some(entry)
        };
        let before = list.len();
        match asked.action {
            Action::Add if list.iter().any(is_it) => {}
            Action::Add => list.push(Value::from(entry)),
            Action::Remove => list.retain(|known| !is_it(known)),
            Action::List => {}
        }
        if list.len() == before {
            return Ok(None);
        }
        // Without the key the channel's list would hold again.
        let written = if list.is_empty() && inherited.is_none() {
            unset_value(loaded, &path, Actor::Channel).map(|_| ())
        } else {
            set_value(loaded, &path, Value::Array(list), Actor::Channel).map(|_| ())
        };
        match written {
            Ok(()) => Ok(Some(path)),
            Err(error) => Err(refused(if asked.action == Action::Add { "add" } else { "remove" }, &error)),
        }
    }

    /// The account's own section in the file, as it is spelled there.
    fn own_section(&self, parsed: &Value, channel: &[String]) -> Option<Vec<String>> {
        let name = names_of(parsed, self.channel.as_ref(), &self.account).into_iter().next()?;
        Some([channel, &["accounts".to_owned(), name]].concat())
    }

    /// Where a list lies in a section.
    fn list_in(&self, section: &[String], scope: Scope) -> Vec<String> {
        let mut path = section.to_vec();
        match scope {
            Scope::Group => path.push("groupAllowFrom".to_owned()),
            Scope::Dm | Scope::All => {
                if NESTED.contains(&self.id()) {
                    path.push("dm".to_owned());
                }
                path.push("allowFrom".to_owned());
            }
        }
        path
    }
}

fn named(entries: &[String]) -> String {
    if entries.is_empty() { "(none)".to_owned() } else { entries.join(", ") }
}

#[cfg(test)]
mod tests {
    use openclaw_channels::Platforms;
    use openclaw_config::load;

    use super::*;
    use crate::commands::testing::config_file;

    fn telegram() -> Place {
        let channel = Arc::clone(Platforms::default().channel("telegram").unwrap());
        Place { channel, account: "default".to_owned(), is_named: false }
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
            let place = Place { account: account.to_owned(), ..telegram() };
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
        // Where nothing is inherited, an empty list goes.
        say("work", "add group 5 --config");
        say("work", "remove group 5 --config");
        let parsed = load(&environment).snapshot.parsed;
        assert_eq!(parsed["channels"]["telegram"]["accounts"]["Work"].get("groupAllowFrom"), None);
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
             Paired allowFrom (store): 3\nGroup allowFrom (config): (none)\nGroup overrides:\n- -1: 9"
        );
    }
}
