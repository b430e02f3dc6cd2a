//! `/exec`: where commands of tools run, and when a person is asked.

use openclaw_journal::caller::Right;
use openclaw_journal::intent::{ExecWish, Hints};
use openclaw_sessions::SessionEntry;

use super::command::{Category, ChatCommand, Does, Takes};
use super::directive::{Directive, DirectiveReading, DirectiveResult, Settling, Wished};
use super::levels::behind_name;
use super::line::{Hit, cut, skip_colon, slashes};

mod current;

pub(crate) const NAME: &str = "exec";
const DIRECTIVE: Directive = Directive { take, hint, settle, needs_mention };
pub(crate) const COMMAND: ChatCommand = ChatCommand::new(
    NAME,
    Category::Options,
    Does::Directive(DIRECTIVE),
    "Set where commands run, and what they ask.",
)
.taking(Takes::Options, "[host=…] [security=…] [ask=…] [node=…]|reset")
.needing(Right::Approve);

const HOSTS: &[&str] = &["sandbox", "gateway", "node"];
const SECURITY: &[&str] = &["deny", "allowlist", "full"];
const ASK: &[&str] = &["off", "on-miss", "always"];
/// Help text with the options.
const OPTIONS: &str = "Options: host=sandbox|gateway|node, security=deny|allowlist|full, ask=off|on-miss|always, node=<id>, or reset.";
/// Words that take back all settings of the session.
const RESET: &[&str] = &["reset", "off", "default"];
const NO_NODES: &str =
    "⚠️ host=node needs a paired node, and this version has no nodes yet. Nothing was changed.";

/// Returns the refusal of options with values they don't have. A run does not begin with half
/// of what its message asks for.
pub fn refusal(wish: &ExecWish) -> Option<String> {
    (!wish.wrong.is_empty()).then(|| unrecognized(&wish.wrong.join(", ")))
}

/// Reads options up to the first word that is none, and how many bytes they take.
fn read(text: &str) -> (ExecWish, usize) {
    let (mut wish, mut end) = (ExecWish::default(), 0);
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

fn unrecognized(wrong: &str) -> String {
    format!("Unrecognized exec option: {wrong}. {OPTIONS}")
}

fn is_reset(word: &str) -> bool {
    RESET.iter().any(|reset| word.eq_ignore_ascii_case(reset))
}

fn hint(options: &str, hints: &mut Hints) {
    let wish = read(options).0;
    hints.exec = (wish != ExecWish::default()).then_some(wish);
}

fn settle(wished: Wished<'_>) -> Settling<'_> {
    Box::pin(async move {
        let (wish, end) = read(wished.argument);
        if !wish.wrong.is_empty() || end < wished.argument.trim_end().len() {
            let wrong = refusal(&wish).unwrap_or_else(|| unrecognized(wished.argument));
            return Ok(DirectiveResult::refused(wrong));
        }
        if wish == ExecWish::default() {
            return Ok(DirectiveResult::told(current::card(wished.context, OPTIONS)));
        }
        if wish.reset {
            let says = "⚙️ Exec defaults are those of the configuration again.".to_owned();
            return Ok(DirectiveResult::changed(says, reset));
        }
        if wish.host.as_deref() == Some("node") {
            return Ok(DirectiveResult::refused(NO_NODES.to_owned()));
        }
        let says = format!("⚙️ Exec defaults set ({}).", wish.text());
        Ok(DirectiveResult::changed(says, move |entry| wish.put_into(entry)))
    })
}

fn reset(entry: &mut SessionEntry) {
    entry.exec_host = None;
    entry.exec_security = None;
    entry.exec_ask = None;
    entry.exec_node = None;
}

fn take(text: &str, reading: DirectiveReading, _: &[&str]) -> Option<(String, String)> {
    let first = text.trim_start().lines().next().unwrap_or_default();
    cut(text, |line| find(line, reading, line.trim_start() == first))
}

fn find(line: &str, reading: DirectiveReading, is_first: bool) -> Option<Hit<String>> {
    slashes(line).find_map(|(from, behind)| {
        let behind = skip_colon(behind_name(behind, &[NAME])?);
        let (wish, end) = read(behind);
        if reading == DirectiveReading::Among && (end == 0 || wish.reset) {
            return None;
        }
        let begins = is_first && line.get(..from).is_some_and(|before| before.trim().is_empty());
        let end = if reading == DirectiveReading::Alone && begins && is_attempt(&wish, behind, end) {
            behind.trim_end().len()
        } else {
            end
        };
        let value = behind.get(..end).unwrap_or_default().to_owned();
        Some(Hit { from, to: line.len() - behind.len() + end, value })
    })
}

/// True if the rest of a message that begins with the command was meant for it, and is wrong. Such
/// a message is answered, because the agent could only guess.
fn is_attempt(wish: &ExecWish, behind: &str, end: usize) -> bool {
    let rest = behind.get(end..).unwrap_or_default().trim_start();
    let is_command = rest.strip_prefix('/').is_some_and(|name| !name.contains('/'));
    if is_command {
        return false;
    }
    end == 0 || wish.reset || rest.split_whitespace().all(|word| word.contains(['=', ':']))
}

/// True unless the options forbid everything: in a group they count only if the agent is addressed.
fn needs_mention(options: &str) -> bool {
    read(options).0.security.as_deref() != Some("deny")
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
            let (options, left) = take(text, DirectiveReading::Alone, &[]).unwrap();
            assert_eq!((read(&options).0, left.as_str()), (wish, rest), "{text}");
        }
        for text in ["please /exec now", "/exec run ls", "/exec reset", "/exec off the record"] {
            assert_eq!(take(text, DirectiveReading::Among, &[]), None, "{text}");
        }
        assert_eq!(take("/executive host=node", DirectiveReading::Alone, &[]), None);
        let both = take("/exec host=gateway run it", DirectiveReading::Among, &[]);
        assert_eq!(both, Some(("host=gateway".to_owned(), "run it".to_owned())));
        assert!(needs_mention("host=node") && needs_mention("") && !needs_mention("security=deny"));
    }
    /// Checks that a message that begins with the command but can't be one is answered, not sent to
    /// the agent.
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
            let taken = take(text, DirectiveReading::Alone, &[]);
            assert_eq!(taken, Some((argument.to_owned(), String::new())), "{text}");
        }
        let reset = |text| read(text).0.reset;
        assert!(reset("reset") && reset("Off") && reset("default") && !reset("") && !reset("host=gateway"));
    }
}
