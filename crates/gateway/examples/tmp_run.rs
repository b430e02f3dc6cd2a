//! x
#![allow(clippy::all, missing_docs)]
#[tokio::main]
async fn main() {
    let options = openclaw_gateway::RunOptions::new(openclaw_config::Environment::of_process());
    match openclaw_gateway::run(options).await {
        Ok(s) => eprintln!("{s:?}"),
        Err(e) => {
            eprintln!("ERR {e}");
            std::process::exit(1)
        }
    }
}
