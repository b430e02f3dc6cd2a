//! `/skill <name> [what to do]`, and `/<name> [what to do]` for each skill (spec `agent-runtime.md` §6.7, `messages.md` §5).
//!
//! The agent is asked to use the skill; or the tool that the skill names is called instead. The names come from
//! [`openclaw_agent::skills`].

use openclaw_agent::skills::{self, Occasion, SkillCommand, Snapshot, Wanted};
use openclaw_journal::intent::{Intent, ToolWish};
use openclaw_sessions::reset::trigger::{command_body, slash_command};

use super::command::{Category, ChatCommand, Does, Takes};
use super::table::is_command;
use super::{Answering, CommandContext, Spoken};

const NAME: &str = "skill";
pub(crate) const COMMAND: ChatCommand =
    ChatCommand::new(NAME, Category::Tools, Does::Answers(run), "Run a skill by its name.")
        .taking(Takes::Words, "<name> [what to do]")
        .keeping_lines();

/// Skills that are named in an answer.
const MOST_NAMED: usize = 100;

/// True if a text may call a skill, so that the skills have to be known to read it.
pub fn may_be_one(text: &str) -> bool {
    text.contains('/')
        && slash_command(&command_body(text))
            .is_some_and(|(name, _)| name.eq_ignore_ascii_case(NAME) || !is_command(&name.to_lowercase()))
}

/// The commands of an agent's skills.
pub fn commands(snapshot: &Snapshot) -> &[SkillCommand] {
    snapshot.commands(is_command)
}

/// Reads a text that calls one of these skills; `None` if it calls none.
pub(crate) fn read(spoken: Spoken<'_>, commands: &[SkillCommand]) -> Option<Intent> {
    if commands.is_empty() {
        return None;
    }
    let body = command_body(spoken.text);
    let (name, input) = slash_command(&body)?;
    let (command, input) = if name.eq_ignore_ascii_case(NAME) {
        let (name, input) = first_word(input);
        (skills::meant(commands, name)?, input)
    } else {
        (skills::called(commands, name)?, input)
    };
    match (spoken.may_command, &command.tool) {
        (false, _) => Some(Intent::Ignored),
        (true, None) => Some(Intent::Reworded { text: skills::request(&command.skill, input) }),
        // A tool is given text alone.
        (true, Some(_)) if spoken.attached => None,
        (true, Some(tool)) => Some(Intent::Tool(ToolWish {
            tool: tool.clone(),
            input: input.to_owned(),
            command: command.name.clone(),
            skill: command.skill.clone(),
        })),
    }
}

fn first_word(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    (word, rest.trim())
}

/// Lists the skills: the answer if the named skill does not exist.
fn run<'a>(context: &'a CommandContext<'a>, arguments: &'a str) -> Answering<'a> {
    Box::pin(async move { Ok(answer(first_word(arguments).0, &context.skills().await)) })
}

impl CommandContext<'_> {
    /// The commands of the agent's skills.
    pub(crate) async fn skills(&self) -> Vec<SkillCommand> {
        let agent = self.agent;
        let wanted = Wanted { config: &self.settings.config, agent: &agent.id, workspace: &agent.workspace };
        let occasion = Occasion::GoesOn(self.entry.skills_snapshot.as_ref());
        commands(&*self.services.skills.for_turn(wanted, occasion).await).to_vec()
    }
}

fn answer(asked: &str, commands: &[SkillCommand]) -> String {
    let mut lines = Vec::new();
    if !asked.is_empty() {
        lines.push(format!("There is no skill \"{asked}\" to call."));
    }
    if commands.is_empty() {
        lines.push(
            "No skill can be called here. `openclaw skills list` says which there are and what they need."
                .to_owned(),
        );
        return lines.join("\n");
    }
    lines.push("Skills you can call, each also as /skill <name>:".to_owned());
    lines.extend(
        commands
            .iter()
            .take(MOST_NAMED)
            .map(|command| format!("/{} - {}", command.name, command.description)),
    );
    if commands.len() > MOST_NAMED {
        lines.push(format!("and {} more", commands.len() - MOST_NAMED));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands() -> Vec<SkillCommand> {
        let command = |name: &str, skill: &str, tool: Option<&str>| SkillCommand {
            name: name.to_owned(),
            skill: skill.to_owned(),
            description: format!("About {skill}"),
            tool: tool.map(str::to_owned),
        };
        vec![command("my_skill", "My Skill!", None), command("shell", "shell", Some("exec"))]
    }

    fn said(text: &str, attached: bool, may_command: bool) -> Option<Intent> {
        read(Spoken { attached, may_command, ..Spoken::words(text) }, &commands())
    }

    fn reworded(input: &str) -> Option<Intent> {
        Some(Intent::Reworded { text: skills::request("My Skill!", input) })
    }

    fn called(input: &str) -> Option<Intent> {
        Some(Intent::Tool(ToolWish {
            tool: "exec".to_owned(),
            input: input.to_owned(),
            command: "shell".to_owned(),
            skill: "shell".to_owned(),
        }))
    }

    #[test]
    fn a_skill_is_called_by_its_command_or_by_its_name() {
        let rows = [
            ("/my_skill", reworded("")),
            (" /MY_SKILL  do it\n  now ", reworded("do it\n  now")),
            ("/skill my_skill do it", reworded("do it")),
            ("/skill My-Skill! x", reworded("x")),
            ("/SKILL\nmy_skill\nx", reworded("x")),
            ("[Chat Bob] Bob: /my_skill do it", reworded("do it")),
            ("/shell ls  -la", called("ls  -la")),
            ("/skill shell", called("")),
            ("/my_skill: do it", reworded("do it")),
            ("/skill: my_skill do it", reworded("do it")),
            ("/my-skill", None),
            ("/my_skills", None),
            ("/skill", None),
            ("/skill other", None),
            ("/ my_skill", None),
            ("see /my_skill", None),
            ("/etc/my_skill", None),
            ("", None),
        ];
        for (text, expect) in rows {
            assert_eq!(said(text, false, true), expect, "{text:?}");
            let denied = expect.map(|_| Intent::Ignored);
            assert_eq!(said(text, false, false), denied, "{text:?}");
        }
        assert_eq!(said("/my_skill see", true, true), reworded("see"));
        assert_eq!(said("/shell ls", true, true), None);
        assert_eq!(read(Spoken::words("/my_skill"), &[]), None);
    }

    #[test]
    fn skills_are_asked_for_only_where_a_message_may_call_one() {
        for text in ["/weather", "/weather: x", "/skill x", "[Chat Bob] Bob: /weather", " /x y"] {
            assert!(may_be_one(text), "{text}");
        }
        for text in ["hello", "a/b", "see /weather", "/model x", "/status", "/", "/new", "[a] b"] {
            assert!(!may_be_one(text), "{text}");
        }
    }

    #[test]
    fn what_is_not_there_is_answered_with_what_is() {
        let expect = "There is no skill \"x\" to call.\nSkills you can call, each also as /skill <name>:\n\
                      /my_skill - About My Skill!\n/shell - About shell";
        assert_eq!(answer("x", &commands()), expect);
        assert!(answer("", &[]).starts_with("No skill can be called here."));
    }
}
