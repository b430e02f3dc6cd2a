//! Z.AI coding plans.

use serde_json::Value;

use super::access::{QuotaCredential, Wants};
use super::ask::QuotaQuestion;
use super::reading::{number, text, time, window};
use super::servers::QuotaServers;
use super::{Quota, QuotaProvider};

pub(super) const PROVIDER: QuotaProvider =
    QuotaProvider { id: "zai", name: "z.ai", wants: Wants::Key, ask, read };

/// Unit numbers and what they count.
const UNITS: &[(f64, &str)] = &[(1.0, "d"), (3.0, "h"), (5.0, "m"), (6.0, "w")];

fn ask(servers: &QuotaServers, access: &QuotaCredential) -> Vec<QuotaQuestion> {
    vec![QuotaQuestion::get(
        format!("{}/api/monitor/usage/quota/limit", servers.at("https://api.z.ai")),
        access,
    )]
}

fn read(answers: &[Value]) -> Result<Quota, String> {
    let answer = answers.first().unwrap_or(&Value::Null);
    let is_good = answer.get("success") == Some(&Value::Bool(true))
        && answer.get("code").and_then(number).is_none_or(|code| (200.0..300.0).contains(&code));
    if !is_good {
        return Err(answer.get("msg").and_then(text).unwrap_or_else(|| "API error".to_owned()));
    }
    let limits = answer.pointer("/data/limits").and_then(Value::as_array).into_iter().flatten();
    let windows = limits.filter_map(|limit| {
        let label = match limit.get("type").and_then(Value::as_str)? {
            "TOKENS_LIMIT" => format!("Tokens ({})", length(limit)),
            "TIME_LIMIT" => "Monthly".to_owned(),
            _ => return None,
        };
        let used = limit.get("percentage").and_then(number).unwrap_or(0.0);
        Some(window(label, used, limit.get("nextResetTime").and_then(time)))
    });
    let plan = ["planName", "plan", "level"].iter().find_map(|name| text(answer.get("data")?.get(name)?));
    Ok(Quota { windows: windows.collect(), plan })
}

fn length(limit: &Value) -> String {
    let unit = limit.get("unit").and_then(number);
    let unit = UNITS.iter().find(|(known, _)| Some(*known) == unit).map(|(_, unit)| unit);
    let count = limit.get("number").and_then(number);
    unit.zip(count).map_or_else(|| "Limit".to_owned(), |(unit, count)| format!("{count}{unit}"))
}
