//! GitHub Copilot: requests of a month.

use serde_json::Value;

use super::access::{QuotaCredential, Wants};
use super::ask::QuotaQuestion;
use super::reading::{number, text, time, window};
use super::servers::QuotaServers;
use super::{Quota, QuotaProvider};

pub(super) const PROVIDER: QuotaProvider =
    QuotaProvider { id: "github-copilot", name: "Copilot", wants: Wants::Login, ask, read };

/// Field and label of each window.
const WINDOWS: &[(&str, &str)] = &[("premium_interactions", "Premium"), ("chat", "Chat")];

fn ask(servers: &QuotaServers, access: &QuotaCredential) -> Vec<QuotaQuestion> {
    let url = format!("{}/copilot_internal/user", servers.at("https://api.github.com"));
    vec![QuotaQuestion::get(url, access).with("x-github-api-version", "2025-04-01")]
}

fn read(answers: &[Value]) -> Result<Quota, String> {
    let answer = answers.first().unwrap_or(&Value::Null);
    let resets = ["quota_reset_date_utc", "quota_reset_date"].iter().find_map(|name| date(answer.get(name)?));
    let windows = WINDOWS.iter().filter_map(|(field, label)| {
        let part = answer.get("quota_snapshots")?.get(field)?;
        // Nothing is said of what is not limited.
        let left = number(part.get("percent_remaining")?)?;
        Some(window(*label, 100.0 - left, resets))
    });
    Ok(Quota { windows: windows.collect(), plan: answer.get("copilot_plan").and_then(text) })
}

/// A time, or a day, which begins at midnight UTC.
fn date(value: &Value) -> Option<i64> {
    let day = || value.as_str().map(|day| Value::String(format!("{}T00:00:00Z", day.trim())));
    time(value).or_else(|| time(&day()?))
}
