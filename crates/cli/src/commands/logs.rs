//! `openclaw logs` (spec `cli.md` §3.5).

use std::path::{Path, PathBuf};
use std::time::Duration;

use openclaw_config::shared_place;
use openclaw_protocol::Call as _;
use openclaw_protocol::params::logs::{LogsTail, LogsTailParams, LogsTailResult};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::{LogsArgs, given, positive};
use crate::client::{self, AwaitedResponse, ConnectError, GatewayConnection, GatewayTarget, TargetFlags};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output::{self, Style};
use crate::service;

/// Time for one look unless asked otherwise.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The checked arguments.
#[derive(Debug, Clone, Copy)]
struct LogOptions {
    limit: u64,
    max_bytes: u64,
    interval: Duration,
    json: bool,
    style: Style,
}

pub(super) fn run(args: &LogsArgs, context: &CliContext) -> CommandResult {
    let positive = |text: &str, name: &str| positive(text, format!("--{name} must be a positive integer"));
    let wanted = LogOptions {
        limit: positive(&args.limit, "limit")?,
        max_bytes: positive(&args.max_bytes, "max-bytes")?,
        interval: Duration::from_millis(positive(&args.interval, "interval")?),
        json: args.json,
        style: if args.plain || args.no_color || args.json { Style::PLAIN } else { context.style },
    };
    let timeout = client::timeout_of(args.target.timeout.as_deref(), DEFAULT_TIMEOUT)?;
    let target = GatewayTarget::resolve(context, &TargetFlags::from(&args.target))?;
    client::block_on(async {
        let opened = tokio::time::timeout(timeout, GatewayConnection::open(context, &target)).await;
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

fn not_reachable(context: &CliContext, target: &GatewayTarget) -> CommandFailure {
    let block = target.describe(context);
    CommandFailure::new(
        "unreachable",
        format!("Gateway not reachable. Is it running and accessible?\n{block}"),
    )
    .hint(format!("Hint: start it with `{}`.", service::start_command(context)))
}

async fn tail(
    mut connection: GatewayConnection,
    wanted: LogOptions,
    timeout: Duration,
    follow: bool,
    context: &CliContext,
    target: &GatewayTarget,
) -> CommandResult {
    let mut cursor: Option<u64> = None;
    loop {
        let params =
            json!(LogsTailParams { cursor, limit: Some(wanted.limit), max_bytes: Some(wanted.max_bytes) });
        let answer =
            tokio::time::timeout(timeout, connection.call(LogsTail::NAME, params, AwaitedResponse::First))
                .await;
        let page = match answer {
            Ok(Ok(page)) => client::read::<LogsTail>(page, "log")?,
            Ok(Err(error)) => return Err(client::explain(context, target, &error)),
            Err(_) => return Err(not_reachable(context, target)),
        };
        print_page(&page, wanted, cursor.is_none());
        if !follow {
            connection.close().await;
            return Ok(0);
        }
        cursor = Some(page.cursor);
        tokio::time::sleep(wanted.interval).await;
    }
}

/// The local file, when no gateway answers: that is when logs are needed most.
fn read_file(
    context: &CliContext,
    target: &GatewayTarget,
    wanted: LogOptions,
    error: &ConnectError,
) -> CommandResult {
    let explained = client::explain(context, target, error);
    let Some(path) = Some(log_file(context)).filter(|path| path.is_file()) else { return Err(explained) };
    let size = std::fs::metadata(&path).map(|file| file.len()).unwrap_or_default();
    let start = size.saturating_sub(wanted.max_bytes);
    let text = read_from(&path, start)
        .map_err(|error| CommandFailure::new("log", format!("could not read {}: {error}", path.display())))?;
    // The first line is not whole where something before it was left out.
    let mut lines: Vec<String> = text.lines().skip(usize::from(start > 0)).map(str::to_owned).collect();
    let limit = usize::try_from(wanted.limit).unwrap_or(usize::MAX);
    lines.drain(..lines.len().saturating_sub(limit));
    let file = path.display().to_string();
    let page = LogsTailResult { file, cursor: size, size, lines, truncated: start > 0, reset: false };
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

pub(super) fn read_from(path: &Path, start: u64) -> std::io::Result<String> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut file = shared_place::open(path)?;
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The file the gateway writes to, or would: `logging.file`, else the newest dated file, else today's.
pub(super) fn log_file(context: &CliContext) -> PathBuf {
    let config = context.config_or_default();
    if let Some(file) = given(config.logging.file.as_deref()) {
        return context.env().expand_path(file);
    }
    let is_log = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("openclaw-") && name.ends_with(".log")
    };
    let dir = context.paths().log_dir();
    let files = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    files
        .filter(is_log)
        .max()
        .unwrap_or_else(|| dir.join(format!("openclaw-{}.log", jiff::Zoned::now().strftime("%Y-%m-%d"))))
}

fn print_page(page: &LogsTailResult, wanted: LogOptions, is_first: bool) {
    let LogsTailResult { file, cursor, size, lines, truncated, reset } = page;
    if is_first && wanted.json {
        output::json_line(&json!({ "type": "meta", "file": file, "cursor": cursor, "size": size }));
    } else if is_first {
        output::line(&wanted.style.muted(&format!("Log file: {file}")));
    }
    let notices = [
        (reset, "Log file was rotated; starting again."),
        (truncated, "Log tail truncated (increase --max-bytes)."),
    ];
    for (_, text) in notices.into_iter().filter(|(holds, _)| **holds) {
        if wanted.json {
            output::json_line(&json!({ "type": "notice", "message": text }));
        } else {
            output::error_line(text);
        }
    }
    for line in lines {
        if wanted.json {
            output::json_line(&LogLine::of(line));
        } else {
            output::line(&LogLine::of(line).readable(wanted.style));
        }
    }
}

/// A line of the log file.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum LogLine<'a> {
    Log {
        time: Option<String>,
        level: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        subsystem: Option<String>,
        message: String,
        raw: &'a str,
    },
    /// Line that the gateway did not write.
    Raw { raw: &'a str },
}

impl<'a> LogLine<'a> {
    pub(super) fn of(raw: &'a str) -> Self {
        let Some(log) = serde_json::from_str::<Value>(raw).ok().filter(Value::is_object) else {
            return Self::Raw { raw };
        };
        let text = |pointer: &str| log.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let name = text("/_meta/name").and_then(|name| serde_json::from_str::<Value>(&name).ok());
        let part = |key: &str| Some(name.as_ref()?.get(key)?.as_str()?.to_owned());
        Self::Log {
            time: text("/time").or_else(|| text("/_meta/date")),
            level: text("/_meta/logLevelName").or_else(|| text("/level")).map(|level| level.to_lowercase()),
            subsystem: part("subsystem").or_else(|| part("module")).or_else(|| text("/subsystem")),
            message: message(&log),
            raw,
        }
    }

    /// `<time> <level> [subsystem] <message>`.
    pub(super) fn readable(&self, style: Style) -> String {
        let (time, level, subsystem, message) = match self {
            Self::Raw { raw } => return (*raw).to_owned(),
            Self::Log { time, level, subsystem, message, raw: _ } => (time, level, subsystem, message),
        };
        let level = level.as_deref().unwrap_or("info");
        let message = output::one_line(message);
        let message = match level {
            "error" | "fatal" => style.error(&message),
            "warn" => style.warn(&message),
            "debug" | "trace" => style.muted(&message),
            _ => message.into_owned(),
        };
        let time = style.muted(time.as_deref().unwrap_or_default());
        let subsystem = subsystem
            .as_ref()
            .map(|name| format!("{} ", style.accent(&format!("[{name}]"))))
            .unwrap_or_default();
        format!("{time} {level} {subsystem}{message}")
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_reference_are_read_as_recorded() {
        let line = r#"{"0":"Error: Unknown channel: pigeon","_meta":{"name":"openclaw","date":"2026-11-21T02:57:10.358Z","logLevelName":"ERROR"},"time":"2026-11-21T02:57:10.359Z"}"#;
        assert_eq!(
            json!(LogLine::of(line)),
            json!({
                "type": "log", "time": "2026-11-21T02:57:10.359Z", "level": "error",
                "message": "Error: Unknown channel: pigeon", "raw": line,
            })
        );
        assert_eq!(
            LogLine::of(line).readable(Style::PLAIN),
            "2026-11-21T02:57:10.359Z error Error: Unknown channel: pigeon"
        );
    }

    #[test]
    fn a_subsystem_is_named_and_not_part_of_the_message() {
        let line = r#"{"0":"{\"subsystem\":\"gateway\"}","1":"listening","_meta":{"name":"{\"subsystem\":\"gateway\"}","logLevelName":"INFO"},"time":"t"}"#;
        let entry = json!(LogLine::of(line));
        assert_eq!((&entry["subsystem"], &entry["message"]), (&json!("gateway"), &json!("listening")));
        assert_eq!(LogLine::of(line).readable(Style::PLAIN), "t info [gateway] listening");
    }

    #[test]
    fn other_lines_are_shown_as_they_are() {
        assert_eq!(json!(LogLine::of("plain")), json!({ "type": "raw", "raw": "plain" }));
        assert_eq!(LogLine::of("plain").readable(Style::PLAIN), "plain");
    }
}
