//! Commands of OpenClaw that this version does not have, and what helps meanwhile.

use crate::failure::CommandFailure;

/// Name of a command, of which two words are a subcommand, and what helps meanwhile.
type MissingCommand = (&'static str, &'static str);

pub(super) const NOT_YET: &[MissingCommand] = &[
    ("acp", "`openclaw agent --agent main -m <text>` asks the agent from a script or an editor."),
    (
        "browser",
        "The agent reads pages with its tool web_fetch; `openclaw tools explain --tool web_fetch` shows whether it may.",
    ),
    ("completion", "`openclaw --help` lists the commands; each has a --help with examples."),
    (
        "configure",
        "`openclaw setup` begins, `openclaw config set <path> <value>` changes a setting, `openclaw channels add` and \
         `openclaw models auth add` ask for what they need.",
    ),
    (
        "cron",
        "The system's own scheduler with `openclaw agent --agent main -m <text>`; `openclaw system heartbeat enable` lets the \
         agent look after things by itself.",
    ),
    ("daemon", "`openclaw gateway status` shows the service; the README has a unit for systemd."),
    (
        "devices",
        "Devices of this host are paired by themselves, and so are those that come through a tunnel: ssh -N -L \
         18789:127.0.0.1:18789 user@host. `openclaw system presence` shows who is here.",
    ),
    ("directory", "`openclaw channels resolve <name>` looks up names."),
    ("dns", "Apps are given the address by hand; `openclaw gateway probe` shows which gateways answer."),
    ("docs", "https://docs.openclaw.ai has the pages; each command has a --help with examples."),
    (
        "node",
        "The tool exec works on the gateway's host; `openclaw approvals get` shows which commands it runs unasked.",
    ),
    ("nodes", "`openclaw status` names the nodes that are paired; nothing is sent to them."),
    (
        "onboard",
        "`openclaw setup`, then `openclaw models auth add`, `openclaw channels add` and `openclaw gateway`.",
    ),
    ("plugins", "Hooks and skills, in any language: `openclaw hooks list`, `openclaw skills list`."),
    (
        "reset",
        "`openclaw doctor --fix` repairs the state directory; one that is moved away is made anew by `openclaw setup`.",
    ),
    ("tui", "`openclaw dashboard` opens the web chat; `openclaw agent --agent main -m <text>` answers here."),
    (
        "uninstall",
        "Stop the gateway, then remove the binary and the state directory that `openclaw status` names.",
    ),
    ("update", "Put the new binary in the place of the old one and restart the gateway."),
    ("webhooks", "`openclaw agent --agent main -m <text>` and `openclaw message send` from a script."),
    ("gateway discover", "`openclaw gateway probe` shows which gateways answer."),
    (
        "gateway install",
        "The README has a unit for systemd; `openclaw gateway status` shows whether it is there.",
    ),
    (
        "gateway restart",
        "With the unit of the README: systemctl --user restart openclaw-gateway. Else stop it and run `openclaw gateway`.",
    ),
    (
        "gateway start",
        "`openclaw gateway`, or with the unit of the README: systemctl --user start openclaw-gateway.",
    ),
    (
        "gateway stop",
        "Ctrl-C where it runs, or with the unit of the README: systemctl --user stop openclaw-gateway.",
    ),
    (
        "gateway uninstall",
        "With the unit of the README: systemctl --user disable --now openclaw-gateway, then remove the unit.",
    ),
];

/// The row of the command that the words name.
pub(super) fn find(words: &[String]) -> Option<MissingCommand> {
    let at = words.iter().take_while(|word| word.starts_with('-') && *word != "--").count();
    let first = words.get(at)?;
    let both = words.get(at + 1).map(|second| format!("{first} {second}"));
    NOT_YET.iter().find(|(name, _)| name == first || both.as_deref() == Some(name)).copied()
}

/// Help page of such a command.
pub(super) fn page((name, meanwhile): MissingCommand) -> String {
    format!("openclaw {name}: not implemented yet in this version\n\nMeanwhile: {meanwhile}")
}

/// Failure of such a command.
pub(super) fn failure((name, meanwhile): MissingCommand) -> CommandFailure {
    CommandFailure::new("not-implemented", format!("openclaw {name}: not implemented yet in this version"))
        .hint(format!("Meanwhile: {meanwhile}"))
}
