//! Stickers that were seen: `<state>/telegram/sticker-cache.json`, as OpenClaw 2026.2.9 writes it.
//! The description of a sticker is told with it; a sticker without a description is kept by its
//! emoji and its set, so that the agent can find and send it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use openclaw_channels::{Inbound, InboundEvent, MediaKind};
use openclaw_config::clock::now_ms;
use openclaw_config::private_file::{Durability, replace};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::wire::Wire as _;

/// Lock of the sticker file: only one writer at a time, because all accounts share the file.
static WRITING: Mutex<()> = Mutex::new(());

/// Largest file that is read.
const MAX_FILE: u64 = 16 * 1024 * 1024;
/// Stickers that are remembered.
const MOST: usize = 20_000;
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

/// Tells with each sticker of these updates what is known of it, and remembers those that are new.
pub(super) async fn describe(state_dir: &Path, updates: &[Value], events: &mut [Inbound]) {
    let seen: Vec<Value> = updates.iter().filter_map(sticker_of).cloned().collect();
    if seen.is_empty() {
        return;
    }
    let path = path(state_dir);
    let known = tokio::task::spawn_blocking(move || remember(&path, &seen)).await;
    let known = known.map_err(io::Error::other).and_then(|known| known).unwrap_or_else(|error| {
        tracing::warn!(%error, "stickers can't be remembered");
        BTreeMap::new()
    });
    for event in events {
        let InboundEvent::Message(message) = &mut event.event else { continue };
        for media in message.media.iter_mut().filter(|media| media.kind == MediaKind::Sticker) {
            if let (Some(said), Some(shows)) = (&mut media.description, known.get(&media.handle)) {
                *said = format!("{said} {shows}");
            }
        }
    }
}

fn sticker_of(update: &Value) -> Option<&Value> {
    update.object("message").or_else(|| update.object("channel_post"))?.object("sticker")
}

/// Returns the descriptions of stickers by file id, if they have been described. Adds those that
/// are not in the file. Blocking.
fn remember(path: &Path, seen: &[Value]) -> io::Result<BTreeMap<String, String>> {
    let _writing = WRITING.lock();
    let mut file: Value = serde_json::from_str(&read(path)).unwrap_or_else(|_| json!({"version": 1}));
    let Some(stickers) = file
        .as_object_mut()
        .map(|file| file.entry("stickers").or_insert_with(|| Value::Object(Map::new())))
        .and_then(Value::as_object_mut)
    else {
        return Err(io::Error::other(format!("{} is no list of stickers", path.display())));
    };
    let (mut known, mut is_new) = (BTreeMap::new(), false);
    for sticker in seen {
        let (Some(file_id), Some(unique)) = (sticker.text("file_id"), sticker.text("file_unique_id")) else {
            continue;
        };
        match stickers.get(unique) {
            Some(kept) if kept.flag("undescribed") => {}
            Some(kept) => {
                let shows = kept.text("description").map(|shows| (file_id.to_owned(), shows.to_owned()));
                known.extend(shows);
            }
            None if stickers.len() >= MOST => {}
            None => {
                stickers.insert(unique.to_owned(), new_entry(sticker, file_id, unique));
                is_new = true;
            }
        }
    }
    if is_new {
        replace(path, &serde_json::to_vec_pretty(&file)?, Durability::Whole)?;
    }
    Ok(known)
}

fn new_entry(sticker: &Value, file_id: &str, unique: &str) -> Value {
    let (emoji, set) = (sticker.text("emoji"), sticker.text("set_name"));
    let words = [emoji, Some("sticker"), set].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let at = jiff::Timestamp::from_millisecond(now_ms()).unwrap_or_default();
    json!({
        "fileId": file_id,
        "fileUniqueId": unique,
        "emoji": emoji,
        "setName": set,
        "description": words,
        // Ours: nobody has looked at it.
        "undescribed": true,
        "cachedAt": at.to_string(),
    })
}

fn path(state_dir: &Path) -> PathBuf {
    state_dir.join("telegram").join("sticker-cache.json")
}

fn read(path: &Path) -> String {
    let is_small = std::fs::metadata(path).is_ok_and(|meta| meta.len() <= MAX_FILE);
    if is_small { std::fs::read_to_string(path).unwrap_or_default() } else { String::new() }
}

/// The stickers that fit best. Blocking.
pub(super) fn search(state_dir: &Path, query: &str, limit: Option<usize>) -> Vec<Sticker> {
    let cache: Cache = serde_json::from_str(&read(&path(state_dir))).unwrap_or_default();
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
    fn what_is_seen_is_remembered_and_what_is_described_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = path(dir.path());
        let sticker = |id: &str| json!({"file_id": format!("f-{id}"), "file_unique_id": id, "emoji": "🦊", "set_name": "Foxes"});
        assert_eq!(remember(&path, &[sticker("a"), json!({})]).unwrap(), BTreeMap::new());
        assert_eq!(remember(&path, &[sticker("a")]).unwrap(), BTreeMap::new(), "nobody has described it");
        assert_eq!(search(dir.path(), "🦊", None)[0].file_id, "f-a");
        let text = std::fs::read_to_string(&path).unwrap();
        let described =
            text.replace("\"undescribed\": true", "\"mark\": 7").replace("🦊 sticker Foxes", "A fox waving");
        std::fs::write(&path, described).unwrap();
        let known = remember(&path, &[sticker("a"), sticker("b")]).unwrap();
        assert_eq!(known, BTreeMap::from([("f-a".to_owned(), "A fox waving".to_owned())]));
        let kept: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(
            (&kept["version"], &kept["stickers"]["a"]["mark"]),
            (&json!(1), &json!(7)),
            "what is not ours stays"
        );
        std::fs::write(&path, "[]").unwrap();
        assert!(remember(&path, &[sticker("a")]).is_err());
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
