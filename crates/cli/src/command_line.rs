//! Command line: from words to a command. Profile flags, commands that are not here yet, the
//! grammar, errors in OpenClaw's words.

mod not_yet;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _};
use openclaw_config::profile::{apply_profile, hints_in, take_profile_flags};
use openclaw_config::{Environment, nearest};

use crate::args::value::no_option;
use crate::args::{Cli, CliCommand, ConfigArgs, ConfigCommand, with_examples};
use crate::context::CliContext;
use crate::failure::{CommandFailure, USAGE};
use crate::{commands, output};

/// Runs a command line (program name excluded) and returns the exit code.
pub(crate) fn run(args: &[String]) -> u8 {
    let mut env = Environment::of_process();
    let (flags, rest) = match take_profile_flags(args) {
        Ok(taken) => taken,
        Err(error) => {
            output::error_line(&error.to_string());
            return USAGE;
        }
    };
    apply_profile(&flags, &mut env);
    let Leading { no_color, rest } = Leading::take(&rest);
    if rest.first().is_some_and(|word| word == "--version" || word == "-V") {
        output::line(env!("CARGO_PKG_VERSION"));
        return 0;
    }
    let rest = help_as_flag(rest);
    let json = rest.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    if let Some(row) = not_yet::find(&rest) {
        if rest.iter().any(|word| word == "--help" || word == "-h") {
            output::line(&hints_in(&not_yet::page(row), &env));
            return 0;
        }
        let failure = not_yet::failure(row).for_profile(&env);
        failure.report(json);
        return failure.exit;
    }
    let words = std::iter::once("openclaw").chain(rest.iter().map(String::as_str));
    match parsed(words) {
        Ok(Cli { command: Some(command) }) => {
            // For `config set` the word is about the value, not about the output.
            let is_set = matches!(
                &command,
                CliCommand::Config(ConfigArgs { command: Some(ConfigCommand::Set { .. }) })
            );
            let json = json && !is_set;
            let context = CliContext::new(&env, no_color);
            commands::run(command, &context).unwrap_or_else(|failure| {
                let failure = failure.for_profile(context.env());
                failure.report(json);
                failure.exit
            })
        }
        Ok(Cli { command: None }) => {
            output::line(&grammar().render_help().to_string());
            0
        }
        Err(error) => match grammar_failure(&error, &rest) {
            Some(failure) => {
                let failure = failure.for_profile(&env);
                failure.report(json);
                failure.exit
            }
            None => {
                output::line(&error.render().to_string());
                0
            }
        },
    }
}

/// `help [command…]` is `[command…] --help`, also behind a command with subcommands.
fn help_as_flag(mut words: Vec<String>) -> Vec<String> {
    let at = words.iter().position(|word| word == "help").filter(|at| *at <= 1);
    let Some(at) = at else { return words };
    let groups = [
        "agents",
        "approvals",
        "channels",
        "config",
        "gateway",
        "hooks",
        "message",
        "models",
        "pairing",
        "sandbox",
        "security",
        "skills",
        "system",
        "tools",
    ];
    if at == 1 && !words.first().is_some_and(|word| groups.contains(&word.as_str())) {
        return words;
    }
    words.remove(at);
    words.retain(|word| word != "--help" && word != "-h");
    words.push("--help".to_owned());
    words
}

/// Options before the command.
#[derive(Debug, PartialEq, Eq)]
struct Leading {
    no_color: bool,
    /// Remaining words. `--json` is moved behind the command, which knows what it prints.
    rest: Vec<String>,
}

impl Leading {
    fn take(words: &[String]) -> Self {
        let before = words.iter().take_while(|word| word.starts_with('-')).count();
        let (head, tail) = words.split_at(before);
        let has = |wanted: &str| head.iter().any(|word| word == wanted);
        let is_moved = has("--json") && !tail.is_empty();
        let kept = head.iter().filter(|word| *word != "--no-color" && !(is_moved && *word == "--json"));
        let mut rest: Vec<String> = kept.chain(tail).cloned().collect();
        if is_moved {
            let end = rest.iter().position(|word| word == "--").unwrap_or(rest.len());
            rest.insert(end, "--json".to_owned());
        }
        Self { no_color: has("--no-color"), rest }
    }
}

/// The grammar with its examples.
fn grammar() -> clap::Command {
    with_examples(Cli::command())
}

fn parsed<'a>(words: impl Iterator<Item = &'a str>) -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&grammar().try_get_matches_from(words)?)
}

/// Failure for words that do not parse, in the reference's form where it has one; `None` where help
/// was asked for.
fn grammar_failure(error: &clap::Error, words: &[String]) -> Option<CommandFailure> {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(list)) => list.first().cloned(),
        Some(_) | None => None,
    };
    let failure = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => return None,
        ErrorKind::InvalidSubcommand => {
            word(ContextKind::InvalidSubcommand).map(|name| unknown_command(&name, words))
        }
        ErrorKind::UnknownArgument => {
            word(ContextKind::InvalidArg).map(|name| unknown_argument(&name, words))
        }
        ErrorKind::MissingRequiredArgument => {
            word(ContextKind::InvalidArg).map(|name| CommandFailure::usage(missing(&name)))
        }
        ErrorKind::InvalidValue | ErrorKind::TooFewValues => {
            word(ContextKind::InvalidArg).map(|name| value_missing(&name))
        }
        _ => None,
    };
    Some(failure.unwrap_or_else(|| CommandFailure::usage(error.render().to_string().trim_end())))
}

/// The command that the words name, as deep as they do.
fn named_command(words: &[String]) -> clap::Command {
    let mut cli = Cli::command();
    cli.build();
    words.iter().fold(cli, |command, word| command.find_subcommand(word).cloned().unwrap_or(command))
}

fn unknown_command(name: &str, words: &[String]) -> CommandFailure {
    let command = named_command(words);
    let known = command.get_subcommands().map(clap::Command::get_name);
    let failure = CommandFailure::usage(format!("error: unknown command '{name}'"));
    match nearest(name, known) {
        Some(meant) => failure.hint(format!("(Did you mean {meant}?)")),
        None => {
            let name = command.get_bin_name().unwrap_or("openclaw");
            failure.hint(format!("Run `{name} --help` for the commands there are."))
        }
    }
}

fn value_missing(option: &str) -> CommandFailure {
    CommandFailure::usage(format!("error: option '{option}' argument missing"))
}

/// The option that was left without its value and took the next option for that, so that a value stands alone: `-m --target 5`.
fn left_without_value(value: &str, words: &[String], command: &clap::Command) -> Option<String> {
    let is_named = |argument: &&clap::Arg, word: &str| {
        let is_long = word.strip_prefix("--").is_some_and(|long| argument.get_long() == Some(long));
        let mut short = word.strip_prefix('-').into_iter().flat_map(str::chars);
        is_long || argument.get_short().is_some_and(|own| short.next() == Some(own) && short.next().is_none())
    };
    words.windows(3).find_map(|three| match three {
        [option, taken, alone] if alone == value && no_option(taken).is_err() => command
            .get_arguments()
            .find(|argument| argument.is_allow_hyphen_values_set() && is_named(argument, option))
            .map(ToString::to_string),
        _ => None,
    })
}

fn unknown_argument(name: &str, words: &[String]) -> CommandFailure {
    let mut command = named_command(words);
    if let Some(option) = left_without_value(name, words, &command) {
        return value_missing(&option);
    }
    if let Some(option) = name.strip_prefix("--") {
        let failure = CommandFailure::usage(format!("error: unknown option '{name}'"));
        let known = command.get_arguments().filter(|argument| !argument.is_hide_set());
        return match nearest(option, known.filter_map(clap::Arg::get_long)) {
            Some(meant) => failure.hint(format!("(Did you mean --{meant}?)")),
            None => failure,
        };
    }
    if name.starts_with('-') {
        return CommandFailure::usage(format!("error: unknown option '{name}'"));
    }
    let failure = CommandFailure::usage(format!("error: unexpected argument '{name}'"));
    match command.get_name() {
        "agent" => failure.hint("Put the message behind -m: `openclaw agent --agent main -m \"<message>\"`"),
        _ => failure.hint(command.render_usage().to_string()),
    }
}

/// An option is named as it is typed, an argument by its name alone.
fn missing(name: &str) -> String {
    if name.starts_with('-') {
        return format!("error: required option '{name}' not specified");
    }
    let name = name.trim_end_matches("...").trim_matches(['<', '>', '[', ']']);
    format!("error: missing required argument '{}'", name.to_lowercase())
}

#[cfg(test)]
mod advice;
#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{EXAMPLES, NOT_THERE};

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_grammar_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn commands_of_the_reference_are_either_here_or_named_as_missing() {
        let reference: serde_json::Value =
            serde_json::from_str(include_str!("../tests/golden/cli-command-names.json")).unwrap();
        let cli = Cli::command();
        for name in reference.as_array().unwrap().iter().map(|name| name.as_str().unwrap()) {
            let path: Vec<&str> = name.split(' ').collect();
            let here = path.iter().try_fold(&cli, |command, word| command.find_subcommand(word)).is_some();
            let missing = not_yet::find(&words(name)).is_some();
            assert!(here != missing, "{name}: here {here}, named as missing {missing}");
        }
    }

    #[test]
    fn options_of_the_reference_are_accepted() {
        let reference: serde_json::Value =
            serde_json::from_str(include_str!("../tests/golden/cli-command-options.json")).unwrap();
        let cli = Cli::command();
        for (name, options) in reference.as_object().unwrap() {
            let command =
                name.split(' ').try_fold(&cli, |command, word| command.find_subcommand(word)).unwrap();
            for option in options.as_array().unwrap() {
                let long = option.as_str().unwrap().trim_start_matches('-');
                let known = command.get_arguments().any(|argument| argument.get_long() == Some(long));
                assert!(known, "{name} {option}");
            }
        }
    }

    #[test]
    fn flags_before_the_command_are_taken_and_later_ones_left() {
        let rows = [
            ("--no-color logs", true, "logs"),
            ("logs --no-color", false, "logs --no-color"),
            ("--json status", false, "status --json"),
            ("--no-color --json config get a", true, "config get a --json"),
            ("--json agent -m x -- y", false, "agent -m x --json -- y"),
            ("--json", false, "--json"),
        ];
        for (line, no_color, rest) in rows {
            assert_eq!(Leading::take(&words(line)), Leading { no_color, rest: words(rest) }, "{line}");
        }
    }

    #[test]
    fn detail_flags_are_accepted_where_the_reference_ignores_unknown_ones() {
        for line in ["health", "status", "sessions", "agents list"] {
            for flag in ["--verbose", "--debug"] {
                let accepts = |flag| Cli::try_parse_from(words(&format!("openclaw {line} {flag}"))).is_ok();
                assert!(accepts(flag), "{line} {flag}");
                assert!(!accepts("--bogus"), "{line}");
            }
        }
    }

    #[test]
    fn what_is_missing_is_named_whole() {
        let rows = [
            ("agents route", "error: required option '--channel <channel>' not specified"),
            ("models auth order set --provider x", "error: missing required argument 'profile_ids'"),
            ("config get", "error: missing required argument 'path'"),
            ("nosuchcmd", "error: unknown command 'nosuchcmd'"),
            ("agent hello", "error: unexpected argument 'hello'"),
        ];
        for (line, expect) in rows {
            assert_eq!(refused(line).message, expect, "{line}");
        }
    }

    fn refused(line: &str) -> CommandFailure {
        let Err(error) = Cli::try_parse_from(words(&format!("openclaw {line}"))) else { panic!("{line}") };
        grammar_failure(&error, &words(line)).unwrap()
    }

    #[test]
    fn what_was_meant_is_said_only_where_it_is_likely() {
        let help = "Run `openclaw --help` for the commands there are.";
        let rows = [
            ("statsu", "(Did you mean status?)"),
            ("agnet", "(Did you mean agent?)"),
            ("chat", help),
            ("version", help),
            ("start", help),
            ("gateway statsu", "(Did you mean status?)"),
            ("doctor --fx", "(Did you mean --fix?)"),
            ("models set anthropic claude", "Usage: openclaw models set <MODEL>"),
            ("agent hello", "Put the message behind -m: `openclaw agent --agent main -m \"<message>\"`"),
        ];
        for (line, expect) in rows {
            assert_eq!(refused(line).hint.as_deref(), Some(expect), "{line}");
        }
    }

    #[test]
    fn help_is_a_command_too() {
        let rows = [
            ("help", "--help"),
            ("help gateway status", "gateway status --help"),
            ("gateway help", "gateway --help"),
            ("gateway help run", "gateway run --help"),
            ("agent -m help", "agent -m help"),
            ("agent help", "agent help"),
            ("config get help", "config get help"),
        ];
        for (line, expect) in rows {
            assert_eq!(help_as_flag(words(line)), words(expect), "{line}");
        }
    }

    /// Words of an example: a text in quotes is one word, and the part before a pipe is another
    /// program's.
    fn example_words(line: &str) -> Vec<String> {
        let own = line.rsplit(" | ").next().unwrap_or(line);
        let mut words: Vec<String> = Vec::new();
        for (at, part) in own.split(['"', '\'']).enumerate() {
            match at % 2 {
                1 => words.push(part.to_owned()),
                _ => words.extend(part.split_whitespace().map(str::to_owned)),
            }
        }
        words
    }

    fn is_read(example: &str) -> bool {
        let words = example_words(&example.replace("'{\"limit\": 5}'", "{}"));
        words.first().is_some_and(|first| first == "openclaw") && Cli::try_parse_from(&words).is_ok()
    }

    #[test]
    fn every_example_of_the_help_is_read_by_its_command() {
        for (command, examples) in EXAMPLES {
            for example in *examples {
                assert!(example.contains(format!("openclaw {command}").trim_end()), "{command}: {example}");
                assert!(is_read(example), "{example}");
            }
        }
        for not in NOT_THERE {
            assert!(is_read(not.instead), "{}: {}", not.path, not.instead);
        }
    }

    /// All commands with the words that name them, and whether there are others below.
    fn pages(command: &clap::Command, path: &str, found: &mut Vec<(String, bool, String)>) {
        let shown = command.clone().render_help().to_string();
        found.push((path.to_owned(), command.has_subcommands(), shown));
        for below in command.get_subcommands() {
            pages(below, format!("{path} {}", below.get_name()).trim_start(), found);
        }
    }

    #[test]
    fn every_help_page_has_an_example_or_says_what_helps_meanwhile() {
        let mut grammar = grammar();
        grammar.build();
        let mut found = Vec::new();
        pages(&grammar, "", &mut found);
        assert!(found.len() > 140, "only {} pages", found.len());
        for (path, is_group, shown) in &found {
            let has_own = EXAMPLES.iter().any(|(named, _)| named == path);
            let is_missing = NOT_THERE.iter().any(|not| not.path == path);
            assert!(has_own != is_missing || *is_group, "{path} has no row in args/examples.rs, or two");
            let says = if is_missing { "Not there yet. " } else { "Examples:\n  openclaw" };
            let is_piped = shown.contains("Examples:\n") && shown.contains(" | openclaw ");
            assert!(shown.contains(says) || is_piped, "{path}: {shown}");
        }
        let paths = EXAMPLES.iter().map(|(path, _)| *path).chain(NOT_THERE.iter().map(|not| not.path));
        for path in paths {
            assert!(found.iter().any(|(known, ..)| known == path), "{path} is no command");
        }
    }

    #[test]
    fn missing_commands_are_found_behind_options() {
        let rows = [
            ("onboard --fix", Some("onboard")),
            ("gateway --port 1 status", None),
            ("gateway install", Some("gateway install")),
            ("models set x", None),
            ("config set onboard 1", None),
            ("status -- onboard", None),
        ];
        for (line, expect) in rows {
            assert_eq!(not_yet::find(&words(line)).map(|(name, _)| name), expect, "{line}");
        }
    }

    #[test]
    fn an_option_without_its_value_is_named_where_it_took_the_next_one_for_that() {
        let rows = [
            ("message send -m --target 5", "error: option '--message <text>' argument missing"),
            ("message send --message --target 5", "error: option '--message <text>' argument missing"),
            ("message send -t -m hello", "error: option '--target <dest>' argument missing"),
            ("agent -m --to 5", "error: option '--message <text>' argument missing"),
            ("message send -m hello 5", "error: unexpected argument '5'"),
        ];
        for (line, expect) in rows {
            let words = words(line);
            let all = std::iter::once("openclaw".to_owned()).chain(words.clone());
            let error = Cli::try_parse_from(all).expect_err(line);
            let failure = grammar_failure(&error, &words).expect(line);
            assert_eq!(failure.message, expect, "{line}");
        }
    }
}
