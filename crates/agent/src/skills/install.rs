//! Installs what a skill needs (spec `agent-runtime.md` §6.2, `gateway-protocol.md` §6.6).
//!
//! The data in a skill's file is untrusted: `plan` turns it into one of a few fixed commands or a
//! download, and nothing else; `command` runs the command, `download` fetches the file and unpacks
//! it below a directory of its own.

pub(crate) mod command;
mod download;
pub(crate) mod plan;

use std::path::Path;
use std::time::Duration;

use openclaw_config::Config;
use openclaw_models::Http;
use openclaw_protocol::params::skills::SkillsInstallResult;
use tokio_util::sync::CancellationToken;

use super::install_option::InstallSpec;
use super::library::Library;
use super::source::roots;
use crate::requirements::BinPath;
use download::{FetchError, STRICT};
use plan::InstallPlan;

/// Parameters of an installation.
#[derive(Debug, Clone, Copy)]
pub struct InstallRequest<'a> {
    /// The skill.
    pub name: &'a str,
    /// Id of the chosen installer.
    pub install_id: &'a str,
    /// Time limit; bounded by [`timeout`].
    pub timeout: Option<Duration>,
}

/// Returns the time limit of an installer: five minutes by default, fifteen at most.
pub fn timeout(asked: Option<Duration>) -> Duration {
    const DEFAULT: Duration = Duration::from_secs(5 * 60);
    const LEAST: Duration = Duration::from_secs(1);
    const MOST: Duration = Duration::from_secs(15 * 60);
    asked.unwrap_or(DEFAULT).clamp(LEAST, MOST)
}

/// Installs what a skill of a workspace needs. Failures are described in the result.
pub async fn install(
    config: &Config,
    workspace: &Path,
    request: InstallRequest<'_>,
    cancel: &CancellationToken,
) -> SkillsInstallResult {
    let roots = roots(config, workspace);
    let Ok(library) = tokio::task::spawn_blocking(move || Library::read(&roots)).await else {
        return failed("The skills could not be read".to_owned());
    };
    let Some(skill) = library.find(request.name) else {
        return failed(format!("Skill not found: {}", request.name));
    };
    let Some(spec) = skill.install.iter().find(|spec| spec.id == request.install_id) else {
        return failed(format!("Installer not found: {}", request.install_id));
    };
    let path = BinPath::of(config);
    if let Err(error) = path.sandboxes().refuse(&skill.file_path) {
        return failed(error.to_string());
    }
    let plan = match plan::plan(&spec.installer, &skill.key, config, &|name| path.find(name)) {
        Ok(plan) => plan,
        Err(error) => return failed(error.to_string()),
    };
    let limit = timeout(request.timeout);
    tracing::info!(skill = %skill.name, installer = %spec.id, "skills: installing what a skill needs");
    let done = match plan {
        InstallPlan::Run(order) => command::run(&order, config.environment(), limit, cancel).await,
        InstallPlan::Fetch(order) => {
            let http = Http::default();
            let fetching = download::fetch(&order, &http, STRICT);
            let fetched = tokio::select! { biased;
                () = cancel.cancelled() => Err(FetchError::Stopped),
                fetched = tokio::time::timeout(limit, fetching) => fetched.unwrap_or(Err(FetchError::Late(limit))),
            };
            match fetched {
                Ok(said) => SkillsInstallResult { ok: true, ..failed(said) },
                Err(error) => failed(error.to_string()),
            }
        }
    };
    SkillsInstallResult { message: with_missing(&done, spec, &path), ..done }
}

fn failed(message: String) -> SkillsInstallResult {
    SkillsInstallResult { ok: false, message, stdout: String::new(), stderr: String::new(), code: None }
}

/// The message, with the programs that were to come and can't be found.
fn with_missing(done: &SkillsInstallResult, spec: &InstallSpec, path: &BinPath) -> String {
    let missing: Vec<&str> =
        spec.bins.iter().map(String::as_str).filter(|bin| path.find(bin).is_none()).collect();
    if !done.ok || missing.is_empty() {
        return done.message.clone();
    }
    let missing = missing.join(", ");
    format!(
        "{}. Not in a directory of the gateway's PATH yet: {missing}; add the directory it was put into",
        done.message
    )
}
