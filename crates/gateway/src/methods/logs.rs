//! `logs.tail` (spec `gateway-protocol.md` §6.1).

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use openclaw_config::shared_place;
use openclaw_protocol::ErrorShape;
use openclaw_protocol::params::logs::{LogsTailParams, LogsTailResult};

use crate::logging::LogFile;
use crate::request::RequestFailure;

pub(super) async fn tail(
    log_file: &Option<LogFile>,
    params: LogsTailParams,
) -> Result<LogsTailResult, RequestFailure> {
    let Some(file) = log_file.as_ref().map(LogFile::current) else {
        return Err(ErrorShape::unavailable("log read failed: this gateway writes no log file").into());
    };
    let read = tokio::task::spawn_blocking(move || read_tail(&file, params)).await?;
    read.map_err(|error| ErrorShape::unavailable(format!("log read failed: {error}")).into())
}

/// Part of the file to read.
#[derive(Debug, PartialEq, Eq)]
struct LogWindow {
    start: u64,
    truncated: bool,
    reset: bool,
}

/// A cursor that no longer fits, or is too far behind, starts over at the end.
fn window(size: u64, cursor: Option<u64>, max_bytes: u64) -> LogWindow {
    let last = size.saturating_sub(max_bytes);
    match cursor {
        None => LogWindow { start: last, truncated: last > 0, reset: false },
        Some(cursor) if cursor > size => LogWindow { start: last, truncated: last > 0, reset: true },
        Some(cursor) if size - cursor > max_bytes => LogWindow { start: last, truncated: true, reset: true },
        Some(cursor) => LogWindow { start: cursor, truncated: false, reset: false },
    }
}

/// The whole lines of `bytes`; `before` is the byte in front of them. A first line that began earlier is left out.
fn whole_lines(bytes: &[u8], before: Option<u8>, limit: usize) -> Vec<String> {
    let mut rest = bytes;
    if before.is_some_and(|byte| byte != b'\n') {
        let line_end = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| at + 1);
        rest = rest.get(line_end..).unwrap_or_default();
    }
    let text = String::from_utf8_lossy(rest);
    let mut lines: Vec<&str> = text.split('\n').collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    let skip = lines.len().saturating_sub(limit);
    lines.into_iter().skip(skip).map(str::to_owned).collect()
}

fn read_tail(configured: &Path, params: LogsTailParams) -> io::Result<LogsTailResult> {
    let path = existing(configured);
    let name = path.display().to_string();
    let mut file = match shared_place::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(LogsTailResult {
                file: name,
                cursor: 0,
                size: 0,
                lines: Vec::new(),
                truncated: false,
                reset: false,
            });
        }
        Err(error) => return Err(error),
    };
    let size = file.metadata()?.len();
    let max_bytes = params.max_bytes.unwrap_or(LogsTailParams::DEFAULT_MAX_BYTES);
    let limit = params.limit.unwrap_or(LogsTailParams::DEFAULT_LIMIT);
    let LogWindow { start, truncated, reset } = window(size, params.cursor, max_bytes);
    let from = start.saturating_sub(1);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(size - from).read_to_end(&mut bytes)?;
    let (before, bytes) = if start == 0 {
        (None, bytes.as_slice())
    } else {
        bytes.split_first().map_or((None, [].as_slice()), |(first, rest)| (Some(*first), rest))
    };
    let lines = whole_lines(bytes, before, usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(LogsTailResult { file: name, cursor: size, size, lines, truncated, reset })
}

/// The file itself, or the newest of its kind when it is a daily one that does not exist (yet).
fn existing(configured: &Path) -> PathBuf {
    if configured.exists() || !is_daily(configured) {
        return configured.to_path_buf();
    }
    let siblings = configured.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten();
    let newest = siblings
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| is_daily(path))
        .filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path)))
        .max();
    newest.map_or_else(|| configured.to_path_buf(), |(_, path)| path)
}

/// `openclaw-YYYY-MM-DD.log`
fn is_daily(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let Some(day) = name.strip_prefix("openclaw-").and_then(|rest| rest.strip_suffix(".log")) else {
        return false;
    };
    day.len() == 10 && day.parse::<jiff::civil::Date>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_follows_the_cursor_while_it_fits() {
        let rows = [
            (100, None, 1000, (0, false, false)),
            (1500, None, 1000, (500, true, false)),
            (100, Some(40), 1000, (40, false, false)),
            (100, Some(100), 1000, (100, false, false)),
            (100, Some(101), 1000, (0, false, true)),
            (1500, Some(9999), 400, (1100, true, true)),
            (1500, Some(10), 400, (1100, true, true)),
        ];
        for (size, cursor, max, (start, truncated, reset)) in rows {
            assert_eq!(
                window(size, cursor, max),
                LogWindow { start, truncated, reset },
                "{size} {cursor:?} {max}"
            );
        }
    }

    #[test]
    fn only_whole_lines_are_given() {
        let rows: [(&str, Option<u8>, usize, &[&str]); 7] = [
            ("a\nb\n", None, 9, &["a", "b"]),
            ("a\nb", None, 9, &["a", "b"]),
            ("rest\nb\n", Some(b'x'), 9, &["b"]),
            ("a\nb\n", Some(b'\n'), 9, &["a", "b"]),
            ("only a piece", Some(b'x'), 9, &[]),
            ("a\n\nb\nc\n", None, 2, &["b", "c"]),
            ("", None, 9, &[]),
        ];
        for (text, before, limit, expect) in rows {
            assert_eq!(whole_lines(text.as_bytes(), before, limit), expect, "{text:?} {before:?}");
        }
    }

    #[test]
    fn a_file_is_tailed_and_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.log");
        let name = path.display().to_string();
        let tail =
            |cursor, limit, max_bytes| read_tail(&path, LogsTailParams { cursor, limit, max_bytes }).unwrap();
        let expect = |cursor: u64, lines: &[&str], truncated, reset| LogsTailResult {
            file: name.clone(),
            cursor,
            size: cursor,
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
            truncated,
            reset,
        };
        assert_eq!(tail(None, None, None), expect(0, &[], false, false), "a missing file is empty");
        fs::write(&path, "one\ntwo\nthree\n").unwrap();
        assert_eq!(tail(None, Some(2), None), expect(14, &["two", "three"], false, false));
        assert_eq!(tail(Some(14), None, None), expect(14, &[], false, false));
        assert_eq!(tail(Some(8), None, None), expect(14, &["three"], false, false));
        assert_eq!(tail(Some(99), None, Some(8)), expect(14, &["three"], true, true));
        assert_eq!(tail(None, None, Some(1)), expect(14, &[], true, false));
    }

    #[test]
    fn a_missing_daily_file_is_replaced_by_the_newest_one() {
        let folder = tempfile::tempdir().unwrap();
        let today = folder.path().join("openclaw-2026-02-10.log");
        assert_eq!(existing(&today), today);
        let yesterday = folder.path().join("openclaw-2026-02-09.log");
        fs::write(&yesterday, "x\n").unwrap();
        fs::write(folder.path().join("openclaw-other.log"), "y\n").unwrap();
        assert_eq!(existing(&today), yesterday);
        let named = folder.path().join("mine.log");
        assert_eq!(existing(&named), named);
    }
}
