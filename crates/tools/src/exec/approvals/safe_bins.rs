//! Programs that may run unasked as long as they only work on what is piped into them.

mod table;

use std::path::Path;

use super::command_runners::is_command_runner;
use super::executable::Files;
use table::{Options, Takes};

/// `tools.exec.safeBins` unless configured.
pub const DEFAULT: &[&str] = &["jq", "grep", "cut", "sort", "uniq", "head", "tail", "tr", "wc"];

/// Directories that a safe bin must be found in. Programs elsewhere may be anybody's, whatever they are called.
const TRUSTED_DIRS: &[&str] = &["/bin", "/usr/bin", "/usr/local/bin", "/run/current-system/sw/bin"];

/// Returns true if running this file with these arguments can neither read nor write files, nor run
/// anything.
///
/// `resolved` is where the program was found. A program whose options are not known may have no arguments at all.
pub fn is_safe_use(
    safe_bins: &[String],
    resolved: &Path,
    arguments: &[String],
    cwd: &Path,
    files: &dyn Files,
) -> bool {
    let Some(name) = resolved.file_name().and_then(|name| name.to_str()) else { return false };
    let is_listed = safe_bins.iter().any(|bin| bin.trim().eq_ignore_ascii_case(name));
    let is_in_trusted_dir =
        resolved.parent().is_some_and(|dir| TRUSTED_DIRS.iter().any(|trusted| dir == *trusted));
    is_listed
        && is_in_trusted_dir
        && !is_command_runner(resolved)
        && files.is_protected(resolved)
        && !arguments.iter().any(|argument| names_file(argument, cwd, files))
        && match table::options(name) {
            Some(options) => Use::new(options, cwd, files).accepts(arguments),
            None => arguments.is_empty(),
        }
}

/// Returns true if an argument is the name of a file, or could be.
fn names_file(argument: &str, cwd: &Path, files: &dyn Files) -> bool {
    is_path_like(argument) || files.is_file(&cwd.join(argument))
}

fn is_path_like(argument: &str) -> bool {
    let mut chars = argument.chars();
    let is_drive = chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && chars.next() == Some(':')
        && matches!(chars.next(), Some('\\' | '/'));
    is_drive || ["/", "./", "../", "~"].iter().any(|start| argument.starts_with(start))
}

/// Arguments, read the way `getopt_long` does.
struct Use<'a> {
    options: &'a Options,
    cwd: &'a Path,
    files: &'a dyn Files,
    operands: Vec<&'a str>,
    has_pattern_option: bool,
}

impl<'a> Use<'a> {
    fn new(options: &'a Options, cwd: &'a Path, files: &'a dyn Files) -> Self {
        Self { options, cwd, files, operands: Vec::new(), has_pattern_option: false }
    }

    fn accepts(mut self, arguments: &'a [String]) -> bool {
        let mut left = arguments.iter().map(String::as_str);
        while let Some(argument) = left.next() {
            let is_known = if argument == "--" {
                // jq has read it in several ways.
                self.operands.extend(left.by_ref());
                self.options.ends_options
            } else if let Some(long) = argument.strip_prefix("--") {
                self.long(long, &mut left)
            } else if let Some(short) = argument.strip_prefix('-').filter(|short| !short.is_empty()) {
                self.short(short, &mut left)
            } else {
                self.operands.push(argument);
                true
            };
            if !is_known {
                return false;
            }
        }
        self.operands_are_safe()
    }

    /// Reads only whole names: an abbreviation may mean an option that is not in the table.
    fn long(&mut self, argument: &str, left: &mut impl Iterator<Item = &'a str>) -> bool {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (argument, None),
        };
        let Some((_, takes)) = self.options.long.iter().find(|(known, _)| *known == name) else {
            return false;
        };
        self.has_pattern_option |= self.options.pattern_options.contains(&name);
        match (takes, value) {
            (Takes::Nothing | Takes::Optional, None) => true,
            (Takes::Nothing, Some(_)) => false,
            (Takes::Value | Takes::Optional, Some(value)) => self.is_value(value),
            (Takes::Value, None) => left.next().is_some_and(|value| self.is_value(value)),
            // jq's `--arg name value`; it knows no `=`.
            (Takes::Two, None) => (0..2).all(|_| left.next().is_some_and(|value| self.is_value(value))),
            (Takes::Two, Some(_)) => false,
        }
    }

    /// `-rn`, `-k2`, `-k 2`.
    fn short(&mut self, argument: &str, left: &mut impl Iterator<Item = &'a str>) -> bool {
        if self.options.digits && argument.chars().all(|c| c.is_ascii_digit()) {
            return true;
        }
        for (at, letter) in argument.char_indices() {
            if self.options.flags.contains(letter) {
                continue;
            }
            if !self.options.valued.contains(letter) {
                return false;
            }
            let mut buffer = [0; 4];
            let name: &str = letter.encode_utf8(&mut buffer);
            self.has_pattern_option |= self.options.pattern_options.contains(&name);
            let attached = argument.get(at + letter.len_utf8()..).unwrap_or_default();
            return if attached.is_empty() {
                left.next().is_some_and(|value| self.is_value(value))
            } else {
                self.is_value(attached)
            };
        }
        true
    }

    fn is_value(&self, value: &str) -> bool {
        !names_file(value, self.cwd, self.files)
    }

    /// `-` is standard input, once: to some programs a second one is where they write. Everything else beyond what the
    /// program takes as text would be a file.
    fn operands_are_safe(&self) -> bool {
        let allowed = if self.has_pattern_option { 0 } else { self.options.operands };
        let texts = self.operands.get(..allowed.min(self.operands.len())).unwrap_or_default();
        let rest = self.operands.get(texts.len()..).unwrap_or_default();
        let is_stdin = matches!(rest, [] | ["-"]);
        is_stdin && texts.iter().all(|text| self.options.program.is_none_or(|is_harmless| is_harmless(text)))
    }
}
