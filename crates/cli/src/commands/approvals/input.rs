//! The file that `openclaw approvals set` is given.

use std::fs::File;
use std::io::{self, Read};

use openclaw_config::json5;
use openclaw_tools::exec_approvals::file::ApprovalsFile;
use serde_json::Value;

use crate::failure::CommandFailure;

/// Longest text that is read, in bytes.
const MAX_TEXT: u64 = 8 * 1024 * 1024;

/// Reads the file that is named, or standard input.
pub(super) fn read(file: Option<&str>, stdin: bool) -> Result<ApprovalsFile, CommandFailure> {
    let (text, from) = match (file, stdin) {
        (None, false) => return Err(CommandFailure::usage("Provide --file <path> or --stdin.")),
        (Some(path), _) => (File::open(path).and_then(text), path),
        (None, true) => (text(io::stdin().lock()), "standard input"),
    };
    let text = text
        .map_err(|error| CommandFailure::new("approvals-input", format!("{from} can't be read: {error}")))?;
    parse(&text, from)
}

fn text(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    from.take(MAX_TEXT + 1).read_to_string(&mut text)?;
    if u64::try_from(text.len()).is_ok_and(|length| length <= MAX_TEXT) {
        Ok(text)
    } else {
        Err(io::Error::other("it is longer than 8 MiB"))
    }
}

/// JSON5, as in the reference.
fn parse(text: &str, from: &str) -> Result<ApprovalsFile, CommandFailure> {
    let value: Value = json5::parse_value(text)
        .map_err(|error| CommandFailure::usage(format!("Failed to parse approvals JSON: {from}: {error}")))?;
    let is_answer = value.get("file").is_some() && value.get("version").is_none();
    ApprovalsFile::of_value(value).map_err(|error| {
        let failure = CommandFailure::usage(format!("{from} is no approvals file: {error}"));
        if is_answer {
            failure.hint("Give it the value of \"file\" alone, without path and hash around it.")
        } else {
            failure.hint("Nothing was changed. `openclaw approvals get --json` shows the form in \"file\".")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_approvals_file_is_taken() {
        let rows = [
            (r#"{"version": 1}"#, ""),
            ("{version: 1, agents: {'*': {allowlist: ['/usr/bin/rg']}}, } // JSON5", ""),
            ("", "Failed to parse approvals JSON: here"),
            ("{", "Failed to parse approvals JSON: here"),
            ("[]", "here is no approvals file: "),
            ("{}", "here is no approvals file: missing field `version`"),
            (r#"{"version": 2}"#, "here is no approvals file: version 2 is not known"),
            (r#"{"version": 1, "defaults": {"ask": "x"}}"#, "here is no approvals file: "),
            (r#"{"file": {"version": 1}, "hash": ""}"#, "here is no approvals file: missing field `version`"),
        ];
        for (text, error) in rows {
            match parse(text, "here") {
                Ok(_) => assert_eq!(error, "", "{text}"),
                Err(failure) => assert!(
                    !error.is_empty() && failure.message.starts_with(error),
                    "{text}: {}",
                    failure.message
                ),
            }
        }
    }

    #[test]
    fn an_answer_of_get_is_recognised() {
        let failure = parse(r#"{"file": {"version": 1}}"#, "here").unwrap_err();
        assert!(failure.hint.is_some_and(|hint| hint.contains("value of \"file\" alone")));
    }

    #[test]
    fn a_text_without_end_is_not_read() {
        assert!(text(io::repeat(b' ')).is_err());
        assert_eq!(text("x".as_bytes()).unwrap(), "x");
    }
}
