//! Everybody at once: people write notes of two agents while clients search them, and the command line indexes them anew.
//!
//! `OPENCLAW_TEST_SEARCHES` sets how many searches there are, `OPENCLAW_TEST_BINARY` who answers them (`CONTRIBUTING.md`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Result, ensure};
use openclaw_testkit::model_server::ModelServer;
use openclaw_testkit::{GatewayUnderTest, Login, TOKEN, WsClient};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::command::{json_of, ok};
use crate::support::environment::set;
use crate::support::memory_files::with_embeddings;

/// Unless `OPENCLAW_TEST_SEARCHES` says otherwise.
const SEARCHES: usize = 600;
const SEARCHERS: usize = 20;
const AGENTS: [&str; 2] = ["main", "work"];
const FILES: usize = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_find_their_agents_notes_while_everybody_writes_and_indexes() -> Result<()> {
    let searches = set("OPENCLAW_TEST_SEARCHES", SEARCHES)?;
    let model = ModelServer::queue([]).await.forgetful();
    let list = json!({"agents": {"list": [{"id": "main"}, {"id": "work"}]}});
    let mut gateway = crate::gateway().config(with_embeddings(&model)).config(list).prepare()?;
    for agent in AGENTS {
        (0..FILES).try_for_each(|file| write(&gateway, agent, file, 0))?;
    }
    gateway.start().await?;
    ok(&gateway, &["memory", "index"]).await;
    let gateway = Arc::new(gateway);
    let (left, is_over) = (Arc::new(AtomicUsize::new(searches)), Arc::new(AtomicBool::new(false)));

    let mut searchers = JoinSet::new();
    for number in 0..SEARCHERS {
        searchers.spawn(search(gateway.port(), AGENTS[number % AGENTS.len()], Arc::clone(&left)));
    }
    let mut others = JoinSet::new();
    for agent in AGENTS {
        others.spawn(write_on(Arc::clone(&gateway), agent, Arc::clone(&is_over)));
    }
    others.spawn(index_on(Arc::clone(&gateway), Arc::clone(&is_over)));
    while let Some(searcher) = searchers.join_next().await {
        searcher??;
    }
    is_over.store(true, Ordering::Relaxed);
    while let Some(other) = others.join_next().await {
        other??;
    }

    // Nothing is stale once the index is in step.
    ok(&gateway, &["memory", "index"]).await;
    for agent in AGENTS {
        for file in 0..FILES {
            let text = std::fs::read_to_string(path(&gateway, agent, file))?;
            let query = format!("{agent} fact{file}");
            let found = json_of(&gateway, &["memory", "search", &query, "--agent", agent, "--json"]).await;
            let hits = found["results"].as_array().unwrap();
            let own = hits.iter().find(|hit| hit["path"] == json!(format!("memory/{file}.md"))).unwrap();
            assert_eq!(own["snippet"], text, "{found}");
        }
    }
    let log = gateway.log();
    assert!(!log.contains("locked") && !log.contains("malformed"), "{log}");
    Ok(())
}

fn path(gateway: &GatewayUnderTest, agent: &str, file: usize) -> std::path::PathBuf {
    let workspace = if agent == "main" { "workspace".to_owned() } else { format!("workspace-{agent}") };
    gateway.state_dir().join(workspace).join("memory").join(format!("{file}.md"))
}

fn write(gateway: &GatewayUnderTest, agent: &str, file: usize, generation: usize) -> Result<()> {
    let path = path(gateway, agent, file);
    std::fs::create_dir_all(path.parent().unwrap())?;
    let made = path.with_extension("new");
    std::fs::write(&made, format!("- {agent} fact{file} generation{generation}\n"))?;
    Ok(std::fs::rename(made, path)?)
}

/// Writes the notes of an agent again and again, each in one step as editors do.
async fn write_on(
    gateway: Arc<GatewayUnderTest>,
    agent: &'static str,
    is_over: Arc<AtomicBool>,
) -> Result<()> {
    for generation in 1.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        write(&gateway, agent, generation % FILES, generation)?;
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    }
    Ok(())
}

/// Indexes everything anew by the command line.
async fn index_on(gateway: Arc<GatewayUnderTest>, is_over: Arc<AtomicBool>) -> Result<()> {
    while !is_over.load(Ordering::Relaxed) {
        let told = ok(&gateway, &["memory", "index", "--force"]).await;
        ensure!(told == "Memory index updated (main).\nMemory index updated (work).\n", "{told}");
    }
    Ok(())
}

/// Searches until there were enough searches.
async fn search(port: u16, agent: &'static str, left: Arc<AtomicUsize>) -> Result<()> {
    let (mut client, _) = WsClient::connect(port, Login::token(TOKEN)).await?;
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
        let file = left.load(Ordering::Relaxed) % FILES;
        let asked = json!({"agentId": agent, "query": format!("{agent} fact{file}")});
        let found = client.request("memory.search", asked).await?;
        let hits = found["results"].as_array().cloned().unwrap_or_default();
        let is_own = |hit: &Value| {
            hit["snippet"].as_str().is_some_and(|text| text.starts_with(&format!("- {agent} ")))
        };
        ensure!(hits.iter().all(is_own), "foreign notes: {found}");
        let is_there = hits.iter().any(|hit| hit["path"] == json!(format!("memory/{file}.md")));
        ensure!(is_there, "not found: {agent} {file}: {found}");
    }
    Ok(())
}
