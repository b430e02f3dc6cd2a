//! Parser for the arguments of `/allowlist` (spec `messages.md` §5). Pure.

/// Action on the allowlist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllowlistAction {
    List,
    Add,
    Remove,
}

/// Lists that are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Private chats.
    Dm,
    Group,
    All,
}

/// Places to which an entry is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Where {
    Config,
    Store,
    Both,
}

/// A command that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AllowlistRequest {
    pub(crate) action: AllowlistAction,
    pub(crate) scope: Scope,
    pub(crate) at: Where,
    pub(crate) channel: Option<String>,
    pub(crate) account: Option<String>,
    /// Empty for a list.
    pub(crate) entry: String,
}

const USAGE: &str = "Usage: /allowlist list|add|remove [dm|group|all] [--config|--store] [channel=<id>] [account=<id>] <entry>";
const ONE_SCOPE: &str = "⚠️ Choose one: dm or group.";
const NO_GROUP_STORE: &str = "⚠️ The pairing store holds private chats only: leave out --store.";

/// Reads the arguments; the error is the text to answer with.
pub(crate) fn read(arguments: &str) -> Result<AllowlistRequest, String> {
    let mut asked = AllowlistRequest {
        action: AllowlistAction::List,
        scope: Scope::Dm,
        at: Where::Both,
        channel: None,
        account: None,
        entry: String::new(),
    };
    let mut words = arguments.split_whitespace().peekable();
    let action = words.peek().and_then(|word| action(word));
    if let Some(action) = action {
        asked.action = action;
        words.next();
    }
    let mut entry: Vec<&str> = Vec::new();
    while let Some(word) = words.next() {
        let lower = word.to_lowercase();
        let (name, value) =
            lower.split_once('=').map_or((lower.as_str(), None), |(name, value)| (name, Some(value)));
        let name = name.trim_start_matches("--");
        match (name, value) {
            ("config", None) if lower.starts_with("--") => asked.at = Where::Config,
            ("store", None) if lower.starts_with("--") => asked.at = Where::Store,
            // Names are looked up when the gateway starts.
            ("resolve", None) if lower.starts_with("--") => {}
            ("channel", Some(id)) => asked.channel = Some(id.to_owned()),
            ("account", Some(_)) => asked.account = word.split_once('=').map(|(_, id)| id.to_owned()),
            ("scope", Some(text)) => asked.scope = scope(text).ok_or(USAGE)?,
            ("channel", None) if lower.starts_with("--") => {
                asked.channel = words.next().map(str::to_lowercase)
            }
            ("account", None) if lower.starts_with("--") => asked.account = words.next().map(str::to_owned),
            ("scope", None) if lower.starts_with("--") => {
                asked.scope = words.next().and_then(scope).ok_or(USAGE)?;
            }
            _ if entry.is_empty() && scope(&lower).is_some() => {
                asked.scope = scope(&lower).unwrap_or(asked.scope)
            }
            _ => entry.push(word),
        }
    }
    asked.entry = entry.join(" ");
    match (asked.action, asked.scope) {
        (AllowlistAction::List, _) if !asked.entry.is_empty() => Err(USAGE.to_owned()),
        (AllowlistAction::List, _) => Ok(asked),
        (AllowlistAction::Add | AllowlistAction::Remove, _) if asked.entry.is_empty() => {
            Err(USAGE.to_owned())
        }
        (AllowlistAction::Add | AllowlistAction::Remove, Scope::All) => Err(ONE_SCOPE.to_owned()),
        (AllowlistAction::Add | AllowlistAction::Remove, Scope::Group) if asked.at == Where::Store => {
            Err(NO_GROUP_STORE.to_owned())
        }
        (AllowlistAction::Add | AllowlistAction::Remove, _) => Ok(asked),
    }
}

fn action(word: &str) -> Option<AllowlistAction> {
    match word.to_lowercase().as_str() {
        "list" => Some(AllowlistAction::List),
        "add" => Some(AllowlistAction::Add),
        "remove" => Some(AllowlistAction::Remove),
        _ => None,
    }
}

fn scope(word: &str) -> Option<Scope> {
    match word.to_lowercase().as_str() {
        "dm" => Some(Scope::Dm),
        "group" => Some(Scope::Group),
        "all" => Some(Scope::All),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_grammar_is_read() {
        let asked =
            |action, scope, at, channel: Option<&str>, account: Option<&str>, entry: &str| AllowlistRequest {
                action,
                scope,
                at,
                channel: channel.map(str::to_owned),
                account: account.map(str::to_owned),
                entry: entry.to_owned(),
            };
        use AllowlistAction::{Add, List, Remove};
        use Scope::{All, Dm, Group};
        use Where::{Both, Config, Store};
        let rows = [
            ("", asked(List, Dm, Both, None, None, "")),
            ("list all", asked(List, All, Both, None, None, "")),
            ("group", asked(List, Group, Both, None, None, "")),
            ("LIST scope=group --resolve", asked(List, Group, Both, None, None, "")),
            ("add 5", asked(Add, Dm, Both, None, None, "5")),
            ("add dm @Ada --config", asked(Add, Dm, Config, None, None, "@Ada")),
            ("remove --store tg:5", asked(Remove, Dm, Store, None, None, "tg:5")),
            (
                "add group channel=Telegram account=Work 5",
                asked(Add, Group, Both, Some("telegram"), Some("Work"), "5"),
            ),
            (
                "remove --channel slack --account w --scope dm U1",
                asked(Remove, Dm, Both, Some("slack"), Some("w"), "U1"),
            ),
        ];
        for (text, expect) in rows {
            assert_eq!(read(text), Ok(expect), "{text:?}");
        }
        for (text, expect) in [
            ("add", USAGE),
            ("remove dm", USAGE),
            ("list 5", USAGE),
            ("add all 5", ONE_SCOPE),
            ("add group --store 5", NO_GROUP_STORE),
        ] {
            assert_eq!(read(text), Err(expect.to_owned()), "{text:?}");
        }
    }
}
