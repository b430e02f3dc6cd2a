//! The login of GitHub Copilot: a code to enter on any device.

use openclaw_models::credentials::{Credential, Secret};
use openclaw_models::oauth::LoginServers;
use openclaw_models::oauth::github::{PROVIDER, begin, finish};
use openclaw_models::{Http, ProviderId};

use super::keep::Keeper;
use super::terminal::Terminal;
use crate::args::given;
use crate::client::block_on;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

/// The profile a login is kept as.
pub(super) const PROFILE: &str = "github-copilot:github";
/// Model that the login is for.
pub(super) const MODEL: &str = "github-copilot/gpt-4o";

pub(super) fn run(keeper: &Keeper<'_>, terminal: &Terminal, id: &str, yes: bool) -> CommandResult {
    let id = given(Some(id)).unwrap_or(PROFILE);
    if keeper.load().is_ok_and(|store| store.get(id).is_some()) && !yes && terminal.is_interactive {
        let answer = terminal.line(&format!("Auth profile \"{id}\" exists. Replace it? [y/N]"))?;
        if !matches!(answer.to_lowercase().as_str(), "y" | "yes") {
            return Err(CommandFailure::new("cancelled", "Cancelled; nothing was changed."));
        }
    }
    let servers = LoginServers::from(&keeper.variables);
    let token = block_on(async {
        let failed = |what: String| {
            CommandFailure::new("login", format!("Login failed: {what}")).hint("Run the command again.")
        };
        let http = Http::default();
        let code = begin(&http, &servers).await.map_err(|error| failed(error.to_string()))?;
        output::line(&format!("Visit: {}", code.page));
        output::line(&format!("Code: {}", code.user_code));
        output::error_line("Waiting for the code to be entered…");
        finish(&http, &servers, &code).await.map_err(|error| failed(error.to_string()))
    })?;
    let secret = Secret::Token { token, expires: None };
    keeper.keep(id, &Credential::new(ProviderId::normalize(PROVIDER), secret))?;
    Ok(0)
}
