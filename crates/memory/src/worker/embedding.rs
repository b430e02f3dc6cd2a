//! Rounds of embedding: texts go to the embedder in packs, and its answers into the index.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::Worker;
use crate::db::StoreError;
use crate::embed_pass::{self, Pack};
use crate::embedder::{EmbedError, Embedder};
use crate::get::cut;
use crate::writer::read_meta;

/// Failures in a row after which those who wait for vectors are answered.
const MOST_ATTEMPTS: u32 = 5;

/// Pause after an answer that makes no sense.
const INVALID_PAUSE: Duration = Duration::from_secs(60);

/// End of a round of embedding.
enum EmbedStep {
    /// No chunk waits, or no embedder can help.
    Done,
    /// More chunks may wait.
    Progress,
    /// A failure; the next attempt is later.
    Failed { error: EmbedError, again: Instant },
}

impl Worker {
    /// Embeds some texts, and answers those who wait if there is nothing left to do.
    pub(super) async fn embed(&mut self) {
        match self.embed_round().await {
            Ok(EmbedStep::Progress) => {
                (self.attempts, self.has_embedded, self.paused_until) = (0, true, None);
                self.shared.progress.lock().report.embed_error = None;
            }
            Ok(EmbedStep::Done) => {
                self.may_embed = false;
                self.after_embedding().await;
                self.answer_waiting();
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
        if !std::mem::take(&mut self.has_embedded) {
            return;
        }
        let renewed = self.with_index(|connection| {
            read_meta(connection)?.map_or(Ok(()), |meta| embed_pass::renew_codes(connection, &meta))
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

    async fn embed_round(&mut self) -> Result<EmbedStep, StoreError> {
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
        let calls: FuturesUnordered<_> =
            round.packs.into_iter().map(|pack| embed_pack(embedder.as_ref(), pack, dimensions)).collect();
        let stop = self.shared.stop.clone();
        let answered: Vec<_> = tokio::select! { biased;
            () = stop.cancelled() => return Ok(EmbedStep::Done),
            answered = calls.collect::<Vec<_>>() => answered,
        };
        let mut failed = None;
        for (pack, answer) in answered.into_iter().flatten() {
            let (meta, cache) = (meta.clone(), self.shared.settings.cache.clone());
            match answer {
                Ok(vectors) => {
                    let (pack, vectors) = (Arc::new(pack), Arc::new(vectors));
                    self.with_index(move |connection| {
                        embed_pass::store(connection, &meta, &pack, &vectors, &cache)
                    })
                    .await?;
                    self.has_embedded = true;
                }
                Err(error) => {
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
        let Some(error) = failed else {
            embedder.cooldown().succeeded();
            return Ok(EmbedStep::Progress);
        };
        let now = Instant::now();
        let wait = embedder.cooldown().failed(&error, now);
        // A text that is too large is left after some attempts, and others go on at once.
        let wait = if matches!(error, EmbedError::Invalid { .. }) { INVALID_PAUSE } else { wait };
        Ok(EmbedStep::Failed { error, again: now + wait })
    }
}

/// Embeds a pack. One that is too large is asked for in halves, and a text that is too large alone is cut.
async fn embed_pack(
    embedder: &dyn Embedder,
    pack: Pack,
    dimensions: Option<usize>,
) -> Vec<(Pack, Result<Vec<Vec<f32>>, EmbedError>)> {
    let timeout = embedder.limits().batch_timeout;
    let mut left = vec![pack];
    let mut done = Vec::new();
    while let Some(mut pack) = left.pop() {
        let answer = match tokio::time::timeout(timeout, embedder.embed_batch(&pack.texts)).await {
            Ok(answer) => answer,
            Err(_) => Err(EmbedError::Unavailable {
                message: format!("memory embeddings timed out after {}s", timeout.as_secs()),
            }),
        };
        let answer = answer
            .and_then(|vectors| embed_pass::check(pack.texts.len(), &vectors, dimensions).map(|()| vectors));
        match answer {
            Err(EmbedError::TooLarge { message }) => match pack.clone().halves() {
                Some((first, second)) => left.extend([second, first]),
                None => {
                    let units = pack.texts.first().map_or(0, |text| text.encode_utf16().count());
                    if units < 64 {
                        done.push((pack, Err(EmbedError::TooLarge { message })));
                        continue;
                    }
                    for text in &mut pack.texts {
                        *text = cut(text, units / 2).to_owned();
                    }
                    left.push(pack);
                }
            },
            answer => {
                let is_over = answer.is_err();
                done.push((pack, answer));
                if is_over {
                    // Whatever is wrong is wrong for the rest too.
                    break;
                }
            }
        }
    }
    done
}
