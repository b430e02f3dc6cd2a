//! `openclaw channels logs` (spec `cli.md` §3.9): the lines of the gateway's log that platforms wrote, or that are about them.

use openclaw_config::registry;
use serde_json::{Value, json};

use crate::args::positive;
use crate::commands::logs::{LogLine, log_file, read_from};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

/// Bytes at the end of the file that are looked at.
const LOOKED_AT: u64 = 1_000_000;

pub(super) fn run(context: &CliContext, channel: &str, lines: &str, json: bool) -> CommandResult {
    let most = positive::<u64>(lines, "--lines must be a positive integer")?;
    let wanted = match channel.trim() {
        "all" => None,
        name => Some(registry::by_name(name).map(|info| info.id).ok_or_else(|| super::unknown(name))?),
    };
    let path = log_file(context);
    let size = std::fs::metadata(&path).map(|file| file.len()).unwrap_or_default();
    let start = size.saturating_sub(LOOKED_AT);
    let text = if path.is_file() {
        read_from(&path, start).map_err(|error| {
            CommandFailure::new("log", format!("could not read {}: {error}", path.display()))
        })?
    } else {
        String::new()
    };
    let all: Vec<&str> = text.lines().skip(usize::from(start > 0)).collect();
    let mut found: Vec<&str> = all.into_iter().filter(|line| is_about(line, wanted)).collect();
    found.drain(..found.len().saturating_sub(usize::try_from(most).unwrap_or(usize::MAX)));
    if json {
        let lines: Vec<LogLine<'_>> = found.iter().map(|line| LogLine::of(line)).collect();
        output::json(&json!({"file": path.display().to_string(), "channel": channel.trim(), "lines": lines}));
        return Ok(0);
    }
    output::line(&context.style.muted(&format!("Log file: {}", path.display())));
    if found.is_empty() {
        output::line(&context.style.muted("No matching log lines."));
    }
    found.iter().for_each(|line| output::line(&LogLine::of(line).readable(context.style)));
    Ok(0)
}

/// True if a line was written by a platform, or names one. `None` is any.
fn is_about(line: &str, channel: Option<&str>) -> bool {
    let Ok(Value::Object(record)) = serde_json::from_str::<Value>(line) else { return false };
    let name = record.get("0").and_then(Value::as_str).unwrap_or_default();
    let named = record.values().find_map(|value| value.get("channel").and_then(Value::as_str));
    let ids = registry::core_channels().filter(|info| info.deliverable).map(|info| info.id);
    let mut wanted = ids.filter(|id| channel.is_none_or(|channel| channel == *id));
    wanted.any(|id| named == Some(id) || name.contains(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_by_who_wrote_them_and_what_they_name() {
        let by_driver = r#"{"0":"{\"subsystem\":\"channels/telegram\"}","1":"hi"}"#;
        let by_gateway =
            r#"{"0":"{\"subsystem\":\"gateway/channels\"}","1":{"channel":"telegram"},"2":"started"}"#;
        let other = r#"{"0":"{\"subsystem\":\"gateway\"}","1":"telegraph"}"#;
        for (line, channel, expect) in [
            (by_driver, Some("telegram"), true),
            (by_driver, Some("slack"), false),
            (by_driver, None, true),
            (by_gateway, Some("telegram"), true),
            (other, None, false),
            ("no json", None, false),
        ] {
            assert_eq!(is_about(line, channel), expect, "{line} {channel:?}");
        }
    }
}
