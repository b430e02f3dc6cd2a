//! Answer of `/exec` without options: the settings that hold in a session, and their effect.

use openclaw_config::settings::{Exec, ExecAsk, ExecGate, ExecSecurity};
use openclaw_journal::rights::elevated::of;
use openclaw_tools::ElevatedMode;

use crate::CommandContext;
use crate::elevated::asked;
use openclaw_runtime::session_exec::exec_of;

const UNSET: &str = "(unset)";

/// `Current exec defaults: host=gateway, security=allowlist, …`, with their effect.
pub(crate) fn card(context: &CommandContext<'_>, options: &str) -> String {
    let exec = exec_of(context.entry, &context.agent.exec);
    let elevated = of(&context.settings.config, asked(context), context.entry, None);
    let mode = if elevated.refusal.is_some() { ElevatedMode::Off } else { elevated.mode };
    let node = context.entry.exec_node.as_deref().unwrap_or(UNSET);
    format!(
        "Current exec defaults: {}, node={node}.\n{}\n{options}",
        settings(&exec),
        effect(&exec, mode, context.is_sandboxed())
    )
}

fn settings(exec: &Exec) -> String {
    // If one is set, the others have their defaults.
    let has_rules = exec.heeds_approvals_file();
    let security = exec.security.or(has_rules.then_some(ExecSecurity::Allowlist)).map(ExecSecurity::as_str);
    let ask = exec.ask.or(has_rules.then_some(ExecAsk::OnMiss)).map(ExecAsk::as_str);
    let host = exec.host.map(|host| host.as_str());
    let shown = |value: Option<&'static str>| value.unwrap_or(UNSET);
    format!("host={}, security={}, ask={}", shown(host), shown(security), shown(ask))
}

/// Tells in a sentence where commands run and whether a person is asked.
fn effect(exec: &Exec, elevated: ElevatedMode, is_sandboxed: bool) -> String {
    match (elevated, is_sandboxed) {
        (ElevatedMode::Full, _) => {
            "Your commands are elevated: they run on this machine, and nobody is asked (/elevated off ends that).".to_owned()
        }
        (ElevatedMode::Ask, _) => {
            format!("Your commands are elevated (/elevated off ends that). {}", on_this_machine(exec))
        }
        (ElevatedMode::Off, true) if exec.security == Some(ExecSecurity::Deny) => {
            "No command may run.".to_owned()
        }
        (ElevatedMode::Off, true) => {
            "Commands run in the sandbox of this session, and nobody is asked.".to_owned()
        }
        (ElevatedMode::Off, false) => match exec.gate() {
            ExecGate::NeedsSandbox => {
                "No command runs: this session has no sandbox. /exec host=gateway runs them on this machine."
                    .to_owned()
            }
            ExecGate::NeedsNode => "No command runs: there are no nodes yet.".to_owned(),
            ExecGate::Open if !exec.heeds_approvals_file() => {
                "Nothing is set: commands run on this machine, and nobody is asked.".to_owned()
            }
            ExecGate::Open | ExecGate::Denied | ExecGate::NeedsApproval => on_this_machine(exec),
        },
    }
}

/// Tells what the rules allow on this machine; those of the file can be stricter.
fn on_this_machine(exec: &Exec) -> String {
    let security = exec.security.unwrap_or(ExecSecurity::Allowlist);
    let says = match (security, exec.ask.unwrap_or(ExecAsk::OnMiss)) {
        (ExecSecurity::Deny, _) => return "No command may run.".to_owned(),
        (_, ExecAsk::Always) => "Commands run on this machine after a person has allowed each of them",
        (ExecSecurity::Full, _) => "Commands run on this machine, and nobody is asked",
        (ExecSecurity::Allowlist, ExecAsk::OnMiss) => {
            "Commands on the allowlist run on this machine, and a person is asked about others"
        }
        (ExecSecurity::Allowlist, ExecAsk::Off) => {
            "Commands on the allowlist run on this machine, and others are refused"
        }
    };
    format!("{says}, unless exec-approvals.json is stricter.")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_is_shown_is_what_holds() {
        use ElevatedMode::{Ask, Full, Off};
        let exec = |value: &Value| serde_json::from_value::<Exec>(value.clone()).unwrap();
        let unset = "host=(unset), security=(unset), ask=(unset)";
        for (set, mode, is_sandboxed, shown, says) in [
            (json!({}), Off, false, unset, "Nothing is set: commands run on this machine, and nobody"),
            (json!({}), Off, true, unset, "Commands run in the sandbox of this session"),
            (
                json!({}),
                Ask,
                true,
                unset,
                "Your commands are elevated (/elevated off ends that). Commands on the allowlist run",
            ),
            (
                json!({}),
                Full,
                true,
                unset,
                "Your commands are elevated: they run on this machine, and nobody",
            ),
            (
                json!({"host": "gateway"}),
                Off,
                false,
                "host=gateway, security=allowlist, ask=on-miss",
                "Commands on the allowlist run on this machine, and a person is asked",
            ),
            (
                json!({"ask": "off"}),
                Off,
                false,
                "host=(unset), security=allowlist, ask=off",
                "Commands on the allowlist run on this machine, and others are refused",
            ),
            (
                json!({"security": "full"}),
                Off,
                false,
                "host=(unset), security=full, ask=on-miss",
                "Commands run on this machine, and nobody is asked, unless",
            ),
            (
                json!({"security": "full", "ask": "always"}),
                Off,
                false,
                "host=(unset), security=full, ask=always",
                "Commands run on this machine after a person",
            ),
            (
                json!({"security": "deny"}),
                Off,
                true,
                "host=(unset), security=deny, ask=on-miss",
                "No command may run.",
            ),
            (
                json!({"host": "sandbox"}),
                Off,
                false,
                "host=sandbox, security=(unset), ask=(unset)",
                "No command runs: this session has no sandbox.",
            ),
            (
                json!({"host": "node"}),
                Off,
                false,
                "host=node, security=(unset), ask=(unset)",
                "No command runs: there are no nodes",
            ),
        ] {
            let exec = exec(&set);
            assert_eq!(settings(&exec), shown, "{set}");
            let told = effect(&exec, mode, is_sandboxed);
            assert!(told.starts_with(says), "{set}: {told}");
        }
    }
}
