//! Checks that a gateway runs and answers, and that the default agent's model can be asked.

use std::time::Duration;

use openclaw_config::Config;
use openclaw_gateway::Running;
use openclaw_models::catalog::Catalog;
use openclaw_models::credentials::{AuthStore, Connections};
use openclaw_models::net::{NetError, Timeouts, address_fault};
use openclaw_models::select::Primary;
use openclaw_models::{Http, ModelRef, ModelSettings, ProviderId, Variables, offline};
use openclaw_protocol::Call as _;
use openclaw_protocol::params::health::Health;
use openclaw_protocol::params::status::Status;
use openclaw_sessions::checkup::{Finding, Severity};
use serde_json::json;

use super::config_findings;
use crate::client::{self, Target, TargetFlags, Wait};
use crate::commands::audit;
use crate::context::Context;
use crate::output;
use crate::service::{self, process};

/// Longest wait for a gateway or a model server, which count as down after that.
const PATIENCE: Duration = Duration::from_secs(3);

/// Results of the checks.
#[derive(Debug, Default)]
pub(super) struct AtWork {
    /// Problems.
    pub(super) findings: Vec<Finding>,
    /// Things that are as they should be, or that nobody has set up yet, as sentences.
    pub(super) facts: Vec<String>,
}

impl AtWork {
    fn warn(&mut self, id: &'static str, message: String) {
        self.findings.push(Finding { id, severity: Severity::Warning, message, repairs: Vec::new() });
    }
}

/// Checks both. Without a usable config nothing is known of either.
pub(super) fn look(context: &Context, running: Option<Running>) -> AtWork {
    let mut seen = AtWork::default();
    let Ok(config) = context.config().cloned() else { return seen };
    if context.loaded.snapshot.exists {
        gateway(context, &config, running, &mut seen);
        model(context, &config, running, &mut seen);
        audit(context, &config, &mut seen);
    }
    seen
}

fn gateway(context: &Context, config: &Config, running: Option<Running>, seen: &mut AtWork) {
    let flags = TargetFlags::default();
    let Ok(target) = Target::of(config, context.env(), &flags) else { return };
    // A remote one that can't be meant is a finding about the config.
    if target.note.is_some() {
        return;
    }
    let who = match (target.bind.is_some(), running) {
        (true, None) => {
            let start = service::start_command(context);
            seen.facts
                .push(format!("No gateway runs here now, so nobody is answered. To start one: {start}"));
            return;
        }
        (true, Some(running)) => format!("The gateway{}", process(running)),
        (false, _) => format!("The gateway at {}", target.url),
    };
    let asked = client::call(context, &flags, Health::NAME, json!({}), Wait::First, PATIENCE);
    match client::block_on(asked) {
        Ok(_) => seen.facts.push(format!("{who} runs and answers.")),
        Err(failure) => {
            let why = failure.message.lines().next().unwrap_or_default().to_owned();
            seen.warn("gateway.silent", format!("{who} does not answer as it should: {why}."));
        }
    }
}

fn model(context: &Context, config: &Config, running: Option<Running>, seen: &mut AtWork) {
    let agent = config.default_agent();
    let (settings, variables) = (ModelSettings::from(config), Variables::from(context.env()));
    let catalog = Catalog::new(&settings);
    let store = AuthStore::load(&config.agent(&agent).agent_dir).unwrap_or_default();
    let connections =
        Connections { store: &store, settings: &settings, catalog: &catalog, variables: &variables };
    let reference = Primary::find(&connections, &agent).reference;
    wrong_addresses(&settings, &reference.provider, seen);
    let ModelRef { provider, .. } = &reference;
    if provider.as_str() == offline::PROVIDER {
        let status = context.hint_command("openclaw models status");
        seen.facts.push(format!(
            "No model is connected: the built-in {reference} answers. {status} says what is missing."
        ));
        return;
    }
    let spec = match catalog.lookup(&reference) {
        Ok(spec) => spec,
        Err(error) => return seen.warn("model.unknown", format!("Runs of agent {agent} fail: {error}.")),
    };
    if !connections.can_call(provider) {
        let paste = context.hint_command(&format!("openclaw models auth paste-token --provider {provider}"));
        return seen.warn(
            "model.no-credential",
            format!("Runs of agent {agent} fail: there is no credential for {provider}, whose {reference} it uses. To add one: {paste}"),
        );
    }
    if let Some(error) = wrong_address(&spec.base_url) {
        return seen.warn("model.address", format!("Runs of agent {agent} fail: {error}"));
    }
    let credential = running.and_then(|running| lacks_credential(context, running, provider));
    if let Some(message) = credential {
        return seen.warn("model.restart", message);
    }
    match nobody_listens(&spec.base_url) {
        Some(why) => seen.warn(
            "model.down",
            format!(
                "The model {reference} of agent {agent} is down: nothing answers at {} ({why}).",
                spec.base_url
            ),
        ),
        None => seen.facts.push(format!("Agent {agent} answers with {reference}.")),
    }
}

/// Warns of addresses of other providers that are none.
fn wrong_addresses(settings: &ModelSettings, except: &ProviderId, seen: &mut AtWork) {
    for (id, entry) in settings.providers.iter().filter(|(id, _)| ProviderId::normalize(id) != *except) {
        if let Some(error) = entry.base_url.as_deref().and_then(wrong_address) {
            seen.warn("model.address", format!("Calls of models of {id} fail: {error}"));
        }
    }
}

/// Sentence about an address that is none, with what was meant where that can be told.
fn wrong_address(base_url: &str) -> Option<String> {
    let fault = Some(base_url.trim()).filter(|url| !url.is_empty()).and_then(address_fault)?;
    let NetError::Address(shown) = &fault else { return Some(format!("{fault}.")) };
    match shown.contains("://") {
        true => Some(format!("{fault}.")),
        false => Some(format!("{fault}: http://{shown} or https://{shown}.")),
    }
}

/// Sentence about a running gateway without a credential for the default agent's model, which this command has: a key
/// that came after its start.
fn lacks_credential(context: &Context, running: Running, provider: &ProviderId) -> Option<String> {
    let flags = TargetFlags::default();
    let asked = client::call(context, &flags, Status::NAME, json!({}), Wait::First, PATIENCE);
    let status = client::read::<Status>(client::block_on(asked).ok()?, "status").ok()?;
    let missing = status.missing_credential.filter(|missing| missing == provider.as_str())?;
    Some(format!(
        "The running gateway{} has no credential for {missing}; the one that is found here came after its start: restart the \
         gateway. To do that, {}",
        process(running),
        service::restart_advice(context, running)
    ))
}

/// Reason why a model server can't be reached.
fn nobody_listens(base_url: &str) -> Option<String> {
    if base_url.is_empty() {
        // The protocol has its own address.
        return None;
    }
    let http = Http::with_timeouts(Timeouts { connect: PATIENCE, idle: PATIENCE * 2 });
    let reached = client::block_on(async { Ok(http.reach(base_url).await) }).ok()?;
    reached.err().map(|error| error.to_string())
}

/// Counts what the security audit calls critical. Modes of files are findings of the doctor's own, and so is a secret that is
/// missing.
fn audit(context: &Context, config: &Config, seen: &mut AtWork) {
    let report = audit::report(context, config);
    let is_refused = config_findings::refused(context).is_some();
    let is_own = |id: &str| id.starts_with("fs.") || (is_refused && id.ends_with("_no_auth"));
    let is_counted = |finding: &&audit::Finding| {
        finding.severity == audit::Severity::Critical && !is_own(&finding.check_id)
    };
    let titles: Vec<&str> =
        report.findings.iter().filter(is_counted).map(|finding| finding.title.as_str()).collect();
    if titles.is_empty() {
        return;
    }
    let list = context.hint_command("openclaw security audit");
    let count = match titles.len() {
        1 => "a critical finding".to_owned(),
        more => format!("{more} critical findings"),
    };
    let message = format!(
        "The security audit has {count}: {}. What to do: {list}",
        output::one_line(&titles.join("; "))
    );
    seen.findings.push(Finding {
        id: "security.critical",
        severity: Severity::Error,
        message,
        repairs: Vec::new(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_told_to_be_down_when_nobody_listens_or_it_has_no_address() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = format!("http://127.0.0.1:{port}/v1");
        let served = std::thread::spawn(move || listener.accept().map(drop));
        assert_eq!(nobody_listens(&url), None);
        assert!(served.join().unwrap().is_ok());
        assert!(nobody_listens(&url).is_some());
        assert!(nobody_listens("https://nosuchhost.invalid/v1").is_some());
        assert_eq!(nobody_listens(""), None);
    }

    #[test]
    fn an_address_without_a_scheme_is_named_with_one() {
        let said = wrong_address("localhost:1234").unwrap();
        assert!(said.contains("\"localhost:1234\" is not an http(s) address"), "{said}");
        assert!(said.ends_with(": http://localhost:1234 or https://localhost:1234."), "{said}");
        for right in ["http://localhost:1234/v1", "https://api.example.org", ""] {
            assert_eq!(wrong_address(right), None, "{right}");
        }
        assert!(wrong_address("ftp://x").is_some());
    }
}
