//! Gemini CLI accounts: the worst of the Pro and of the Flash models.

use serde_json::{Value, json};

use super::access::{QuotaCredential, Wants};
use super::ask::QuotaQuestion;
use super::reading::{number, time, window};
use super::servers::QuotaServers;
use super::{Quota, QuotaProvider};

pub(super) const PROVIDER: QuotaProvider =
    QuotaProvider { id: "google-gemini-cli", name: "Gemini", wants: Wants::Login, ask, read };

/// Part of a model's id, and label, of each family.
const FAMILIES: &[(&str, &str)] = &[("pro", "Pro"), ("flash", "Flash")];

fn ask(servers: &QuotaServers, access: &QuotaCredential) -> Vec<QuotaQuestion> {
    let url = format!("{}/v1internal:retrieveUserQuota", servers.at("https://cloudcode-pa.googleapis.com"));
    let body = access.project.as_ref().map_or_else(|| json!({}), |project| json!({ "project": project }));
    vec![QuotaQuestion::post(url, access, body)]
}

fn read(answers: &[Value]) -> Result<Quota, String> {
    let buckets = answers.first().and_then(|answer| answer.get("buckets")?.as_array());
    let windows = FAMILIES.iter().filter_map(|(part, label)| {
        let of_family = |bucket: &&Value| {
            let id = bucket.get("modelId").and_then(Value::as_str).unwrap_or_default();
            id.to_lowercase().contains(part)
        };
        let left = |bucket: &Value| bucket.get("remainingFraction").and_then(number).unwrap_or(1.0);
        let of_family = buckets.into_iter().flatten().filter(of_family);
        let worst = of_family.min_by(|a, b| left(a).total_cmp(&left(b)))?;
        let resets = worst.get("resetTime").and_then(time);
        Some(window(*label, (1.0 - left(worst)) * 100.0, resets))
    });
    Ok(Quota { windows: windows.collect(), plan: None })
}
