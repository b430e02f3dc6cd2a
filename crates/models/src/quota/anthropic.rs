//! Claude subscriptions: five hours, a week, and a week of single models.

use serde_json::Value;

use super::access::{QuotaCredential, Wants};
use super::ask::QuotaQuestion;
use super::reading::{number, time, window};
use super::servers::QuotaServers;
use super::{Quota, QuotaProvider};

pub(super) const PROVIDER: QuotaProvider =
    QuotaProvider { id: "anthropic", name: "Claude", wants: Wants::Login, ask, read };

/// Field and label of each window.
const WINDOWS: &[(&str, &str)] =
    &[("five_hour", "5h"), ("seven_day", "Week"), ("seven_day_sonnet", "Sonnet"), ("seven_day_opus", "Opus")];

fn ask(servers: &QuotaServers, access: &QuotaCredential) -> Vec<QuotaQuestion> {
    let url = format!("{}/api/oauth/usage", servers.at("https://api.anthropic.com"));
    let question = QuotaQuestion::get(url, access);
    vec![question.with("anthropic-version", "2023-06-01").with("anthropic-beta", "oauth-2025-04-20")]
}

fn read(answers: &[Value]) -> Result<Quota, String> {
    let found = WINDOWS.iter().filter_map(|(field, label)| {
        let part = answers.first()?.get(field)?;
        let resets = part.get("resets_at").and_then(time);
        Some(window(*label, number(part.get("utilization")?)?, resets))
    });
    Ok(Quota { windows: found.collect(), plan: None })
}
