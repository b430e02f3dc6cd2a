//! Stickers that were seen: `<state>/telegram/sticker-cache.json`, as OpenClaw 2026.2.9 writes it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

/// Largest file that is read.
const MAX_FILE: u64 = 16 * 1024 * 1024;
const DEFAULT_LIMIT: usize = 10;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cache {
    stickers: BTreeMap<String, Sticker>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Sticker {
    file_id: String,
    file_unique_id: String,
    emoji: Option<String>,
    set_name: Option<String>,
    description: String,
}

impl Sticker {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "fileId": self.file_id,
            "fileUniqueId": self.file_unique_id,
            "emoji": self.emoji,
            "setName": self.set_name,
            "description": self.description,
        })
    }
}

/// The stickers that fit best. Blocking.
pub(super) fn search(state_dir: &Path, query: &str, limit: Option<usize>) -> Vec<Sticker> {
    let path = state_dir.join("telegram").join("sticker-cache.json");
    let is_small = std::fs::metadata(&path).is_ok_and(|meta| meta.len() <= MAX_FILE);
    let text = if is_small { std::fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
    let cache: Cache = serde_json::from_str(&text).unwrap_or_default();
    best(cache.stickers.into_values(), query, limit.unwrap_or(DEFAULT_LIMIT).min(50))
}

fn best(stickers: impl Iterator<Item = Sticker>, query: &str, limit: usize) -> Vec<Sticker> {
    let mut found: Vec<(u32, Sticker)> =
        stickers.map(|sticker| (score(&sticker, query), sticker)).filter(|(score, _)| *score > 0).collect();
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.into_iter().take(limit).map(|(_, sticker)| sticker).collect()
}

/// Points of a sticker: the whole query in its description, each of its words there, its emoji, its set.
fn score(sticker: &Sticker, query: &str) -> u32 {
    let query = query.trim().to_lowercase();
    if query.is_empty() {
        return 0;
    }
    let description = sticker.description.to_lowercase();
    let mut points = if description.contains(&query) { 10 } else { 0 };
    let words: Vec<&str> = description.split(|c: char| !c.is_alphanumeric()).collect();
    points += query.split_whitespace().filter(|word| words.contains(word)).count() as u32 * 5;
    if sticker.emoji.as_deref().is_some_and(|emoji| query.contains(emoji)) {
        points += 8;
    }
    if sticker.set_name.as_deref().is_some_and(|set| set.to_lowercase().contains(&query)) {
        points += 3;
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stickers_are_found_by_points() {
        let sticker = |description: &str| Sticker {
            description: description.to_owned(),
            emoji: Some("👋".to_owned()),
            set_name: Some("Foxes".to_owned()),
            ..Sticker::default()
        };
        let rows =
            [("fox waving", 10 + 5 + 5), ("waving fox", 5 + 5), ("👋", 8), ("foxes", 3), ("cat", 0), ("", 0)];
        for (query, points) in rows {
            assert_eq!(score(&sticker("A fox waving"), query), points, "{query}");
        }
        let all = ["a fox", "a fox waving", "a cat"].map(sticker);
        let found = best(all.into_iter(), "fox waving", 1);
        assert_eq!(found[0].description, "a fox waving");
    }

    #[test]
    fn the_file_of_openclaw_is_read() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(search(dir.path(), "fox", None), Vec::new());
        std::fs::create_dir(dir.path().join("telegram")).unwrap();
        let text = r#"{"version":1,"stickers":{"u":{"fileId":"f","fileUniqueId":"u","emoji":"🦊","setName":"S","description":"A fox","cachedAt":"x"}}}"#;
        std::fs::write(dir.path().join("telegram/sticker-cache.json"), text).unwrap();
        assert_eq!(search(dir.path(), "fox", None)[0].to_json()["fileId"], "f");
    }
}
