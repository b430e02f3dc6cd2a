//! `agent:bootstrap`: hooks that change the files in the prompt, and their contents.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use openclaw_agent::bootstrap::{BootstrapFile, RawFile, Wanted, read_all, shape_all};
use openclaw_agent::hooks::answer::BootstrapAnswer;
use openclaw_agent::hooks::bus::bootstrap_files;
use openclaw_agent::hooks::set::Action;
use openclaw_agent::hooks::soul_evil::SoulEvil;
use openclaw_agent::hooks::{Bundled, EventKind, HookBus};
use openclaw_agent::user_time::user_zone;
use openclaw_agent::workspace_file;
use openclaw_config::ResolvedAgent;
use openclaw_runtime::setup::Settings;
use openclaw_sessions::SessionKey;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Hooks, context, has_program, shown_config};
use crate::not_begun::NotBegun;

const SOUL: &str = "SOUL.md";
/// Bytes of another soul that are read at most.
const MAX_SOUL: u64 = 2 * 1024 * 1024;
/// Characters of a file's name.
const MAX_NAME: usize = 128;

/// Run whose workspace files hooks may change.
pub struct Bootstrap<'a> {
    /// Session of the run.
    pub key: &'a SessionKey,
    /// Id of its conversation.
    pub session_id: &'a str,
    /// Agent whose files are loaded.
    pub agent: &'a ResolvedAgent,
}

impl Hooks {
    /// The files that go into the prompt, after the hooks had them. They are read anew each time. What hooks say is not waited for once
    /// the run is stopped.
    pub async fn hooked_workspace(
        &self,
        bus: &HookBus,
        settings: &Settings,
        wanted: Wanted,
        whose: &Bootstrap<'_>,
        stop: &CancellationToken,
    ) -> Result<Arc<[BootstrapFile]>, NotBegun> {
        let kind = EventKind::AgentBootstrap;
        let (max_chars, workspace) = (wanted.max_chars, wanted.workspace.clone());
        let reading = tokio::task::spawn_blocking(move || {
            openclaw_agent::workspace::ensure(&wanted.workspace, wanted.fill)?;
            Ok::<_, openclaw_agent::workspace::WorkspaceError>(read_all(&wanted.workspace, wanted.scope))
        });
        let read = reading.await.map_err(|error| NotBegun::because(format!("Error: {error}")))?;
        let mut files = read?;
        let base = context([
            ("workspaceDir", Some(json!(workspace.display().to_string()))),
            ("sessionKey", Some(json!(whose.key))),
            ("sessionId", Some(json!(whose.session_id))),
            ("agentId", Some(json!(whose.agent.id))),
            ("cfg", has_program(bus, kind).then(|| shown_config(settings))),
        ]);
        for action in bus.set().of_event(kind) {
            match action {
                Action::BuiltIn(Bundled::SoulEvil) => swap_soul(&mut files, settings, whose).await,
                Action::BuiltIn(_) => {}
                Action::Program(program) => {
                    let mut event = self.event(kind, whose.key, base.clone());
                    event.context.insert("bootstrapFiles".to_owned(), bootstrap_files(&files));
                    let answer = tokio::select! { biased;
                        () = stop.cancelled() => break,
                        answer = bus.tell_event(program, &mut event) => answer,
                    };
                    if let Some(changed) = answer.and_then(|answer| answer.context.bootstrap_files) {
                        files = changed.into_iter().filter_map(|file| given(file, &workspace)).collect();
                    }
                }
            }
        }
        Ok(shape_all(&files, max_chars).into())
    }
}

/// Reads a file as a hook made it; `None` if it has no usable name.
fn given(file: BootstrapAnswer, workspace: &Path) -> Option<RawFile> {
    let name = file.name.trim();
    if name.is_empty() || name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
        tracing::warn!("a hook gave a workspace file without a usable name, which is left out");
        return None;
    }
    let path = if file.path.trim().is_empty() { workspace.join(name) } else { PathBuf::from(&file.path) };
    let content = file.content.filter(|_| !file.missing);
    Some(RawFile::given(name.to_owned(), path, content))
}

/// Puts another soul in the place of the agent's, if it is time for that.
async fn swap_soul(files: &mut [RawFile], settings: &Settings, whose: &Bootstrap<'_>) {
    let entry = settings.config.hooks.internal.entries.get(Bundled::SoulEvil.name());
    let Some(entry) = entry.filter(|_| !whose.key.is_subagent()) else { return };
    let evil = SoulEvil::read(&entry.settings);
    let now = Timestamp::now().to_zoned(user_zone(whose.agent.user_timezone.as_deref()));
    let Some(why) = evil.decide(&now, roll()) else { return };
    let Some(soul) = files.iter_mut().find(|file| file.name == SOUL) else { return };
    let (workspace, name) = (whose.agent.workspace.clone(), evil.file.clone());
    let read = tokio::task::spawn_blocking(move || workspace_file::read(&workspace, &name, MAX_SOUL)).await;
    let head = match read {
        Ok(Ok(head)) => head,
        Ok(Err(error)) => {
            tracing::warn!(file = %evil.file, "soul-evil changes nothing: {}", workspace_file::why(&error));
            return;
        }
        Err(error) => {
            tracing::warn!(%error, "soul-evil changes nothing");
            return;
        }
    };
    let text = head.map(|head| String::from_utf8_lossy(&head.bytes).into_owned());
    match text.filter(|text| !text.trim().is_empty()) {
        Some(text) => {
            tracing::debug!(?why, file = %evil.file, "soul-evil swaps the soul");
            *soul = RawFile::given(SOUL.to_owned(), soul.path.clone(), Some(text));
        }
        None => tracing::warn!(file = %evil.file, "soul-evil changes nothing: the file is missing or empty"),
    }
}

/// Draws a number from 0 to 1, 1 excluded.
fn roll() -> f64 {
    // A version 4 UUID begins with 32 random bits.
    f64::from(openclaw_sessions::ids::uuid().as_fields().0) / (f64::from(u32::MAX) + 1.0)
}
