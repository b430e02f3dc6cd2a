//! Answers of servers: kept, renewed in the background, waited for once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::inquiry::{DiscoverySource, Inquiry};
use crate::background::Background;
use crate::catalog::ServerReport;
use crate::net::{Http, Timeouts};
use crate::provider_entry::ProviderEntry;
use crate::variables::Variables;

/// Time for which the answer of a local server counts as fresh.
const LOCAL_FRESH: Duration = Duration::from_secs(30);
/// Time for which a local server that did not answer is not asked again.
const LOCAL_MISSING: Duration = Duration::from_secs(3);
/// Time for which the answer of a service counts as fresh.
const SERVICE_FRESH: Duration = Duration::from_secs(3600);
/// Time for which a service that did not answer is not asked again.
const SERVICE_MISSING: Duration = Duration::from_secs(60);
/// Answers that are kept; more only come from a configuration that changes all the time.
const MAX_SLOTS: usize = 64;
/// Timeouts of a local server: for connecting, and for silence.
const LOCAL_TIMEOUTS: Timeouts = Timeouts { connect: Duration::from_secs(1), idle: Duration::from_secs(5) };

/// Asks servers and keeps what they say. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Discovery {
    shared: Arc<DiscoveryState>,
    questions: Background,
}

#[derive(Debug)]
struct DiscoveryState {
    local: Http,
    outside: Http,
    variables: Variables,
    slots: Mutex<HashMap<DiscoverySource, DiscoverySlot>>,
}

#[derive(Debug, Default)]
struct DiscoverySlot {
    /// The last good answer.
    answer: Option<Arc<ProviderEntry>>,
    /// Time and outcome of the last question that was answered or given up.
    asked: Option<(Instant, InquiryOutcome)>,
    /// Becomes true, or is dropped, when the question under way ends.
    under_way: Option<watch::Receiver<bool>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InquiryOutcome {
    Answered,
    Missing,
}

impl Discovery {
    pub(crate) fn new(http: Http, variables: Variables) -> Self {
        let local = Http::with_timeouts(LOCAL_TIMEOUTS);
        let shared = DiscoveryState { local, outside: http, variables, slots: Mutex::default() };
        Self { shared: Arc::new(shared), questions: Background::default() }
    }

    /// Waits until everybody who was asked has answered or been given up.
    #[cfg(test)]
    pub(crate) async fn settle(&self) {
        self.questions.settle().await;
    }

    /// Returns the cached answers.
    pub(crate) fn known(&self, inquiries: &[Inquiry]) -> Vec<ServerReport> {
        let slots = self.shared.slots.lock();
        let found = |inquiry: &Inquiry| {
            let provider = inquiry.provider.clone();
            let answer = slots.get(&inquiry.source).and_then(|slot| slot.answer.clone());
            match answer {
                Some(entry) => Some(ServerReport { provider, entry, answered: true }),
                None => {
                    inquiry.address_alone().map(|entry| ServerReport { provider, entry, answered: false })
                }
            }
        };
        inquiries.iter().filter_map(found).collect()
    }

    /// Asks whom it is time to ask, and waits for those of whom nothing is known yet, no longer
    /// than that. Later answers are known to the next caller.
    pub(crate) async fn ask(&self, inquiries: impl IntoIterator<Item = &Inquiry>, patience: Duration) {
        let waiting: Vec<_> = inquiries.into_iter().filter_map(|inquiry| self.begin(inquiry)).collect();
        let all = async {
            for mut answer in waiting {
                // An error is a question that ended without a word.
                let _ = answer.wait_for(|done| *done).await;
            }
        };
        // Too late is as good as not there.
        let _ = tokio::time::timeout(patience, all).await;
    }

    /// Begins to ask if it is time to. Returns a receiver if waiting is worthwhile, because nothing
    /// is known yet.
    fn begin(&self, inquiry: &Inquiry) -> Option<watch::Receiver<bool>> {
        let mut slots = self.shared.slots.lock();
        if slots.len() >= MAX_SLOTS && !slots.contains_key(&inquiry.source) {
            slots.clear();
        }
        let slot = slots.entry(inquiry.source.clone()).or_default();
        let running =
            slot.under_way.clone().filter(|answer| answer.has_changed().is_ok() && !*answer.borrow());
        let wait_for = match running {
            Some(running) => Some(running),
            None if slot.is_due(inquiry) => {
                let (done, answer) = watch::channel(false);
                slot.under_way = Some(answer.clone());
                self.spawn(inquiry.clone(), done);
                Some(answer)
            }
            None => None,
        };
        wait_for.filter(|_| slot.answer.is_none())
    }

    fn spawn(&self, inquiry: Inquiry, done: watch::Sender<bool>) {
        let shared = Arc::clone(&self.shared);
        self.questions.spawn(async move {
            let http = if inquiry.is_local() { &shared.local } else { &shared.outside };
            let answer = inquiry.ask(http, &shared.variables).await;
            shared.keep(&inquiry, answer);
            // The waiting callers may be gone.
            let _ = done.send(true);
        });
    }
}

impl DiscoveryState {
    fn keep(&self, inquiry: &Inquiry, answer: Result<ProviderEntry, String>) {
        let mut slots = self.slots.lock();
        let slot = slots.entry(inquiry.source.clone()).or_default();
        let provider = &inquiry.provider;
        let outcome = match answer {
            Ok(entry) => {
                tracing::debug!(%provider, models = entry.models.len(), "a server said which models it has");
                slot.answer = Some(Arc::new(entry));
                InquiryOutcome::Answered
            }
            Err(error) => {
                let is_news = slot.asked.is_none_or(|(_, outcome)| outcome == InquiryOutcome::Answered);
                if is_news && !inquiry.is_local() {
                    tracing::warn!(%provider, %error, "its models can't be listed; the built-in list is used");
                } else {
                    tracing::debug!(%provider, %error, "no list of models");
                }
                // A local server that is gone has no models; what a service had it will have again.
                if inquiry.is_local() {
                    slot.answer = None;
                }
                InquiryOutcome::Missing
            }
        };
        slot.asked = Some((Instant::now(), outcome));
    }
}

impl DiscoverySlot {
    fn is_due(&self, inquiry: &Inquiry) -> bool {
        let Some((at, outcome)) = self.asked else { return true };
        let fresh = match (&inquiry.source, outcome) {
            (DiscoverySource::Bedrock(discovery), InquiryOutcome::Answered) => discovery.refresh,
            (DiscoverySource::Server { .. }, InquiryOutcome::Answered) if inquiry.is_local() => LOCAL_FRESH,
            (DiscoverySource::Server { .. }, InquiryOutcome::Answered) => SERVICE_FRESH,
            (_, InquiryOutcome::Missing) if inquiry.is_local() => LOCAL_MISSING,
            (_, InquiryOutcome::Missing) => SERVICE_MISSING,
        };
        at.elapsed() >= fresh
    }
}

impl Inquiry {
    /// Returns the address of a server that has not answered, if it differs from that of the
    /// built-in list.
    fn address_alone(&self) -> Option<Arc<ProviderEntry>> {
        let DiscoverySource::Server { root, .. } = &self.source else { return None };
        let base_url = Some(format!("{root}/v1"));
        self.moved.then(|| Arc::new(ProviderEntry { base_url, ..ProviderEntry::default() }))
    }
}
