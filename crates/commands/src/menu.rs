//! Lists made from the table of commands: the menus of platforms, and `docs/commands.md`.

use openclaw_journal::caller::Right;
use std::fmt::Write as _;

use openclaw_agent::skills::SkillCommand;
use openclaw_channels::MenuCommand;
use openclaw_config::settings::Commands;

use super::COMMANDS;
use super::command::{Category, ChatCommand, MenuFacts, Offered};

/// The commands for a menu: those that are there and on, then those of skills.
pub fn menu(facts: MenuFacts<'_>, skills: &[SkillCommand]) -> Vec<MenuCommand> {
    let native = COMMANDS.iter().filter(|row| row.offered == Offered::Native && row.is_listed(facts));
    let native = native.map(|row| MenuCommand {
        name: row.name.to_owned(),
        description: row.about.to_owned(),
        is_skill: false,
    });
    let skills = skills.iter().map(|skill| MenuCommand {
        name: skill.name.clone(),
        description: skill.description.clone(),
        is_skill: true,
    });
    native.chain(skills).collect()
}

/// `docs/commands.md`: every command of the table, in Markdown.
pub fn reference() -> String {
    let mut page = HEAD.to_owned();
    for category in Category::ALL {
        let rows: Vec<&ChatCommand> = COMMANDS.iter().filter(|row| row.category == category).collect();
        if rows.is_empty() {
            continue;
        }
        let _ = write!(page, "\n## {}\n\n{TABLE}", category.title());
        for row in rows {
            let _ = writeln!(page, "| {} | {} | {} | {} |", command(row), row.about, place(row), who(row));
        }
    }
    page.push_str(FOOT);
    page
}

const HEAD: &str = "<!-- Written by `cargo xtask generate` from the table in crates/commands/src/lib.rs. Do not edit. -->\n\
    # Chat commands\n\n\
    A message that is nothing but a command is answered by the gateway, not by the agent. Its answer is stored like any other, \
    and told once, also after a crash. `/name: words` is the same as `/name words`, and case does not matter. A \
    command that takes nothing, with words behind it, goes to the agent, and so does a command that nobody knows.\n\n\
    The first line counts, and what stands below it is left out: `/usage full` with thanks below it is `/usage full`. The words of \
    `/new`, `/reset`, `/compact`, `/subagents`, `/config`, `/debug`, `/bash` and of skills may have lines, and are taken as they were \
    written. Below a [directive](messages.md#directives) stand words for the agent.\n\n\
    In a group the name of the bot may stand before a command, or behind it: it is taken out, and no other word is.\n\n\
    Somebody who may not give commands gets no answer to one, and neither does the agent see it, but for those of a platform's menu, \
    which are refused: see [channels/telegram.md](channels/telegram.md).\n";
const TABLE: &str = "| command | what it does | where | who |\n|---|---|---|---|\n";
const FOOT: &str = "\n\
    *Where*: **menu** is in the menus of platforms that have one (`commands.native`, `channels.<id>.commands.native`), and can be \
    typed; **text** can be typed; **not yet** is not there in this version, and says so. *Inline* commands also work in the middle of \
    other words.\n\n\
    Each skill has a command of its own, `/<name>`, which menus show last (`commands.nativeSkills`). The owner's own rows of a menu are \
    `channels.telegram.customCommands`.\n";

/// `` `/whoami` (`/id`) ``
fn command(row: &ChatCommand) -> String {
    let arguments = if row.arguments.is_empty() { String::new() } else { format!(" {}", row.arguments) };
    let mut cell = format!("`/{}{}`", row.name, arguments.replace('|', "\\|"));
    if !row.aliases.is_empty() {
        let aliases: Vec<String> = row.aliases.iter().map(|alias| format!("`/{alias}`")).collect();
        let _ = write!(cell, " ({})", aliases.join(", "));
    }
    cell
}

fn place(row: &ChatCommand) -> String {
    let place = match (row.is_there(), row.offered) {
        (false, _) => "not yet",
        (true, Offered::Native) => "menu",
        (true, Offered::Text) => "text",
    };
    let needs = if (row.is_on)(&Commands::default()) {
        String::new()
    } else {
        format!(", with `commands.{}=true`", row.name)
    };
    let edits = row.edits_need.map(|setting| format!(", changes with `{setting}=true`")).unwrap_or_default();
    let inline = if row.inline { ", inline" } else { "" };
    let platform = row.platform.map(|id| format!(", where {id} is set up")).unwrap_or_default();
    format!("{place}{inline}{needs}{edits}{platform}")
}

fn who(row: &ChatCommand) -> &'static str {
    match row.needs {
        Right::Own => "the owner",
        Right::Command | Right::Approve | Right::Administer => "whoever may give commands",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(settings: &Commands, skills: &[SkillCommand]) -> Vec<String> {
        let facts = MenuFacts { settings, platforms: &["telegram"] };
        menu(facts, skills).into_iter().map(|row| row.name).collect()
    }

    /// Spec `channels.md` §2, "Native command names".
    #[test]
    fn menus_have_what_is_there_and_on() {
        let found = names(&Commands::default(), &[]);
        let native = [
            "help",
            "commands",
            "skill",
            "status",
            "context",
            "whoami",
            "subagents",
            "usage",
            "stop",
            "restart",
            "activation",
            "approve",
            "exec",
            "send",
            "reset",
            "new",
            "model",
            "models",
            "dock-telegram",
        ];
        for name in native {
            assert!(found.iter().any(|row| row == name), "{name}");
        }
        for name in ["allowlist", "compact", "bash", "config", "debug", "tts", "dock-discord", "dock-slack"] {
            assert!(!found.iter().any(|row| row == name), "{name}");
        }
        let on = Commands { config: true, debug: true, ..Commands::default() };
        let skill = SkillCommand { name: "w".into(), skill: "w".into(), description: "d".into(), tool: None };
        let found = names(&on, &[skill]);
        assert!(["config", "debug"].iter().all(|name| found.iter().any(|row| row == name)));
        assert_eq!(found.last().map(String::as_str), Some("w"), "skills come last");
    }

    #[test]
    fn the_page_tells_what_a_command_is_and_where() {
        let page = reference();
        for line in [
            "| `/whoami` (`/id`) | Show who you are to this gateway. | menu, inline | whoever may give commands |",
            "| `/send on\\|off\\|inherit` | Let this session send, or not. | menu | the owner |",
            "| `/config show\\|get\\|set\\|unset` | Show or change the configuration. | menu, with `commands.config=true` | whoever may give commands |",
            "| `/dock-slack` (`/dock_slack`) | Send this session's answers to Slack. | menu, where slack is set up | whoever may give commands |",
            "| `/compact [instructions]` | Replace the conversation so far by a summary. | text | whoever may give commands |",
        ] {
            assert!(page.lines().any(|own| own == line), "no {line} in\n{page}");
        }
    }
}
