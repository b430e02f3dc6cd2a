//! What SQLite's full text search finds with its own ranking: pairs of characters of scripts without
//! spaces, words of all others, and OR between them.

use openclaw_memory::chunk::{Chunking, chunks};
use rusqlite::{Connection, params};

use crate::collections::Collection;

pub(crate) struct Index {
    connection: Connection,
}

impl Index {
    /// Indexes the chunks that memory makes of the same pages.
    pub(crate) fn of(collection: &Collection) -> rusqlite::Result<Self> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch("CREATE VIRTUAL TABLE pages USING fts5(text, page UNINDEXED); BEGIN")?;
        {
            let mut insert = connection.prepare("INSERT INTO pages VALUES (?1, ?2)")?;
            for (name, text) in &collection.pages {
                for chunk in chunks(text, Chunking::default()).iter().filter(|chunk| !chunk.is_blank()) {
                    insert.execute(params![terms(&chunk.text).join(" "), name])?;
                }
            }
        }
        connection.execute_batch("COMMIT")?;
        Ok(Self { connection })
    }

    /// Returns the pages of the best chunks.
    pub(crate) fn search(&self, query: &str, most: usize) -> rusqlite::Result<Vec<String>> {
        let mut terms = terms(query);
        terms.sort_unstable();
        terms.dedup();
        if terms.is_empty() {
            return Ok(Vec::new());
        }
        let quoted: Vec<String> = terms.iter().map(|term| format!("\"{term}\"")).collect();
        let sql = "SELECT page FROM pages WHERE pages MATCH ?1 ORDER BY rank LIMIT ?2";
        let mut rows = self.connection.prepare_cached(sql)?;
        let rows = rows.query_map(params![quoted.join(" OR "), most as i64], |row| row.get(0))?;
        rows.collect()
    }
}

fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    let mut run: Vec<char> = Vec::new();
    let mut is_run_unspaced = false;
    for letter in text.chars().chain([' ']) {
        let is_unspaced = is_unspaced(letter);
        if !letter.is_alphanumeric() || is_unspaced != is_run_unspaced {
            match run.as_slice() {
                [] => {}
                [_, _, ..] if is_run_unspaced => {
                    terms.extend(run.windows(2).map(|pair| pair.iter().collect::<String>()));
                }
                run => terms.push(run.iter().collect()),
            }
            run.clear();
        }
        is_run_unspaced = is_unspaced;
        if letter.is_alphanumeric() {
            run.push(letter);
        }
    }
    terms
}

fn is_unspaced(letter: char) -> bool {
    let code = u32::from(letter);
    letter.is_alphanumeric()
        && (matches!(code, 0x0E00..=0x0EFF | 0x1000..=0x11FF | 0x2E80..=0xD7FF | 0xF900..=0xFAFF)
            || code >= 0x20000)
}
