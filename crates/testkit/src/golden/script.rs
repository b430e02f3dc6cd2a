//! A recording as lines (spec `gateway-protocol.md` §15).

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Line of a recording.
#[derive(Debug, Clone)]
pub(super) struct RecordedLine {
    /// Line number, from 1.
    pub(super) number: usize,
    /// Label of the connection; recordings of one connection have none.
    pub(super) connection: String,
    pub(super) step: RecordedStep,
}

/// Step that a line records.
#[derive(Debug, Clone)]
pub(super) enum RecordedStep {
    /// The client sends a frame.
    Send(Value),
    /// The client sends text that is no frame.
    SendRaw(String),
    /// The gateway sends a frame.
    Receive(Value),
    /// The gateway ends the connection.
    Closed { code: u16, reason: String },
    /// The client ends the connection: the recorder saw its own close as 1005.
    Leave,
    /// Note of an event beside the connections.
    Note(String),
}

/// The close code of a recorder that closed first.
const NO_STATUS: u64 = 1005;

/// Reads a recording.
pub(super) fn read(text: &str) -> Result<Vec<RecordedLine>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            let number = index + 1;
            let value: Value = serde_json::from_str(line).with_context(|| format!("line {number}"))?;
            let connection = value.get("conn").and_then(Value::as_str).unwrap_or_default().to_owned();
            let step = step(&value).with_context(|| format!("line {number}"))?;
            Ok(RecordedLine { number, connection, step })
        })
        .collect()
}

fn step(line: &Value) -> Result<RecordedStep> {
    let out = line.get("dir").and_then(Value::as_str) == Some("out");
    if let Some(note) = line.get("note").and_then(Value::as_str) {
        return Ok(RecordedStep::Note(note.to_owned()));
    }
    if let Some(frame) = line.get("frame") {
        return Ok(if out {
            RecordedStep::Send(frame.clone())
        } else {
            RecordedStep::Receive(frame.clone())
        });
    }
    if let Some(raw) = line.get("raw").and_then(Value::as_str) {
        return Ok(RecordedStep::SendRaw(raw.to_owned()));
    }
    let close = line.get("close").context("neither frame, raw text, close nor note")?;
    let code = close.get("code").and_then(Value::as_u64).context("no close code")?;
    let reason = close.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned();
    match code {
        NO_STATUS => Ok(RecordedStep::Leave),
        code => match u16::try_from(code) {
            Ok(code) => Ok(RecordedStep::Closed { code, reason }),
            Err(_) => bail!("close code {code}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_websocket_recording_is_read() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden");
        let mut count = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name.starts_with("gw-") && !name.starts_with("gw-http") && path.extension().unwrap() == "jsonl"
            {
                let lines = read(&std::fs::read_to_string(&path).unwrap());
                assert!(lines.as_ref().is_ok_and(|lines| !lines.is_empty()), "{name}: {lines:?}");
                count += 1;
            }
        }
        assert!(count > 40);
    }
}
