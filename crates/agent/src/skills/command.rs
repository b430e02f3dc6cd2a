//! Slash commands made of skills: their names, and which one is meant (spec `agent-runtime.md` §6.7). Pure.

use std::collections::HashSet;

use super::skill::{CommandUse, Skill};

/// Characters that platforms take of a command's name.
const LONGEST: usize = 32;
/// Names that are alike are told apart by numbers up to this one; further ones are no commands.
const MOST_ALIKE: usize = 999;
/// Characters of a description in a menu.
const LONGEST_DESCRIPTION: usize = 100;

/// A command that uses a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillCommand {
    /// Name of the command, without the slash.
    pub name: String,
    /// The skill.
    pub skill: String,
    /// Description for menus.
    pub description: String,
    /// The tool that is called instead of asking the agent.
    pub tool: Option<String>,
}

/// The commands of these skills, in their order. `is_reserved` tells which names mean something else.
pub(super) fn commands<'s>(
    skills: impl Iterator<Item = &'s Skill>,
    is_reserved: impl Fn(&str) -> bool,
) -> Vec<SkillCommand> {
    let mut made: Vec<SkillCommand> = Vec::new();
    let mut taken: HashSet<String> = HashSet::new();
    for skill in skills {
        let tool = match &skill.command {
            CommandUse::None => continue,
            CommandUse::Prompt => None,
            CommandUse::Tool(tool) => Some(tool.clone()),
        };
        let is_taken = |name: &str| is_reserved(name) || taken.contains(name);
        let Some(name) = unique(&sanitized(&skill.name), is_taken) else {
            tracing::warn!(skill = %skill.name, "skills: too many skills have this name, the skill is no command");
            continue;
        };
        taken.insert(name.clone());
        let description = shortened(&skill.description);
        made.push(SkillCommand { name, skill: skill.name.clone(), description, tool });
    }
    made
}

/// The command of exactly this name, in any case.
pub fn called<'c>(commands: &'c [SkillCommand], name: &str) -> Option<&'c SkillCommand> {
    commands.iter().find(|command| command.name.eq_ignore_ascii_case(name))
}

/// The command whose skill a person means: by its name or the command's, blanks and `_` equal to `-`, in any case.
pub fn meant<'c>(commands: &'c [SkillCommand], name: &str) -> Option<&'c SkillCommand> {
    let wanted = loose(name);
    commands.iter().find(|command| loose(&command.skill) == wanted || loose(&command.name) == wanted)
}

fn loose(name: &str) -> String {
    let parts = name.trim().split(|c: char| c.is_whitespace() || c == '_').filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_lowercase()
}

/// Builds the message to the agent.
pub fn request(skill: &str, input: &str) -> String {
    let ask = format!("Use the \"{skill}\" skill for this request.");
    match input.trim() {
        "" => ask,
        input => format!("{ask}\n\nUser input:\n{input}"),
    }
}

fn sanitized(name: &str) -> String {
    let of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let name = name.to_lowercase();
    let parts: Vec<&str> = name.split(|c: char| !of_name(c)).filter(|part| !part.is_empty()).collect();
    // Nothing but ASCII is left.
    let cut: String = parts.join("_").chars().take(LONGEST).collect();
    if cut.is_empty() { "skill".to_owned() } else { cut }
}

fn unique(base: &str, is_taken: impl Fn(&str) -> bool) -> Option<String> {
    if !is_taken(base) {
        return Some(base.to_owned());
    }
    let numbered = |number: usize| {
        let suffix = format!("_{number}");
        let kept: String = base.chars().take(LONGEST - suffix.len()).collect();
        kept + &suffix
    };
    (2..=MOST_ALIKE).map(numbered).find(|name| !is_taken(name))
}

fn shortened(description: &str) -> String {
    let description = description.trim();
    if description.chars().count() <= LONGEST_DESCRIPTION {
        return description.to_owned();
    }
    let cut: String = description.chars().take(LONGEST_DESCRIPTION - 1).collect();
    cut + "\u{2026}"
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::skill;
    use super::*;

    fn names(skills: &[&str], reserved: &[&str]) -> Vec<String> {
        let skills: Vec<Skill> = skills.iter().map(|name| skill(name)).collect();
        let made = commands(skills.iter(), |name| reserved.contains(&name));
        made.into_iter().map(|command| command.name).collect()
    }

    #[test]
    fn names_are_made_as_the_reference_makes_them() {
        assert_eq!(names(&["My Skill!"], &[]), ["my_skill"]);
        assert_eq!(
            names(&["hello-world", "hello_world", "help"], &["help"]),
            ["hello_world", "hello_world_2", "help_2"]
        );
        assert_eq!(names(&["---"], &[]), ["skill"]);
        let long = "very-long-skill-name-that-should-be-trimmed";
        assert_eq!(names(&[long], &[]), ["very_long_skill_name_that_should"]);
        assert_eq!(
            names(&[long, "very_long_skill_name_that_should_too"], &[]),
            ["very_long_skill_name_that_should", "very_long_skill_name_that_shou_2"]
        );
        assert_eq!(names(&["Ünïcode__x", "1password"], &[]), ["n_code_x", "1password"]);
    }

    #[test]
    fn what_people_may_not_call_is_no_command_and_a_tool_is_named() {
        let hidden = Skill { command: CommandUse::None, ..skill("hidden") };
        let tool = Skill { command: CommandUse::Tool("exec".to_owned()), ..skill("run-it") };
        let long = Skill { description: format!(" {} ", "é".repeat(101)), ..skill("long") };
        let made = commands([&hidden, &tool, &long].into_iter(), |_| false);
        assert_eq!(made.len(), 2);
        assert_eq!((made[0].name.as_str(), made[0].tool.as_deref()), ("run_it", Some("exec")));
        assert_eq!(made[1].description, format!("{}\u{2026}", "é".repeat(99)));
    }

    #[test]
    fn a_skill_is_found_by_what_people_write() {
        let made = commands([&skill("hello-world"), &skill("My Skill!")].into_iter(), |_| false);
        let found = |name: &str| meant(&made, name).map(|command| command.skill.as_str());
        for name in ["hello-world", "Hello World", "HELLO_WORLD", " hello_world "] {
            assert_eq!(found(name), Some("hello-world"), "{name}");
        }
        assert_eq!(found("my skill!"), Some("My Skill!"));
        assert_eq!(found("my_skill"), Some("My Skill!"));
        assert_eq!(found("hello"), None);
        assert_eq!(called(&made, "Hello_World").map(|command| command.skill.as_str()), Some("hello-world"));
        assert_eq!(called(&made, "hello-world"), None, "a command's name is exact");
    }

    #[test]
    fn the_agent_is_asked_with_the_input_below() {
        assert_eq!(request("demo", " "), "Use the \"demo\" skill for this request.");
        assert_eq!(
            request("demo", " a\n b "),
            "Use the \"demo\" skill for this request.\n\nUser input:\na\n b"
        );
    }

    proptest! {
        #[test]
        fn every_skill_gets_a_name_of_its_own_that_platforms_take(skills in prop::collection::vec(".{0,40}|a{0,2}|-+", 0..40)) {
            let skills: Vec<&str> = skills.iter().map(String::as_str).collect();
            let names = names(&skills, &["help", "a"]);
            prop_assert_eq!(names.len(), skills.len());
            prop_assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
            for name in names {
                prop_assert!(!name.is_empty() && name.len() <= LONGEST && name != "help" && name != "a", "{}", name);
                prop_assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'), "{}", name);
            }
        }
    }
}
