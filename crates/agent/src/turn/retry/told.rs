//! The error for people when no model is left to try: which failed, by what, and what to do.

use openclaw_models::catalog::is_built_in;
use openclaw_models::credentials::how_to_add;
use openclaw_models::failure::{is_compaction_failure, is_web_page, refuses_tools, user_text};
use openclaw_models::{FailureKind, ModelFailure, ProviderId};
use openclaw_protocol::printable::one_line;

use super::Attempts;
use crate::error_surface::ErrorSurface;
use crate::reply::{CandidateFailure, NO_ANSWER, RunError, RunErrorKind};
use crate::turn::Sizes;

impl Attempts {
    /// Returns the error for people when nothing is left to try. `failures` are all of this run,
    /// `last` the one that ended it.
    pub(in crate::turn) fn error(&self, failures: &[CandidateFailure], last: &ModelFailure) -> RunError {
        let RunError { kind, message } = self.told(failures, last);
        RunError { kind, message: self.agent.in_text(&message) }
    }

    fn told(&self, failures: &[CandidateFailure], last: &ModelFailure) -> RunError {
        if failures.iter().all(|failure| failure.kind == FailureKind::Empty)
            && last.kind == FailureKind::Empty
        {
            return RunError { kind: last.kind.into(), message: self.nothing(failures) };
        }
        let text = user_text(&last.message);
        let each = self.each(failures);
        if each.len() < 2 || !last.kind.falls_over() {
            let kind = kind_of(last, &text);
            // Some kinds have a text of their own that says it all.
            let advice = self.advice(last).filter(|_| kind == last.kind.into() && !text.contains("/new"));
            let names_command = text.contains("/new") && self.error_surface != ErrorSurface::Chat;
            let instead =
                names_command.then(|| format!("Here {}.", self.error_surface.another_conversation()));
            let message = match advice.or(instead) {
                Some(advice) => format!("{text}\n{advice}"),
                None => text,
            };
            return RunError { kind, message };
        }
        RunError {
            kind: last.kind.into(),
            message: format!(
                "All models failed ({}): {}\n{} shows which of them answer; `openclaw models fallbacks add \
                 <provider>/<model>` names another.",
                each.len(),
                each.join(" | "),
                self.probe()
            ),
        }
    }

    /// Returns the text for models that gave nothing to read.
    fn nothing(&self, failures: &[CandidateFailure]) -> String {
        let mut named: Vec<&str> = Vec::new();
        let failed = failures.iter().map(|failure| failure.candidate).chain([self.candidate]);
        for candidate in failed.filter_map(|at| self.candidates.get(at)) {
            if !named.contains(&candidate.name.as_str()) {
                named.push(&candidate.name);
            }
        }
        let another = self.error_surface.another_model();
        format!(
            "{NO_ANSWER}\nThe answer was empty, also when asked again: {}. {another}; {} shows what answers.",
            named.join(", "),
            self.probe()
        )
    }

    /// Returns a sentence that names the model and credential behind a failure and says what to do, as the provider's own message names
    /// neither.
    fn advice(&self, failure: &ModelFailure) -> Option<String> {
        let another = self.error_surface.another_model();
        let (provider, model) = self.current()?.name.split_once('/')?;
        let what = match failure.kind {
            FailureKind::Auth if is_web_page(&failure.message) => self.in_a_moment(),
            FailureKind::Auth if failure.status == Some(NOT_PERMITTED) => format!(
                "It knows the credential and does not permit this: check the plan, the rights and the region at the \
                 provider. {another}. Another credential may be permitted. {}",
                self.how_to_add(provider)
            ),
            FailureKind::Auth => self.how_to_add(provider),
            FailureKind::Billing | FailureKind::Unaffordable => self.which_credential(),
            // The failure's own text says what to do.
            FailureKind::Transient if is_overloaded(failure) => return None,
            FailureKind::Transient | FailureKind::Timeout => self.in_a_moment(),
            FailureKind::RateLimit => {
                "It takes no more requests for now: try again later, or name another model that \
                answers meanwhile: `openclaw models fallbacks add <provider>/<model>`."
                    .to_owned()
            }
            FailureKind::Format | FailureKind::Gone if refuses_tools(&failure.message) => format!(
                "The model takes no tools, which every agent offers. {another}; with \
                 tools.byProvider[\"{provider}/{model}\"].deny: [\"*\"] in the config it is offered none."
            ),
            FailureKind::Gone
                if is_web_page(&failure.message) || (failure.status.is_none() && !knows_models(provider)) =>
            {
                format!(
                    "models.providers.{provider}.baseUrl is the address; {} shows whether a model answers there.",
                    self.probe()
                )
            }
            FailureKind::Gone if failure.status.is_none() => format!(
                "No such model is there: `openclaw models list --all --provider {provider}` shows the known models, \
                 models.providers.{provider}.baseUrl is the address; {} shows whether a model answers there.",
                self.probe()
            ),
            FailureKind::Gone if !knows_models(provider) => format!(
                "It has no such model, or is not at this address: models.providers.{provider}.models in the config names its \
                 models, models.providers.{provider}.baseUrl is the address."
            ),
            FailureKind::Gone => format!(
                "It has no such model, or is not at this address: `openclaw models list --all --provider {provider}` shows \
                 the known models, models.providers.{provider}.baseUrl is the address."
            ),
            FailureKind::Format => format!(
                "It refuses the request as it is: {another}, {}.",
                self.error_surface.another_conversation()
            ),
            FailureKind::Other => format!("{another}; {} shows what answers.", self.probe()),
            FailureKind::Empty | FailureKind::ContextOverflow => return None,
        };
        let from = if failure.status.is_some() { "is the answer of" } else { "came of asking" };
        Some(format!("This {from} {}. {what}", self.asked()?))
    }

    /// Returns `provider (model m, credential c)` of the candidate that was asked.
    fn asked(&self) -> Option<String> {
        let candidate = self.current()?;
        let (provider, model) = candidate.name.split_once('/')?;
        Some(match &candidate.credential {
            Some(profile) => format!("{provider} (model {model}, credential {profile})"),
            None => format!("{provider} (model {model})"),
        })
    }

    /// Returns sentences about a request that is too large for the model, and that compaction made no smaller.
    pub(in crate::turn) fn too_large(&self, sizes: Sizes) -> Option<String> {
        let fault = format!("{} takes no request of this size. {}", self.asked()?, sizes.told());
        if sizes.are_beyond_help() {
            return Some(self.agent.in_text(&fault));
        }
        let less = if sizes.pictures > 0 { "Send fewer or smaller pictures" } else { "Send less at once" };
        let (another, without) =
            (self.error_surface.another_model(), self.error_surface.another_conversation());
        Some(self.agent.in_text(&format!("{fault} {less}; {without}; {another}.")))
    }

    /// Command that asks the agent's models for a tiny answer.
    fn probe(&self) -> String {
        format!("`openclaw models status{} --probe`", self.agent)
    }

    /// Next step when a server may be well again soon.
    fn in_a_moment(&self) -> String {
        format!("Try again in a moment; {} shows whether it answers.", self.probe())
    }

    fn how_to_add(&self, provider: &str) -> String {
        let fix = how_to_add(&ProviderId::normalize(provider), &self.agent);
        format!("{fix} {}", self.which_credential())
    }

    fn which_credential(&self) -> String {
        format!("`openclaw models status{}` shows which credential is used.", self.agent)
    }

    /// A line a model: what was left out from the start, then what came of the others.
    fn each(&self, failures: &[CandidateFailure]) -> Vec<String> {
        let mut lines = self.passed_over.clone();
        let mut named: Vec<&str> = Vec::new();
        for candidate in &self.candidates {
            if named.contains(&candidate.name.as_str()) {
                continue;
            }
            named.push(&candidate.name);
            let is_of = |failure: &&CandidateFailure| {
                self.candidates.get(failure.candidate).is_some_and(|of| of.name == candidate.name)
            };
            lines.push(match failures.iter().rfind(is_of) {
                Some(failure) => {
                    let reason =
                        failure.kind.reason().map(|reason| format!(" ({reason})")).unwrap_or_default();
                    let text = user_text(&failure.message);
                    format!("{}: {}{reason}", candidate.name, one_line(&text))
                }
                None => in_cooldown(&candidate.name),
            });
        }
        lines
    }
}

/// Status of a request that is understood and not permitted.
const NOT_PERMITTED: u16 = 403;
/// Status of Anthropic's overloaded servers.
const OVERLOADED: u16 = 529;

/// Returns true if the models of a provider are known without the configuration, which any other
/// list only repeats.
fn knows_models(provider: &str) -> bool {
    is_built_in(&ProviderId::normalize(provider))
}

fn is_overloaded(failure: &ModelFailure) -> bool {
    match failure.status {
        Some(status) => status == OVERLOADED,
        None => failure.message.to_lowercase().contains("overloaded"),
    }
}

/// The line of a model that was not called because of what another model of its provider met.
fn in_cooldown(name: &str) -> String {
    let provider = name.split('/').next().unwrap_or_default();
    format!("{name}: Provider {provider} is in cooldown (all profiles unavailable) (rate_limit)")
}

/// Clients tell three failures apart that providers do not classify; our own texts do.
fn kind_of(failure: &ModelFailure, text: &str) -> RunErrorKind {
    if is_compaction_failure(&failure.message) {
        return RunErrorKind::CompactionFailure;
    }
    if text.starts_with("Message ordering conflict") {
        return RunErrorKind::RoleOrdering;
    }
    if text.starts_with("Image too large") {
        return RunErrorKind::ImageSize;
    }
    failure.kind.into()
}
