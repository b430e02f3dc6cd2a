//! The login of OpenAI Codex: the browser brings the code, or the person pastes it.

use openclaw_config::clock::now_ms;
use openclaw_models::credentials::{About, Credential, Secret};
use openclaw_models::oauth::callback::{Callback, PORT, WAIT};
use openclaw_models::oauth::codex::{PROVIDER, authorize_url, exchange};
use openclaw_models::oauth::pasted::code_of;
use openclaw_models::oauth::pkce::Proof;
use openclaw_models::oauth::{LoginServers, codex::Login};
use openclaw_models::{Http, ProviderId};
use tokio::sync::oneshot;

use super::keep::Keeper;
use super::terminal::Terminal;
use crate::client::block_on;
use crate::commands::questions::Questions;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

/// Model that the login is for.
pub(super) const MODEL: &str = "openai-codex/gpt-5.3-codex";

pub(super) fn run(keeper: &Keeper<'_>, terminal: &Terminal) -> CommandResult {
    let servers = LoginServers::from(&keeper.variables);
    let login = block_on(log_in(&servers, *terminal))?;
    let id = format!("{PROVIDER}:{}", login.email.as_deref().unwrap_or("default"));
    let Login { access, refresh, expires, account, email } = login;
    let credential = Credential {
        provider: ProviderId::normalize(PROVIDER),
        secret: Secret::OAuth { access, refresh, expires: Some(expires) },
        about: About { account, email, ..About::default() },
    };
    keeper.keep(&id, &credential)?;
    output::error_line(&format!("Use it with the model {MODEL}."));
    Ok(0)
}

async fn log_in(servers: &LoginServers, terminal: Terminal) -> Result<Login, CommandFailure> {
    let proof = Proof::random();
    let callback = Callback::bind(PORT).await.ok();
    output::error_line("Open this page in a browser and log in:");
    output::line(&authorize_url(servers, &proof));
    let how = match callback {
        Some(_) => {
            "The browser should bring you back here. If it does not, paste the address it ended at, or the code:"
        }
        None => {
            "Port 1455 is taken, so the browser can't bring you back. Paste the address it ended at, or the code:"
        }
    };
    output::error_line(how);
    let code = code(callback, &proof, terminal).await?;
    let login = exchange(&Http::default(), servers, &code, &proof, now_ms()).await;
    login.map_err(|error| {
        CommandFailure::new("login", format!("Login failed: {error}")).hint("Run the command again.")
    })
}

/// Code from whichever is first: the browser for a minute, or the person as long as somebody sits
/// there.
async fn code(
    callback: Option<Callback>,
    proof: &Proof,
    terminal: Terminal,
) -> Result<String, CommandFailure> {
    let has_callback = callback.is_some();
    let browser = async {
        match callback {
            Some(callback) => tokio::time::timeout(WAIT, callback.code(&proof.state)).await.ok(),
            None => None,
        }
    };
    tokio::pin!(browser);
    let mut pasted = pasted_line();
    let line = tokio::select! {
        biased;
        code = &mut browser, if has_callback => match code {
            Some(code) => return Ok(code),
            None if terminal.is_interactive => {
                output::error_line("The browser did not come back within 60 s; paste the address or the code:");
                (&mut pasted).await.ok().flatten()
            }
            None => None,
        },
        line = &mut pasted => match line.ok().flatten() {
            // Without a person to paste anything, the browser is all there is.
            None if has_callback => match browser.await {
                Some(code) => return Ok(code),
                None => None,
            },
            line => line,
        },
    };
    let line = line.ok_or_else(|| {
        CommandFailure::new("login", "No code arrived; nothing was changed.")
            .hint("Run the command again, and log in within a minute or paste the code on standard input.")
    })?;
    code_of(&line, &proof.state)
        .map_err(|error| CommandFailure::new("login", format!("Login failed: {error}")))
}

/// The next line of standard input. Reading can't be cancelled, so it has a thread of its own that ends with the process.
fn pasted_line() -> oneshot::Receiver<Option<String>> {
    let (send, receive) = oneshot::channel();
    std::thread::spawn(move || {
        let line = std::iter::from_fn(|| Questions::of_process().answer().ok()).find(|line| !line.is_empty());
        // The browser may have been faster.
        let _ = send.send(line);
    });
    receive
}
