//! `/exec`: where commands of tools run, and when a person is asked.

use openclaw_sessions::SessionEntry;
use serde::{Deserialize, Serialize};

use super::Hints;
use super::directives::{Directive, Reading, Settled, Settling, Wished};
use super::levels::behind_name;
use super::line::{Hit, cut, skip_colon, slashes};
use super::table::{Category, Command, Does, Needs, Takes};

mod current;

pub(super) const NAME: &str = "exec";
pub(super) const DIRECTIVE: Directive = Directive { take, hint, settle, needs_mention };
pub(super) const COMMAND: Command = Command::new(
    NAME,
    Category::Options,
    Does::Directive(DIRECTIVE),
    "Set where commands run, and what they ask.",
)
.taking(Takes::Options, "[host=…] [security=…] [ask=…] [node=…]|reset")
.needing(Needs::Approvals);

const HOSTS: &[&str] = &["sandbox", "gateway", "node"];
const SECURITY: &[&str] = &["deny", "allowlist", "full"];
const ASK: &[&str] = &["off", "on-miss", "always"];
/// What may be said.
const OPTIONS: &str = "Options: host=sandbox|gateway|node, security=deny|allowlist|full, ask=off|on-miss|always, node=<id>, or reset.";
/// Words that take everything back that the session was told.
const RESET: &[&str] = &["reset", "off", "default"];
const NO_NODES: &str =
    "⚠️ host=node needs a paired node, and this version has no nodes yet. Nothing was changed.";

/// What is asked for; each part may be left out, or be wrong. Stored with a message as JSON: fields may be added, none changes its
/// meaning.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ExecWish {
    /// Where: `sandbox`, `gateway` or `node`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<String>,
    /// Which: `deny`, `allowlist` or `full`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) security: Option<String>,
    /// When a person is asked: `off`, `on-miss` or `always`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ask: Option<String>,
    /// On which node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    /// Options with values they don't have: `host "bogus"`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    wrong: Vec<String>,
    /// Everything goes back to the configuration.
    #[serde(skip)]
    reset: bool,
}

impl ExecWish {
    /// As the row of a session has it.
    fn put_into(self, entry: &mut SessionEntry) {
        let Self { host, security, ask, node, .. } = self;
        let put = |into: &mut Option<Box<str>>, value: Option<String>| {
            if let Some(value) = value {
                *into = Some(value.into());
            }
        };
        put(&mut entry.exec_host, host);
        put(&mut entry.exec_security, security);
        put(&mut entry.exec_ask, ask);
        put(&mut entry.exec_node, node);
    }

    /// What is said of options with values they don't have. A run does not begin with half of what its message asks for.
    pub(crate) fn refusal(&self) -> Option<String> {
        (!self.wrong.is_empty()).then(|| unrecognized(&self.wrong.join(", ")))
    }

    /// `host=gateway, ask=off`
    fn text(&self) -> String {
        let Self { host, security, ask, node, .. } = self;
        let parts = [("host", host), ("security", security), ("ask", ask), ("node", node)];
        let parts = parts.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
        parts.collect::<Vec<_>>().join(", ")
    }

    /// Reads options up to the first word that is none, and how many bytes they take.
    fn read(text: &str) -> (Self, usize) {
        let (mut wish, mut end) = (Self::default(), 0);
        if let Some(word) = text.split_whitespace().next().filter(|word| is_reset(word)) {
            wish.reset = true;
            return (wish, text.find(word).unwrap_or_default() + word.len());
        }
        for word in text.split_whitespace() {
            let Some((name, value)) = word.split_once(['=', ':']) else { break };
            let value = value.to_lowercase();
            let is_one = |values: &[&str]| values.contains(&value.as_str());
            let (into, name, is_right) = match name.to_lowercase().as_str() {
                "host" => (&mut wish.host, "host", is_one(HOSTS)),
                "security" => (&mut wish.security, "security", is_one(SECURITY)),
                "ask" => (&mut wish.ask, "ask", is_one(ASK)),
                "node" => (&mut wish.node, "node", !value.is_empty()),
                _ => break,
            };
            if is_right {
                *into = Some(value);
            } else {
                wish.wrong.push(format!("{name} \"{value}\""));
            }
            let at = text.get(end..).and_then(|rest| rest.find(word)).unwrap_or_default();
            end += at + word.len();
        }
        (wish, end)
    }
}

fn unrecognized(wrong: &str) -> String {
    format!("Unrecognized exec option: {wrong}. {OPTIONS}")
}

fn is_reset(word: &str) -> bool {
    RESET.iter().any(|reset| word.eq_ignore_ascii_case(reset))
}

fn hint(options: &str, hints: &mut Hints) {
    let wish = ExecWish::read(options).0;
    hints.exec = (wish != ExecWish::default()).then_some(wish);
}

fn settle(wished: Wished<'_>) -> Settling<'_> {
    Box::pin(async move {
        let (wish, end) = ExecWish::read(wished.argument);
        if !wish.wrong.is_empty() || end < wished.argument.trim_end().len() {
            let wrong = wish.refusal().unwrap_or_else(|| unrecognized(wished.argument));
            return Ok(Settled::refused(wrong));
        }
        if wish == ExecWish::default() {
            return Ok(Settled::told(current::card(wished.context, OPTIONS)));
        }
        if wish.reset {
            let says = "⚙️ Exec defaults are those of the configuration again.".to_owned();
            return Ok(Settled::changed(says, reset));
        }
        if wish.host.as_deref() == Some("node") {
            return Ok(Settled::refused(NO_NODES.to_owned()));
        }
        let says = format!("⚙️ Exec defaults set ({}).", wish.text());
        Ok(Settled::changed(says, move |entry| wish.put_into(entry)))
    })
}

fn reset(entry: &mut SessionEntry) {
    entry.exec_host = None;
    entry.exec_security = None;
    entry.exec_ask = None;
    entry.exec_node = None;
}

fn take(text: &str, reading: Reading, _: &[&str]) -> Option<(String, String)> {
    let first = text.trim_start().lines().next().unwrap_or_default();
    cut(text, |line| find(line, reading, line.trim_start() == first))
}

fn find(line: &str, reading: Reading, is_first: bool) -> Option<Hit<String>> {
    slashes(line).find_map(|(from, behind)| {
        let behind = skip_colon(behind_name(behind, &[NAME])?);
        let (wish, end) = ExecWish::read(behind);
        if reading == Reading::Among && (end == 0 || wish.reset) {
            return None;
        }
        let begins = is_first && line.get(..from).is_some_and(|before| before.trim().is_empty());
        let end = if reading == Reading::Alone && begins && is_attempt(&wish, behind, end) {
            behind.trim_end().len()
        } else {
            end
        };
        let value = behind.get(..end).unwrap_or_default().to_owned();
        Some(Hit { from, to: line.len() - behind.len() + end, value })
    })
}

/// Whether what is left of a message that begins with the command was meant for it, and is wrong. It is answered: the agent could
/// only guess.
fn is_attempt(wish: &ExecWish, behind: &str, end: usize) -> bool {
    let rest = behind.get(end..).unwrap_or_default().trim_start();
    let is_command = rest.strip_prefix('/').is_some_and(|name| !name.contains('/'));
    if is_command {
        return false;
    }
    end == 0 || wish.reset || rest.split_whitespace().all(|word| word.contains(['=', ':']))
}

/// In a group it counts only where the agent is spoken to, unless it forbids everything.
fn needs_mention(options: &str) -> bool {
    ExecWish::read(options).0.security.as_deref() != Some("deny")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of `messages.md` §4.
    #[test]
    fn options_are_read_up_to_the_first_word_that_is_none() {
        let some = |text: &str| Some(text.to_owned());
        let four = ExecWish {
            host: some("gateway"),
            security: some("allowlist"),
            ask: some("always"),
            node: some("mac-mini"),
            ..ExecWish::default()
        };
        let wrong = |what: &str| ExecWish { wrong: vec![what.to_owned()], ..ExecWish::default() };
        let rows = [
            ("/exec host=gateway security=allowlist ask=always node=mac-mini run ls", "run ls", four),
            ("/exec host=bogus", "", wrong("host \"bogus\"")),
            ("/exec node=", "", wrong("node \"\"")),
            ("please /exec now", "please now", ExecWish::default()),
            ("/EXEC: ask:off", "", ExecWish { ask: some("off"), ..ExecWish::default() }),
        ];
        for (text, rest, wish) in rows {
            let (options, left) = take(text, Reading::Alone, &[]).unwrap();
            assert_eq!((ExecWish::read(&options).0, left.as_str()), (wish, rest), "{text}");
        }
        for text in ["please /exec now", "/exec run ls", "/exec reset", "/exec off the record"] {
            assert_eq!(take(text, Reading::Among, &[]), None, "{text}");
        }
        assert_eq!(take("/executive host=node", Reading::Alone, &[]), None);
        let both = take("/exec host=gateway run it", Reading::Among, &[]);
        assert_eq!(both, Some(("host=gateway".to_owned(), "run it".to_owned())));
        assert!(needs_mention("host=node") && needs_mention("") && !needs_mention("security=deny"));
    }
    /// What begins with the command and can't be one is answered, not sent to the agent.
    #[test]
    fn a_message_that_begins_with_the_command_is_taken_as_a_whole_where_it_is_wrong() {
        for (text, argument) in [
            ("/exec hots=gateway", "hots=gateway"),
            ("/exec host=gateway hots=x", "host=gateway hots=x"),
            ("/exec foo", "foo"),
            ("/exec ls -la", "ls -la"),
            (" /exec: reset", "reset"),
            ("/exec OFF", "OFF"),
            ("/exec reset host=gateway", "reset host=gateway"),
        ] {
            let taken = take(text, Reading::Alone, &[]);
            assert_eq!(taken, Some((argument.to_owned(), String::new())), "{text}");
        }
        let reset = |text| ExecWish::read(text).0.reset;
        assert!(reset("reset") && reset("Off") && reset("default") && !reset("") && !reset("host=gateway"));
    }
}
