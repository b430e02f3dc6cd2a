//! MiniMax coding plans, outside of China and in it.

use openclaw_protocol::params::usage::UsageWindow;
use serde_json::Value;

use super::access::{QuotaCredential, Wants};
use super::ask::QuotaQuestion;
use super::reading::{number, text, time, window};
use super::servers::QuotaServers;
use super::{Quota, QuotaProvider};

pub(super) const PROVIDER: QuotaProvider = QuotaProvider {
    id: "minimax",
    name: "MiniMax",
    wants: Wants::Key,
    ask: |servers, access| ask(servers.at("https://api.minimax.io"), access),
    read,
};
pub(super) const CHINA: QuotaProvider = QuotaProvider {
    id: "minimax-cn",
    name: "MiniMax (China)",
    wants: Wants::Key,
    ask: |servers: &QuotaServers, access| ask(servers.at("https://api.minimaxi.com"), access),
    read,
};

/// The row that counts for chat; where there is none the first row does.
const CHAT_ROWS: &[&str] = &["general", "MiniMax-M*"];

fn ask(server: &str, access: &QuotaCredential) -> Vec<QuotaQuestion> {
    vec![QuotaQuestion::get(format!("{server}/v1/api/openplatform/coding_plan/remains"), access)]
}

fn read(answers: &[Value]) -> Result<Quota, String> {
    let answer = answers.first().unwrap_or(&Value::Null);
    if answer.pointer("/base_resp/status_code").and_then(number).is_some_and(|code| code != 0.0) {
        let words = answer.pointer("/base_resp/status_msg").and_then(text);
        return Err(words.unwrap_or_else(|| "API error".to_owned()));
    }
    let rows: Vec<&Value> = list(answer).collect();
    let named = |row: &&&Value| {
        let name = row.get("model_name").and_then(Value::as_str).unwrap_or_default();
        CHAT_ROWS.contains(&name)
    };
    let Some(row) = rows.iter().find(named).or(rows.first()) else {
        return Err("the answer names no plan".to_owned());
    };
    let windows: Vec<UsageWindow> = [interval(row), part(row, "current_weekly", "weekly_end_time", "Week")]
        .into_iter()
        .flatten()
        .collect();
    if windows.is_empty() {
        return Err("the answer has no quota".to_owned());
    }
    let plan =
        ["plan_name", "plan", "current_subscribe_title"].iter().find_map(|name| text(answer.get(name)?));
    Ok(Quota { windows, plan })
}

fn list(answer: &Value) -> impl Iterator<Item = &Value> {
    let at = |place: &str| answer.pointer(place).and_then(Value::as_array);
    at("/model_remains").or_else(|| at("/data/model_remains")).into_iter().flatten()
}

/// The window that runs now; its length is that of `start_time` to `end_time`, five hours where they are not told.
fn interval(row: &Value) -> Option<UsageWindow> {
    let at = |name: &str| row.get(name).and_then(time);
    let hours =
        at("start_time").zip(at("end_time")).map_or(0, |(start, end)| (end - start + 1_800_000) / 3_600_000);
    let label = if hours > 0 { format!("{hours}h") } else { "5h".to_owned() };
    part(row, "current_interval", "end_time", &label)
}

/// `…_remaining_percent`, else `…_usage_count` of `…_total_count`. The count is, against its name, what is left.
fn part(row: &Value, prefix: &str, end: &str, label: &str) -> Option<UsageWindow> {
    let of = |name: &str| row.get(format!("{prefix}_{name}")).and_then(number);
    let counted = || {
        let total = of("total_count").filter(|total| *total > 0.0)?;
        Some(of("usage_count")? / total * 100.0)
    };
    let left = of("remaining_percent").or_else(counted)?;
    Some(window(label, 100.0 - left, row.get(end).and_then(time)))
}
