//! `/exec`: where commands of tools run, and when a person is asked.

use openclaw_config::settings::{Exec, ExecAsk, ExecSecurity};
use openclaw_sessions::SessionEntry;
use serde::{Deserialize, Serialize};

use super::Hints;
use super::directives::{Directive, Reading, Settled, Settling, Wished};
use super::levels::behind_name;
use super::line::{Hit, cut, skip_colon, slashes};
use super::table::{Category, Command, Does, Takes};

pub(super) const NAME: &str = "exec";
pub(super) const DIRECTIVE: Directive = Directive { take, hint, settle, needs_mention };
pub(super) const COMMAND: Command = Command::new(
    NAME,
    Category::Options,
    Does::Directive(DIRECTIVE),
    "Set where commands run, and what they ask.",
)
.taking(Takes::Options, "[host=…] [security=…] [ask=…] [node=…]");

const HOSTS: &[&str] = &["sandbox", "gateway", "node"];
const SECURITY: &[&str] = &["deny", "allowlist", "full"];
const ASK: &[&str] = &["off", "on-miss", "always"];
/// What may be said.
const OPTIONS: &str =
    "Options: host=sandbox|gateway|node, security=deny|allowlist|full, ask=off|on-miss|always, node=<id>.";

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
    #[serde(skip)]
    wrong: Vec<String>,
}

impl ExecWish {
    /// As the row of a session has it.
    fn put_into(self, entry: &mut SessionEntry) {
        let Self { host, security, ask, node, wrong: _ } = self;
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

    /// `host=gateway, ask=off`
    fn text(&self) -> String {
        let Self { host, security, ask, node, wrong: _ } = self;
        let parts = [("host", host), ("security", security), ("ask", ask), ("node", node)];
        let parts = parts.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
        parts.collect::<Vec<_>>().join(", ")
    }

    /// Reads options up to the first word that is none, and how many bytes they take.
    fn read(text: &str) -> (Self, usize) {
        let (mut wish, mut end) = (Self::default(), 0);
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

fn hint(options: &str, hints: &mut Hints) {
    let wish = ExecWish::read(options).0;
    hints.exec = (wish != ExecWish::default() && wish.wrong.is_empty()).then_some(wish);
}

fn settle(wished: Wished<'_>) -> Settling<'_> {
    Box::pin(async move {
        let (wish, end) = ExecWish::read(wished.argument);
        if !wish.wrong.is_empty() || end < wished.argument.trim_end().len() {
            let wrong =
                if wish.wrong.is_empty() { wished.argument.to_owned() } else { wish.wrong.join(", ") };
            return Ok(Settled::refused(format!("Unrecognized exec option: {wrong}. {OPTIONS}")));
        }
        if wish == ExecWish::default() {
            let entry = wished.context.entry;
            return Ok(Settled::told(current(entry, &wished.context.agent.exec)));
        }
        let says = format!("⚙️ Exec defaults set ({}).", wish.text());
        Ok(Settled::changed(says, move |entry| wish.put_into(entry)))
    })
}

/// What holds in a session.
fn current(entry: &SessionEntry, agent: &Exec) -> String {
    let own = |stored: &Option<Box<str>>| stored.as_deref().map(str::to_owned);
    let host = own(&entry.exec_host).or(agent.host.map(|host| host.as_str().to_owned()));
    let host = host.unwrap_or_else(|| "sandbox".to_owned());
    let is_sandbox = host == "sandbox";
    let unset = if is_sandbox { ExecSecurity::Deny } else { ExecSecurity::Allowlist };
    let security =
        own(&entry.exec_security).unwrap_or_else(|| agent.security.unwrap_or(unset).as_str().to_owned());
    let ask =
        own(&entry.exec_ask).unwrap_or_else(|| agent.ask.unwrap_or(ExecAsk::OnMiss).as_str().to_owned());
    let node = own(&entry.exec_node).unwrap_or_else(|| "(unset)".to_owned());
    format!("Current exec defaults: host={host}, security={security}, ask={ask}, node={node}.\n{OPTIONS}")
}

fn take(text: &str, reading: Reading, _: &[&str]) -> Option<(String, String)> {
    cut(text, |line| find(line, reading))
}

fn find(line: &str, reading: Reading) -> Option<Hit<String>> {
    slashes(line).find_map(|(from, behind)| {
        let behind = skip_colon(behind_name(behind, &[NAME])?);
        let (_, end) = ExecWish::read(behind);
        if reading == Reading::Among && end == 0 {
            return None;
        }
        let value = behind.get(..end).unwrap_or_default().to_owned();
        Some(Hit { from, to: line.len() - behind.len() + end, value })
    })
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
            wrong: Vec::new(),
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
        assert_eq!(take("please /exec now", Reading::Among, &[]), None);
        assert_eq!(take("/executive host=node", Reading::Alone, &[]), None);
        assert!(needs_mention("host=node") && needs_mention("") && !needs_mention("security=deny"));
    }
}
