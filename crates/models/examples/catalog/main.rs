//! The built-in list of models, refreshed: prices, windows and new models from a list in the form of models.dev.
//!
//! `cargo xtask catalog --from <file or http(s) address> [--add] [--check]`
#![expect(clippy::print_stdout, reason = "a development task tells what it did")]

mod refresh;
mod render;

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use openclaw_models::Http;
use openclaw_models::net::Headers;
use serde_json::Value;

use refresh::{New, refresh};
use render::render;

/// Largest list that is read.
const MAX_LIST: usize = 64 * 1024 * 1024;

fn main() -> Result<()> {
    let mut from = None;
    let (mut new, mut writes) = (New::Name, true);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--from" => from = Some(args.next().context("--from needs a file or an address")?),
            "--add" => new = New::Add,
            "--check" => writes = false,
            _ => bail!("usage: cargo xtask catalog [--from <file or address>] [--add] [--check]"),
        }
    }
    let path = path();
    let there = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut list: Value = serde_json::from_str(&there)?;
    if let Some(from) = from {
        let source = read(&from)?;
        refresh(&mut list, &source, new).iter().for_each(|change| println!("{change}"));
    }
    let text = render(&list)?;
    if text == there {
        println!("catalog: nothing to change");
    } else if writes {
        std::fs::write(&path, text)?;
        println!(
            "catalog: {} is written; the tests say whether it still holds what was promised",
            path.display()
        );
    } else {
        bail!("{} is another than it would be; run `cargo xtask catalog` without --check", path.display());
    }
    Ok(())
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/catalog/builtin.json")
}

/// A list from a file or from the network.
fn read(from: &str) -> Result<Value> {
    let bytes = if from.starts_with("http://") || from.starts_with("https://") {
        tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(fetch(from))?
    } else {
        std::fs::read(from).with_context(|| from.to_owned())?
    };
    serde_json::from_slice(&bytes).with_context(|| format!("{from} is no JSON"))
}

async fn fetch(address: &str) -> Result<Vec<u8>> {
    let answer = Http::default().get(address, Headers::default()).await?;
    if !(200..300).contains(&answer.status) {
        return Err(anyhow!("{address} answers with status {}", answer.status));
    }
    Ok(answer.whole(MAX_LIST).await?)
}

#[cfg(test)]
mod tests {
    use openclaw_testkit::model_server::{ModelServer, Reply};

    use super::*;

    #[test]
    fn the_list_is_written_as_the_task_writes_it() {
        let there = std::fs::read_to_string(path()).unwrap();
        assert!(
            render(&serde_json::from_str(&there).unwrap()).unwrap() == there,
            "run `cargo xtask catalog`"
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_list_is_fetched_and_what_is_none_is_told() {
        let server = ModelServer::queue([]).await.listing(|request| match request.path.as_str() {
            "/api.json" => Some(Reply::plain(200, "application/json", "{\"a\": 1}")),
            _ => None,
        });
        let read = |path: &str| {
            let address = format!("{}{path}", server.url());
            tokio::task::spawn_blocking(move || read(&address))
        };
        assert_eq!(read("/api.json").await.unwrap().unwrap()["a"], 1);
        let error = read("/nothing").await.unwrap().unwrap_err();
        assert!(error.to_string().ends_with("/nothing answers with status 404"), "{error}");
    }
}
