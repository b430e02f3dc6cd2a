//! Examples below the help of commands. Tests read each of them by the grammar, and look for commands that have none.

use clap::Command;

/// A command and what people type of it.
type CommandExamples = (&'static str, &'static [&'static str]);

pub(crate) const EXAMPLES: &[CommandExamples] = &[
    (
        "",
        &[
            "openclaw setup",
            "openclaw gateway",
            "openclaw agent --agent main -m \"Hello\"",
            "openclaw channels add --channel telegram --token <token>",
            "openclaw status",
        ],
    ),
    (
        "agent",
        &[
            "openclaw agent --agent main -m \"What is on my list?\"",
            "git diff | openclaw agent --agent main -m - --json",
            "openclaw agent --to +15551234567 -m \"Hello\" --thinking high",
        ],
    ),
    ("agents list", &["openclaw agents list --bindings"]),
    ("agents add", &["openclaw agents add work --workspace ~/work"]),
    ("agents delete", &["openclaw agents delete work --force"]),
    (
        "agents set-identity",
        &[
            "openclaw agents set-identity --agent main --name Clawd --emoji 🦞",
            "openclaw agents set-identity --workspace ~/work --from-identity",
        ],
    ),
    (
        "agents route",
        &[
            "openclaw agents route --channel telegram --peer dm:123456789",
            "openclaw agents route --channel telegram --peer group:-1001234567890 --json",
        ],
    ),
    ("approvals get", &["openclaw approvals get", "openclaw approvals get --gateway --json"]),
    (
        "approvals set",
        &[
            "openclaw approvals set --file ./exec-approvals.json",
            "cat exec-approvals.json | openclaw approvals set --stdin",
        ],
    ),
    ("approvals allowlist add", &["openclaw approvals allowlist add /usr/bin/uptime --agent main"]),
    ("approvals allowlist remove", &["openclaw approvals allowlist remove /usr/bin/uptime --agent main"]),
    ("channels list", &["openclaw channels list --json"]),
    ("channels status", &["openclaw channels status --probe"]),
    (
        "channels add",
        &[
            "openclaw channels add --channel telegram --token <token>",
            "openclaw channels add --channel telegram --account second --token-file ~/second.token",
        ],
    ),
    (
        "channels remove",
        &[
            "openclaw channels remove --channel telegram",
            "openclaw channels remove --channel telegram --account second --delete",
        ],
    ),
    ("channels logout", &["openclaw channels logout --channel telegram"]),
    (
        "channels capabilities",
        &[
            "openclaw channels capabilities",
            "openclaw channels capabilities --channel telegram --target -1001234567890",
        ],
    ),
    ("channels logs", &["openclaw channels logs --channel telegram --lines 50"]),
    ("channels resolve", &["openclaw channels resolve --channel telegram @team 123456789"]),
    ("channels start", &["openclaw channels start --channel telegram"]),
    ("channels stop", &["openclaw channels stop --channel telegram --account second"]),
    (
        "config get",
        &[
            "openclaw config get gateway.port",
            "openclaw config get \"agents.defaults.models[openai/gpt-5.2]\"",
        ],
    ),
    (
        "config set",
        &[
            "openclaw config set gateway.port 19001",
            "openclaw config set channels.telegram.allowFrom \"[123456789]\"",
            "openclaw config set \"agents.defaults.models[openai/gpt-5.2].alias\" gpt",
        ],
    ),
    ("config unset", &["openclaw config unset channels.telegram.groupPolicy"]),
    ("dashboard", &["openclaw dashboard", "openclaw dashboard --no-open"]),
    ("doctor", &["openclaw doctor", "openclaw doctor --fix", "openclaw doctor --check --json"]),
    ("gateway", &["openclaw gateway", "openclaw gateway --port 19001 --verbose", "openclaw gateway status"]),
    ("gateway run", &["openclaw gateway run", "openclaw gateway run --bind lan --auth token"]),
    ("gateway call", &["openclaw gateway call sessions.list --params '{\"limit\": 5}'"]),
    ("gateway health", &["openclaw gateway health --json"]),
    ("gateway status", &["openclaw gateway status", "openclaw gateway status --strict --json"]),
    ("gateway usage-cost", &["openclaw gateway usage-cost --days 7"]),
    (
        "gateway probe",
        &["openclaw gateway probe", "openclaw gateway probe --url wss://gateway.example.org --token <token>"],
    ),
    ("health", &["openclaw health --json"]),
    ("hooks list", &["openclaw hooks list --verbose"]),
    ("hooks info", &["openclaw hooks info session-memory"]),
    ("hooks check", &["openclaw hooks check"]),
    ("hooks enable", &["openclaw hooks enable command-logger"]),
    ("hooks disable", &["openclaw hooks disable command-logger"]),
    ("hooks install", &["openclaw hooks install ./my-hook"]),
    ("hooks update", &["openclaw hooks update --all --dry-run"]),
    ("logs", &["openclaw logs --follow", "openclaw logs --limit 50 --json"]),
    ("memory status", &["openclaw memory status", "openclaw memory status --deep --agent main"]),
    ("memory index", &["openclaw memory index", "openclaw memory index --force --verbose"]),
    (
        "memory search",
        &[
            "openclaw memory search \"router configuration\"",
            "openclaw memory search tea --max-results 3 --json",
        ],
    ),
    ("memory forget", &["openclaw memory forget \"old address\"", "openclaw memory forget tea --yes"]),
    (
        "message send",
        &[
            "openclaw message send --target 123456789 -m \"Done\"",
            "uptime | openclaw message send --channel telegram --target 123456789 -m -",
        ],
    ),
    (
        "message broadcast",
        &["openclaw message broadcast --targets 123456789 --targets 987654321 -m \"Down for an hour\""],
    ),
    (
        "message poll",
        &[
            "openclaw message poll --target -1001234567890 --poll-question \"Lunch?\" --poll-option Pizza --poll-option Soup",
        ],
    ),
    ("message react", &["openclaw message react --target 123456789 --message-id 42 --emoji 👍"]),
    ("message edit", &["openclaw message edit --target 123456789 --message-id 42 -m \"It is done\""]),
    ("message delete", &["openclaw message delete --target 123456789 --message-id 42"]),
    ("message pin", &["openclaw message pin --target -1001234567890 --message-id 42"]),
    ("message unpin", &["openclaw message unpin --target -1001234567890 --message-id 42"]),
    ("message pins", &["openclaw message pins --target -1001234567890"]),
    (
        "message thread create",
        &["openclaw message thread create --target -1001234567890 --thread-name Plans"],
    ),
    (
        "message thread reply",
        &["openclaw message thread reply --target -1001234567890 --thread-id 7 -m \"Here\""],
    ),
    ("message sticker send", &["openclaw message sticker send --target 123456789 --sticker-id <file-id>"]),
    ("message sticker search", &["openclaw message sticker search --query wave"]),
    ("message failed", &["openclaw message failed --channel telegram"]),
    ("message retry", &["openclaw message retry --all --dry-run"]),
    ("message discard", &["openclaw message discard --all --channel telegram"]),
    ("models aliases add", &["openclaw models aliases add fast openai/gpt-5.2"]),
    ("models aliases list", &["openclaw models aliases list --plain"]),
    ("models aliases remove", &["openclaw models aliases remove fast"]),
    ("models auth add", &["openclaw models auth add"]),
    ("models auth login", &["openclaw models auth login --provider openai-codex --set-default"]),
    ("models auth login-github-copilot", &["openclaw models auth login-github-copilot"]),
    ("models auth order clear", &["openclaw models auth order clear --provider anthropic"]),
    ("models auth order get", &["openclaw models auth order get --provider anthropic"]),
    (
        "models auth order set",
        &["openclaw models auth order set --provider anthropic anthropic:work anthropic:home"],
    ),
    ("models auth paste-token", &["openclaw models auth paste-token --provider anthropic"]),
    ("models auth setup-token", &["openclaw models auth setup-token --provider anthropic"]),
    ("models fallbacks add", &["openclaw models fallbacks add openai/gpt-5.2"]),
    ("models fallbacks clear", &["openclaw models fallbacks clear"]),
    ("models fallbacks list", &["openclaw models fallbacks list"]),
    ("models fallbacks remove", &["openclaw models fallbacks remove openai/gpt-5.2"]),
    ("models image-fallbacks add", &["openclaw models image-fallbacks add google/gemini-3-pro-preview"]),
    ("models image-fallbacks clear", &["openclaw models image-fallbacks clear"]),
    ("models image-fallbacks list", &["openclaw models image-fallbacks list"]),
    (
        "models image-fallbacks remove",
        &["openclaw models image-fallbacks remove google/gemini-3-pro-preview"],
    ),
    ("models list", &["openclaw models list", "openclaw models list --all --provider openai"]),
    ("models scan", &["openclaw models scan --no-probe", "openclaw models scan --max-candidates 3 --yes"]),
    ("models set", &["openclaw models set anthropic/claude-opus-4-6"]),
    ("models set-image", &["openclaw models set-image openai/gpt-5.2"]),
    (
        "models status",
        &["openclaw models status", "openclaw models status --probe --probe-provider anthropic"],
    ),
    (
        "pairing approve",
        &["openclaw pairing approve telegram ABCD2345", "openclaw pairing approve ABCD2345 --notify"],
    ),
    ("pairing list", &["openclaw pairing list"]),
    (
        "sandbox explain",
        &[
            "openclaw sandbox explain --agent main",
            "openclaw sandbox explain --session agent:main:main --json",
        ],
    ),
    ("sandbox list", &["openclaw sandbox list"]),
    ("sandbox recreate", &["openclaw sandbox recreate --agent main --force"]),
    (
        "security audit",
        &[
            "openclaw security audit",
            "openclaw security audit --fix",
            "openclaw security audit --json --fail-on critical",
        ],
    ),
    ("sessions", &["openclaw sessions --active 60"]),
    (
        "setup",
        &[
            "openclaw setup --workspace ~/clawd",
            "openclaw setup --mode remote --remote-url wss://gateway.example.org --remote-token <token>",
        ],
    ),
    ("skills list", &["openclaw skills list --eligible"]),
    ("skills info", &["openclaw skills info my-skill"]),
    ("skills check", &["openclaw skills check --json"]),
    ("status", &["openclaw status", "openclaw status --deep --json"]),
    ("system event", &["openclaw system event --text \"The backup is done\""]),
    ("system heartbeat last", &["openclaw system heartbeat last"]),
    ("system heartbeat enable", &["openclaw system heartbeat enable"]),
    ("system heartbeat disable", &["openclaw system heartbeat disable"]),
    ("system presence", &["openclaw system presence --json"]),
    ("tools explain", &["openclaw tools explain --tool exec"]),
    ("trace", &["openclaw trace", "openclaw trace last --json"]),
];

/// Command that is taken, and that nothing of this version carries out.
pub(crate) struct NotThere {
    pub(crate) path: &'static str,
    why: &'static str,
    /// Command that helps meanwhile.
    pub(crate) instead: &'static str,
}

const fn no_platform(path: &'static str) -> NotThere {
    NotThere {
        path,
        why: "No platform of this version does it; this lists what they do",
        instead: "openclaw channels capabilities",
    }
}

pub(crate) const NOT_THERE: &[NotThere] = &[
    NotThere {
        path: "channels login",
        why: "The platforms of this version have tokens instead",
        instead: "openclaw channels add --channel telegram --token <token>",
    },
    no_platform("message reactions"),
    no_platform("message read"),
    no_platform("message search"),
    no_platform("message permissions"),
    no_platform("message thread list"),
    no_platform("message sticker upload"),
    no_platform("message emoji list"),
    no_platform("message emoji upload"),
    no_platform("message member info"),
    no_platform("message role info"),
    no_platform("message role add"),
    no_platform("message role remove"),
    no_platform("message channel info"),
    no_platform("message channel list"),
    no_platform("message voice status"),
    no_platform("message event list"),
    no_platform("message event create"),
    no_platform("message timeout"),
    no_platform("message kick"),
    no_platform("message ban"),
];

/// Bytes of an example on a line, with room for the indentation on a terminal of 80 columns.
const LINE: usize = 74;

/// Examples of a group that has none of its own: the first of so many of its commands.
const OF_A_GROUP: usize = 4;

/// The grammar with the examples below the help of its commands.
pub(crate) fn with_examples(command: Command) -> Command {
    below(command, "")
}

/// The command with its examples, and so on for those below it; `path` are the words that name it.
fn below(command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|own| own.get_name().to_owned()).collect();
    let command = names.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |own| below(own, format!("{path} {name}").trim_start()))
    });
    let own = EXAMPLES.iter().find(|(named, _)| *named == path).map(|(_, examples)| examples.to_vec());
    let told = match (own, NOT_THERE.iter().find(|not| not.path == path)) {
        (Some(examples), _) => shown(&examples),
        (None, Some(not)) => format!("Not there yet. {}:\n  {}", not.why, not.instead),
        (None, None) => shown(&of_group(path)),
    };
    let more = command.get_after_help().map(|help| format!("\n\n{help}")).unwrap_or_default();
    command.after_help(format!("{told}{more}"))
}

fn shown(examples: &[&str]) -> String {
    let folded: Vec<String> = examples.iter().map(|example| folded(example)).collect();
    format!("Examples:\n  {}", folded.join("\n  "))
}

/// Splits an example that is too long for a line before its options, so that a shell still takes it.
fn folded(example: &str) -> String {
    let mut lines = Vec::new();
    let mut rest = example;
    while rest.len() > LINE {
        let Some(at) = rest.match_indices(" --").map(|(at, _)| at).take_while(|at| *at <= LINE).last() else {
            break;
        };
        let (line, more) = rest.split_at(at);
        lines.push(line);
        rest = more.trim_start();
    }
    lines.push(rest);
    lines.join(" \\\n      ")
}

fn of_group(path: &str) -> Vec<&'static str> {
    let is_below = |named: &str| named.strip_prefix(path).is_some_and(|rest| rest.starts_with(' '));
    let own = EXAMPLES.iter().filter(|(named, _)| is_below(named));
    let own = own.filter_map(|(_, examples)| examples.first().copied());
    let instead = NOT_THERE.iter().filter(|not| is_below(not.path)).map(|not| not.instead);
    own.chain(instead.take(1)).take(OF_A_GROUP).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_examples_are_folded_as_a_shell_takes_them() {
        let long = "openclaw message poll --target -1001234567890 --poll-question \"Lunch?\" --poll-option Pizza --poll-option Soup";
        let expect = "openclaw message poll --target -1001234567890 --poll-question \"Lunch?\" \\\n      --poll-option Pizza --poll-option Soup";
        assert_eq!(folded(long), expect);
        for (_, examples) in EXAMPLES {
            for example in *examples {
                let shown = folded(example);
                assert_eq!(shown.replace(" \\\n      ", " "), *example);
                assert!(shown.lines().all(|line| line.chars().count() <= 78), "{shown}");
            }
        }
    }
}
