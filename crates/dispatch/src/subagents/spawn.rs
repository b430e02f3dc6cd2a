//! Starting a sub-agent (spec `sessions.md` §8.4). A refusal is an answer like others.

use std::sync::Arc;

use openclaw_agent::host::SpawnCall;
use openclaw_config::ResolvedAgent;
use openclaw_journal::api::{Accepted, DispatchError};
use openclaw_journal::child_run::ChildRun;
use openclaw_journal::lineage::Lineage;
use openclaw_journal::request::RunRequest;
use openclaw_journal::rights::Rights;
use openclaw_journal::source::{RequestSource, TaskSource};
use openclaw_models::thinking::has_xhigh;
use openclaw_models::{Choices, ModelRef, ThinkingLevel};
use openclaw_protocol::message::{Provenance, ProvenanceKind};
use openclaw_protocol::{AgentId, RunId, SessionKey};
use openclaw_runtime::setup::Settings;
use openclaw_sessions::SessionEntry;
use openclaw_sessions::entry::DeliveryContext;
use openclaw_sessions::methods::{MAX_LABEL, PatchError};
use openclaw_sessions::store::{Edit, Query, Rows, StoreError};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::context;
use crate::handle::Dispatch;
use crate::parts::{ChildParts, DispatchFamilies};

/// The global lane of sub-agents.
const LANE: &str = "subagent";

/// A run that starts a sub-agent.
pub(crate) struct Spawner<'a> {
    pub(crate) parts: &'a Arc<DispatchFamilies>,
    /// Session of that run.
    pub(crate) key: &'a SessionKey,
    pub(crate) agent: &'a ResolvedAgent,
    /// Conversation in which it was asked for.
    pub(crate) origin: Option<DeliveryContext>,
    /// Count of automatic steps that led to the run since a person or the clock began.
    pub(crate) lineage: Lineage,
    /// Rights of the run.
    pub(crate) rights: &'a Rights,
    /// Id of the call: the same for the same call of the same run, also after a crash.
    pub(crate) call: String,
}

/// Plan for a child.
struct ChildPlan {
    agent: AgentId,
    model: Option<ModelRef>,
    thinking: Option<ThinkingLevel>,
    /// Reason for which it does not have the model that is configured.
    warning: Option<String>,
}

/// Answer in place of a child.
struct SpawnRefusal(Value);

impl SpawnRefusal {
    fn forbidden(why: impl Into<String>) -> Self {
        Self(json!({"status": "forbidden", "error": why.into()}))
    }

    fn error(why: impl Into<String>) -> Self {
        Self(json!({"status": "error", "error": why.into()}))
    }
}

impl Spawner<'_> {
    fn children(&self) -> &ChildParts {
        &self.parts.children
    }

    /// Starts one and answers before it begins to work.
    pub(crate) async fn spawn(&self, call: SpawnCall<'_>) -> Value {
        match self.try_spawn(call).await {
            Ok(answer) | Err(SpawnRefusal(answer)) => answer,
        }
    }

    async fn try_spawn(&self, call: SpawnCall<'_>) -> Result<Value, SpawnRefusal> {
        let parts = self.children();
        let settings = parts.settings.now();
        if self.key.is_subagent() {
            return Err(SpawnRefusal::forbidden("sessions_spawn is not allowed from sub-agent sessions"));
        }
        if let Some(why) = self.lineage.refuses_child() {
            return Err(SpawnRefusal::forbidden(why));
        }
        let plan = self.plan(&settings, call).await?;
        let (run_id, child) = self.names(&plan.agent)?;
        let dispatch =
            Dispatch::of(self.parts).ok_or_else(|| SpawnRefusal::error("gateway is shutting down"))?;
        let run = self.run(&settings, call, &run_id, &child);
        let failed = |error: DispatchError| {
            SpawnRefusal(
                json!({"status": "error", "error": error.to_string(), "childSessionKey": child, "runId": run_id}),
            )
        };
        if parts.rows.entry_or_none(self.key).await.is_none() {
            // A client may name a session that nobody has used: what is told of the child has to be told to one that is there.
            let made = self.write_row(self.key, &Map::new()).await;
            made.map_err(|error| failed(DispatchError::Storage(error)))?;
        }
        let unlabelled = self.unlabelled(&run).await;
        let label = run.label.as_deref().filter(|_| unlabelled.is_none());
        let patch = self.row(&plan, label).await;
        self.write_row(&child, &patch).await.map_err(|error| failed(DispatchError::Storage(error)))?;
        let request = self.request(call, &run, &plan, patch);
        // Spawned so that it completes if the run that asks is stopped meanwhile: what is accepted has to be known.
        let starting = start(dispatch, request, run, call.cancel.clone());
        match parts.accepting.spawn(starting).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(failed(error)),
            Err(error) => return Err(failed(DispatchError::Storage(error.to_string()))),
        }
        let mut answer = json!({"status": "accepted", "childSessionKey": child, "runId": run_id});
        if let Some(answer) = answer.as_object_mut() {
            match (&plan.model, &plan.warning) {
                (_, Some(_)) => drop(answer.insert("modelApplied".to_owned(), json!(false))),
                (Some(_), None) => drop(answer.insert("modelApplied".to_owned(), json!(true))),
                (None, None) => {}
            }
            let warnings: Vec<String> = [plan.warning, unlabelled].into_iter().flatten().collect();
            if !warnings.is_empty() {
                answer.insert("warning".to_owned(), json!(warnings.join("; ")));
            }
        }
        Ok(answer)
    }

    /// Plans the child.
    async fn plan(&self, settings: &Settings, call: SpawnCall<'_>) -> Result<ChildPlan, SpawnRefusal> {
        let (config, own) = (&settings.config, &self.agent.id);
        let agent = call.agent_id.map_or_else(|| own.clone(), AgentId::normalize);
        let allowed =
            config.agent_entry(own).map(|entry| entry.subagents.allow_agents.as_slice()).unwrap_or_default();
        if agent != *own && !is_allowed(&agent, allowed) {
            let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
            return Err(SpawnRefusal::forbidden(format!(
                "agentId is not allowed for sessions_spawn (allowed: {allowed})"
            )));
        }
        if !config.has_agent(&agent) {
            return Err(SpawnRefusal::error(format!("unknown agent id \"{agent}\"")));
        }
        let defaults = &config.agents.defaults.subagents;
        if let Some(most) = defaults.max_children_per_agent {
            let count = self.children().child_runs.count_active(own, self.children().rows.key_rules());
            if u64::try_from(count).unwrap_or(u64::MAX) >= most {
                return Err(SpawnRefusal::forbidden(format!(
                    "{count} sub-agents of agent {own} have not ended yet, which is as many as may be \
                     (agents.defaults.subagents.maxChildrenPerAgent: {most}); wait for one of them"
                )));
            }
        }
        let entry = config.agent_entry(&agent).map(|entry| entry.subagents.clone()).unwrap_or_default();
        let configured = [&entry.model, &defaults.model].into_iter().flatten();
        let configured = configured.filter_map(|model| text(model.primary.as_deref())).next();
        let asked_thinking =
            call.thinking.or(text(entry.thinking.as_deref())).or(text(defaults.thinking.as_deref()));
        let needs_models = call.model.is_some() || configured.is_some() || asked_thinking.is_some();
        let choices = match needs_models {
            true => {
                let resolved = config.agent(&agent);
                Some(self.children().models.all.choices(&settings.models, &agent, &resolved.agent_dir).await)
            }
            false => None,
        };
        let (mut model, mut warning) = (None, None);
        if let Some(choices) = &choices {
            match (call.model, configured) {
                (Some(asked), _) => model = Some(usable(choices, asked).map_err(SpawnRefusal::error)?),
                (None, Some(configured)) => match usable(choices, configured) {
                    Ok(found) => model = Some(found),
                    Err(why) => warning = Some(why),
                },
                (None, None) => {}
            }
        }
        let thinking = match (asked_thinking, &choices) {
            (Some(asked), Some(choices)) => {
                let used = model.as_ref().unwrap_or_else(|| choices.default_model());
                let has_xhigh = has_xhigh(used.provider.as_str(), used.model.as_str());
                match asked.parse::<ThinkingLevel>() {
                    Ok(level) if level != ThinkingLevel::XHigh || has_xhigh => Some(level),
                    // The configured level is meant for any model.
                    Ok(_) if call.thinking.is_none() => Some(ThinkingLevel::High),
                    Err(_) if call.thinking.is_none() => None,
                    Ok(_) | Err(_) => {
                        let levels = openclaw_commands::thinking_levels(used);
                        return Err(SpawnRefusal::error(format!(
                            "Invalid thinking level \"{asked}\". Use one of: {levels}."
                        )));
                    }
                }
            }
            _ => None,
        };
        Ok(ChildPlan { agent, model, thinking, warning })
    }

    /// The child's run and session: the same for the same call.
    fn names(&self, agent: &AgentId) -> Result<(RunId, SessionKey), SpawnRefusal> {
        let uuid = |what: &str| openclaw_journal::steady_id::uuid_of(&format!("{what}\n{}", self.call));
        let key = SessionKey::parse(&format!("agent:{agent}:subagent:{}", uuid("session")));
        let key = key.map_err(|error| SpawnRefusal::error(error.to_string()))?;
        Ok((RunId::new(uuid("run")), key))
    }

    fn run(&self, settings: &Settings, call: SpawnCall<'_>, run_id: &RunId, child: &SessionKey) -> ChildRun {
        let now = self.children().clock.now_ms();
        let archive_after = settings.config.agents.defaults.subagents.archive_after();
        let archive_after = archive_after.and_then(|after| i64::try_from(after.as_millis()).ok());
        let is_main = self.children().rows.key_rules().is_main(self.key);
        ChildRun {
            run_id: run_id.as_str().to_owned(),
            child_session_key: child.clone(),
            requester_session_key: self.key.clone(),
            requester_origin: self.origin.clone(),
            requester_display_key: if is_main { "main".to_owned() } else { self.key.to_string() },
            task: call.task.to_owned(),
            cleanup: call.cleanup,
            label: call.label.map(str::to_owned),
            created_at: now,
            started_at: Some(now),
            ended_at: None,
            outcome: None,
            archive_at_ms: archive_after.map(|after| now.saturating_add(after)),
            cleanup_handled: Some(false),
            cleanup_completed_at: None,
            announced: None,
            lineage: self.lineage,
            rights: Some(self.rights.caused()),
            extra: Map::new(),
        }
    }

    fn request(
        &self,
        call: SpawnCall<'_>,
        run: &ChildRun,
        plan: &ChildPlan,
        entry_patch: Map<String, Value>,
    ) -> RunRequest {
        let origin = run.requester_origin.as_ref();
        let channel = origin.and_then(|origin| origin.channel.as_deref()).map(str::to_owned);
        RunRequest {
            source: RequestSource::SubagentTask(Box::new(TaskSource {
                // The text is the task already.
                run: ChildRun { task: String::new(), ..run.clone() },
                provenance: Some(Provenance {
                    kind: ProvenanceKind::InterSession,
                    source_session_key: Some(self.key.shown().to_owned()),
                    source_channel: channel,
                    source_tool: Some("sessions_spawn".to_owned()),
                }),
                entry_patch,
            })),
            agent_id: Some(plan.agent.clone()),
            text: call.task.to_owned(),
            thinking: plan.thinking.map(|level| level.as_str().to_owned()),
            timeout_seconds: call.timeout_seconds,
            lane: Some(LANE.to_owned()),
            extra_system_prompt: Some(context::of_child(run)),
            lineage: self.lineage,
            rights: run.rights.clone(),
            ..RunRequest::default()
        }
    }

    /// Fields that the child's row has from the beginning.
    async fn row(&self, plan: &ChildPlan, label: Option<&str>) -> Map<String, Value> {
        let parent = self.children().rows.entry_or_none(self.key).await;
        let parent = parent.as_deref();
        let group =
            |take: fn(&SessionEntry) -> &Option<Box<str>>| parent.and_then(|entry| take(entry).clone());
        let level = plan.thinking.filter(|level| *level != ThinkingLevel::Off);
        let fields: [(&str, Option<Box<str>>); 8] = [
            ("spawnedBy", Some(self.key.spelled().into())),
            ("label", label.map(Box::from)),
            ("providerOverride", plan.model.as_ref().map(|model| model.provider.as_str().into())),
            ("modelOverride", plan.model.as_ref().map(|model| model.model.as_str().into())),
            ("thinkingLevel", level.map(|level| level.as_str().into())),
            ("groupId", group(|entry| &entry.group_id)),
            ("groupChannel", group(|entry| &entry.group_channel)),
            ("space", group(|entry| &entry.space)),
        ];
        let set = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?))));
        set.collect()
    }

    /// Returns the reason for which the child's session does not get the label that was asked for,
    /// if so: labels of rows are unique.
    async fn unlabelled(&self, run: &ChildRun) -> Option<String> {
        let label = run.label.as_deref()?;
        let why = if label.encode_utf16().count() > MAX_LABEL {
            PatchError::LongLabel.to_string()
        } else {
            let query = Query { label: Some(label.to_owned()), limit: Some(1), ..Query::default() };
            match self.children().store.select(Rows::All, &query).await {
                // The call is made again after a crash: it is the child's own.
                Ok(found) if found.rows.iter().all(|row| row.key == run.child_session_key) => return None,
                Ok(_) => StoreError::LabelInUse(label.to_owned()).to_string(),
                Err(error) => error.to_string(),
            }
        };
        Some(format!("its session has no label: {why}"))
    }

    async fn write_row(&self, key: &SessionKey, patch: &Map<String, Value>) -> Result<(), String> {
        let patch = patch.clone();
        let change = Box::new(move |edit: Edit<'_>| {
            edit.entry.merge(&patch, edit.now);
            Ok(())
        });
        // The request has these fields too.
        self.children().store.record(key, change).await.map(drop).map_err(|error| error.to_string())
    }
}

/// Accepts and lists a child. If the caller is stopped meanwhile, so is the child: a stop that came
/// before the child was listed has not met it.
async fn start(
    dispatch: Dispatch,
    request: RunRequest,
    run: ChildRun,
    cancel: CancellationToken,
) -> Result<(), DispatchError> {
    let (parts, child) = (dispatch.children(), run.child_session_key.clone());
    let accepting = dispatch.accept(run.id(), child.clone(), request).await;
    let receipt = match accepting.outcome().await {
        Ok(receipt) => receipt,
        Err(error) => {
            // Nothing is left of a child that was not accepted.
            if let Err(error) = parts.store.delete(&child).await {
                tracing::warn!(session = %child, %error, "the row of a sub-agent that was not started stays");
            }
            return Err(error);
        }
    };
    if matches!(receipt.accepted, Accepted::New { .. }) {
        let (run_id, runs) = (run.run_id.clone(), Arc::clone(&parts.child_runs));
        let listed = runs.add(run.clone());
        // The run begins once the list on disk has it, so that its end finds it there.
        let families = dispatch.families();
        families.spawn_for_children(async move {
            runs.tried(listed).await;
            drop(receipt);
        });
        super::follow(families, run_id);
        if cancel.is_cancelled() {
            dispatch.stop_subagent(&run).await;
        }
    }
    Ok(())
}

/// Returns the model that is meant, if a run with it would not fall back to another from the
/// beginning; the error is the reason. No provider is asked.
fn usable(choices: &Choices, text: &str) -> Result<ModelRef, String> {
    let model = choices.callable(text).map_err(|error| error.to_string())?;
    match choices.lacks_credential(&model) {
        Some(why) => Err(format!("Model \"{model}\" can't be used. {why}")),
        None => Ok(model),
    }
}

/// True if an agent may be given work.
fn is_allowed(agent: &AgentId, allowed: &[String]) -> bool {
    allowed.iter().map(|name| name.trim()).any(|name| name == "*" || AgentId::normalize(name) == *agent)
}

fn text(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}
