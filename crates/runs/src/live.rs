//! Live view of an answer on a chat platform while it is written: the typing indicator, a draft of
//! the text or the thoughts so far if the platform has drafts, finished blocks, and notes on tools
//! (spec `streaming.md`). Driven beside the run whose events it follows.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use openclaw_agent::event::{Attachment, RunEvent, TextChange};
use openclaw_agent::text::thoughts;
use openclaw_agent::tool::Catalogue;
use openclaw_agent::{ReasoningVisibility, ReplyPayload};
use openclaw_channels::{Activity, SendError};
use openclaw_delivery::outbox::{Enqueued, OutboxError, Paced};
use openclaw_delivery::reply::coalescer::{BlockReply, Coalescer};
use openclaw_delivery::reply::draft::{DraftEffect, DraftStream, draft_id};
use openclaw_delivery::reply::pipeline::{BlockEffect, BlockPipeline, SEND_TIMEOUT, SendEnd, media};
use openclaw_delivery::reply::prefix::PrefixContext;
use openclaw_delivery::reply::sent_blocks::name_of;
use openclaw_delivery::reply::tool_notes::ToolNotes;
use openclaw_delivery::reply::typing::{self, Typing, TypingEffect, TypingSignal};
use openclaw_journal::inbox::InboxRow;
use openclaw_journal::journal::NewDelivery;
use openclaw_protocol::RunId;
use openclaw_runtime::events::Verbose;
use openclaw_sessions::ids;
use tokio::sync::mpsc;

use super::replies::{AnswerSettings, ChatAnswers};
use crate::reply_media::file_name;
use crate::said::Destination;
use openclaw_runtime::messages::turn::{MessageTurn, SendsBlocks};

/// Delay of the typing indicator, so that the model is asked first.
const BEHIND_THE_MODEL: Duration = Duration::from_millis(5);

/// Time for which the last draft is awaited: the answer comes after it, and not much later because
/// of it.
const LAST_DRAFT: Duration = Duration::from_secs(1);
/// Pause before a block that the disk refused is stored again, until [`SEND_TIMEOUT`] is over.
const BLOCK_BACKOFF: Duration = Duration::from_millis(200);

mod blocks;
mod pacing;

use blocks::Blocks;
use pacing::Pacing;
pub(crate) use pacing::Unsent;

type Doing<'a, T> = Option<Pin<Box<dyn Future<Output = T> + Send + 'a>>>;

/// The answer of one run while it is written.
pub(super) struct Live<'a> {
    reply: AnswerSettings<'a>,
    /// Record of what tools have sent.
    turn: Arc<MessageTurn>,
    /// The text of the current assistant message so far.
    text: String,
    /// [`ReplyPayload::said_to`] of the current text.
    said_to: usize,
    typing: Typing,
    showing: Doing<'a, Result<(), SendError>>,
    draft: Option<DraftStream>,
    drafting: Doing<'a, Result<(), SendError>>,
    /// Thoughts of the model so far, if they are shown.
    thoughts: Option<String>,
    blocks: Option<Blocks>,
    /// Guard that is told which calls may send; `None` if there are no blocks.
    sends_blocks: Option<SendsBlocks>,
    /// Calls that wait until earlier words are in the outbox.
    waiting: Vec<String>,
    /// Notes on the work of tools, if that is shown.
    tools: Option<ToolNotes>,
    /// Everything that is sent, in its order.
    pipeline: BlockPipeline,
    /// Times at which the blocks go out.
    pacing: Pacing,
    sent: usize,
    /// Prefix that tells this process's notices from those of one that died.
    notices: String,
    sending: Doing<'a, SendEnd>,
}

/// Parts of a run that are shown besides its answer.
#[derive(Clone, Copy)]
pub(super) struct Shows {
    /// Work of tools.
    pub(super) notes: Verbose,
    /// Thoughts of the model.
    pub(super) reasoning: ReasoningVisibility,
    /// Catalogue with the names of tools.
    pub(super) catalogue: &'static Catalogue,
    /// True if the answer is shown before it is whole: false for a message that waited behind
    /// another run (spec `queue.md` §4.3).
    pub(super) as_it_grows: bool,
}

enum LiveStep {
    Event(RunEvent),
    Over,
    Shown(Result<(), SendError>),
    Drafted(Result<(), SendError>),
    Sent(SendEnd),
    Due,
}

impl<'a> Live<'a> {
    /// Begins the live view of a run; `None` if its message was not said on a chat platform.
    pub(super) fn begin(
        answers: &'a ChatAnswers,
        row: &'a InboxRow,
        context: &PrefixContext,
        turn: &Arc<MessageTurn>,
        shows: Shows,
    ) -> Option<Self> {
        let origin = row.payload.source.origin()?;
        let (is_direct, was_mentioned) = (origin.is_direct(), origin.was_mentioned);
        let has_thread = origin.address.thread.is_some();
        let reply =
            AnswerSettings::new(answers, row, Destination::from(origin), context, turn.quoted.clone());
        let settings = answers.settings();
        let (agents, session) = (&settings.config.agents.defaults, &settings.config.session);
        let is_beat = row.payload.source.beat().is_some();
        let mode = typing::mode(is_beat, session.typing_mode, agents.typing_mode, is_direct || was_mentioned);
        let interval = typing::interval(
            agents.typing_interval_seconds,
            session.typing_interval_seconds,
            Some(typing::SHOWN_FOR),
        );
        // Thoughts that come before the answer would come too late behind a draft of it.
        let may_draft =
            shows.as_it_grows && is_direct && has_thread && shows.reasoning != ReasoningVisibility::On;
        let draft = reply.settings.draft.filter(|_| may_draft).map(DraftStream::new);
        // Blocks that an earlier process sent are not repeated, and the rest comes at the end.
        let has_blocks =
            shows.as_it_grows && reply.settings.block_streaming && draft.is_none() && !row.recovered;
        let blocks = has_blocks.then(|| Blocks::new(&reply.settings));
        let coalescer = has_blocks.then(|| Coalescer::new(reply.settings.coalesce));
        let has_tools = shows.notes != Verbose::Off && !is_beat;
        let started = row.recovered.then(|| format!("{}.", answers.now_ms()));
        Some(Self {
            reply,
            turn: Arc::clone(turn),
            text: String::new(),
            said_to: 0,
            typing: Typing::new(mode, interval),
            showing: None,
            thoughts: (shows.reasoning == ReasoningVisibility::Stream && draft.is_some()).then(String::new),
            draft,
            drafting: None,
            blocks,
            sends_blocks: has_blocks.then(|| turn.sends_blocks()),
            waiting: Vec::new(),
            tools: has_tools.then(|| ToolNotes::new(shows.catalogue, shows.notes == Verbose::Full)),
            pipeline: BlockPipeline::new(coalescer),
            pacing: Pacing::default(),
            sent: 0,
            notices: started.unwrap_or_default(),
            sending: None,
        })
    }

    /// Follows the run's events to their end, and hands each on.
    pub(super) async fn follow(
        &mut self,
        mut events: mpsc::Receiver<RunEvent>,
        out: &mpsc::Sender<RunEvent>,
    ) {
        loop {
            match self.next(Some(&mut events)).await {
                LiveStep::Event(event) => {
                    self.on(&event);
                    // A lane that is gone hears nothing any more.
                    let _ = out.send(event).await;
                }
                LiveStep::Over => return,
                step => self.done(step),
            }
        }
    }

    /// Hands the rest of the blocks to the outbox, behind the last draft. Returns the last payloads
    /// that are still to be said, and the blocks that wait for their pause.
    pub(super) async fn finish(mut self, payloads: Vec<ReplyPayload>) -> (Vec<ReplyPayload>, Option<Unsent>) {
        self.typing.on(Instant::now(), TypingSignal::RunComplete);
        self.show_last_draft().await;
        self.text_ends();
        let effect = self.pipeline.finish();
        self.send(effect);
        self.all_sent().await;
        let unsent = self.pacing.unsent(&self.typing, &self.reply);
        self.typing.on(Instant::now(), TypingSignal::Idle);
        (self.pipeline.remaining(payloads), unsent)
    }

    /// Ends the view of a run that was stopped at a message behind this one: as
    /// [`Live::finish`], but nothing more is said to the messages behind.
    pub(super) async fn finish_at(
        mut self,
        said_to: usize,
        payloads: Vec<ReplyPayload>,
    ) -> (Vec<ReplyPayload>, Option<Unsent>) {
        self.blocks = None;
        self.pipeline.cut_behind(said_to);
        self.all_sent().await;
        self.take_back(self.turn.runs_behind(said_to)).await;
        self.finish(payloads).await
    }

    /// Waits until all that was handed to the pipeline is in the outbox.
    async fn all_sent(&mut self) {
        while self.sending.is_some() {
            let step = self.next(None).await;
            self.done(step);
        }
    }

    /// Ends the view after somebody has stopped the run: blocks on their way to the outbox get
    /// there, and then all that wait for their pause are taken back.
    pub(super) async fn abandon(mut self) {
        if let Some(sending) = self.sending.take() {
            sending.await;
        }
        self.take_back(self.turn.runs()).await;
    }

    /// Takes back the blocks of these runs that wait for their pause.
    async fn take_back(&mut self, runs: Vec<RunId>) {
        if self.pacing.has_paused() {
            let outbox = self.reply.outbox();
            for run_id in runs {
                if let Err(error) = outbox.withdraw(Paced::OfRun(&run_id)).await {
                    tracing::warn!(%run_id, %error, "what a stopped run had left to say is said");
                }
            }
        }
    }

    /// Waits for the last draft, because a draft that comes behind the answer would stay there for
    /// good.
    async fn show_last_draft(&mut self) {
        let showing = async {
            while let Some(drafting) = &mut self.drafting {
                let shown = drafting.await;
                self.done(LiveStep::Drafted(shown));
            }
        };
        if tokio::time::timeout(LAST_DRAFT, showing).await.is_err() {
            tracing::debug!("the last draft is not shown: the platform takes too long");
            self.drafting = None;
        }
    }

    async fn next(&mut self, events: Option<&mut mpsc::Receiver<RunEvent>>) -> LiveStep {
        let dues = [
            self.typing.due().filter(|_| self.showing.is_none()),
            self.draft.as_ref().and_then(DraftStream::due).filter(|_| self.drafting.is_none()),
            self.pipeline.due(),
        ];
        let due = dues.into_iter().flatten().min();
        tokio::select! { biased;
            event = received(events) => event.map_or(LiveStep::Over, LiveStep::Event),
            shown = polled(self.showing.as_mut()) => LiveStep::Shown(shown),
            drafted = polled(self.drafting.as_mut()) => LiveStep::Drafted(drafted),
            end = polled(self.sending.as_mut()) => LiveStep::Sent(end),
            () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now).into()), if due.is_some() => LiveStep::Due,
        }
    }

    fn done(&mut self, step: LiveStep) {
        let now = Instant::now();
        match step {
            LiveStep::Shown(result) => {
                self.showing = None;
                self.typing.shown(result.map_err(drop));
            }
            LiveStep::Drafted(result) => {
                self.drafting = None;
                let effect = self.draft.as_mut().and_then(|draft| draft.shown(now, result.map_err(drop)));
                self.show_draft(effect);
            }
            LiveStep::Sent(end) => {
                self.sending = None;
                let effect = self.pipeline.sent(end);
                self.send(effect);
            }
            LiveStep::Due => {
                let effect = self.typing.tick(now);
                self.show_typing(effect);
                let effect = self.draft.as_mut().and_then(|draft| draft.tick(now));
                self.show_draft(effect);
                let effect = self.pipeline.tick(now);
                self.send(effect);
            }
            LiveStep::Event(_) | LiveStep::Over => {}
        }
    }

    fn on(&mut self, event: &RunEvent) {
        let now = Instant::now();
        match event {
            RunEvent::Started { .. } => self.signal(now, TypingSignal::RunStart),
            RunEvent::Assistant(change) => self.on_text(now, change),
            RunEvent::Quotes(quote) => {
                if let Some(blocks) = &mut self.blocks {
                    blocks.tag = Some(quote.clone());
                }
            }
            RunEvent::Attaches(file) => self.on_file(file),
            RunEvent::TextEnds => {
                let ready = self.blocks.as_mut().map(Blocks::end_of_text);
                self.enqueue(ready);
            }
            RunEvent::Thinking(change) => self.on_thinking(now, change),
            RunEvent::Thought(text) => self.on_thought(text),
            RunEvent::ToolStart { name, call_id, args } => {
                self.signal(now, TypingSignal::ToolStart);
                self.text_ends();
                let effect = match &mut self.tools {
                    Some(tools) => self.pipeline.notice(tools.started(name, call_id, args)),
                    None => self.pipeline.flush(),
                };
                self.waiting.push(call_id.clone());
                self.send(effect);
            }
            RunEvent::ToolResult { name, call_id, result, .. } => {
                if let Some(sends_blocks) = &self.sends_blocks {
                    sends_blocks.called(call_id);
                }
                let note = self.tools.as_mut().and_then(|tools| tools.ended(name, call_id, result));
                let effect = note.and_then(|note| self.pipeline.notice(note));
                self.send(effect);
            }
            RunEvent::Ended { .. } => {
                let effect = self.draft.as_mut().and_then(|draft| draft.finish(now));
                self.show_draft(effect);
            }
            RunEvent::Steered => {
                self.text_ends();
                let effect = self.pipeline.flush();
                self.send(effect);
                self.said_to += 1;
            }
            // Chats see that the agent types on.
            RunEvent::Retry(_)
            | RunEvent::Asking
            | RunEvent::ToolUpdate { .. }
            | RunEvent::CompactionStart
            | RunEvent::CompactionEnd { .. } => {}
        }
    }

    fn on_text(&mut self, now: Instant, change: &TextChange) {
        let grown = match change {
            TextChange::Begins(text) => {
                self.text_begins();
                self.text.clear();
                Some(text)
            }
            TextChange::Grows(text) => Some(text),
            TextChange::Corrected(text) => {
                self.text.clone_from(text);
                None
            }
        };
        if let Some(grown) = grown {
            self.text.push_str(grown);
            let ready = self.blocks.as_mut().map(|blocks| blocks.grow(grown));
            self.enqueue(ready);
        }
        let text = std::mem::take(&mut self.text);
        self.signal(now, TypingSignal::Text(&text));
        let effect = self.draft.as_mut().and_then(|draft| draft.update(now, &text));
        self.text = text;
        self.show_draft(effect);
    }

    /// Shows the thoughts so far as the draft, until the answer takes their place.
    fn on_thinking(&mut self, now: Instant, change: &TextChange) {
        let Some(thoughts) = &mut self.thoughts else { return };
        match change {
            TextChange::Begins(text) | TextChange::Corrected(text) => text.clone_into(thoughts),
            TextChange::Grows(text) => thoughts.push_str(text),
        }
        let draft = self.draft.as_mut().filter(|draft| !draft.is_stopped());
        let effect = draft.and_then(|draft| draft.reasoning(now, &thoughts::shown(thoughts)?));
        self.show_draft(effect);
    }

    /// Sends the thoughts for a message as a message before it if none of it was sent yet, else
    /// behind it. Without blocks they come with the end of the answer.
    fn on_thought(&mut self, text: &str) {
        let Some(blocks) = &self.blocks else { return };
        let comes_first = blocks.at_message_end;
        if !comes_first {
            self.text_ends();
        }
        let (text, said_to) = (text.to_owned(), self.said_to);
        let effect = self.pipeline.enqueue_whole(ReplyPayload { text, said_to, ..ReplyPayload::default() });
        self.send(effect);
        if comes_first {
            self.text_ends();
        }
    }

    /// Sends a file at its place, behind all text before it.
    fn on_file(&mut self, file: &Attachment) {
        if file.after == 0 && !file.is_under_way {
            self.text_begins();
        }
        let ready = self.blocks.as_mut().map(|blocks| blocks.on_file(file));
        self.enqueue(ready);
    }

    /// Begins a text: the message before is at its end. Tags and files of the next one stay.
    fn text_begins(&mut self) {
        let ready = self.blocks.as_mut().map(Blocks::begin);
        self.enqueue(ready);
    }

    /// Ends a message of the model.
    fn text_ends(&mut self) {
        let ready = self.blocks.as_mut().map(Blocks::end);
        self.enqueue(ready);
    }

    fn enqueue(&mut self, ready: Option<Vec<BlockReply>>) {
        for mut block in ready.into_iter().flatten() {
            block.payload.said_to = self.said_to;
            let effect = self.pipeline.enqueue(Instant::now(), block);
            self.send(effect);
        }
    }

    fn signal(&mut self, now: Instant, signal: TypingSignal<'_>) {
        let effect = self.typing.on(now, signal);
        self.show_typing(effect);
    }

    fn show_typing(&mut self, effect: Option<TypingEffect>) {
        let Some(TypingEffect::Show) = effect else { return };
        let Some(account) = self.reply.account.clone() else { return };
        let at = self.reply.to.address.clone();
        self.showing = Some(Box::pin(async move {
            tokio::time::sleep(BEHIND_THE_MODEL).await;
            account.show_activity(&at, Activity::Typing).await
        }));
    }

    fn show_draft(&mut self, effect: Option<DraftEffect>) {
        let Some(DraftEffect::Show(text)) = effect else { return };
        let Some(account) = self.reply.account.clone() else { return };
        let to = &self.reply.to;
        let answered = to.message_id.as_deref().and_then(|id| id.parse().ok());
        let (at, id) = (to.address.clone(), draft_id(answered.unwrap_or(1)));
        self.drafting = Some(Box::pin(async move { account.draft(&at, id, &text).await }));
    }

    /// Lets tools send, behind the words before their calls.
    fn let_tools_send(&mut self) {
        if let Some(sends_blocks) = self.sends_blocks.as_ref().filter(|_| self.pipeline.is_idle()) {
            self.waiting.drain(..).for_each(|call| sends_blocks.flushed(call));
        }
    }

    /// Hands the next block to the outbox, with its pause behind the one before.
    fn send(&mut self, effect: Option<BlockEffect>) {
        let mut effect = effect;
        while let Some(BlockEffect::Send { payload, is_first, is_notice }) = effect.take() {
            // Words that a tool has sent are not repeated.
            let left = if is_notice { Some(payload) } else { self.turn.left_of(payload) };
            let Some(left) = left else {
                effect = self.pipeline.sent(SendEnd::Sent);
                continue;
            };
            let sent = self.sent + 1;
            let name = match media(&left).first() {
                _ if is_notice => format!("t{}{sent}", self.notices),
                Some(file) => file_name(file),
                None => name_of(sent, &left.text),
            };
            let id = format!("{}:{name}", self.turn.run_of(left.said_to));
            let Some(payload) = self.reply.worded(left) else {
                effect = self.pipeline.sent(SendEnd::Sent);
                continue;
            };
            self.sent = sent;
            let pause = self.reply.settings.pause.filter(|_| !is_notice);
            let pause =
                pause.map(|pause| if is_first { Duration::ZERO } else { pause.draw(ids::draw_share()) });
            let ahead = pause.map(|pause| self.pacing.ahead(Instant::now(), pause));
            self.pacing.sends(&id, ahead);
            self.sending = Some(Box::pin(self.reply.sending(payload, id, ahead.unwrap_or_default())));
        }
        self.let_tools_send();
    }
}

impl<'a> AnswerSettings<'a> {
    /// Puts a block into the outbox, where it waits for its pause.
    fn sending(
        &self,
        payload: ReplyPayload,
        id: String,
        pause: Duration,
    ) -> impl Future<Output = SendEnd> + Send + use<'a> {
        let reply = self.clone();
        async move {
            let sending = async {
                let parts = reply.parts(payload, &id).await.unwrap_or_default();
                for (at, part) in parts.into_iter().enumerate() {
                    let mut new = reply.delivery(part_id(&id, at), part);
                    if at == 0 {
                        new.not_before += i64::try_from(pause.as_millis()).unwrap_or_default();
                    }
                    if !reply.taken(new).await {
                        return SendEnd::Failed;
                    }
                }
                SendEnd::Sent
            };
            tokio::time::timeout(SEND_TIMEOUT, sending).await.unwrap_or(SendEnd::TimedOut)
        }
    }
}

impl AnswerSettings<'_> {
    /// Puts a part of a block into the outbox; `false` if the outbox has no room for it. A disk that
    /// refuses is asked again: without the block, the end would repeat the whole answer.
    async fn taken(&self, part: NewDelivery) -> bool {
        loop {
            let error = match self.outbox().accept_new(part.clone()).await {
                Ok(Enqueued::New | Enqueued::Known(_) | Enqueued::Withheld) => return true,
                Err(error) => error,
            };
            let delivery = &part.delivery.id;
            if !matches!(error, OutboxError::Journal(_)) {
                tracing::warn!(delivery, %error, "a block of an answer was not taken: its words come at the end");
                return false;
            }
            tracing::warn!(delivery, %error, "a block of an answer was not taken: it is tried again");
            tokio::time::sleep(BLOCK_BACKOFF).await;
        }
    }
}

/// The delivery of a part of a block.
fn part_id(block: &str, at: usize) -> String {
    format!("{block}.{}", at + 1)
}

async fn received(events: Option<&mut mpsc::Receiver<RunEvent>>) -> Option<RunEvent> {
    match events {
        Some(events) => events.recv().await,
        None => std::future::pending().await,
    }
}

async fn polled<T>(doing: Option<&mut Pin<Box<dyn Future<Output = T> + Send + '_>>>) -> T {
    match doing {
        Some(doing) => doing.await,
        None => std::future::pending().await,
    }
}
