//! Arguments of `qmd`. Pure.

use std::time::Duration;

use openclaw_config::settings::{MemoryQmdSearch, MemoryQmdUpdate};
use openclaw_memory::cut;

use crate::collections::Collection;

/// Longest query, in UTF-16 units.
const LONGEST_QUERY: usize = 2_000;
/// Longest command line in an error, in UTF-16 units.
const LONGEST_SHOWN: usize = 300;

/// Arguments, and the time that they may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandLine {
    pub(crate) arguments: Vec<String>,
    pub(crate) limit: Duration,
}

impl CommandLine {
    fn new(arguments: &[&str], limit: Duration) -> Self {
        Self { arguments: arguments.iter().map(|text| (*text).to_owned()).collect(), limit }
    }

    pub(crate) fn list(update: &MemoryQmdUpdate) -> Self {
        Self::new(&["collection", "list", "--json"], update.command_timeout())
    }

    pub(crate) fn add(collection: &Collection, update: &MemoryQmdUpdate) -> Self {
        let root = collection.root.display().to_string();
        let arguments =
            ["collection", "add", &root, "--name", &collection.name, "--mask", &collection.pattern];
        Self::new(&arguments, update.command_timeout())
    }

    pub(crate) fn update(update: &MemoryQmdUpdate) -> Self {
        Self::new(&["update"], update.update_timeout())
    }

    pub(crate) fn embed(update: &MemoryQmdUpdate) -> Self {
        Self::new(&["embed"], update.embed_timeout())
    }

    /// Searches one collection. Without its name `qmd` would search all that its index has.
    pub(crate) fn search(
        mode: MemoryQmdSearch,
        query: &str,
        most: usize,
        collection: &str,
        limit: Duration,
    ) -> Self {
        Self::new(&[mode.as_str(), query, "--json", "-n", &most.to_string(), "-c", collection], limit)
    }

    /// The command as it is shown.
    pub(crate) fn shown(&self) -> String {
        let line = format!("qmd {}", self.arguments.join(" "));
        let shown = cut(&line, LONGEST_SHOWN);
        if shown.len() == line.len() { line } else { format!("{shown}…") }
    }
}

/// A query as one argument that `qmd` can't take for an option, or `None` if nothing is left of it.
pub(crate) fn query_argument(query: &str) -> Option<String> {
    let plain: String = query.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let text = plain.trim_start_matches(|letter: char| letter == '-' || letter.is_whitespace()).trim_end();
    Some(cut(text, LONGEST_QUERY).to_owned()).filter(|text| !text.is_empty())
}
