//! ChatGPT accounts as Codex uses them.

use serde_json::Value;

use super::access::{QuotaCredential, Wants};
use super::ask::QuotaQuestion;
use super::reading::{number, text, time, window};
use super::servers::QuotaServers;
use super::{Quota, QuotaProvider};

pub(super) const PROVIDER: QuotaProvider =
    QuotaProvider { id: "openai-codex", name: "Codex", wants: Wants::Login, ask, read };

/// A second window that begins anew this much later than the first is a week, whatever length it says: seconds.
const WEEKLY_GAP: f64 = 3.0 * 86_400.0;

fn ask(servers: &QuotaServers, access: &QuotaCredential) -> Vec<QuotaQuestion> {
    let question =
        QuotaQuestion::get(format!("{}/backend-api/wham/usage", servers.at("https://chatgpt.com")), access);
    vec![match &access.account {
        Some(account) => question.with("chatgpt-account-id", account),
        None => question,
    }]
}

fn read(answers: &[Value]) -> Result<Quota, String> {
    let answer = answers.first().unwrap_or(&Value::Null);
    let part = |name: &str| answer.pointer(&format!("/rate_limit/{name}")).filter(|part| part.is_object());
    let of = |part: Option<&Value>, field: &str| part?.get(field).and_then(number);
    let (first, second) = (part("primary_window"), part("secondary_window"));
    let gap = of(second, "reset_at").zip(of(first, "reset_at")).map_or(0.0, |(later, sooner)| later - sooner);
    let windows =
        [(first, 10_800.0), (second, 86_400.0)].into_iter().enumerate().filter_map(|(at, (part, usual))| {
            let hours =
                (of(part, "limit_window_seconds").filter(|it| *it > 0.0).unwrap_or(usual) / 3600.0).round();
            let label = match hours {
                _ if hours >= 168.0 => "Week".to_owned(),
                _ if at == 0 || hours < 24.0 => format!("{hours}h"),
                _ if gap >= WEEKLY_GAP => "Week".to_owned(),
                _ => "Day".to_owned(),
            };
            let used = of(part, "used_percent").unwrap_or(0.0);
            Some(window(label, used, part?.get("reset_at").and_then(time)))
        });
    Ok(Quota { windows: windows.collect(), plan: answer.get("plan_type").and_then(text) })
}
