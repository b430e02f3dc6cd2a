//! What a person says to the gateway itself: done and answered without the agent (spec `messages.md` §4).
//!
//! The answer is stored like a run's (`docs/durability.md`): what was wished for is done durably and may be done twice, the
//! answer is written into the transcript once, under the message's own entry id, and only then is the message finished.

use std::path::Path;

use openclaw_config::ResolvedAgent;
use openclaw_models::{Choices, Chosen, ModelRef, ProviderId};
use openclaw_protocol::SessionId;
use openclaw_protocol::message::Message;
use openclaw_sessions::reset::authority::Authority;
use openclaw_sessions::transcript::inject::injected;
use openclaw_sessions::transcript::{NewTranscript, TranscriptRef};
use openclaw_sessions::{SessionEntry, SessionKey};
use serde_json::json;

use super::asked_model::{AskedModel, Hint, is_forbidden};
use super::inject::{PutError, RunTranscript};
use super::locked::{self, Held};
use super::session::reset_request;
use super::{Ending, NotBegun, RunControl, Runner, done, finish, record};
use crate::api::{RunOutcome, RunRecord};
use crate::directives::{self, ModelWish, Names, Said, Spoken, cards, models, not_there};
use crate::handle::Settings;
use crate::inbox::{Parked, Payload, Row};
use crate::lane::Job;
use crate::shared::Shared;

/// Where a message's words go.
pub(super) enum Way {
    /// To the agent.
    Agent(Option<Hint>),
    /// Nowhere: this is the answer.
    Answered(Command),
}

/// What the gateway does by itself.
pub(super) enum Command {
    /// What was said to it.
    Said(Said),
    /// It says why a wish can't be granted.
    Refusal(String),
}

/// The gateway's own answer to a message.
#[derive(Debug)]
pub(crate) struct Answer {
    /// What it says; nothing to who may not ask.
    pub(crate) message: Option<Box<Message>>,
    place: AnsweredIn,
}

/// The transcript an answer goes into.
#[derive(Debug)]
pub(super) struct AnsweredIn {
    pub(super) transcript: TranscriptRef,
    /// For one that has to be made.
    pub(super) new: NewTranscript,
}

impl AnsweredIn {
    fn new(transcript: TranscriptRef, id: &SessionId, workspace: &Path) -> Self {
        let (session_id, cwd) = (id.to_string(), workspace.display().to_string());
        Self { transcript, new: NewTranscript { session_id, cwd, parent: None } }
    }
}

/// Whose session it is about.
struct Whose<'a> {
    key: &'a SessionKey,
    agent: &'a ResolvedAgent,
    entry: &'a SessionEntry,
}

/// Answers a message whose turn it is.
pub(super) async fn work(
    shared: &Shared,
    job: &Job,
    row: &Row,
    control: &RunControl,
    command: &Command,
) -> Ending {
    let answered = async {
        let answer = shared.runner.answer_in_turn(shared, row, command).await?;
        while let Some(held) = shared.runner.keep_answer(row, &answer, None).await? {
            if let Err(ending) = locked::until_free(shared, &job.row, control, &held).await {
                return Ok(Err(ending));
            }
        }
        Ok::<_, NotBegun>(Ok(answer.message))
    };
    let answered = tokio::select! { biased;
        () = shared.kill.cancelled() => return Ending::Interrupted,
        answered = async { job.gate.cancelled().await; answered.await } => answered,
    };
    match answered {
        Ok(Ok(message)) => {
            let record = record(shared, row, None, outcome(message.as_deref()));
            finish(shared, record.clone()).await;
            Ending::Answered(record, message)
        }
        Ok(Err(ending)) => ending,
        Err(_) if shared.kill.is_cancelled() => Ending::Interrupted,
        Err(NotBegun(message)) => {
            tracing::warn!(run_id = %row.run_id, session = %row.session_key, %message, "a command failed");
            done(shared, row, None, RunOutcome::Error { message, result: None }).await
        }
    }
}

/// Does what a message asks for while a run of its session is under way. Clients may be told the answer at once; it is
/// written into the transcript by [`close`].
pub(crate) async fn answer_aside(shared: &Shared, row: &Row) -> Option<Answer> {
    match shared.runner.answer_beside_run(shared, row).await {
        Ok(answer) => answer,
        Err(NotBegun(message)) => {
            tracing::warn!(run_id = %row.run_id, session = %row.session_key, %message, "a command has to wait");
            None
        }
    }
}

/// Writes an answer that was told into the transcript, between two entries of the run under way, and finishes its message.
/// Nothing when the process ends before: then the message is answered again at the next start.
pub(crate) async fn close<P: Sync>(
    shared: &Shared,
    row: &Row<P>,
    answer: &Answer,
    run: Option<RunTranscript>,
) -> Option<RunRecord> {
    let kept = tokio::select! { biased;
        () = shared.kill.cancelled() => return None,
        kept = shared.runner.keep_answer(row, answer, run) => kept,
    };
    match kept {
        Ok(None) => {}
        Ok(Some(held)) => {
            tracing::warn!(run_id = %row.run_id, session = %row.session_key, %held, "an answer is not in the history");
        }
        Err(NotBegun(message)) => {
            tracing::warn!(run_id = %row.run_id, session = %row.session_key, %message, "an answer is not in the history");
        }
    }
    let record = record(shared, row, None, outcome(answer.message.as_deref()));
    finish(shared, record.clone()).await;
    Some(record)
}

/// What is remembered of an answered command.
pub(crate) fn outcome(said: Option<&Message>) -> RunOutcome {
    let text = said.and_then(|said| match said {
        Message::Assistant(said) => Some(said.text()),
        Message::User(_) | Message::ToolResult(_) => None,
    });
    let payloads: Vec<_> = text.into_iter().map(|text| json!({"text": text, "mediaUrl": null})).collect();
    RunOutcome::Ok { result: json!({"payloads": payloads, "meta": {}}) }
}

/// What a message is to the gateway. Whoever reaches the gateway's own protocol may give commands; an `agent` request has
/// none.
fn said(payload: &Payload, settings: &Settings) -> Said {
    let Payload::Chat(chat) = payload else { return Said::Words };
    if !chat.text.contains('/') {
        return Said::Words;
    }
    let reset = reset_request(payload, settings);
    let text = reset.as_ref().map_or(chat.text.as_str(), |reset| reset.rest.as_str());
    let models = openclaw_models::reference::ModelNames::new(&settings.models.listed);
    directives::read(
        Spoken { text, attached: !chat.images.is_empty(), by: Authority::Granted },
        Names { models: &models, triggers: &settings.sessions.section.triggers() },
    )
}

impl Runner {
    /// Whether a message is for the gateway alone, and whether it wishes something for a run of its own, which the one under
    /// way can't give it.
    pub(super) fn said_to_gateway(&self, payload: &Payload) -> (bool, bool) {
        match said(payload, &self.settings()) {
            Said::Settings(_) | Said::Models(_) | Said::NotThere(_) | Said::Ignored => (true, false),
            Said::Hints { .. } => (false, true),
            Said::Words | Said::Stripped(_) => (false, false),
        }
    }

    /// Whether a message is answered at once although a run of its session is under way. One that starts a conversation
    /// anew is not: it takes the run's place.
    pub(crate) async fn is_aside(&self, row: &Row<Parked>) -> bool {
        let wants = row.payload.wants;
        wants.command
            && !wants.reset
            && self.entry_or_none(&row.session_key).await.is_some_and(|entry| entry.session_id.is_some())
    }

    /// The words of a message without its wishes; nothing where it has none.
    pub(super) fn words_of(&self, row: &Row) -> Option<String> {
        match said(&row.payload, &self.settings()) {
            Said::Hints { text, .. } | Said::Stripped(text) => Some(text),
            Said::Words | Said::Settings(_) | Said::Models(_) | Said::NotThere(_) | Said::Ignored => None,
        }
    }

    /// Where the words of a message go. Reads what models there are where it wishes for one.
    pub(super) async fn way(&self, row: &Row) -> Result<Way, NotBegun> {
        let settings = self.settings();
        let (wishes, text) = match said(&row.payload, &settings) {
            Said::Words => return Ok(Way::Agent(None)),
            Said::Stripped(text) => return Ok(Way::Agent(Some(Hint { text, model: None, profile: None }))),
            command @ (Said::Settings(_) | Said::Models(_) | Said::NotThere(_) | Said::Ignored) => {
                return Ok(Way::Answered(Command::Said(command)));
            }
            Said::Hints { wishes, text } => (wishes, text),
        };
        let ModelWish::Choose { model, profile } = wishes.model else { return Ok(Way::Agent(None)) };
        let key = SessionKey::parse(&row.session_key)?;
        let agent = settings.config.agent(&key.agent_or(&settings.sessions.default_agent()));
        let choices = self.models.choices(&settings.models, &agent.id, &agent.agent_dir).await;
        match self.chosen(&choices, &agent, &model, profile.as_deref()).await {
            Ok(chosen) => Ok(Way::Agent(Some(Hint { text, model: Some(chosen.model), profile }))),
            Err(refusal) => Ok(Way::Answered(Command::Refusal(refusal))),
        }
    }

    async fn answer_in_turn(
        &self,
        shared: &Shared,
        row: &Row,
        command: &Command,
    ) -> Result<Answer, NotBegun> {
        let settings = self.settings();
        let session = self.session(shared, row, &settings, None).await?;
        session.note(shared, row).await?;
        let whose = Whose { key: &session.key, agent: &session.agent, entry: &session.entry };
        let text = match command {
            Command::Said(said) => self.answer(&settings, &whose, said).await?,
            Command::Refusal(text) => Some(text.clone()),
        };
        let place = AnsweredIn::new(session.transcript, &session.id, &session.agent.workspace);
        Ok(answer_of(row, text, place))
    }

    async fn answer_beside_run(&self, shared: &Shared, row: &Row) -> Result<Option<Answer>, NotBegun> {
        let settings = self.settings();
        let said = said(&row.payload, &settings);
        let key = SessionKey::parse(&row.session_key)?;
        let agent = settings.config.agent(&key.agent_or(&settings.sessions.default_agent()));
        let Some(found) = self.store.get(&key).await? else { return Ok(None) };
        let Some(id) = found.entry.session_id.clone() else { return Ok(None) };
        // Where the run has it, which looks at the disk too.
        let transcript = self.transcript_of(&agent.id, &id, Some(&found.entry))?;
        shared.inbox.begin(&row.run_id, &id).await?;
        let whose = Whose { key: &key, agent: &agent, entry: &found.entry };
        let text = self.answer(&settings, &whose, &said).await?;
        Ok(Some(answer_of(row, text, AnsweredIn::new(transcript, &id, &agent.workspace))))
    }

    /// Does what was said and tells what came of it.
    async fn answer(
        &self,
        settings: &Settings,
        whose: &Whose<'_>,
        said: &Said,
    ) -> Result<Option<String>, NotBegun> {
        let wish = match said {
            Said::Settings(wishes) => &wishes.model,
            Said::Models(asked) => {
                let choices = self.choices(settings, whose).await;
                return Ok(Some(models::answer(asked, choices.known())));
            }
            Said::NotThere(command) => return Ok(Some(not_there(command))),
            Said::Words | Said::Hints { .. } | Said::Stripped(_) | Said::Ignored => return Ok(None),
        };
        let choices = self.choices(settings, whose).await;
        let text = match wish {
            ModelWish::Choose { model, profile } => {
                match self.chosen(&choices, whose.agent, model, profile.as_deref()).await {
                    Ok(chosen) => self.switch(&choices, whose, chosen, profile.clone()).await?,
                    Err(refusal) => refusal,
                }
            }
            ModelWish::List => models::answer(&directives::PageAsked::default(), choices.known()),
            ModelWish::Show => cards::current(&self.current(&choices, whose).await.0),
            ModelWish::Status => self.status(settings, &choices, whose).await?,
            ModelWish::ProfileAlone => cards::PROFILE_ALONE.to_owned(),
        };
        Ok(Some(text))
    }

    async fn choices(&self, settings: &Settings, whose: &Whose<'_>) -> Choices {
        self.models.choices(&settings.models, &whose.agent.id, &whose.agent.agent_dir).await
    }

    /// The model a person means, if they may have it with that credential; else what to tell them.
    async fn chosen(
        &self,
        choices: &Choices,
        agent: &ResolvedAgent,
        model: &str,
        profile: Option<&str>,
    ) -> Result<Chosen, String> {
        if let Some(refusal) = cards::refusal(model) {
            return Err(refusal.to_owned());
        }
        let chosen = choices.find(model).map_err(|error| error.to_string())?;
        if let Some(profile) = profile {
            let checked = self.models.check_profile(&agent.agent_dir, &chosen.model.provider, profile).await;
            checked.map_err(|error| error.to_string())?;
        }
        Ok(chosen)
    }

    async fn switch(
        &self,
        choices: &Choices,
        whose: &Whose<'_>,
        chosen: Chosen,
        profile: Option<String>,
    ) -> Result<String, NotBegun> {
        let (before, _) = self.current(choices, whose).await;
        let text = cards::switched(&chosen, profile.as_deref());
        let told = (before != chosen.model).then(|| format!("Model switched to {chosen}."));
        let about = format!("model:{}", chosen.model);
        // The agent's own model is chosen by choosing nothing, unless that goes on with a room's.
        let by_itself = chosen.is_default && self.inherited_model(whose.key).await.is_none();
        self.keep_choice(whose.key, (!by_itself).then_some(chosen.model), profile).await?;
        if let Some(told) = told {
            self.tell(whose.key, &told, &about);
        }
        Ok(text)
    }

    /// The model in use, and whether the session's own choice was dropped on the way.
    async fn current(&self, choices: &Choices, whose: &Whose<'_>) -> (ModelRef, bool) {
        let default = choices.default_model().clone();
        let asked: AskedModel = self.asked_model(whose.key, whose.entry, None).await;
        if is_forbidden(choices, &asked) {
            self.drop_override(whose.key, &asked, &default).await;
            return (default, true);
        }
        let model = asked.model.as_deref().and_then(|text| choices.strict(text).ok());
        (model.unwrap_or(default), false)
    }

    async fn status(
        &self,
        settings: &Settings,
        choices: &Choices,
        whose: &Whose<'_>,
    ) -> Result<String, NotBegun> {
        let (current, was_reset) = self.current(choices, whose).await;
        let mut providers: Vec<ProviderId> = Vec::new();
        for model in choices.known() {
            if !providers.contains(&model.provider) {
                providers.push(model.provider.clone());
            }
        }
        let agent = whose.agent;
        let cards =
            self.models.provider_cards(&settings.models, &agent.id, &agent.agent_dir, providers).await?;
        let auth_file = agent.agent_dir.join(openclaw_models::credentials::FILE);
        Ok(cards::status(&cards::Status {
            current: &current,
            choices,
            agent: agent.id.as_str(),
            auth_file: &settings.config.environment().with_tilde(&auth_file),
            was_reset,
            providers: &cards,
        }))
    }

    /// Makes the answer part of the transcript, unless it is there from before a crash. Says if another process has it.
    async fn keep_answer<P: Sync>(
        &self,
        row: &Row<P>,
        answer: &Answer,
        run: Option<RunTranscript>,
    ) -> Result<Option<Held>, NotBegun> {
        let Some(message) = &answer.message else { return Ok(None) };
        match self.put_once(row, &answer.place, message, run).await {
            Ok(()) => Ok(None),
            Err(PutError::Lock(error)) => Ok(Some(Held::of(error)?)),
            Err(error) => Err(error.into()),
        }
    }
}

/// The time is that of acceptance: the same after a restart.
fn answer_of(row: &Row, text: Option<String>, place: AnsweredIn) -> Answer {
    Answer { message: text.map(|text| Box::new(injected(&text, None, row.accepted_at))), place }
}
