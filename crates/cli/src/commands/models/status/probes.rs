//! `models status --probe`: one tiny question with every credential.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use openclaw_config::clock::now_ms;
use openclaw_models::probe::{Probe, tiny_question};
use openclaw_models::{Http, ModelRef, Models, ProviderId};
use serde::Serialize;

use crate::args::{ProbeArgs, positive};
use crate::client;
use crate::commands::models::view::ModelView;
use crate::failure::CommandFailure;
use crate::output::{self, Column, Style, columns};

/// Time for one probe unless asked otherwise, in milliseconds.
const TIMEOUT_MS: u64 = 8_000;
/// Probes at once.
const CONCURRENCY: u64 = 2;
/// Longest answer, in tokens.
const MAX_TOKENS: u64 = 8;

/// Settings of the probes: targets and pace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProbeSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    profile_ids: Vec<String>,
    timeout_ms: u64,
    concurrency: u64,
    max_tokens: u64,
}

impl ProbeSettings {
    /// Settings from the flags; `None` without `--probe`.
    pub(crate) fn of(flags: &ProbeArgs) -> Result<Option<Self>, CommandFailure> {
        if !flags.probe {
            return Ok(None);
        }
        let number = |text: &Option<String>, default: u64, complaint: &str| match text {
            None => Ok(default),
            Some(text) => positive(text, complaint),
        };
        let ids = flags.probe_profile.iter().flat_map(|ids| ids.split(','));
        Ok(Some(Self {
            provider: flags.probe_provider.clone(),
            profile_ids: ids.map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned).collect(),
            timeout_ms: number(
                &flags.probe_timeout,
                TIMEOUT_MS,
                "--probe-timeout must be a positive number (ms).",
            )?,
            concurrency: number(&flags.probe_concurrency, CONCURRENCY, "--probe-concurrency must be > 0.")?,
            max_tokens: number(&flags.probe_max_tokens, MAX_TOKENS, "--probe-max-tokens must be > 0.")?,
        }))
    }
}

/// `auth.probes`
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Probes {
    started_at: i64,
    finished_at: i64,
    duration_ms: u64,
    total_targets: usize,
    options: ProbeSettings,
    results: Vec<ProbeOutcome>,
    /// Providers that are set up, for people who named another one.
    #[serde(skip)]
    known: Vec<String>,
}

/// Result for one credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProbeOutcome {
    provider: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile_id: Option<String>,
    label: String,
    /// `profile`, `env` or `models.json`.
    source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
    /// `ok`, a kind of failure, or `no_model`.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_ms: Option<u64>,
}

impl ProbeOutcome {
    fn is_open(&self) -> bool {
        self.status == OPEN
    }

    fn closed(mut self, status: &'static str, error: &str) -> Self {
        (self.status, self.error) = (status, Some(error.to_owned()));
        self
    }
}

/// Status of a credential that is still to be asked.
const OPEN: &str = "";

/// Asks with every credential that is wanted.
pub(super) fn run(view: &ModelView, pace: &ProbeSettings) -> Result<Probes, CommandFailure> {
    let planned = plan(view, pace)?;
    let total_targets = planned.iter().filter(|outcome| outcome.is_open()).count();
    let (started_at, started) = (now_ms(), Instant::now());
    let models = Models::new(view.variables.clone(), Http::default());
    let at_once = usize::try_from(pace.concurrency).unwrap_or(usize::MAX).min(planned.len().max(1));
    let asked = planned.into_iter().map(|outcome| ask(&models, view, pace, outcome));
    let asked = futures_util::stream::iter(asked).buffered(at_once).collect::<Vec<_>>();
    let mut results = client::block_on(async { Ok(asked.await) })?;
    results.sort_by(|a, b| (&a.provider, &a.label).cmp(&(&b.provider, &b.label)));
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(Probes {
        started_at,
        finished_at: now_ms(),
        duration_ms,
        total_targets,
        options: pace.clone(),
        results,
        known: view.providers().iter().map(ToString::to_string).collect(),
    })
}

/// Planned entries, one for each credential; those that need not be asked have their status
/// already.
fn plan(view: &ModelView, pace: &ProbeSettings) -> Result<Vec<ProbeOutcome>, CommandFailure> {
    let stored = |id: &&String| view.store.get(id).is_some();
    if let Some(unknown) = pace.profile_ids.iter().find(|id| !stored(id)) {
        return Err(CommandFailure::new(
            "no-profile",
            format!("No credentials found for profile \"{unknown}\"."),
        )
        .hint("`openclaw models status` shows the profiles there are."));
    }
    let wanted = pace.provider.as_deref().map(ProviderId::normalize);
    let mut planned = Vec::new();
    for provider in view.providers() {
        if wanted.as_ref().is_none_or(|wanted| *wanted == provider) {
            planned.extend(of_provider(view, pace, &provider));
        }
    }
    Ok(planned)
}

fn of_provider(view: &ModelView, pace: &ProbeSettings, provider: &ProviderId) -> Vec<ProbeOutcome> {
    let model = model_for(view, provider).map(|reference| reference.to_string());
    let entry = |label: &str, source: &'static str, mode: Option<&'static str>| {
        let open = ProbeOutcome {
            provider: provider.to_string(),
            model: model.clone(),
            profile_id: None,
            label: label.to_owned(),
            source,
            mode,
            status: OPEN,
            error: None,
            latency_ms: None,
        };
        if model.is_some() { open } else { open.closed("no_model", "No model available for probe") }
    };
    let is_wanted =
        |id: &str| pace.profile_ids.is_empty() || pace.profile_ids.iter().any(|wanted| wanted == id);
    let usable = view.usable_profiles(provider);
    let own = view.store.profiles().filter(|(_, credential)| credential.provider == *provider);
    let profiles: Vec<ProbeOutcome> = own
        .filter(|(id, _)| is_wanted(id))
        .map(|(id, credential)| {
            let outcome = ProbeOutcome {
                profile_id: Some(id.to_owned()),
                ..entry(id, "profile", Some(credential.secret.kind()))
            };
            if usable.iter().any(|usable| usable == id) {
                outcome
            } else {
                outcome
                    .closed("unknown", "Not asked: excluded by the order of profiles, or missing or expired.")
            }
        })
        .collect();
    if !profiles.is_empty() || !pace.profile_ids.is_empty() {
        return profiles;
    }
    match (view.variable(provider), view.describe(provider)) {
        (Some((name, _)), _) => {
            vec![entry("env", "env", Some(if name.contains("OAUTH") { "oauth" } else { "api_key" }))]
        }
        (None, Some(described)) if described.models_json.is_some() => {
            vec![entry("models.json", "models.json", Some("api_key"))]
        }
        (None, _) => Vec::new(),
    }
}

/// The model a provider is asked for: the first in use, else the first it has.
fn model_for(view: &ModelView, provider: &ProviderId) -> Option<ModelRef> {
    let in_use = view.in_use().into_iter().find(|reference| reference.provider == *provider);
    in_use.or_else(|| {
        let rows = view.catalog.rows(|_| true);
        let first = rows.iter().find(|row| ProviderId::normalize(&row.provider) == *provider)?;
        Some(ModelRef::new(&first.provider, &first.id))
    })
}

async fn ask(
    models: &Models,
    view: &ModelView,
    pace: &ProbeSettings,
    mut outcome: ProbeOutcome,
) -> ProbeOutcome {
    let reference = outcome.model.as_deref().and_then(|model| ModelRef::parse(model, ""));
    let Some(reference) = reference.filter(|_| outcome.is_open()) else { return outcome };
    let spec = match view.catalog.lookup(&reference) {
        Ok(spec) => spec,
        Err(error) => return outcome.closed("no_model", &error.to_string()),
    };
    let request = tiny_question(&spec, u32::try_from(pace.max_tokens).unwrap_or(u32::MAX));
    let probe = Probe {
        agent_dir: &view.agent.agent_dir,
        agent: view.agent_flag(),
        spec,
        profile: outcome.profile_id.as_deref(),
        request,
        deadline: Duration::from_millis(pace.timeout_ms),
    };
    let probed = models.probe(&view.settings, probe).await;
    outcome.latency_ms = Some(probed.latency_ms);
    match probed.answer {
        Ok(_) => outcome.status = "ok",
        Err(error) => {
            outcome.status = error.kind.as_str();
            outcome.error = Some(error.message);
        }
    }
    outcome
}

const COLUMNS: &[Column] = &[("Model", 32), ("Profile", 32), ("Status", 0)];

impl Probes {
    /// Sentence about a provider that was named and is not set up.
    fn unknown_provider(&self) -> Option<String> {
        let named = self.options.provider.as_deref()?;
        let is_known = self.known.contains(&ProviderId::normalize(named).to_string());
        (!is_known).then(|| match self.known.as_slice() {
            [] => format!("No provider is set up, so there is no {}.", output::one_line(named)),
            known => format!("{} is not set up. There is: {}.", output::one_line(named), known.join(", ")),
        })
    }

    /// Lines for people.
    pub(super) fn lines(&self, style: Style) -> Vec<String> {
        if self.results.is_empty() {
            let mut lines = vec![style.muted("- none"), "No probe targets.".to_owned()];
            lines.extend(self.unknown_provider());
            return lines;
        }
        let rows: Vec<Vec<String>> = self.results.iter().map(cells).collect();
        let mut lines = Vec::new();
        let mut printed = columns(COLUMNS, &rows).into_iter();
        lines.extend(printed.next());
        for (line, outcome) in printed.zip(&self.results) {
            lines.push(line);
            lines.extend(
                outcome.error.as_ref().map(|error| style.muted(&format!("  ↳ {}", output::one_line(error)))),
            );
        }
        let plural = if self.total_targets == 1 { "" } else { "s" };
        let took = output::duration(Some(self.duration_ms));
        lines.push(style.muted(&format!("Probed {} target{plural} in {took}", self.total_targets)));
        lines
    }
}

fn cells(outcome: &ProbeOutcome) -> Vec<String> {
    let model = outcome.model.clone().unwrap_or_else(|| format!("{}/-", outcome.provider));
    let mode = outcome.mode.map(|mode| format!(" ({mode})")).unwrap_or_default();
    let latency = output::duration(outcome.latency_ms);
    vec![model, format!("{}{mode}", outcome.label), format!("{} · {latency}", outcome.status)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(change: impl FnOnce(&mut ProbeArgs)) -> Result<Option<ProbeSettings>, String> {
        let mut flags = ProbeArgs { probe: true, ..ProbeArgs::default() };
        change(&mut flags);
        ProbeSettings::of(&flags).map_err(|failure| failure.message)
    }

    #[test]
    fn flags_are_numbers_and_lists_of_profiles() {
        let default = ProbeSettings {
            provider: None,
            profile_ids: Vec::new(),
            timeout_ms: 8_000,
            concurrency: 2,
            max_tokens: 8,
        };
        assert_eq!(pace(|_| ()), Ok(Some(default.clone())));
        assert_eq!(pace(|flags| flags.probe = false), Ok(None));
        let two = pace(|flags| flags.probe_profile = vec!["a, b".into(), "c".into()]);
        assert_eq!(
            two,
            Ok(Some(ProbeSettings { profile_ids: vec!["a".into(), "b".into(), "c".into()], ..default }))
        );
        for text in ["0", "-1", "x", "1.5"] {
            let timeout = pace(|flags| flags.probe_timeout = Some(text.into()));
            assert_eq!(timeout, Err("--probe-timeout must be a positive number (ms).".into()), "{text}");
        }
    }
}
