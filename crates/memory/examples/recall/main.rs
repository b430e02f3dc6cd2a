//! Measures how well memory finds what people ask for, on manuals of Debian in several languages:
//!
//! ```text
//! cargo xtask recall [--cache DIR] [--english MODEL] [--others MODEL] [--pages N] [--only NAME] [--rrf]
//! ```
//!
//! Packages are fetched once with `apt-get download` and unpacked below the cache directory, which
//! also keeps the vectors. For each set of queries it prints recall@10 and nDCG@10 of keywords,
//! of SQLite's FTS5 with pairs of characters and OR on the same chunks, and, where there is a model,
//! of vectors and of both together on `--pages` pages at most.

#![allow(clippy::print_stdout, reason = "prints what it measured")]

mod baseline;
mod collections;
mod man;
mod vectors;

use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use collections::Collection;
use openclaw_memory::{
    Embedder, Memory, MemorySettings, SearchRequest, SyncRequest, SyncUntil, settings::Fusion,
};
use vectors::CachedEmbedder;

const USAGE: &str = "usage: cargo xtask recall [--cache DIR] [--english MODEL] [--others MODEL] [--pages N] [--only NAME] [--rrf]";

/// Pages among which the relevant one must stand.
const CUT: usize = 10;

/// Chunks that are asked for, of which the first of each page counts.
const CHUNKS: usize = 200;

#[derive(Debug)]
struct RecallOptions {
    cache: PathBuf,
    /// Model directories: for English, and for all other languages.
    english: Option<PathBuf>,
    others: Option<PathBuf>,
    /// Pages of a set for which vectors are made.
    pages: usize,
    only: Option<String>,
    fusion: Fusion,
}

impl RecallOptions {
    fn read(args: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut options = Self {
            cache: PathBuf::from("target/recall"),
            english: None,
            others: None,
            pages: 300,
            only: None,
            fusion: Fusion::Weighted,
        };
        let mut args = args;
        while let Some(flag) = args.next() {
            if flag == "--rrf" {
                options.fusion = Fusion::ReciprocalRank;
                continue;
            }
            let value = args.next().ok_or(USAGE)?;
            match flag.as_str() {
                "--cache" => options.cache = value.into(),
                "--english" => options.english = Some(value.into()),
                "--others" => options.others = Some(value.into()),
                "--pages" => options.pages = value.parse()?,
                "--only" => options.only = Some(value),
                _ => return Err(USAGE.into()),
            }
        }
        Ok(options)
    }
}

/// Sums over queries.
#[derive(Debug, Default, Clone, Copy)]
struct RecallTally {
    queries: usize,
    found: usize,
    gain: f64,
}

impl RecallTally {
    /// Counts a query by the place of the relevant page, from zero.
    fn add(&mut self, place: Option<usize>) {
        self.queries += 1;
        if let Some(place) = place {
            self.found += 1;
            self.gain += 1.0 / (place as f64 + 2.0).log2();
        }
    }

    fn print(&self, set: &str, leg: &str) {
        let queries = self.queries.max(1) as f64;
        println!(
            "{set:<12} {leg:<16} recall@10 {:.3}  nDCG@10 {:.3}  of {}",
            self.found as f64 / queries,
            self.gain / queries,
            self.queries
        );
    }
}

/// Returns the place of a page among the pages of these chunks, if it is one of the first [`CUT`].
fn place<'a>(paths: impl Iterator<Item = &'a str>, relevant: &str) -> Option<usize> {
    let mut pages: Vec<&str> = Vec::new();
    for path in paths {
        if pages.contains(&path) {
            continue;
        }
        if path == relevant {
            return Some(pages.len());
        }
        pages.push(path);
        if pages.len() >= CUT {
            return None;
        }
    }
    None
}

fn write_pages(workspace: &Path, collection: &Collection) -> std::io::Result<()> {
    let folder = workspace.join("memory");
    std::fs::create_dir_all(&folder)?;
    for (name, text) in &collection.pages {
        std::fs::write(folder.join(format!("{name}.md")), text)?;
    }
    Ok(())
}

async fn ask(memory: &Memory, collection: &Collection) -> Result<RecallTally, Box<dyn Error>> {
    let mut tally = RecallTally::default();
    for query in &collection.queries {
        let request = SearchRequest {
            query: query.text.clone(),
            max_results: Some(CHUNKS),
            ..SearchRequest::default()
        };
        let answer = memory.search(&request).await?;
        let relevant = format!("memory/{}.md", query.page);
        tally.add(place(answer.hits.iter().map(|hit| hit.path.as_str()), &relevant));
    }
    Ok(tally)
}

async fn keywords(collection: &Collection) -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    write_pages(dir.path(), collection)?;
    let settings = MemorySettings::new(dir.path(), &dir.path().join("state/main.sqlite"));
    let memory = Memory::open(settings, None, None);
    memory.sync(SyncRequest { force: false, until: SyncUntil::Searchable }).await?;
    ask(&memory, collection).await?.print(&collection.name, "keywords");
    memory.close().await;
    let index = baseline::Index::of(collection)?;
    let mut tally = RecallTally::default();
    for query in &collection.queries {
        let found = index.search(&query.text, CHUNKS)?;
        tally.add(place(found.iter().map(String::as_str), &query.page));
    }
    tally.print(&collection.name, "fts5 OR");
    Ok(())
}

/// Measures vectors, and both together, on a part of the pages.
async fn with_vectors(
    collection: &Collection,
    embedder: Arc<CachedEmbedder>,
    fusion: Fusion,
) -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    write_pages(dir.path(), collection)?;
    let mut settings = MemorySettings::new(dir.path(), &dir.path().join("state/main.sqlite"));
    settings.query.hybrid.fusion = fusion;
    let memory = Memory::open(settings.clone(), Some(embedder.clone()), None);
    let report = memory.sync(SyncRequest { force: false, until: SyncUntil::Embedded }).await?;
    if report.pending > 0 {
        return Err(format!("{} chunks have no vectors", report.pending).into());
    }
    ask(&memory, collection).await?.print(&collection.name, "hybrid");
    memory.set_embedder(None);
    ask(&memory, collection).await?.print(&collection.name, "keywords, part");
    memory.close().await;
    settings.query.hybrid.enabled = false;
    let memory = Memory::open(settings, Some(embedder), None);
    memory.sync(SyncRequest { force: false, until: SyncUntil::Embedded }).await?;
    ask(&memory, collection).await?.print(&collection.name, "vectors");
    memory.close().await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = RecallOptions::read(std::env::args().skip(1))?;
    let unpacked = collections::unpacked(&options.cache)?;
    let mut embedders: HashMap<PathBuf, Arc<CachedEmbedder>> = HashMap::new();
    for collection in collections::read_all(&unpacked)? {
        if options.only.as_ref().is_some_and(|only| !collection.name.contains(only)) {
            continue;
        }
        keywords(&collection).await?;
        let model = if collection.is_english() { &options.english } else { &options.others };
        let Some(model) = model else { continue };
        let embedder = match embedders.get(model) {
            Some(embedder) => Arc::clone(embedder),
            None => {
                let embedder = Arc::new(CachedEmbedder::open(model, &options.cache)?);
                println!("{:<12} {}", "", embedder.identity().model);
                embedders.insert(model.clone(), Arc::clone(&embedder));
                embedder
            }
        };
        with_vectors(&collection.part(options.pages), embedder, options.fusion).await?;
    }
    Ok(())
}
