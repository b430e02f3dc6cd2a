//! `/help` and `/commands`: lists of the commands (spec `messages.md` §5). On Telegram the list
//! comes in pages that turn in place.

use openclaw_agent::skills::SkillCommand;

use super::COMMANDS;
use super::command::{Category, ChatCommand, Does, MenuFacts, Offered};
use super::response::{CommandResponse, Showing, button};
use super::{Answering, CommandContext};

pub(crate) const HELP: ChatCommand = ChatCommand {
    inline: true,
    ..ChatCommand::new("help", Category::Status, Does::Answers(help), "Show the most important commands.")
};
pub(crate) const LIST: ChatCommand = ChatCommand {
    inline: true,
    ..ChatCommand::new("commands", Category::Status, Does::Shows(list), "List all commands.")
};

/// Commands on a page.
const PAGE: usize = 8;
/// Data of the button that shows the current page, and does nothing.
const HERE: &str = "commands_page_noop";
const TURN: &str = "commands_page_";

fn help<'a>(context: &'a CommandContext<'a>, _: &'a str) -> Answering<'a> {
    Box::pin(async move {
        let platforms = context.platforms();
        Ok(help_text(context.menu_facts(&platforms)))
    })
}

fn list<'a>(context: &'a CommandContext<'a>, _: &'a str) -> Showing<'a> {
    Box::pin(async move {
        let skills = context.skills().await;
        let platforms = context.platforms();
        let facts = context.menu_facts(&platforms);
        Ok(if context.shows_buttons() {
            page(facts, &skills, 1, context.agent.id.as_str())
        } else {
            whole(facts, &skills).into()
        })
    })
}

/// Returns the rows of a category that are shown.
fn of(category: Category, facts: MenuFacts<'_>) -> impl Iterator<Item = &'static ChatCommand> {
    COMMANDS.iter().filter(move |row| row.category == category && row.is_listed(facts))
}

/// Text of `/help`, one line per category.
fn help_text(facts: MenuFacts<'_>) -> String {
    let mut blocks = vec!["ℹ️ Help".to_owned()];
    for category in [Category::Session, Category::Options, Category::Status, Category::Tools] {
        let shown: Vec<String> = of(category, facts).map(written).collect();
        if !shown.is_empty() {
            blocks.push(format!("{}\n  {}", category.title(), shown.join("  |  ")));
        }
    }
    blocks.push("More: /commands for the full list".to_owned());
    blocks.join("\n\n")
}

/// `/usage [off|tokens|full|cost]`
fn written(row: &ChatCommand) -> String {
    let blank = if row.arguments.is_empty() { "" } else { " " };
    format!("/{}{blank}{}", shown_name(row), row.arguments)
}

/// Returns the name as it is typed: names in menus have no hyphens.
fn shown_name(row: &ChatCommand) -> &'static str {
    row.aliases.iter().find(|alias| alias.replace('_', "-") == row.name).copied().unwrap_or(row.name)
}

/// A command of the list, with its heading.
struct HelpLine {
    heading: &'static str,
    text: String,
}

fn lines(facts: MenuFacts<'_>, skills: &[SkillCommand]) -> Vec<HelpLine> {
    let mut lines = Vec::new();
    for category in Category::ALL {
        let heading = category.title();
        lines.extend(of(category, facts).map(|row| HelpLine { heading, text: line(row) }));
        if category == Category::Tools {
            let skill = |skill: &SkillCommand| format!("  /{} - {}", skill.name, skill.description);
            lines.extend(skills.iter().map(|one| HelpLine { heading, text: skill(one) }));
        }
    }
    lines
}

/// `  /whoami (/id) - Show who you are.`
fn line(row: &ChatCommand) -> String {
    let name = shown_name(row);
    let aliases: Vec<String> =
        row.aliases.iter().filter(|alias| **alias != name).map(|alias| format!("/{alias}")).collect();
    let aliases = if aliases.is_empty() { String::new() } else { format!(" ({})", aliases.join(", ")) };
    let text = if row.offered == Offered::Text { " [text]" } else { "" };
    format!("  /{name}{aliases}{text} - {}", row.about)
}

fn whole(facts: MenuFacts<'_>, skills: &[SkillCommand]) -> String {
    format!("ℹ️ Slash commands\n\n{}", grouped(&lines(facts, skills)))
}

fn grouped(lines: &[HelpLine]) -> String {
    let blocks = lines.chunk_by(|one, next| one.heading == next.heading);
    let block = |lines: &[HelpLine]| {
        let heading = lines.first().map(|line| line.heading).unwrap_or_default();
        let lines = lines.iter().map(|line| line.text.as_str());
        [heading].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
    };
    blocks.map(block).collect::<Vec<_>>().join("\n\n")
}

/// Page of the list, with the buttons that turn it; a number past the end gives the last page.
fn page(facts: MenuFacts<'_>, skills: &[SkillCommand], wanted: usize, agent: &str) -> CommandResponse {
    let lines = lines(facts, skills);
    let pages = lines.len().div_ceil(PAGE).max(1);
    let page = wanted.clamp(1, pages);
    let shown = lines.get((page - 1) * PAGE..lines.len().min(page * PAGE)).unwrap_or_default();
    let text = format!("ℹ️ Commands ({page}/{pages})\n\n{}", grouped(shown));
    let turn = |sign: &str, to: usize| button(sign, format!("{TURN}{to}:{agent}"));
    let row = [
        (page > 1).then(|| turn("◀ Prev", page - 1)),
        Some(button(format!("{page}/{pages}"), HERE)),
        (page < pages).then(|| turn("Next ▶", page + 1)),
    ];
    let buttons = if pages > 1 { vec![row.into_iter().flatten().collect()] } else { Vec::new() };
    CommandResponse { text, buttons, then: None }
}

/// The page that a pressed button asks for.
pub(crate) async fn pressed(context: &CommandContext<'_>, wanted: usize) -> CommandResponse {
    let skills = context.skills().await;
    let platforms = context.platforms();
    page(context.menu_facts(&platforms), &skills, wanted, context.agent.id.as_str())
}

/// Button of the list that was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HelpButton {
    /// The button that shows the current page.
    Here,
    Page(usize),
}

/// Reads `commands_page_2` and `commands_page_2:agent`.
pub(crate) fn read_press(data: &str) -> Option<HelpButton> {
    if data == HERE {
        return Some(HelpButton::Here);
    }
    let behind = data.strip_prefix(TURN)?;
    let number = behind.split_once(':').map_or(behind, |(number, _)| number);
    number.parse().ok().map(HelpButton::Page)
}

#[cfg(test)]
mod tests {
    use openclaw_config::settings::Commands;

    use super::*;

    fn facts(settings: &Commands) -> MenuFacts<'_> {
        MenuFacts { settings, platforms: &["telegram"] }
    }

    fn skill(name: &str) -> SkillCommand {
        SkillCommand { name: name.into(), skill: name.into(), description: "Does it.".into(), tool: None }
    }

    #[test]
    fn the_list_has_every_command_that_is_on_by_category() {
        let text = whole(facts(&Commands::default()), &[skill("weather")]);
        assert!(text.starts_with("ℹ️ Slash commands\n\nSession\n  /new - "), "{text}");
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what} in\n{text}"));
        let order = [
            "\nSession\n",
            "\n\nOptions\n",
            "\n\nStatus\n",
            "\n\nManagement\n",
            "\n\nTools\n",
            "\n\nDocks\n",
        ];
        assert!(order.map(at).is_sorted(), "{text}");
        for line in [
            "\n  /compact [text] - ",
            "\n  /whoami (/id) - ",
            "\n  /approve - ",
            "\n  /exec - ",
            "\n  /weather - Does it.",
            "\n  /dock_telegram - ",
        ] {
            at(line);
        }
        for hidden in ["/config", "/debug", "/tts", "/bash", "/dock_slack"] {
            assert!(!text.contains(hidden), "{hidden} is not on:\n{text}");
        }
        let on = Commands { config: true, debug: true, ..Commands::default() };
        assert!(["/config - ", "/debug - "].iter().all(|line| whole(facts(&on), &[]).contains(line)));
    }

    #[test]
    fn pages_have_eight_commands_and_turn() {
        let settings = Commands::default();
        let all = lines(facts(&settings), &[]).len();
        let pages = all.div_ceil(8);
        let said = |response: &CommandResponse| {
            response
                .buttons
                .concat()
                .iter()
                .map(|one| (one.text.clone(), one.data.clone()))
                .collect::<Vec<_>>()
        };
        let button = |text: &str, data: &str| (text.to_owned(), data.to_owned());
        let count =
            |response: &CommandResponse| response.text.lines().filter(|line| line.starts_with("  /")).count();
        let first = page(facts(&settings), &[], 1, "main");
        assert!(
            first.text.starts_with(&format!("ℹ️ Commands (1/{pages})\n\nSession\n  /new - ")),
            "{}",
            first.text
        );
        assert_eq!(count(&first), 8);
        let here = format!("1/{pages}");
        assert_eq!(said(&first), [button(&here, HERE), button("Next ▶", "commands_page_2:main")]);
        let last = page(facts(&settings), &[], 99, "main");
        assert_eq!(count(&last), all - (pages - 1) * 8);
        let before = format!("commands_page_{}:main", pages - 1);
        assert_eq!(said(&last), [button("◀ Prev", &before), button(&format!("{pages}/{pages}"), HERE)]);
    }

    #[test]
    fn presses_are_read() {
        let rows = [
            ("commands_page_2", Some(HelpButton::Page(2))),
            ("commands_page_2:main", Some(HelpButton::Page(2))),
            ("commands_page_noop", Some(HelpButton::Here)),
            ("commands_page_x", None),
            ("hello", None),
        ];
        for (data, expect) in rows {
            assert_eq!(read_press(data), expect, "{data}");
        }
    }

    #[test]
    fn help_names_what_is_used_most() {
        let text = help_text(facts(&Commands::default()));
        assert!(text.starts_with("ℹ️ Help\n\nSession\n  /new [model] [text]  |  /reset"), "{text}");
        assert!(text.ends_with("\n\nMore: /commands for the full list"), "{text}");
    }
}
