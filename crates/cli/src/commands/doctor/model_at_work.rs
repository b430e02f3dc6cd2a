//! Checks that the default agent's model can be asked: by what is found here, by what the running
//! gateway says, and by what came of the last calls. No model is called.

use openclaw_config::clock::now_ms;
use openclaw_config::profile::Instance;
use openclaw_gateway::RunningGateway;
use openclaw_models::catalog::Catalog;
use openclaw_models::credentials::{AuthStore, Connections, profile_order};
use openclaw_models::net::{Timeouts, address_fault};
use openclaw_models::select::Primary;
use openclaw_models::{Http, ModelRef, ModelSettings, ProviderId, Variables, offline};
use openclaw_protocol::params::sessions::SessionsList;
use openclaw_protocol::params::status::Status;
use openclaw_protocol::{AgentId, Call};
use serde_json::{Value, json};

use super::at_work::{AtWork, PATIENCE};
use crate::client::{self, AwaitedResponse, TargetFlags};
use crate::context::CliContext;
use crate::service::{self, process};

/// Checks the model. Without a usable config nothing is known of it.
pub(super) fn look(context: &CliContext, running: Option<RunningGateway>, seen: &mut AtWork) {
    let Ok(config) = context.config() else { return };
    if !context.loaded.snapshot.exists {
        return;
    }
    let agent = config.default_agent();
    let (settings, variables) = (ModelSettings::from(config.as_ref()), Variables::from(context.env()));
    let catalog = Catalog::new(&settings);
    let store = AuthStore::load(&config.agent(&agent).agent_dir).unwrap_or_default();
    let connections =
        Connections { store: &store, settings: &settings, catalog: &catalog, variables: &variables };
    let reference = Primary::find(&connections, &agent).reference;
    wrong_addresses(&settings, &reference.provider, seen);
    let in_use = running.and_then(|running| Some((running, model_of_gateway(context)?)));
    if let Some((running, in_use)) = in_use.filter(|(_, in_use)| *in_use != reference) {
        return OtherModel { context, agent: &agent, running, theirs: &in_use, ours: &reference }.tell(seen);
    }
    if is_offline(&reference) {
        return seen.facts.push(no_model(context, &reference));
    }
    ModelCheck { context, agent: &agent, connections, reference: &reference }.look(running, seen);
}

/// The default agent's model, of which the running gateway and this command think alike.
struct ModelCheck<'a> {
    context: &'a CliContext,
    agent: &'a AgentId,
    connections: Connections<'a>,
    reference: &'a ModelRef,
}

impl ModelCheck<'_> {
    fn look(&self, running: Option<RunningGateway>, seen: &mut AtWork) {
        let Self { context, agent, reference, .. } = self;
        let provider = &reference.provider;
        let spec = match self.connections.catalog.lookup(reference) {
            Ok(spec) => spec,
            Err(error) => {
                return seen.warn("model.unknown", format!("Runs of agent {agent} fail: {error}."));
            }
        };
        if let Some(unknown) = self.connections.catalog.not_listed(reference) {
            seen.warn("model.unlisted", format!("Agent {agent} uses {reference}: {unknown}"));
        }
        if !self.connections.can_call(provider) {
            let paste =
                context.hint_command(&format!("openclaw models auth paste-token --provider {provider}"));
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
        if let Some(why) = nobody_listens(&spec.base_url) {
            let message = format!(
                "The model {reference} of agent {agent} is down: nothing answers at {} ({why}).",
                spec.base_url
            );
            return seen.warn("model.down", message);
        }
        match self.last_failures() {
            Some(message) => seen.warn("model.failed", message),
            None => seen.facts.push(self.reached(&spec.base_url)),
        }
    }

    /// Command that asks the model.
    fn probe(&self) -> String {
        self.context.hint_command("openclaw models status --probe")
    }

    /// A connection says nothing of the answer.
    fn reached(&self, base_url: &str) -> String {
        let Self { agent, reference, .. } = self;
        let server = match base_url.is_empty() {
            true => "",
            false => " Its server can be reached.",
        };
        format!("Agent {agent} uses {reference}.{server} Whether it answers: {}", self.probe())
    }

    /// Sentence about calls that failed since the last one that was answered, with the credential
    /// that the next run takes first. Calls without a profile are not kept anywhere.
    fn last_failures(&self) -> Option<String> {
        let Connections { store, settings, .. } = self.connections;
        let order = profile_order(&self.reference.provider, store, settings, None, now_ms());
        let profile = order.first()?;
        let usage = store.usage(profile);
        let reasons = usage.failures_of_credential();
        (!reasons.is_empty()).then(|| {
            format!(
                "The last calls of {} with credential {profile} failed ({}). Whether it answers now: {}",
                self.reference,
                reasons.join(", "),
                self.probe()
            )
        })
    }
}

fn is_offline(reference: &ModelRef) -> bool {
    reference.provider.as_str() == offline::PROVIDER
}

/// Sentence for somebody who has connected no model yet.
fn no_model(context: &CliContext, guide: &ModelRef) -> String {
    let instance = Instance::of(context.env());
    let env_file = instance.env_file();
    format!(
        "No model is connected: the built-in {guide} answers. To connect one, put its key into {env_file}, such as \
         ANTHROPIC_API_KEY=…, and restart the gateway if it runs; or store the key, which needs no restart: {}",
        context.hint_command("openclaw models auth add")
    )
}

/// Asks the running gateway.
fn asked<C: Call>(context: &CliContext, params: Value) -> Option<C::Output> {
    let flags = TargetFlags::default();
    let call = client::call(context, &flags, C::NAME, params, AwaitedResponse::First, PATIENCE);
    client::read::<C>(client::block_on(call).ok()?, "answer").ok()
}

/// Model that the running gateway's default agent uses while a session names none.
fn model_of_gateway(context: &CliContext) -> Option<ModelRef> {
    let defaults = asked::<SessionsList>(context, json!({"limit": 1}))?.defaults;
    Some(ModelRef::new(&defaults.model_provider?, &defaults.model?))
}

/// A running gateway that uses another model than the one that is found here: keys and settings were
/// added after its start, or its environment is another.
struct OtherModel<'a> {
    context: &'a CliContext,
    agent: &'a AgentId,
    running: RunningGateway,
    theirs: &'a ModelRef,
    ours: &'a ModelRef,
}

impl OtherModel<'_> {
    fn tell(&self, seen: &mut AtWork) {
        let Self { agent, theirs, ours, .. } = self;
        let who = format!("The running gateway{}", process(self.running));
        let restart = service::restart_advice(self.context, self.running);
        match (is_offline(theirs), is_offline(ours)) {
            (true, _) => seen.warn(
                "model.restart",
                format!(
                    "{who} has no model and answers with the built-in {theirs}. {ours} is found here, with a key or setting \
                     that came after its start: restart the gateway. To do that, {restart}"
                ),
            ),
            (false, true) => seen.facts.push(format!("{who} uses {theirs} for agent {agent}.")),
            (false, false) => seen.facts.push(format!(
                "{who} uses {theirs} for agent {agent}; here {ours} is found. If its key or setting came after the gateway's \
                 start, restart the gateway. To do that, {restart}"
            )),
        }
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

/// Sentence about an address that is none.
fn wrong_address(base_url: &str) -> Option<String> {
    let fault = Some(base_url.trim()).filter(|url| !url.is_empty()).and_then(address_fault)?;
    Some(format!("{fault}."))
}

/// Sentence about a running gateway without a credential for the default agent's model, which this command has: a key
/// that came after its start.
fn lacks_credential(context: &CliContext, running: RunningGateway, provider: &ProviderId) -> Option<String> {
    let status = asked::<Status>(context, json!({}))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

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
    fn a_gateway_with_another_model_is_restarted_where_that_may_help() {
        let context = testing::context("{}", &[]);
        let (guide, claude) = (ModelRef::new("offline", "guide"), ModelRef::default());
        let local = ModelRef::new("ollama", "llama3.2");
        let (agent, running) = (AgentId::default(), RunningGateway { pid: Some(7), port: None });
        let told = |theirs: &ModelRef, ours: &ModelRef| {
            let mut seen = AtWork::default();
            OtherModel { context: &context, agent: &agent, running, theirs, ours }.tell(&mut seen);
            (seen.findings.into_iter().map(|found| found.message).collect::<String>(), seen.facts.concat())
        };
        let (warning, fact) = told(&guide, &claude);
        assert!(
            warning.contains("(pid 7) has no model") && warning.contains("restart the gateway"),
            "{warning}"
        );
        assert_eq!(fact, "");
        let (warning, fact) = told(&local, &claude);
        assert_eq!(warning, "");
        assert!(fact.contains("uses ollama/llama3.2") && fact.contains("restart the gateway"), "{fact}");
        let (warning, fact) = told(&local, &guide);
        assert_eq!(warning, "");
        assert!(fact.contains("uses ollama/llama3.2") && !fact.contains("restart"), "{fact}");
    }
}
