//! Rounds of embedding: texts go to the embedder in packs, and its answers into the index.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use tokio::task::JoinSet;

use super::Worker;
use crate::db::StoreError;
use crate::embed_pass::{self, Pack};
use crate::get::cut;
use crate::identity::IndexMeta;
use crate::steps::{Step, reached};
use crate::writer::{read_meta, renew_codes};
use openclaw_embedding::{EmbedError, Embedder};

/// Failures in a row after which those who wait for vectors are answered.
const MOST_ATTEMPTS: u32 = 5;

/// Pause after an answer that makes no sense.
const INVALID_PAUSE: Duration = Duration::from_secs(60);

/// Time in which the dimensions of a model are believed to change once: two servers that take turns would have everything
/// embedded again and again.
const CHANGE_PAUSE: Duration = Duration::from_secs(3_600);

/// End of a round of embedding.
enum EmbedStep {
    /// No chunk waits, or no embedder can help.
    Done,
    /// More chunks may wait.
    Progress,
    /// Reports nothing: texts are at the embedder, or a probe found what was known.
    Quiet,
    /// A failure; the next attempt is later.
    Failed { error: EmbedError, again: Instant },
}

/// Texts that are at the embedder while the worker goes on: a changed file is searched at once although a server is slow.
pub(super) struct Flight {
    /// One task; it ends with the flight.
    answers: JoinSet<Vec<(Pack, PackAnswer)>>,
    meta: IndexMeta,
    embedder: Arc<dyn Embedder>,
    purpose: FlightPurpose,
}

/// Purpose of a flight.
enum FlightPurpose {
    /// Chunks wait for these vectors.
    Round,
    /// A query had a vector of this length, which no vector of the index has.
    Probe(usize),
}

/// Answer to the texts of a pack.
pub(super) enum PackAnswer {
    Vectors(Vec<Vec<f32>>),
    /// Twice with vectors of this other length, which the model has from now on.
    OtherDimensions(usize),
    Failed(EmbedError),
}

impl Flight {
    fn start(
        embedder: Arc<dyn Embedder>,
        meta: IndexMeta,
        packs: Vec<Pack>,
        dimensions: Option<usize>,
    ) -> Self {
        let mut answers = JoinSet::new();
        let asked = Arc::clone(&embedder);
        answers.spawn(async move {
            let calls = packs.into_iter().map(|pack| embed_pack(asked.as_ref(), pack, dimensions));
            calls.collect::<FuturesUnordered<_>>().concat().await
        });
        Self { answers, meta, embedder, purpose: FlightPurpose::Round }
    }

    /// Waits for the answers; without a flight for ever. Empty if the embedder panicked.
    pub(super) async fn landed(flight: &mut Option<Self>) -> Vec<(Pack, PackAnswer)> {
        match flight {
            Some(flight) => flight.answers.join_next().await.and_then(Result::ok).unwrap_or_default(),
            None => std::future::pending().await,
        }
    }
}

impl Worker {
    /// Sends some texts to the embedder, and answers those who wait if there is nothing left to do.
    pub(super) async fn embed(&mut self) {
        let step = self.begin_round().await;
        self.end(step).await;
    }

    /// Stores what the embedder answered.
    pub(super) async fn land(&mut self, answers: Vec<(Pack, PackAnswer)>) {
        let Some(flight) = self.flight.take() else { return };
        let step = match flight.purpose {
            FlightPurpose::Round => self.end_round(flight, answers).await,
            FlightPurpose::Probe(queried) => self.end_probe(flight.meta, queried, &answers).await,
        };
        self.end(step).await;
    }

    async fn end(&mut self, step: Result<EmbedStep, StoreError>) {
        match step {
            Ok(EmbedStep::Quiet) => {}
            Ok(EmbedStep::Progress) => {
                (self.attempts, self.has_embedded, self.paused_until) = (0, true, None);
                self.may_embed = true;
                self.shared.progress.lock().report.embed_error = None;
            }
            Ok(EmbedStep::Done) => {
                self.may_embed = false;
                self.after_embedding().await;
                self.answer_waiting();
            }
            Ok(EmbedStep::Failed { error: EmbedError::UnderWay { message, waits, .. }, again }) => {
                self.paused_until = Some(again);
                self.update_pending().await;
                if !waits {
                    self.shared.progress.lock().report.embed_error = Some(message);
                    self.answer_waiting();
                }
            }
            Ok(EmbedStep::Failed { error, again }) => {
                self.attempts += 1;
                self.paused_until = Some(again);
                self.update_pending().await;
                let text = error.to_string();
                let is_new = self.shared.progress.lock().report.embed_error.replace(text.clone())
                    != Some(text.clone());
                if is_new {
                    tracing::warn!(error = text, "memory texts can't be embedded; keywords go on");
                }
                if !error.is_temporary() || self.attempts >= MOST_ATTEMPTS {
                    self.answer_waiting();
                }
            }
            Err(error) => {
                self.may_embed = false;
                self.store_failed(&error);
                self.answer_waiting();
            }
        }
    }

    async fn after_embedding(&mut self) {
        self.update_pending().await;
        self.is_forced = false;
        if !std::mem::take(&mut self.has_embedded) {
            return;
        }
        let renewed = self.with_index(|connection| {
            read_meta(connection)?.map_or(Ok(()), |meta| renew_codes(connection, &meta))
        });
        if let Err(error) = renewed.await {
            tracing::warn!(%error, "codes of memory vectors were not renewed");
        }
    }

    async fn update_pending(&mut self) {
        if let Ok(pending) = self.with_index(|connection| embed_pass::pending(connection)).await {
            self.shared.progress.lock().report.pending = pending;
        }
    }

    fn answer_waiting(&mut self) {
        let report = self.report();
        for sender in self.waiting.drain(..) {
            let _ = sender.send(report.clone());
        }
    }

    async fn begin_round(&mut self) -> Result<EmbedStep, StoreError> {
        let Some(embedder) = self.shared.embedder.lock().clone().filter(|_| self.shared.settings.vectors)
        else {
            return Ok(EmbedStep::Done);
        };
        if let Some(left) = embedder.cooldown().remaining(Instant::now()) {
            let message = self
                .report()
                .embed_error
                .unwrap_or_else(|| "the embedding provider asked to wait".to_owned());
            return Ok(EmbedStep::Failed {
                error: EmbedError::Unavailable { message },
                again: Instant::now() + left,
            });
        }
        let (cache, limits, identity) =
            (self.shared.settings.cache.clone(), embedder.limits(), embedder.identity().clone());
        let next = self.with_index(move |connection| {
            let Some(meta) = read_meta(connection)?.filter(|meta| meta.is_of(&identity)) else {
                return Ok(None);
            };
            let round = embed_pass::next_round(connection, &meta, &limits, &cache)?;
            Ok(Some((round, meta, embed_pass::dimensions(connection)?)))
        });
        let Some((round, meta, dimensions)) = next.await? else { return Ok(EmbedStep::Done) };
        if round.packs.is_empty() {
            return Ok(if round.remembered > 0 { EmbedStep::Progress } else { EmbedStep::Done });
        }
        reached(Step::TextsTaken);
        self.flight = Some(Flight::start(embedder, meta, round.packs, dimensions));
        Ok(EmbedStep::Quiet)
    }

    async fn end_round(
        &mut self,
        flight: Flight,
        answers: Vec<(Pack, PackAnswer)>,
    ) -> Result<EmbedStep, StoreError> {
        let Flight { meta, embedder, .. } = flight;
        reached(Step::Answered);
        let now_meta = self.with_index(|connection| read_meta(connection)).await?;
        if now_meta.as_ref() != Some(&meta) {
            // Another model, or chunks of another size by now: the next round takes what waits.
            return Ok(EmbedStep::Progress);
        }
        if answers.is_empty() {
            let error = EmbedError::Invalid { message: "the embedder panicked".to_owned() };
            return Ok(EmbedStep::Failed { error, again: Instant::now() + INVALID_PAUSE });
        }
        let (mut failed, mut other) = (None, None);
        for (pack, answer) in answers {
            let (meta, cache) = (meta.clone(), self.shared.settings.cache.clone());
            match answer {
                PackAnswer::OtherDimensions(found) => other = Some(found),
                PackAnswer::Vectors(vectors) => {
                    let (pack, vectors) = (Arc::new(pack), Arc::new(vectors));
                    self.with_index(move |connection| {
                        embed_pass::store(connection, &meta, &pack, &vectors, &cache)
                    })
                    .await?;
                    self.has_embedded = true;
                }
                PackAnswer::Failed(error) => {
                    if !error.is_temporary() && !matches!(error, EmbedError::Unauthorized { .. }) {
                        let pack = Arc::new(pack);
                        self.with_index(move |connection| {
                            embed_pass::store_failure(connection, &meta, &pack)
                        })
                        .await?;
                    }
                    failed = Some(error);
                }
            }
        }
        if let Some(found) = other {
            return self.change_dimensions(meta, found).await;
        }
        let Some(error) = failed else {
            embedder.cooldown().succeeded();
            return Ok(EmbedStep::Progress);
        };
        let now = Instant::now();
        if let EmbedError::UnderWay { again, .. } = error {
            return Ok(EmbedStep::Failed { error, again: now + again });
        }
        let wait = embedder.cooldown().failed(&error, now);
        // A text that is too large is left after some attempts, and others go on at once.
        let wait = if matches!(error, EmbedError::Invalid { .. }) { INVALID_PAUSE } else { wait };
        Ok(EmbedStep::Failed { error, again: now + wait })
    }

    /// Embeds everything anew because the model answers `found` dimensions now, unless that would cost much unasked.
    async fn change_dimensions(&mut self, meta: IndexMeta, found: usize) -> Result<EmbedStep, StoreError> {
        let now = Instant::now();
        let is_again = self.dimensions_changed.is_some_and(|last| now < last + CHANGE_PAUSE);
        let may =
            self.is_forced || (!is_again && !self.with_index(|index| embed_pass::is_costly(index)).await?);
        if !may {
            self.shared.progress.lock().report.needs_force = true;
            let message = format!(
                "the embedding model answers vectors of {found} dimensions, other ones than those of the index; a forced reindex embeds all texts anew"
            );
            return Ok(EmbedStep::Failed {
                error: EmbedError::Invalid { message },
                again: now + INVALID_PAUSE,
            });
        }
        tracing::warn!(
            model = meta.model,
            dimensions = found,
            "the embedding model has other dimensions by now: all memory is embedded anew"
        );
        self.dimensions_changed = Some(now);
        self.with_index(move |connection| embed_pass::change_dimensions(connection, &meta, found)).await?;
        Ok(EmbedStep::Progress)
    }

    /// Looks what the model answers now, because the vector of a query has `queried` dimensions, which no vector of the
    /// index has.
    pub(super) async fn probe(&mut self, queried: usize) {
        let Some(embedder) = self.shared.embedder.lock().clone() else { return };
        let identity = embedder.identity().clone();
        let read = self.with_index(move |connection| {
            let meta = read_meta(connection)?.filter(|meta| meta.is_of(&identity));
            Ok((meta, embed_pass::dimensions(connection)?, embed_pass::probe(connection)?))
        });
        let Ok((Some(meta), Some(dimensions), Some(pack))) = read.await else { return };
        if dimensions == queried {
            return;
        }
        let flight = Flight::start(embedder, meta, vec![pack], Some(dimensions));
        self.flight = Some(Flight { purpose: FlightPurpose::Probe(queried), ..flight });
    }

    async fn end_probe(
        &mut self,
        meta: IndexMeta,
        queried: usize,
        answers: &[(Pack, PackAnswer)],
    ) -> Result<EmbedStep, StoreError> {
        let is_so = |(_, answer): &(Pack, PackAnswer)| matches!(answer, PackAnswer::OtherDimensions(found) if *found == queried);
        if !answers.iter().any(is_so) {
            return Ok(EmbedStep::Quiet);
        }
        self.change_dimensions(meta, queried).await
    }
}

/// Embeds a pack. One that is too large is asked for in halves, and a text that is too large alone is cut.
async fn embed_pack(
    embedder: &dyn Embedder,
    pack: Pack,
    dimensions: Option<usize>,
) -> Vec<(Pack, PackAnswer)> {
    let mut left = vec![pack];
    let mut done = Vec::new();
    // Other dimensions that were answered once.
    let mut other = None;
    while let Some(mut pack) = left.pop() {
        let answer = answer_of(embedder, &pack).await;
        if let Ok(vectors) = &answer
            && let Some(found) = embed_pass::other_dimensions(pack.texts.len(), vectors, dimensions)
        {
            if other == Some(found) {
                done.push((pack, PackAnswer::OtherDimensions(found)));
                break;
            }
            other = Some(found);
            left.push(pack);
            continue;
        }
        let answer = answer
            .and_then(|vectors| embed_pass::check(pack.texts.len(), &vectors, dimensions).map(|()| vectors));
        match answer {
            Err(EmbedError::TooLarge { message }) => match pack.clone().halves() {
                Some((first, second)) => left.extend([second, first]),
                None => {
                    let units = pack.texts.first().map_or(0, |text| text.encode_utf16().count());
                    if units < 64 {
                        done.push((pack, PackAnswer::Failed(EmbedError::TooLarge { message })));
                        continue;
                    }
                    for text in &mut pack.texts {
                        *text = cut(text, units / 2).to_owned();
                    }
                    left.push(pack);
                }
            },
            Ok(vectors) => done.push((pack, PackAnswer::Vectors(vectors))),
            Err(error) => {
                // Whatever is wrong is wrong for the rest too.
                done.push((pack, PackAnswer::Failed(error)));
                break;
            }
        }
    }
    done
}

async fn answer_of(embedder: &dyn Embedder, pack: &Pack) -> Result<Vec<Vec<f32>>, EmbedError> {
    let timeout = embedder.limits().batch_timeout;
    tokio::time::timeout(timeout, embedder.embed_batch(&pack.texts)).await.unwrap_or_else(|_| {
        Err(EmbedError::Unavailable {
            message: format!("memory embeddings timed out after {}s", timeout.as_secs()),
        })
    })
}
