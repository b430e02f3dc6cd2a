//! `/status`: how a session stands (spec `messages.md` §9). What is known is gathered here; the card is [`openclaw_delivery::status_card`].

use std::collections::HashSet;
use std::time::Duration;

use openclaw_config::settings::{QueueMode, SandboxMode};
use openclaw_delivery::status_card::{QueueLine, StatusCard};
use openclaw_journal::api::RunPhase;
use openclaw_journal::queue::{QueueSettings, QueueWish};
use openclaw_models::catalog::Catalog;
use openclaw_models::credentials::AuthLabel;
use openclaw_models::quota::text::summary;
use openclaw_models::{ModelRef, ThinkingLevel};
use openclaw_runtime::events::Verbose;
use openclaw_sessions::SessionEntry;
use openclaw_tools::sandbox::{SandboxSettings, program_of};

use super::command::{Category, ChatCommand, Does};
use super::{Answering, CommandContext, activation};
use openclaw_runtime::verbosity::verbose;

pub(crate) const COMMAND: ChatCommand = ChatCommand {
    inline: true,
    ..ChatCommand::new("status", Category::Status, Does::Answers(run), "Show how this session stands.")
};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Time for which providers are asked for their quotas, and number of quota windows that are shown
/// (spec `messages.md` §9).
const QUOTA_TIME: Duration = Duration::from_millis(3_500);
const QUOTA_WINDOWS: usize = 2;
/// Tokens that a price is for.
const PER: f64 = 1_000_000.0;

fn run<'a>(context: &'a CommandContext<'a>, _: &'a str) -> Answering<'a> {
    Box::pin(async move { Ok(card(context).await.text()) })
}

/// Gathers the card's facts.
pub async fn card(context: &CommandContext<'_>) -> StatusCard {
    let CommandContext { services, settings, key, entry, .. } = context;
    let Chosen { model, window, fallbacks, auth, thinking } = chosen(context).await;
    let cost = auth.as_ref().filter(|auth| is_paid(auth)).and_then(|_| cost(context, &model));
    let card = StatusCard {
        version: VERSION.to_owned(),
        commit: option_env!("OPENCLAW_COMMIT").map(str::to_owned),
        model: model.to_string(),
        fallbacks: fallbacks.iter().map(ModelRef::to_string).collect(),
        auth: auth.as_ref().map(auth_text),
        cost,
        quota: quota(context, &model).await,
        runtime: runtime(context),
        thinking: thinking.as_str().to_owned(),
        verbose: Some(verbose_name(verbose(None, entry, settings)).to_owned()),
        reasoning: entry.reasoning_level.map(|level| level.as_str().to_owned()),
        elevated: entry.elevated_level.map(|level| level.as_str().to_owned()),
        activation: activation::effective(context).map(str::to_owned),
        queue: queue(context),
        sub_agents: sub_agents(context),
        ..StatusCard::default()
    };
    let mut card = card.with_row(key, Some(entry), services.clock.now_ms());
    // The row has none before the first run.
    card.tokens.window = card.tokens.window.or(window);
    card
}

/// Names the sandbox that holds the session's commands, and the sandbox mode: `docker/all`,
/// `direct/non-main`, or `direct`.
fn runtime(context: &CommandContext<'_>) -> String {
    let CommandContext { settings, agent, .. } = context;
    let sandbox = SandboxSettings::of(&settings.config, &agent.id);
    let holder = match context.is_sandboxed() {
        true => program_of(sandbox.backend, settings.config.environment()).unwrap_or("local"),
        false => "direct",
    };
    match sandbox.mode {
        SandboxMode::Off => holder.to_owned(),
        mode => format!("{holder}/{}", mode.as_str()),
    }
}

/// Model and settings that the next run would use.
struct Chosen {
    model: ModelRef,
    /// Tokens that its context window can hold, if that is known.
    window: Option<u64>,
    /// Other models, in the order in which they would be called.
    fallbacks: Vec<ModelRef>,
    auth: Option<AuthLabel>,
    thinking: ThinkingLevel,
}

async fn chosen(context: &CommandContext<'_>) -> Chosen {
    let CommandContext { settings, key, entry, agent, .. } = context;
    let selected = context.services.models.next(&settings.models, agent, key, entry).await;
    let mut candidates = selected.map(|selected| selected.candidates).unwrap_or_default().into_iter();
    match candidates.next() {
        Some(first) => {
            // A model is there once for each of its credential profiles.
            let mut seen = HashSet::from([first.reference.clone()]);
            let others = candidates.map(|candidate| candidate.reference);
            Chosen {
                window: Some(first.model.context_window()),
                model: first.reference,
                fallbacks: others.filter(|model| seen.insert(model.clone())).collect(),
                auth: Some(first.auth),
                thinking: first.thinking,
            }
        }
        // No credential, say: people call for the card to see that.
        None => {
            let choices = context.choices().await;
            let (model, _) = context.current(&choices).await;
            let stored = entry.thinking_level.as_deref().and_then(|level| level.parse().ok());
            Chosen {
                model,
                window: None,
                fallbacks: Vec::new(),
                auth: None,
                thinking: stored.unwrap_or(ThinkingLevel::Off),
            }
        }
    }
}

/// True if the credential is paid by the token.
fn is_paid(auth: &AuthLabel) -> bool {
    matches!(auth.mode, "api-key" | "mixed")
}

/// `api-key abcdef…uvwxyz (profile)`
fn auth_text(auth: &AuthLabel) -> String {
    let source = auth.source.strip_prefix("profile:").or_else(|| auth.source.strip_prefix("env: "));
    let source = Some(source.unwrap_or(&auth.source)).filter(|source| !source.is_empty());
    let key = (auth.mode == "api-key" && !auth.card.is_empty()).then(|| auth.card.clone());
    let parts = [Some(auth.mode.to_owned()), key, source.map(|source| format!("({source})"))];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Cost of the row's tokens in dollars; `None` if the model has no known price.
fn cost(context: &CommandContext<'_>, model: &ModelRef) -> Option<f64> {
    let SessionEntry { input_tokens, output_tokens, .. } = context.entry;
    let price = Catalog::new(&context.settings.models).price(model)?;
    #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^53")]
    let of = |tokens: Option<u64>, price: f64| tokens.unwrap_or(0) as f64 * price / PER;
    Some(of(*input_tokens, price.input) + of(*output_tokens, price.output))
}

/// `1 active`, with the labels and how many have ended where everything is shown. Nothing without any.
fn sub_agents(context: &CommandContext<'_>) -> Option<String> {
    const LABELS: usize = 3;
    let runs = context.services.host.subagents_of(context.key);
    let (active, done): (Vec<_>, Vec<_>) = runs.iter().partition(|run| !run.has_ended());
    let is_verbose = verbose(None, context.entry, context.settings) != Verbose::Off;
    if active.is_empty() && (!is_verbose || done.is_empty()) {
        return None;
    }
    let labels: Vec<&str> = active.iter().take(LABELS).map(|run| run.name()).collect();
    Some(match is_verbose {
        true if labels.is_empty() => format!("0 active · {} done", done.len()),
        true => format!("{} active ({}) · {} done", active.len(), labels.join(", "), done.len()),
        false => format!("{} active", active.len()),
    })
}

async fn quota(context: &CommandContext<'_>, model: &ModelRef) -> Option<String> {
    let around = context.services.surroundings.as_ref()?;
    let (all, settings) = (&context.services.models.all, &context.settings.models);
    let asked = around.quotas().get(all, settings, &context.agent.agent_dir);
    let said = tokio::time::timeout(QUOTA_TIME, asked).await.ok()?;
    let provider = said.providers.iter().find(|row| row.provider == model.provider.as_str())?;
    summary(provider, QUOTA_WINDOWS, context.services.clock.now_ms())
}

fn queue(context: &CommandContext<'_>) -> QueueLine {
    let CommandContext { settings, entry, key, row, .. } = context;
    let set = QueueSettings::of(
        QueueWish::default(),
        Some(entry),
        &settings.config.messages.queue,
        row.payload.channel(),
    );
    let waits = context.services.registry.of_session(key);
    let waits = waits.iter().filter(|run| run.phase == RunPhase::Queued && run.run_id != row.run_id);
    let is_own = entry.queue_debounce_ms.is_some() || entry.queue_cap.is_some() || entry.queue_drop.is_some();
    let details = is_own.then(|| {
        let debounce = pause(set.debounce_ms);
        format!("debounce {debounce} · cap {} · drop {}", set.cap, set.drop.as_str())
    });
    QueueLine { mode: mode_name(set.mode).to_owned(), depth: waits.count(), details }
}

fn mode_name(mode: QueueMode) -> &'static str {
    match mode {
        QueueMode::Collect => "collect",
        QueueMode::Followup => "followup",
        QueueMode::Steer => "steer",
        QueueMode::SteerBacklog => "steer-backlog",
        QueueMode::Interrupt => "interrupt",
    }
}

fn verbose_name(level: Verbose) -> &'static str {
    match level {
        Verbose::Off => "off",
        Verbose::On => "on",
        Verbose::Full => "full",
    }
}

/// `2s`, `1.5s` or `300ms`.
fn pause(ms: u64) -> String {
    match (ms, ms % 1_000) {
        (..1_000, _) => format!("{ms}ms"),
        (_, 0) => format!("{}s", ms / 1_000),
        (_, rest) => format!("{}.{}s", ms / 1_000, rest / 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_told_by_its_ends_and_where_it_is_from() {
        let label = |mode, source: &str, card: &str| AuthLabel {
            mode,
            source: source.to_owned(),
            masked: String::new(),
            snippet: String::new(),
            card: card.to_owned(),
            profile: None,
        };
        let rows = [
            (label("api-key", "models.json", "abcdef…uvwxyz"), "api-key abcdef…uvwxyz (models.json)"),
            (label("api-key", "env: X_KEY", "…"), "api-key … (X_KEY)"),
            (label("oauth", "profile:a:me", "abcdef…uvwxyz"), "oauth (a:me)"),
            (label("none", "", ""), "none"),
        ];
        for (label, expect) in rows {
            assert_eq!(auth_text(&label), expect);
        }
    }

    #[test]
    fn pauses_are_short() {
        for (ms, expect) in [(300, "300ms"), (2_000, "2s"), (1_500, "1.5s"), (0, "0ms")] {
            assert_eq!(pause(ms), expect);
        }
    }
}
