//! `kill -9` while memory is indexed: the index opens, finds what it found, and embeds again only what was under way.
//!
//! Chance picks whether a gateway or the command line is killed, and at which moment: when texts are at the provider, when
//! the index's log has grown, when the index is in step. `OPENCLAW_TEST_MEMORY_KILLS` sets how many kills there are,
//! `OPENCLAW_TEST_SEED` the chance, `OPENCLAW_TEST_BINARY` what is killed (`CONTRIBUTING.md`).

use std::collections::HashSet;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use openclaw_testkit::model_server::ModelServer;
use openclaw_testkit::{DEADLINE, GatewayUnderTest};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::time::timeout;

use crate::support::command::{json_of, ok};
use crate::support::environment::set;
use crate::support::memory_files::{found, note, paths, with_embeddings};

/// Unless `OPENCLAW_TEST_MEMORY_KILLS` says otherwise.
const KILLS: usize = 50;
/// Unless `OPENCLAW_TEST_SEED` says otherwise.
const SEED: u64 = 20_261_129;
/// Notes that are written before each kill.
const NOTES: usize = 3;

/// Moment of a kill.
#[derive(Debug, Clone, Copy)]
enum KillMoment {
    /// The provider of embeddings was asked this many times more.
    Asked(usize),
    /// The log of the index has changed its length this many times.
    Logged(usize),
    /// The index is in step with the files.
    Done,
}

impl KillMoment {
    fn by_chance(chance: &mut StdRng) -> Self {
        match chance.random_range(0..5) {
            0 | 1 => Self::Asked(chance.random_range(1..=2)),
            2 | 3 => Self::Logged(chance.random_range(1..=8)),
            _ => Self::Done,
        }
    }

    async fn comes(self, gateway: &GatewayUnderTest, model: &ModelServer) {
        match self {
            Self::Asked(times) => model.arrived(model.requests().len() + times).await,
            Self::Logged(times) => {
                let log = gateway.state_dir().join("memory/main.sqlite-wal");
                let length = || std::fs::metadata(&log).map_or(0, |file| file.len());
                let (mut changes, mut last) = (0, length());
                while changes < times {
                    tokio::time::sleep(Duration::from_micros(200)).await;
                    let now = length();
                    changes += usize::from(now != last);
                    last = now;
                }
            }
            Self::Done => std::future::pending().await,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_is_whole_however_often_its_writers_are_killed() -> Result<()> {
    let (kills, seed) = (set("OPENCLAW_TEST_MEMORY_KILLS", KILLS)?, set("OPENCLAW_TEST_SEED", SEED)?);
    let model = ModelServer::queue([]).await;
    let mut gateway = crate::gateway().config(with_embeddings(&model)).prepare()?;
    let mut chance = StdRng::seed_from_u64(seed);
    let (mut embedded, mut seen) = (HashSet::new(), 0);
    for round in 0..kills {
        for number in 0..NOTES {
            note(
                &gateway,
                &format!("memory/{round}-{number}.md"),
                &format!("- word{round}x{number} of this day\n"),
            );
        }
        let moment = KillMoment::by_chance(&mut chance);
        if chance.random_range(0..2) == 0 {
            kill_gateway(&mut gateway, &model, moment).await?;
        } else {
            kill_command_line(&gateway, &model, moment).await?;
        }
        // What was found before a kill is found after it, by whoever looks first.
        let known = chance.random_range(0..=round.saturating_sub(1));
        if round > 0 {
            let answer = json_of(&gateway, &["memory", "search", &format!("word{known}x0"), "--json"]).await;
            assert_eq!(
                answer["results"][0]["path"],
                format!("memory/{known}-0.md"),
                "kill {round}: {answer}"
            );
        }
        assert_eq!(
            ok(&gateway, &["memory", "index"]).await,
            "Memory index updated (main).\n",
            "kill {round}"
        );
        let requests = model.requests();
        let asked = requests.iter().skip(seen).filter_map(|request| request.body["input"].as_array());
        // Queries are no notes.
        let texts = asked.flatten().filter_map(|text| text.as_str()).filter(|text| text.starts_with("- "));
        let texts: Vec<String> = texts.map(str::to_owned).collect();
        for text in &texts {
            ensure!(!embedded.contains(text), "kill {round}: {text} is embedded once more");
        }
        embedded.extend(texts);
        seen = requests.len();
    }
    gateway.start().await?;
    ok(&gateway, &["memory", "index", "--force"]).await;
    assert_eq!(model.requests().len(), seen, "all texts are known");
    for round in 0..kills {
        for number in 0..NOTES {
            let answer = found(&gateway, &format!("word{round}x{number}")).await;
            assert_eq!(paths(&answer)[0], format!("memory/{round}-{number}.md"), "{answer}");
        }
    }
    let status = json_of(&gateway, &["memory", "status", "--json"]).await;
    assert_eq!(status[0]["status"]["files"], kills * NOTES, "{status}");
    let left = std::fs::read_dir(gateway.state_dir().join("memory"))?.map(|entry| Ok(entry?.file_name()));
    let left: Vec<_> = left.collect::<Result<_>>()?;
    assert!(left.iter().all(|name| name.to_string_lossy().starts_with("main.sqlite")), "{left:?}");
    Ok(())
}

/// Kills a gateway that was asked to index.
async fn kill_gateway(gateway: &mut GatewayUnderTest, model: &ModelServer, moment: KillMoment) -> Result<()> {
    gateway.start().await.context("the gateway does not start after a kill")?;
    {
        let mut index = gateway.command();
        index.args(["memory", "index"]).env("OPENCLAW_GATEWAY_PORT", gateway.port().to_string());
        let asked =
            index.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn()?.wait_with_output();
        let over = async {
            tokio::select! { () = moment.comes(gateway, model) => {}, _ = asked => {} }
        };
        timeout(DEADLINE, over).await.context("nothing is indexed")?;
    }
    gateway.kill().await
}

/// Kills the command line while it indexes by itself.
async fn kill_command_line(
    gateway: &GatewayUnderTest,
    model: &ModelServer,
    moment: KillMoment,
) -> Result<()> {
    let mut index = gateway.command();
    index.args(["memory", "index"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut index = index.kill_on_drop(true).spawn()?;
    let over = async {
        tokio::select! { () = moment.comes(gateway, model) => {}, _ = index.wait() => {} }
    };
    timeout(DEADLINE, over).await.context("nothing is indexed")?;
    index.kill().await?;
    Ok(())
}
