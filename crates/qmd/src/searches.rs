//! Searching with `qmd`: one call for each collection, and the files behind what it finds.

use std::sync::Arc;
use std::time::Duration;

use openclaw_memory::Hit;
use tokio::time::timeout;

use crate::collections::Collection;
use crate::command_line::{CommandLine, query_argument};
use crate::engine::QmdEngine;
use crate::error::QmdError;
use crate::hits::{PrintedHit, best, printed_hits};
use crate::updates::UpdateWish;

/// Longest wait of a search for an update that runs.
const UPDATE_WAIT: Duration = Duration::from_millis(500);

/// A search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QmdQuestion {
    /// Query in plain words.
    pub query: String,
    /// Largest number of hits, below that of the settings.
    pub max_results: Option<usize>,
    /// Smallest score; default 0.
    pub min_score: Option<f64>,
}

impl QmdEngine {
    /// Searches all collections. With a schedule it does not wait long for an update.
    pub(crate) async fn search(
        &self,
        question: &QmdQuestion,
        has_schedule: bool,
    ) -> Result<Vec<Hit>, QmdError> {
        let Some(query) = query_argument(&question.query) else { return Ok(Vec::new()) };
        let limits = &self.settings.limits;
        let names = if has_schedule {
            if self.settings.update.waits_for_boot() {
                let _ = self.progress.subscribe().wait_for(|progress| progress.is_booted).await;
            }
            let names = timeout(limits.timeout(), self.make_collections()).await;
            let names = names.map_err(|_| QmdError::Starting)??;
            let _ = timeout(UPDATE_WAIT, self.idle()).await;
            names
        } else if self.settings.index().is_file() {
            self.make_collections().await?
        } else {
            // Nobody else does it.
            self.update(UpdateWish::IfDue).await?;
            self.make_collections().await?
        };
        let counts = self.counts().await?;
        let all = self.collections.list.iter().filter(|collection| names.contains(&collection.name));
        let is_filled = |collection: &&Collection| counts.iter().any(|(name, _)| *name == collection.name);
        // A collection without documents is not asked; if none has any, the index is not what it is taken for.
        let filled: Vec<&Collection> = all.clone().filter(is_filled).collect();
        let asked = if filled.is_empty() { all.collect() } else { filled };
        let most = question.max_results.unwrap_or(usize::MAX).clamp(1, limits.max_results());
        let least = question.min_score.unwrap_or(0.0);
        let mut hits = Vec::new();
        // One after the other: each call loads models, and writes to a cache of answers in the index.
        for collection in asked {
            let line =
                CommandLine::search(self.settings.search, &query, most, &collection.name, limits.timeout());
            let printed = self.run(line.clone()).await?;
            let printed = printed_hits(&printed)
                .map_err(|reason| QmdError::Output { command: line.shown(), reason })?;
            let printed = printed.into_iter().filter(|hit| hit.score >= least).take(most).collect();
            hits.extend(self.located(collection, printed).await?);
        }
        Ok(best(hits, most, limits.max_snippet_chars(), limits.max_injected_chars()))
    }

    /// Finds the files of hits. Hits that are not in the collection are left out.
    async fn located(&self, collection: &Collection, printed: Vec<PrintedHit>) -> Result<Vec<Hit>, QmdError> {
        if printed.is_empty() {
            return Ok(Vec::new());
        }
        let (collections, collection) = (Arc::clone(&self.collections), collection.clone());
        self.with_index(move |index| {
            let index = index.ok_or_else(|| "it is not there".to_owned())?;
            let mut hits = Vec::new();
            for hit in printed {
                let Some(hash) = hit.hash() else { continue };
                let document = index.path_of(&collection.name, hash).map_err(|error| error.to_string())?;
                let Some(document) = document else { continue };
                let (start_line, end_line) = hit.lines();
                hits.push(Hit {
                    path: collections.result_path(&collection, &document),
                    start_line,
                    end_line,
                    score: hit.score,
                    snippet: hit.snippet,
                    source: collection.source,
                });
            }
            Ok(hits)
        })
        .await
    }
}
