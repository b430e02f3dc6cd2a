//! Measures an index of 20,000 and of 100,000 chunks with 768 dimensions: building, searching, memory.
//!
//! `cargo run --release -p openclaw-memory --example memory_bench -- [chunks] [dimensions] [files]`

#![allow(clippy::print_stdout, reason = "prints what it measured")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use openclaw_memory::chunk::Chunking;
use openclaw_memory::{
    BatchLimits, Cooldown, EmbedFuture, Embedder, EmbedderIdentity, Memory, MemorySettings, SearchRequest,
    SyncRequest, SyncUntil,
};

/// Answers at once with vectors that depend on the words of a text, spread around a common mean as real ones are.
struct BenchEmbedder {
    identity: EmbedderIdentity,
    cooldown: Cooldown,
    dimensions: usize,
}

impl BenchEmbedder {
    fn vector(&self, text: &str) -> Vec<f32> {
        let mut vector: Vec<f32> =
            (0..self.dimensions).map(|index| ((index * 37 % 97) as f32 / 97.0 - 0.3) * 0.4).collect();
        for word in text.split_whitespace().take(24) {
            let mut state = word.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
            }) | 1;
            for value in &mut vector {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                *value += (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0;
            }
        }
        vector
    }
}

impl Embedder for BenchEmbedder {
    fn identity(&self) -> &EmbedderIdentity {
        &self.identity
    }

    fn limits(&self) -> BatchLimits {
        BatchLimits { texts: 2_048, units: 4_000_000, requests: 1, ..BatchLimits::UNKNOWN }
    }

    fn cooldown(&self) -> &Cooldown {
        &self.cooldown
    }

    fn embed_query<'a>(&'a self, text: &'a str) -> EmbedFuture<'a, Vec<f32>> {
        Box::pin(async move { Ok(self.vector(text)) })
    }

    fn embed_batch<'a>(&'a self, texts: &'a [String]) -> EmbedFuture<'a, Vec<Vec<f32>>> {
        Box::pin(async move { Ok(texts.iter().map(|text| self.vector(text)).collect()) })
    }
}

/// Words as a language has them: the n-th is asked for about 1/n as often as the first.
struct Words {
    state: u64,
}

impl Words {
    fn number(&mut self) -> f64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn word(&mut self) -> String {
        const HAN: [char; 40] = [
            '网', '关', '架', '构', '评', '审', '会', '议', '记', '录', '部', '署', '方', '案', '讨', '论',
            '下', '周', '继', '续', '数', '据', '库', '备', '份', '花', '园', '苹', '果', '树', '时', '间',
            '电', '话', '密', '码', '办', '公', '室', '人',
        ];
        let rank = (60_000_f64.powf(self.number())) as usize;
        if rank % 10 == 3 {
            return (0..4)
                .filter_map(|place| HAN.get(rank.wrapping_mul(7 + place * 13) % HAN.len()))
                .collect();
        }
        let syllable =
            ["ka", "lo", "mi", "ter", "ban", "su", "re", "do"].get(rank % 8).copied().unwrap_or_default();
        format!("{syllable}{rank}")
    }

    fn words(&mut self, count: usize) -> String {
        (0..count).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or_default()
}

fn times(label: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |part: f64| times.get(((times.len() as f64 - 1.0) * part) as usize).copied().unwrap_or_default();
    println!("  {label:<50} p50 {:>9.3?}  p99 {:>9.3?}  of {}", at(0.5), at(0.99), times.len());
}

/// Processor time of this process.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    Duration::from_millis(fields.filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() * 10)
}

/// Bytes that this process has read and written, from and to files of all kinds.
fn bytes_read_and_written() -> (u64, u64) {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let number = |name: &str| {
        let line = io.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim().parse().unwrap_or_default()
    };
    (number("rchar:"), number("wchar:"))
}

async fn search_all(memory: &Memory, label: &str, queries: &[String]) {
    let mut taken = Vec::new();
    let before = processor_time();
    for query in queries {
        let request = SearchRequest { query: query.clone(), ..SearchRequest::default() };
        let started = Instant::now();
        let answer = memory.search(&request).await;
        taken.push(started.elapsed());
        if let Err(error) = answer {
            println!("  {label}: {error}");
        }
    }
    let spent = processor_time().saturating_sub(before) / u32::try_from(queries.len()).unwrap_or(1);
    times(&format!("{label} ({spent:?} of processor)"), taken);
}

fn write_files(directory: &Path, files: usize, chunks: usize) -> std::io::Result<()> {
    let mut words = Words { state: 88_172_645_463_325_252 };
    // A line of a hundred words makes about half a chunk.
    let lines = chunks.div_ceil(files) * 2;
    for file in 0..files {
        let folder = directory.join(format!("memory/{}", file % 100));
        std::fs::create_dir_all(&folder)?;
        let text: String = (0..lines).map(|_| words.words(105) + "\n").collect();
        std::fs::write(folder.join(format!("{file}.md")), text)?;
    }
    Ok(())
}

async fn measure(chunks: usize, dimensions: usize, files: usize) -> Result<(), Box<dyn std::error::Error>> {
    println!("{chunks} chunks, {dimensions} dimensions, {files} files");
    let dir = tempfile::tempdir()?;
    write_files(dir.path(), files, chunks)?;
    let mut settings = MemorySettings::new(dir.path(), &dir.path().join("state/main.sqlite"));
    settings.chunking = Chunking::default();
    settings.cache.enabled = false;
    settings.sync.watch_debounce = Duration::ZERO;
    let identity = EmbedderIdentity {
        provider: "openai".into(),
        model: "bench".into(),
        provider_key: "key".into(),
        equivalent_keys: Vec::new(),
    };
    let embedder = Arc::new(BenchEmbedder { identity, cooldown: Cooldown::default(), dimensions });
    let memory = Memory::open(settings.clone(), Some(embedder.clone()), None);
    let (started, before) = (Instant::now(), processor_time());
    memory.sync(SyncRequest { force: false, until: SyncUntil::Searchable }).await?;
    println!(
        "  searchable by keywords after        {:?} ({:?} of processor)",
        started.elapsed(),
        processor_time().saturating_sub(before)
    );
    let mut words = Words { state: 1_234_567 };
    let queries: Vec<String> = (0..200).map(|index| words.words(2 + index % 5)).collect();
    search_all(&memory, "search while vectors are made", &queries).await;
    let report = memory.sync(SyncRequest { force: false, until: SyncUntil::Embedded }).await?;
    println!("  with all vectors after              {:?} ({} pending)", started.elapsed(), report.pending);
    memory.close().await;
    drop(memory);
    let idle = resident_kib();
    let memory = Memory::open(settings.clone(), Some(embedder.clone()), None);
    let started = Instant::now();
    let first = memory
        .search(&SearchRequest {
            query: queries.first().cloned().unwrap_or_default(),
            ..SearchRequest::default()
        })
        .await?;
    println!(
        "  first search after a start          {:?} ({} hits, {:?})",
        started.elapsed(),
        first.hits.len(),
        first.mode
    );
    memory.close().await;
    drop(memory);
    // What was written just before is looked at once more.
    let memory = Memory::open(settings.clone(), Some(embedder.clone()), None);
    memory.sync(SyncRequest { force: false, until: SyncUntil::Searchable }).await?;
    memory.close().await;
    drop(memory);
    let memory = Memory::open(settings.clone(), Some(embedder.clone()), None);
    let (started, before) = (Instant::now(), (bytes_read_and_written(), processor_time()));
    let report = memory.sync(SyncRequest { force: false, until: SyncUntil::Searchable }).await?;
    let (spent, io) = (processor_time().saturating_sub(before.1), bytes_read_and_written());
    println!(
        "  a start without changes             {:?} ({spent:?} of processor, {} unchanged, {} KiB read, {} KiB written)",
        started.elapsed(),
        report.unchanged,
        (io.0 - before.0.0) / 1024,
        (io.1 - before.0.1) / 1024
    );
    search_all(&memory, "hybrid", &queries).await;
    let han: Vec<String> = (0..200)
        .map(|_| std::iter::repeat_with(|| words.word()).find(|word| !word.is_ascii()).unwrap_or_default())
        .collect();
    search_all(&memory, "hybrid, Han", &han).await;
    println!("  resident while searching            {} KiB above idle", resident_kib().saturating_sub(idle));
    let forced = memory.sync(SyncRequest { force: true, until: SyncUntil::Embedded });
    let searches = search_all(&memory, "hybrid while everything is indexed anew", &queries);
    let started = Instant::now();
    let (forced, ()) =
        tokio::join!(async { forced.await.map(|report| (report, started.elapsed())) }, searches);
    let (report, taken) = forced?;
    println!(
        "  a forced reindex                    {taken:?} ({} files, {} pending)",
        report.indexed, report.pending
    );
    search_all(&memory, "hybrid after that", &queries).await;
    memory.set_embedder(None);
    search_all(&memory, "keywords alone", &queries).await;
    memory.set_embedder(Some(embedder));
    memory.sync(SyncRequest { force: false, until: SyncUntil::Searchable }).await?;
    let changed = dir.path().join("memory/0/changed.md");
    std::fs::write(&changed, "the quokka was here\n")?;
    let started = Instant::now();
    loop {
        let answer =
            memory.search(&SearchRequest { query: "quokka".into(), ..SearchRequest::default() }).await?;
        if answer.hits.iter().any(|hit| hit.path.ends_with("changed.md"))
            || started.elapsed() > Duration::from_secs(10)
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    println!("  a changed file is found after       {:?}", started.elapsed());
    let before = processor_time();
    let started = Instant::now();
    memory.sync(SyncRequest { force: true, until: SyncUntil::Embedded }).await?;
    println!(
        "  a forced reindex without searches   {:?} ({:?} of processor)",
        started.elapsed(),
        processor_time() - before
    );
    memory.release().await;
    println!("  resident after the release          {} KiB above idle", resident_kib().saturating_sub(idle));
    println!(
        "  index file                          {} MiB",
        std::fs::metadata(&settings.store)?.len() / 1024 / 1024
    );
    memory.close().await;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // As the gateway does.
    openclaw_heap::share_one();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(measure_all())
}

async fn measure_all() -> Result<(), Box<dyn std::error::Error>> {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    match numbers.as_slice() {
        [] => {
            measure(20_000, 768, 10_000).await?;
            measure(100_000, 768, 10_000).await
        }
        [chunks] => measure(*chunks, 768, 10_000.min(*chunks)).await,
        [chunks, dimensions] => measure(*chunks, *dimensions, 10_000.min(*chunks)).await,
        [chunks, dimensions, files, ..] => measure(*chunks, *dimensions, *files).await,
    }
}
