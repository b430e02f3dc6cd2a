//! Antigravity accounts: credits of a month, and the models of which most is used.

use openclaw_protocol::params::usage::UsageWindow;
use serde_json::{Value, json};

use super::access::{QuotaCredential, Wants};
use super::ask::QuotaQuestion;
use super::reading::{number, text, time, window};
use super::servers::QuotaServers;
use super::{Quota, QuotaProvider};

pub(super) const PROVIDER: QuotaProvider =
    QuotaProvider { id: "google-antigravity", name: "Antigravity", wants: Wants::Login, ask, read };

/// Models shown.
const MODELS: usize = 10;
/// Parts of ids of models that are the editor's own.
const INTERNAL: &[&str] = &["chat_", "tab_"];

fn ask(servers: &QuotaServers, access: &QuotaCredential) -> Vec<QuotaQuestion> {
    let at =
        |method: &str| format!("{}/v1internal:{method}", servers.at("https://cloudcode-pa.googleapis.com"));
    let project = access.project.as_ref().map_or_else(|| json!({}), |project| json!({ "project": project }));
    let metadata = json!({ "metadata": { "ideType": "IDE_UNSPECIFIED", "pluginType": "GEMINI" } });
    vec![
        QuotaQuestion::post(at("loadCodeAssist"), access, metadata),
        QuotaQuestion::post(at("fetchAvailableModels"), access, project),
    ]
}

fn read(answers: &[Value]) -> Result<Quota, String> {
    let account = answers.first().unwrap_or(&Value::Null);
    let mut windows: Vec<UsageWindow> = credits(account).into_iter().collect();
    windows.extend(answers.get(1).map(models).unwrap_or_default());
    let plan = ["/currentTier/name", "/planType"].iter().find_map(|at| text(account.pointer(at)?));
    Ok(Quota { windows, plan })
}

fn credits(account: &Value) -> Option<UsageWindow> {
    let left = number(account.get("availablePromptCredits")?)?;
    let monthly = number(account.pointer("/planInfo/monthlyPromptCredits")?)?;
    (monthly > 0.0).then(|| window("Credits", (monthly - left) / monthly * 100.0, None))
}

fn models(answer: &Value) -> Vec<UsageWindow> {
    let models = answer.get("models").and_then(Value::as_object).into_iter().flatten();
    let outside = models.filter(|(id, _)| {
        let id = id.to_lowercase();
        !INTERNAL.iter().any(|part| id.contains(part))
    });
    let mut windows: Vec<UsageWindow> = outside
        .filter_map(|(id, model)| {
            let quota = model.get("quotaInfo")?;
            let left = number(quota.get("remainingFraction")?)?;
            Some(window(id.as_str(), (1.0 - left) * 100.0, quota.get("resetTime").and_then(time)))
        })
        .collect();
    windows.sort_by(|a, b| b.used_percent.total_cmp(&a.used_percent));
    windows.truncate(MODELS);
    windows
}
