//! Text that is piped in: `-m -` takes the message from standard input.

use std::io::{Read as _, stdin};

use crate::failure::CommandFailure;

/// Longest text that is taken, in bytes; a frame of the gateway holds no more.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The text as it is meant: that of standard input where it is `-`, without the line feed at its end.
///
/// # Errors
/// Standard input can't be read, holds too much, or no text.
pub(super) fn text(written: &str) -> Result<String, CommandFailure> {
    if written != "-" {
        return Ok(written.to_owned());
    }
    let mut text = String::new();
    let read = stdin().lock().take(MAX_BYTES + 1).read_to_string(&mut text);
    let read =
        read.map_err(|error| CommandFailure::usage(format!("-m -: standard input can't be read: {error}")))?;
    if read as u64 > MAX_BYTES {
        return Err(CommandFailure::usage(format!("-m -: standard input holds more than {MAX_BYTES} bytes")));
    }
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}
