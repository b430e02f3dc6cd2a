//! `/exec`: where and how commands are run. Read and taken out of a text; it has its effect with the tools that ask for approval.

use super::directives::{Directive, Reading, not_yet};
use super::levels::behind_name;
use super::line::{Hit, cut, skip_colon, slashes};
use super::table::{Category, Command, Does, Takes};

pub(super) const NAME: &str = "exec";
pub(super) const DIRECTIVE: Directive = Directive { take, hint: |_, _| (), settle: not_yet, needs_mention };
pub(super) const COMMAND: Command = Command::new(
    NAME,
    Category::Options,
    Does::Later(DIRECTIVE),
    "Set where commands run, and what they ask.",
)
.taking(Takes::Options, "host=… security=… ask=… node=…");

const HOSTS: &[&str] = &["sandbox", "gateway", "node"];
const SECURITY: &[&str] = &["deny", "allowlist", "full"];
const ASK: &[&str] = &["off", "on-miss", "always"];

/// What is asked for; each part may be left out, or be wrong.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct ExecWish {
    host: Option<String>,
    security: Option<String>,
    ask: Option<String>,
    node: Option<String>,
    /// Names of options with values they don't have.
    wrong: Vec<&'static str>,
}

impl ExecWish {
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
                wish.wrong.push(name);
            }
            let at = text.get(end..).and_then(|rest| rest.find(word)).unwrap_or_default();
            end += at + word.len();
        }
        (wish, end)
    }
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
        let wrong = |name| ExecWish { wrong: vec![name], ..ExecWish::default() };
        let rows = [
            ("/exec host=gateway security=allowlist ask=always node=mac-mini run ls", "run ls", four),
            ("/exec host=bogus", "", wrong("host")),
            ("/exec node=", "", wrong("node")),
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
