//! The block of settings at the head of `SKILL.md` and `HOOK.md` (spec `agent-runtime.md` §6.2).
//!
//! The block is read twice. YAML gives the type of most keys. A line reader gives the text of a
//! value as it stands in the file; JSON5 is parsed from that text. The line reader also takes over
//! where the block is not valid YAML, such as `description: note: this`.

mod lines;
mod manifest;
mod yaml;

pub use manifest::Manifest;

use serde_json::Value;

/// Longer blocks are not read: the longest of OpenClaw's own is 2 KiB.
const MAX_BYTES: usize = 64 * 1024;

/// Error in a file's block of settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrontmatterError {
    /// The block has no end within the limit; the file is reported and not loaded.
    #[error("the block between the two lines of `---` is longer than {MAX_BYTES} bytes")]
    TooLong,
    /// `metadata` is neither JSON5 nor a YAML mapping; the file is reported and not loaded.
    #[error("`metadata` can't be read: {0}")]
    Metadata(String),
}

/// Keys with their values as text, in the order of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frontmatter {
    values: Vec<(String, String)>,
}

/// A file's block and what follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkdownDocument {
    /// Empty when the file has no block.
    pub frontmatter: Frontmatter,
    /// The text after the block, with line feeds alone between its lines.
    pub body: String,
}

impl MarkdownDocument {
    /// Reads a file's text. A file without a block, or with one that does not end, is all body.
    ///
    /// # Errors
    /// [`FrontmatterError::TooLong`].
    pub fn parse(text: &str) -> Result<Self, FrontmatterError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n");
        let Some((block, rest)) = part(&text) else {
            return Ok(Self { frontmatter: Frontmatter::default(), body: text });
        };
        if block.len() > MAX_BYTES {
            return Err(FrontmatterError::TooLong);
        }
        let frontmatter = Frontmatter::of_block(block);
        // The line that ends the block may go on, as in `--- end`.
        let body = rest.split_once('\n').map_or("", |(_, body)| body).to_owned();
        Ok(Self { frontmatter, body })
    }
}

/// The block, and what begins with the line that ends it.
fn part(text: &str) -> Option<(&str, &str)> {
    let opened = text.strip_prefix("---")?;
    let end = opened.find("\n---")?;
    let (block, rest) = opened.split_at_checked(end)?;
    // Text after the dashes on their own line belongs to the block, as in OpenClaw, except for one
    // line feed.
    Some((block.strip_prefix('\n').unwrap_or(block), rest.strip_prefix('\n')?))
}

impl Frontmatter {
    fn of_block(block: &str) -> Self {
        let as_lines = lines::read(block);
        let Some(mut values) = yaml::read(block) else { return Self { values: as_lines } };
        for (key, value) in as_lines.into_iter().filter(|(_, value)| value.starts_with(['{', '['])) {
            match values.iter_mut().find(|(name, _)| *name == key) {
                // A value that goes on below its line is whole in YAML alone.
                Some((_, old)) if openclaw_config::json5::parse_value(&value).is_ok() => *old = value,
                Some(_) => {}
                None => values.push((key, value)),
            }
        }
        Self { values }
    }

    /// A key's value as it is; of equal keys the last.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.values.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// A key's value, trimmed; blank counts as missing.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key).map(str::trim).filter(|value| !value.is_empty())
    }

    /// A switch; `None` when it is missing or says neither yes nor no.
    pub fn switch(&self, key: &str) -> Option<bool> {
        match self.text(key)?.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Some(true),
            "false" | "0" | "no" | "off" => Some(false),
            _ => None,
        }
    }

    /// Returns what `metadata` says for this product, or `None` when it says nothing.
    ///
    /// # Errors
    /// [`FrontmatterError::Metadata`].
    pub fn manifest(&self) -> Result<Option<Manifest>, FrontmatterError> {
        let Some(text) = self.text("metadata") else { return Ok(None) };
        let value = openclaw_config::json5::parse_value(text)
            .map_err(|error| FrontmatterError::Metadata(error.to_string()))?;
        match value {
            Value::Object(metadata) => Ok(Manifest::of(metadata)),
            _ => Err(FrontmatterError::Metadata("it is not an object".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests;
