//! Decisions about a message, made once when it is accepted: its meaning, its queue mode and its time limit.

use openclaw_agent::skills::SkillCommand;
use openclaw_config::settings::QueueMode;
use openclaw_journal::caller::Right;
use openclaw_journal::intent::Intent;
use openclaw_journal::queue::QueueSettings;
use openclaw_journal::request::{Decisions, RunRequest};
use openclaw_journal::source::{Announces, RequestKind};
use openclaw_models::reference::ModelNames;
use openclaw_runtime::setup::Settings;
use openclaw_sessions::SessionEntry;
use openclaw_sessions::reset;
use openclaw_sessions::reset::trigger::strip_structural_prefixes;

use openclaw_commands::{KnownNames, Spoken, TextCommands};

/// Longest wall time of a run, in seconds: the limit of timers in OpenClaw 2026.2.9, which is 24.8
/// days.
const LONGEST_RUN: u64 = 2_147_000;

/// Returns the request together with its decisions.
pub fn decide(
    request: RunRequest,
    own: Option<&SessionEntry>,
    settings: &Settings,
    skills: &[SkillCommand],
) -> RunRequest {
    let reset = behind_reset(&request, settings);
    let intent = intent(&request, reset.as_deref(), settings, skills);
    let queue = queue(&request, reset.is_some(), &intent, own, settings);
    let decided = Decisions { reset, intent, queue, time_limit: time_limit(&request, settings) };
    RunRequest { decided: Some(decided), ..request }
}

/// Returns the text behind `/new` or `/reset`; `None` without such a trigger, and always for `agent` requests.
fn behind_reset(request: &RunRequest, settings: &Settings) -> Option<String> {
    if request.source.kind() == RequestKind::Agent || request.is_forwarded() {
        return None;
    }
    let triggers = settings.sessions.section.triggers();
    // A trigger need not be written as a command.
    let text = request.unnamed().unwrap_or(&request.text);
    let stripped = strip_structural_prefixes(text);
    let found = reset::find_trigger(&triggers, text, &stripped, request.caller().may(Right::Command));
    found.map(|found| found.rest)
}

/// True if the commands of skills must be known to decide about it. The text behind `/new` may call one too.
pub fn may_call_skill(request: &RunRequest, settings: &Settings) -> bool {
    let rest = behind_reset(request, settings);
    let text = rest.as_deref().unwrap_or_else(|| request.command_text());
    request.is_chat() && !request.is_forwarded() && openclaw_commands::skill::may_be_one(text)
}

fn intent(
    request: &RunRequest,
    behind_reset: Option<&str>,
    settings: &Settings,
    skills: &[SkillCommand],
) -> Intent {
    if request.source.announces() == Some(Announces::Words) {
        return Intent::Announcement;
    }
    if request.source.kind() == RequestKind::Agent
        || request.is_forwarded()
        || !request.text.contains(['/', '!'])
    {
        return Intent::Prompt;
    }
    let spoken = Spoken {
        text: behind_reset.unwrap_or_else(|| request.command_text()),
        attached: !request.images.is_empty(),
        may_command: request.caller().may(Right::Command),
        is_addressed: request.source.origin().is_none_or(|origin| origin.is_direct() || origin.is_named),
        commands: TextCommands::on(request.channel(), settings.config.commands.text),
    };
    let models = ModelNames::new(&settings.models.listed);
    let triggers = settings.sessions.section.triggers();
    openclaw_commands::read(spoken, KnownNames { models: &models, triggers: &triggers, skills })
}

fn queue(
    request: &RunRequest,
    resets: bool,
    intent: &Intent,
    own: Option<&SessionEntry>,
    settings: &Settings,
) -> QueueSettings {
    if request.source.kind() == RequestKind::Agent && !request.is_announcement() {
        return QueueSettings::with(QueueMode::Followup);
    }
    let wish = intent.hints().and_then(|hints| hints.queue).unwrap_or_default();
    let wished = QueueSettings::of(wish, own, &settings.config.messages.queue, request.channel());
    let mode = match wished.mode {
        // A sender who starts a new session does not wait for the runs of the old one (spec `queue.md` §3).
        _ if resets => QueueMode::Interrupt,
        // An announcement is never urgent enough to stop another run.
        QueueMode::Interrupt if request.is_announcement() => QueueMode::Followup,
        // An announcement is told once: it is steered in and not queued as well.
        QueueMode::SteerBacklog if request.is_announcement() => QueueMode::Steer,
        // Another model needs a run of its own.
        QueueMode::Steer | QueueMode::SteerBacklog if intent.is_for_one_run() => QueueMode::Followup,
        mode => mode,
    };
    QueueSettings { mode, ..wished }
}

/// Returns the time limit in seconds: the request's, else the configured one. 0 in a request means none (spec `agent-runtime.md` §2.5).
fn time_limit(request: &RunRequest, settings: &Settings) -> Option<u64> {
    let configured = settings.config.agents.defaults.run_timeout().as_secs();
    match request.timeout_seconds {
        Some(0) => None,
        Some(seconds) => Some(seconds.min(LONGEST_RUN)),
        None => Some(configured.min(LONGEST_RUN)),
    }
}

#[cfg(test)]
mod tests {
    use openclaw_config::settings::Config;
    use serde_json::json;

    use super::*;

    /// Spec `agent-runtime.md` §2.5.
    #[test]
    fn a_run_has_the_time_it_asks_for_or_else_the_configured_one() {
        let rows = [
            (None, json!({}), Some(600)),
            (None, json!({"timeoutSeconds": 5}), Some(5)),
            (None, json!({"timeoutSeconds": 0}), Some(1)),
            (None, json!({"timeoutSeconds": 9_000_000}), Some(2_147_000)),
            (Some(0), json!({"timeoutSeconds": 5}), None),
            (Some(7), json!({"timeoutSeconds": 5}), Some(7)),
            (Some(u64::MAX), json!({}), Some(2_147_000)),
        ];
        for (asked, defaults, expected) in rows {
            let document = json!({"agents": {"defaults": defaults}});
            let config: Config = serde_json::from_value(document.clone()).unwrap();
            let settings = Settings { config: config.into(), ..Settings::default() };
            let request = RunRequest { timeout_seconds: asked, ..RunRequest::default() };
            let decided = decide(request, None, &settings, &[]);
            assert_eq!(decided.run_time().map(|time| time.as_secs()), expected, "{asked:?} {document}");
        }
    }
}
