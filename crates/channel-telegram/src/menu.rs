//! The bot's menu of commands.

use openclaw_channels::{MenuCommand, SendError};
use serde_json::json;

use crate::bot::Bot;
use crate::failure::{ApiRefusal, BotApiError};
use crate::settings::CommandSettings;

/// Commands that Telegram takes.
const MOST: usize = 100;
const LONGEST_NAME: usize = 32;
const LONGEST_DESCRIPTION: usize = 256;
/// Scopes in which an old menu may be left.
const SCOPES: &[&str] = &["default", "all_private_chats", "all_group_chats"];
const TRIES: usize = 3;

/// Puts the commands into the menu, the owner's own at the end; without any the menu is emptied. `commands.native` and
/// `commands.nativeSkills` switch them off.
pub(super) async fn offer(bot: &Bot, commands: &[MenuCommand]) -> Result<(), SendError> {
    let own = bot.settings.custom_commands.iter().map(|command| MenuCommand {
        name: command.command.clone(),
        description: command.description.clone(),
        is_skill: false,
    });
    let mut rows = menu(chosen(&bot.settings.commands, commands).cloned(), own);
    if rows.is_empty() {
        for scope in SCOPES {
            call(bot, "deleteMyCommands", json!({"scope": {"type": scope}})).await?;
        }
        return Ok(());
    }
    for _ in 0..TRIES {
        let list: Vec<_> = rows
            .iter()
            .map(|command| json!({"command": command.name, "description": command.description}))
            .collect();
        match bot.client.call("setMyCommands", &json!({"commands": list})).await {
            Ok(_) => return Ok(()),
            // The total is limited as well, and the limit is not documented.
            Err(error) if is_too_much(&error) => rows.truncate(rows.len() * 4 / 5),
            Err(error) => return Err(bot.failed("", error)),
        }
    }
    Err(SendError::Final {
        reason: "Telegram takes none of the menus of commands that were tried".to_owned(),
    })
}

/// The commands that the settings have.
fn chosen<'a>(
    settings: &CommandSettings,
    commands: &'a [MenuCommand],
) -> impl Iterator<Item = &'a MenuCommand> {
    let (native, skills) = (settings.has_native(), settings.has_native_skills());
    commands.iter().filter(move |command| native && (skills || !command.is_skill))
}

fn is_too_much(error: &BotApiError) -> bool {
    error.refusal() == Some(ApiRefusal::Other) && error.to_string().contains("BOT_COMMANDS_TOO_MUCH")
}

async fn call(bot: &Bot, method: &str, params: serde_json::Value) -> Result<(), SendError> {
    bot.client.call(method, &params).await.map(drop).map_err(|error| bot.failed("", error))
}

fn menu(
    native: impl Iterator<Item = MenuCommand>,
    own: impl Iterator<Item = MenuCommand>,
) -> Vec<MenuCommand> {
    let mut rows: Vec<MenuCommand> = Vec::new();
    let mut left_out = 0;
    for command in native {
        match fit(&command) {
            Some(command) if !rows.iter().any(|row| row.name == command.name) => rows.push(command),
            Some(_) | None => left_out += 1,
        }
    }
    for command in own {
        match fit(&command) {
            Some(command) if rows.iter().any(|row| row.name == command.name) => {
                tracing::warn!(
                    "Telegram custom command \"/{}\" conflicts with a native command.",
                    command.name
                );
            }
            Some(command) => rows.push(command),
            None => left_out += 1,
        }
    }
    if rows.len() > MOST || left_out > 0 {
        let beyond = rows.len().saturating_sub(MOST);
        tracing::warn!(beyond, left_out, "some commands are not in Telegram's menu; they work all the same");
    }
    rows.truncate(MOST);
    rows
}

/// A command as Telegram takes it.
fn fit(command: &MenuCommand) -> Option<MenuCommand> {
    let name = command.name.trim().trim_start_matches('/').to_lowercase().replace('-', "_");
    let is_name = (1..=LONGEST_NAME).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let description: String = command.description.trim().chars().take(LONGEST_DESCRIPTION).collect();
    (is_name && !description.is_empty()).then(|| MenuCommand { name, description, ..command.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(names: &[&str]) -> Vec<MenuCommand> {
        let command = |name: &&str| MenuCommand {
            name: (*name).to_owned(),
            description: "d".to_owned(),
            is_skill: name.starts_with("skill_"),
        };
        names.iter().map(command).collect()
    }

    fn names(native: &[&str], own: &[&str]) -> Vec<String> {
        let rows = menu(commands(native).into_iter(), commands(own).into_iter());
        rows.into_iter().map(|row| row.name).collect()
    }

    #[test]
    fn names_are_made_to_fit_or_left_out() {
        let found = names(&["Status", "dock-telegram", "status", "naïve", ""], &["/mine", "status"]);
        assert_eq!(found, ["status", "dock_telegram", "mine"]);
        assert_eq!(names(&["x".repeat(33).as_str()], &[]), Vec::<String>::new());
    }

    /// Spec `channels.md` §1.2: `auto` is on.
    #[test]
    fn the_settings_switch_commands_and_skills_off() {
        use serde_json::Value;
        let all = commands(&["status", "skill_weather"]);
        let rows: [(Option<Value>, Option<Value>, &[&str]); 5] = [
            (None, None, &["status", "skill_weather"]),
            (Some(json!("auto")), Some(json!(true)), &["status", "skill_weather"]),
            (None, Some(json!(false)), &["status"]),
            (Some(json!(false)), None, &[]),
            (Some(json!(false)), Some(json!(true)), &[]),
        ];
        for (native, native_skills, expect) in rows {
            let settings = CommandSettings { native, native_skills };
            let found: Vec<&str> = chosen(&settings, &all).map(|row| row.name.as_str()).collect();
            assert_eq!(found, expect, "{settings:?}");
        }
    }

    #[test]
    fn there_are_a_hundred_at_most() {
        let many: Vec<String> = (0..120).map(|n| format!("c{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(names(&many, &[]).len(), MOST);
    }
}
