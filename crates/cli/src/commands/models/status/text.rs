//! `models status` for people.

use std::path::Path;

use super::document::{Auth, ModelsStatus};
use super::health::{Health, ProfileHealth};
use crate::commands::models::auth::{AuthSource, ProviderAuth, Unusable};
use crate::context::CliContext;
use crate::output::{self, Style};

/// The report as lines.
pub(super) fn lines(status: &ModelsStatus, context: &CliContext) -> Vec<String> {
    let style = context.style;
    let mut lines = overview(status, context);
    lines.extend([String::new(), style.accent("Auth overview")]);
    lines.extend(auth(&status.auth, context));
    let missing = &status.auth.missing_providers_in_use;
    if !missing.is_empty() {
        lines.extend([String::new(), style.accent("Missing auth")]);
        let told = missing.iter().zip(&status.auth.how_to_add_missing);
        lines.extend(told.map(|(provider, how)| format!("- {provider} {how}")));
    }
    if !status.auth.unusable_profiles.is_empty() {
        lines.extend([String::new(), style.accent("Unusable profiles")]);
        lines.extend(status.auth.unusable_profiles.iter().map(|profile| unusable(profile, style)));
    }
    lines.extend([String::new(), style.accent("OAuth/token status")]);
    lines.extend(expiry(&status.auth.oauth.profiles, style));
    if let Some(probes) = &status.auth.probes {
        lines.extend([String::new(), style.accent("Auth probes")]);
        lines.extend(probes.lines(style));
    }
    lines
}

fn row(label: &str, value: &str) -> String {
    format!("{label:14}: {value}")
}

fn counted(label: &str, items: &[String], none: &str) -> String {
    let shown = if items.is_empty() { none.to_owned() } else { items.join(", ") };
    row(&format!("{label} ({})", items.len()), &shown)
}

fn overview(status: &ModelsStatus, context: &CliContext) -> Vec<String> {
    let (written, resolved) = (&status.default_model, &status.resolved_default);
    let default = if written == resolved { resolved.clone() } else { format!("{resolved} (from {written})") };
    let aliases: Vec<String> = status
        .aliases
        .iter()
        .map(|(alias, target)| format!("{alias} -> {}", target.as_str().unwrap_or_default()))
        .collect();
    let cached: Vec<String> = status
        .cache_retention
        .iter()
        .map(|(model, kept)| format!("{model} {}", kept.as_str().unwrap_or_default()))
        .collect();
    let mut lines = vec![
        row("Config", &context.short(context.paths().config_path())),
        row("Agent dir", &context.short(Path::new(&status.agent_dir))),
        row("Default", &default),
        counted("Fallbacks", &status.fallbacks, "-"),
        row("Image model", status.image_model.as_deref().unwrap_or("-")),
        counted("Image fallbacks", &status.image_fallbacks, "-"),
        counted("Aliases", &aliases, "-"),
        counted("Configured models", &status.allowed, "all"),
    ];
    if !cached.is_empty() {
        lines.push(row("Prompt cache", &cached.join(", ")));
    }
    lines
}

fn auth(auth: &Auth, context: &CliContext) -> Vec<String> {
    let shell = &auth.shell_env_fallback;
    let mut imported = if shell.enabled { "on" } else { "off" }.to_owned();
    if !shell.applied_keys.is_empty() {
        imported.push_str(&format!(" (applied: {})", shell.applied_keys.join(", ")));
    }
    let mut lines = vec![
        row("Auth store", &context.short(Path::new(&auth.store_path))),
        row("Shell env", &imported),
        counted("Providers w/ OAuth/tokens", &auth.providers_with_oauth, "-"),
    ];
    lines.extend(auth.providers.iter().map(|provider| provider_line(provider, context)));
    lines
}

fn provider_line(provider: &ProviderAuth, context: &CliContext) -> String {
    let effective = &provider.effective;
    let detail = match effective.kind {
        AuthSource::Profiles => context.short(Path::new(&effective.detail)),
        AuthSource::Env | AuthSource::ModelsJson | AuthSource::Missing => effective.detail.clone(),
    };
    let mut parts = vec![format!("effective={}:{detail}", effective.kind.as_str())];
    let profiles = &provider.profiles;
    if profiles.count > 0 {
        parts.push(format!(
            "profiles={} (oauth={}, token={}, api_key={})",
            profiles.count, profiles.oauth, profiles.token, profiles.api_key
        ));
        parts.push(profiles.labels.join(", "));
    }
    for (name, sourced) in [("env", &provider.env), ("models.json", &provider.models_json)] {
        if let Some(sourced) = sourced {
            parts.push(format!("{name}={} | source={}", sourced.value, sourced.source));
        }
    }
    format!("- {} {}", provider.provider, parts.join(" | "))
}

fn unusable(profile: &Unusable, style: Style) -> String {
    let reason = profile.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let until = jiff::Timestamp::from_millisecond(profile.until).map(|at| format!("{at:.0}"));
    format!(
        "- {} {}{reason} until {}, {} left",
        profile.profile_id,
        style.warn(profile.kind),
        until.unwrap_or_default(),
        output::remaining(profile.remaining_ms)
    )
}

fn expiry(profiles: &[ProfileHealth], style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    let mut last = None;
    for profile in profiles.iter().filter(|profile| profile.can_expire()) {
        if last != Some(&profile.provider) {
            lines.push(format!("- {}", profile.provider));
            last = Some(&profile.provider);
        }
        let status = match profile.status {
            Health::Ok => style.success("ok"),
            Health::Expiring => style.warn("expiring"),
            Health::Expired => style.error("expired"),
            Health::Missing => style.warn("unknown"),
            Health::Static => style.muted("static"),
        };
        let expires = match (profile.status, profile.remaining_ms) {
            (Health::Static, _) => String::new(),
            (_, Some(left)) => format!(" expires in {}", output::remaining(left)),
            (_, None) => " expires unknown".to_owned(),
        };
        lines.push(format!("  - {} {status}{expires}", profile.label));
    }
    if lines.is_empty() { vec![style.muted("- none")] } else { lines }
}
