//! `openclaw logs` (spec `cli.md` §3.5).

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::args::{LogsArgs, given, positive};
use crate::client::{self, ConnectError, Connection, Target, TargetFlags, Wait};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Style};

/// Time for one look unless asked otherwise.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The checked arguments.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    limit: u64,
    max_bytes: u64,
    interval: Duration,
    json: bool,
    style: Style,
}

pub(super) fn run(args: &LogsArgs, context: &Context) -> Outcome {
    let positive = |text: &str, name: &str| positive(text, format!("--{name} must be a positive integer"));
    let wanted = Wanted {
        limit: positive(&args.limit, "limit")?,
        max_bytes: positive(&args.max_bytes, "max-bytes")?,
        interval: Duration::from_millis(positive(&args.interval, "interval")?),
        json: args.json,
        style: if args.plain || args.no_color || args.json { Style::PLAIN } else { context.style },
    };
    let timeout = client::timeout_of(args.target.timeout.as_deref(), DEFAULT_TIMEOUT)?;
    let target = Target::resolve(context, &TargetFlags::from(&args.target))?;
    client::block_on(async {
        let opened = tokio::time::timeout(timeout, Connection::open(context, &target)).await;
        match opened {
            Ok(Ok(connection)) => tail(connection, wanted, timeout, args.follow, context, &target).await,
            Ok(Err(error @ ConnectError::Unreachable { .. })) if target.bind.is_some() => {
                read_file(context, &target, wanted, &error)
            }
            Ok(Err(error)) => Err(client::explain(context, &target, &error)),
            Err(_) => Err(not_reachable(context, &target)),
        }
    })
}

fn not_reachable(context: &Context, target: &Target) -> Failure {
    let block = target.describe(context);
    Failure::new("unreachable", format!("Gateway not reachable. Is it running and accessible?\n{block}"))
        .hint(format!("Hint: start it with `{}`.", context.hint_command("openclaw gateway")))
}

async fn tail(
    mut connection: Connection,
    wanted: Wanted,
    timeout: Duration,
    follow: bool,
    context: &Context,
    target: &Target,
) -> Outcome {
    let mut cursor: Option<u64> = None;
    loop {
        let mut params = json!({ "limit": wanted.limit, "maxBytes": wanted.max_bytes });
        if let (Some(cursor), Some(params)) = (cursor, params.as_object_mut()) {
            params.insert("cursor".to_owned(), json!(cursor));
        }
        let answer = tokio::time::timeout(timeout, connection.call("logs.tail", params, Wait::First)).await;
        let page = match answer {
            Ok(Ok(page)) => page,
            Ok(Err(error)) => return Err(client::explain(context, target, &error)),
            Err(_) => return Err(not_reachable(context, target)),
        };
        print_page(&page, wanted, cursor.is_none());
        if !follow {
            connection.close().await;
            return Ok(0);
        }
        cursor = page.get("cursor").and_then(Value::as_u64).or(cursor);
        tokio::time::sleep(wanted.interval).await;
    }
}

/// The local file, when no gateway answers: that is when logs are needed most.
fn read_file(context: &Context, target: &Target, wanted: Wanted, error: &ConnectError) -> Outcome {
    let explained = client::explain(context, target, error);
    let Some(path) = newest_log(context) else { return Err(explained) };
    let size = std::fs::metadata(&path).map(|file| file.len()).unwrap_or_default();
    let start = size.saturating_sub(wanted.max_bytes);
    let text = read_from(&path, start)
        .map_err(|error| Failure::new("log", format!("could not read {}: {error}", path.display())))?;
    let mut lines: Vec<&str> = text.lines().collect();
    if start > 0 && !lines.is_empty() {
        lines.remove(0);
    }
    let skipped = lines.len().saturating_sub(usize::try_from(wanted.limit).unwrap_or(usize::MAX));
    let shown: Vec<&str> = lines.into_iter().skip(skipped).collect();
    let file = path.display().to_string();
    let page = json!({ "file": file, "cursor": size, "size": size, "lines": shown, "truncated": start > 0 });
    // A gateway that runs elsewhere is more than one that is not reachable.
    match explained.code {
        "other-port" | "no-port" => {
            output::error_line(&explained.message);
            explained.hint.iter().for_each(|hint| output::error_line(hint));
            output::error_line("Reading the log file meanwhile.");
        }
        _ => output::error_line(&format!("Gateway not reachable ({error}); reading the log file.")),
    }
    print_page(&page, wanted, true);
    Ok(0)
}

fn read_from(path: &Path, start: u64) -> std::io::Result<String> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut file = std::fs::File::open(path)?;
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// `logging.file`, else the newest dated file.
pub(super) fn newest_log(context: &Context) -> Option<PathBuf> {
    let config = context.config_or_default();
    if let Some(file) = given(config.logging.file.as_deref()) {
        return Some(context.env().expand_path(file)).filter(|path| path.is_file());
    }
    let is_log = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("openclaw-") && name.ends_with(".log")
    };
    std::fs::read_dir(context.paths().log_dir())
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .filter(is_log)
        .max()
}

fn print_page(page: &Value, wanted: Wanted, is_first: bool) {
    let file = page.get("file").and_then(Value::as_str).unwrap_or_default();
    if is_first && wanted.json {
        let number = |key: &str| page.get(key).cloned().unwrap_or_default();
        output::json_line(
            &json!({ "type": "meta", "file": file, "cursor": number("cursor"), "size": number("size") }),
        );
    } else if is_first {
        output::line(&wanted.style.muted(&format!("Log file: {file}")));
    }
    let is = |key: &str| page.get(key) == Some(&Value::Bool(true));
    let notices = [
        (is("reset"), "Log file was rotated; starting again."),
        (is("truncated"), "Log tail truncated (increase --max-bytes)."),
    ];
    for (_, text) in notices.into_iter().filter(|(holds, _)| *holds) {
        if wanted.json {
            output::json_line(&json!({ "type": "notice", "message": text }));
        } else {
            output::error_line(text);
        }
    }
    let lines = page.get("lines").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    for line in lines {
        if wanted.json {
            output::json_line(&entry(line));
        } else {
            output::line(&readable(line, wanted.style));
        }
    }
}

/// A line of the log file: `{type:"log", time, level, subsystem?, message, raw}`, or `{type:"raw", raw}`.
fn entry(line: &str) -> Value {
    let Some(log) = serde_json::from_str::<Value>(line).ok().filter(Value::is_object) else {
        return json!({ "type": "raw", "raw": line });
    };
    let text = |pointer: &str| log.pointer(pointer).and_then(Value::as_str);
    let time = text("/time").or_else(|| text("/_meta/date"));
    let level = text("/_meta/logLevelName").or_else(|| text("/level")).map(str::to_lowercase);
    let name = text("/_meta/name").and_then(|name| serde_json::from_str::<Value>(name).ok());
    let subsystem = name
        .as_ref()
        .and_then(|name| name.get("subsystem").or_else(|| name.get("module"))?.as_str())
        .or_else(|| text("/subsystem"));
    let mut out = json!({ "type": "log", "time": time, "level": level });
    if let Some(out) = out.as_object_mut() {
        if let Some(subsystem) = subsystem {
            out.insert("subsystem".to_owned(), json!(subsystem));
        }
        out.insert("message".to_owned(), json!(message(&log)));
        out.insert("raw".to_owned(), json!(line));
    }
    out
}

/// Numbered arguments of a log call that are looked at.
const MAX_ARGUMENTS: usize = 16;

/// The numbered arguments of a log call, joined; the first may only say who speaks.
fn message(log: &Value) -> String {
    if let Some(text) = log.get("message").and_then(Value::as_str) {
        return text.to_owned();
    }
    let arguments = (0..MAX_ARGUMENTS).map_while(|index| log.get(index.to_string()));
    let is_speaker =
        |index: usize, part: &Value| index == 0 && part.as_str().is_some_and(|text| text.starts_with("{\""));
    let parts = arguments.enumerate().filter(|(index, part)| !is_speaker(*index, part));
    parts
        .map(|(_, part)| part.as_str().map_or_else(|| part.to_string(), str::to_owned))
        .collect::<Vec<_>>()
        .join(" ")
}

/// `<time> <level> [subsystem] <message>`.
fn readable(line: &str, style: Style) -> String {
    let entry = entry(line);
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    if text("type") == Some("raw") {
        return line.to_owned();
    }
    let level = text("level").unwrap_or("info");
    let message = text("message").unwrap_or_default();
    let message = output::one_line(message);
    let message = match level {
        "error" | "fatal" => style.error(&message),
        "warn" => style.warn(&message),
        "debug" | "trace" => style.muted(&message),
        _ => message.into_owned(),
    };
    let time = style.muted(text("time").unwrap_or_default());
    match text("subsystem") {
        Some(subsystem) => format!("{time} {level} {} {message}", style.accent(&format!("[{subsystem}]"))),
        None => format!("{time} {level} {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_reference_are_read_as_recorded() {
        let line = r#"{"0":"Error: Unknown channel: pigeon","_meta":{"name":"openclaw","date":"2026-11-21T02:57:10.358Z","logLevelName":"ERROR"},"time":"2026-11-21T02:57:10.359Z"}"#;
        assert_eq!(
            entry(line),
            json!({
                "type": "log", "time": "2026-11-21T02:57:10.359Z", "level": "error",
                "message": "Error: Unknown channel: pigeon", "raw": line,
            })
        );
        assert_eq!(
            readable(line, Style::PLAIN),
            "2026-11-21T02:57:10.359Z error Error: Unknown channel: pigeon"
        );
    }

    #[test]
    fn a_subsystem_is_named_and_not_part_of_the_message() {
        let line = r#"{"0":"{\"subsystem\":\"gateway\"}","1":"listening","_meta":{"name":"{\"subsystem\":\"gateway\"}","logLevelName":"INFO"},"time":"t"}"#;
        let entry = entry(line);
        assert_eq!((&entry["subsystem"], &entry["message"]), (&json!("gateway"), &json!("listening")));
        assert_eq!(readable(line, Style::PLAIN), "t info [gateway] listening");
    }

    #[test]
    fn other_lines_are_shown_as_they_are() {
        assert_eq!(entry("plain"), json!({ "type": "raw", "raw": "plain" }));
        assert_eq!(readable("plain", Style::PLAIN), "plain");
    }
}
