//! Printing: data on stdout, everything else on stderr (spec `cli.md` §1.2).

mod age;
mod printable;
mod style;
mod table;

use std::io::Write as _;

use serde::Serialize;

pub(crate) use age::{age, count, duration, remaining};
pub(crate) use printable::one_line;
use printable::{printable, printable_row};
pub(crate) use style::Style;
pub(crate) use table::{Column, boxed, columns, fitting, grid, width};

/// Prints a line of data; control characters in it are escaped. A reader that went away is nobody's error.
pub(crate) fn line(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{}", printable(text));
}

/// Prints a line that holds names and texts of others: a line feed in one would begin a line that looks like ours.
pub(crate) fn row(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{}", printable_row(text));
}

/// Prints a line for people, escaped like data.
pub(crate) fn error_line(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", printable(text));
}

/// Prints one document, indented by two spaces.
pub(crate) fn json(value: &impl Serialize) {
    print_json(serde_json::to_string_pretty(value));
}

/// Prints one document in one line.
pub(crate) fn json_line(value: &impl Serialize) {
    print_json(serde_json::to_string(value));
}

fn print_json(text: serde_json::Result<String>) {
    match text {
        Ok(text) => line(&text),
        Err(error) => error_line(&format!("could not print the result as JSON: {error}")),
    }
}
