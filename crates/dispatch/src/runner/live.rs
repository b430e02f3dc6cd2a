//! What a chat platform sees of an answer while it is written: that somebody is writing, the text so far where it has a place for that,
//! and finished blocks (spec `streaming.md`). Driven beside the run whose events it follows.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use openclaw_agent::ReplyPayload;
use openclaw_agent::event::{RunEvent, TextChange};
use openclaw_channels::{Activity, SendError};
use openclaw_config::settings::BlockStreamingBreak;
use openclaw_sessions::ids;
use tokio::sync::mpsc;

use super::Runner;
use super::replies::{Destination, Reply};
use crate::inbox::Row;
use crate::messages::turn::MessageTurn;
use crate::outbox::Enqueued;
use crate::reply::chunker::{BlockChunker, Drain};
use crate::reply::coalescer::{BlockReply, Coalescer};
use crate::reply::directives::DirectiveStream;
use crate::reply::draft::{DraftEffect, DraftStream, draft_id};
use crate::reply::pipeline::{BlockPipeline, Effect, SEND_TIMEOUT, SendEnd, media};
use crate::reply::prefix::PrefixContext;
use crate::reply::typing::{self, Typing, TypingEffect, TypingSignal};

/// No platform forgets sooner that somebody writes.
const SHOWN_FOR: Duration = Duration::from_secs(4);

type Doing<'a, T> = Option<Pin<Box<dyn Future<Output = T> + Send + 'a>>>;

/// The answer of one run while it is written.
pub(super) struct Live<'a> {
    row: &'a Row,
    reply: Reply<'a>,
    /// What tools have sent.
    turn: Arc<MessageTurn>,
    /// The text of the current assistant message so far.
    text: String,
    typing: Typing,
    showing: Doing<'a, Result<(), SendError>>,
    draft: Option<DraftStream>,
    drafting: Doing<'a, Result<(), SendError>>,
    blocks: Option<Blocks<'a>>,
}

/// Finished blocks.
struct Blocks<'a> {
    chunker: BlockChunker,
    tags: DirectiveStream,
    pipeline: BlockPipeline,
    at_message_end: bool,
    sent: usize,
    sending: Doing<'a, SendEnd>,
}

enum Step {
    Event(RunEvent),
    Over,
    Shown(Result<(), SendError>),
    Drafted(Result<(), SendError>),
    Sent(SendEnd),
    Due,
}

impl<'a> Live<'a> {
    /// For a run that begins; `None` where its message was not said on a chat platform.
    pub(super) fn begin(
        runner: &'a Runner,
        row: &'a Row,
        context: &PrefixContext,
        turn: &Arc<MessageTurn>,
    ) -> Option<Self> {
        let origin = row.payload.origin.as_deref()?;
        let (is_direct, was_mentioned) = (origin.is_direct(), origin.was_mentioned);
        let has_thread = origin.address.thread.is_some();
        let reply = Reply::new(runner, row, Destination::from(origin), context, turn.quoted.clone());
        let settings = runner.settings();
        let (agents, session) = (&settings.config.agents.defaults, &settings.config.session);
        let is_beat = row.payload.beat.is_some();
        let mode = typing::mode(is_beat, session.typing_mode, agents.typing_mode, is_direct || was_mentioned);
        let interval = typing::interval(
            agents.typing_interval_seconds,
            session.typing_interval_seconds,
            Some(SHOWN_FOR),
        );
        let draft = reply.settings.draft.filter(|_| is_direct && has_thread).map(DraftStream::new);
        // What an earlier process sent of it is not known word by word: the answer comes whole at its end.
        let has_blocks = reply.settings.block_streaming && draft.is_none() && !row.recovered;
        let blocks = has_blocks.then(|| Blocks {
            chunker: BlockChunker::new(reply.settings.chunk),
            tags: DirectiveStream::default(),
            pipeline: BlockPipeline::new(Some(Coalescer::new(reply.settings.coalesce))),
            at_message_end: reply.settings.block_break == BlockStreamingBreak::MessageEnd,
            sent: 0,
            sending: None,
        });
        let typing = Typing::new(mode, interval);
        let turn = Arc::clone(turn);
        Some(Self {
            row,
            reply,
            turn,
            text: String::new(),
            typing,
            showing: None,
            draft,
            drafting: None,
            blocks,
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
                Step::Event(event) => {
                    self.on(&event);
                    // A lane that is gone hears nothing any more.
                    let _ = out.send(event).await;
                }
                Step::Over => return,
                step => self.done(step),
            }
        }
    }

    /// Sends what is left of the blocks, and gives what of the last payloads is still to be said.
    pub(super) async fn finish(mut self, payloads: Vec<ReplyPayload>) -> Vec<ReplyPayload> {
        let now = Instant::now();
        self.typing.on(now, TypingSignal::RunComplete);
        self.typing.on(now, TypingSignal::Idle);
        let Some(mut blocks) = self.blocks.take() else { return payloads };
        self.text_ends(&mut blocks);
        let effect = blocks.pipeline.finish();
        self.send(&mut blocks, effect);
        while let Some(sending) = &mut blocks.sending {
            let end = sending.await;
            blocks.sending = None;
            let effect = blocks.pipeline.sent(end);
            self.send(&mut blocks, effect);
        }
        blocks.pipeline.remaining(payloads)
    }

    async fn next(&mut self, events: Option<&mut mpsc::Receiver<RunEvent>>) -> Step {
        let dues = [
            self.typing.due().filter(|_| self.showing.is_none()),
            self.draft.as_ref().and_then(DraftStream::due).filter(|_| self.drafting.is_none()),
            self.blocks.as_ref().and_then(|blocks| blocks.pipeline.due()),
        ];
        let due = dues.into_iter().flatten().min();
        let sending = self.blocks.as_mut().and_then(|blocks| blocks.sending.as_mut());
        tokio::select! { biased;
            event = received(events) => event.map_or(Step::Over, Step::Event),
            shown = polled(self.showing.as_mut()) => Step::Shown(shown),
            drafted = polled(self.drafting.as_mut()) => Step::Drafted(drafted),
            end = polled(sending) => Step::Sent(end),
            () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now).into()), if due.is_some() => Step::Due,
        }
    }

    fn done(&mut self, step: Step) {
        let now = Instant::now();
        match step {
            Step::Shown(result) => {
                self.showing = None;
                self.typing.shown(result.map_err(drop));
            }
            Step::Drafted(result) => {
                self.drafting = None;
                let effect = self.draft.as_mut().and_then(|draft| draft.shown(now, result.map_err(drop)));
                self.show_draft(effect);
            }
            Step::Sent(end) => {
                let Some(mut blocks) = self.blocks.take() else { return };
                blocks.sending = None;
                let effect = blocks.pipeline.sent(end);
                self.send(&mut blocks, effect);
                self.blocks = Some(blocks);
            }
            Step::Due => {
                let effect = self.typing.tick(now);
                self.show_typing(effect);
                let effect = self.draft.as_mut().and_then(|draft| draft.tick(now));
                self.show_draft(effect);
                if let Some(mut blocks) = self.blocks.take() {
                    let effect = blocks.pipeline.tick(now);
                    self.send(&mut blocks, effect);
                    self.blocks = Some(blocks);
                }
            }
            Step::Event(_) | Step::Over => {}
        }
    }

    fn on(&mut self, event: &RunEvent) {
        let now = Instant::now();
        match event {
            RunEvent::Started { .. } => self.signal(now, TypingSignal::RunStart),
            RunEvent::Assistant(change) => self.on_text(now, change),
            RunEvent::ToolStart { .. } => {
                self.signal(now, TypingSignal::ToolStart);
                if let Some(mut blocks) = self.blocks.take() {
                    self.text_ends(&mut blocks);
                    let effect = blocks.pipeline.flush();
                    self.send(&mut blocks, effect);
                    self.blocks = Some(blocks);
                }
            }
            RunEvent::Ended { .. } => {
                let effect = self.draft.as_mut().and_then(|draft| draft.finish(now));
                self.show_draft(effect);
            }
            RunEvent::Asking
            | RunEvent::ToolUpdate { .. }
            | RunEvent::ToolResult { .. }
            | RunEvent::CompactionStart
            | RunEvent::CompactionEnd { .. } => {}
        }
    }

    fn on_text(&mut self, now: Instant, change: &TextChange) {
        let grown = match change {
            TextChange::Begins(text) => {
                if let Some(mut blocks) = self.blocks.take() {
                    self.text_ends(&mut blocks);
                    self.blocks = Some(blocks);
                }
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
            if let Some(mut blocks) = self.blocks.take() {
                blocks.chunker.append(grown);
                if !blocks.at_message_end {
                    self.drain(&mut blocks, Drain::Ready);
                }
                self.blocks = Some(blocks);
            }
        }
        let text = std::mem::take(&mut self.text);
        self.signal(now, TypingSignal::Text(&text));
        let effect = self.draft.as_mut().and_then(|draft| draft.update(now, &text));
        self.text = text;
        self.show_draft(effect);
    }

    /// A message of the model is at its end.
    fn text_ends(&mut self, blocks: &mut Blocks<'a>) {
        self.drain(blocks, Drain::All);
        if let Some(payload) = blocks.tags.finish() {
            let block = BlockReply { payload, ..BlockReply::default() };
            let effect = blocks.pipeline.enqueue(Instant::now(), block);
            self.send(blocks, effect);
        }
    }

    fn drain(&mut self, blocks: &mut Blocks<'a>, drain: Drain) {
        for block in blocks.chunker.drain(drain) {
            let Some(payload) = blocks.tags.push(&block.text) else { continue };
            let block = BlockReply { payload, continues: block.continues };
            let effect = blocks.pipeline.enqueue(Instant::now(), block);
            self.send(blocks, effect);
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
        self.showing = Some(Box::pin(async move { account.show_activity(&at, Activity::Typing).await }));
    }

    fn show_draft(&mut self, effect: Option<DraftEffect>) {
        let Some(DraftEffect::Show(text)) = effect else { return };
        let Some(account) = self.reply.account.clone() else { return };
        let to = &self.reply.to;
        let answered = to.message_id.as_deref().and_then(|id| id.parse().ok());
        let (at, id) = (to.address.clone(), draft_id(answered.unwrap_or(1)));
        self.drafting = Some(Box::pin(async move { account.draft(&at, id, &text).await }));
    }

    /// Hands a block to the outbox, after its pause.
    fn send(&mut self, blocks: &mut Blocks<'a>, effect: Option<Effect>) {
        let mut effect = effect;
        while let Some(Effect::Send { payload, is_first }) = effect.take() {
            // A tool has answered already: what comes after it tells of that.
            let is_said = self.turn.has_answered() && !payload.is_error && media(&payload).is_empty();
            let worded = if is_said { None } else { self.reply.worded(payload) };
            let Some(payload) = worded else {
                effect = blocks.pipeline.sent(SendEnd::Sent);
                continue;
            };
            blocks.sent += 1;
            let id = format!("{}:b{}", self.row.run_id, blocks.sent);
            let pause = self.reply.settings.pause.filter(|_| !is_first).map(|pause| pause.draw(share()));
            blocks.sending = Some(Box::pin(self.reply.sending(payload, id, pause)));
        }
    }
}

impl<'a> Reply<'a> {
    /// Puts a block into the outbox.
    fn sending(
        &self,
        payload: ReplyPayload,
        id: String,
        pause: Option<Duration>,
    ) -> impl Future<Output = SendEnd> + Send + use<'a> {
        let reply = self.clone();
        async move {
            tokio::time::sleep(pause.unwrap_or_default()).await;
            let sending = async {
                for (at, part) in reply.parts(payload, &id).await.into_iter().enumerate() {
                    let delivery = reply.delivery(format!("{id}.{}", at + 1), part).delivery;
                    match reply.runner.shared.outbox.accept(delivery).await {
                        Ok(Enqueued::New | Enqueued::Known(_) | Enqueued::Withheld) => {}
                        Err(error) => {
                            tracing::warn!(delivery = id, %error, "a block of an answer was not taken: its words come at the end");
                            return SendEnd::Failed;
                        }
                    }
                }
                SendEnd::Sent
            };
            tokio::time::timeout(SEND_TIMEOUT, sending).await.unwrap_or(SendEnd::TimedOut)
        }
    }
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

/// Drawn evenly from 0 to 1.
fn share() -> f64 {
    f64::from(ids::draw_u32()) / f64::from(u32::MAX)
}
