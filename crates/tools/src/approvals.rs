//! Commands that wait for a person's word (spec `tools.md` §3.3, `gateway-protocol.md` §6.10). The
//! caller waits for the decision; people decide by any client, or in a chat. Waiting questions end
//! with this process; of those that an agent has asked, only the ids are known to the next one.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use openclaw_config::clock::now_ms;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::oneshot;

/// Questions that may wait. Each is shown to people.
const MOST_WAITING: usize = 100;

/// Questions of earlier gateways that are remembered.
const MOST_FORGOTTEN: usize = 512;

/// Characters of an id that are enough to name it where no other begins so: as many as people are shown.
const SHORT: usize = 8;

/// Default time to wait for a decision.
pub const DEFAULT_WAIT: Duration = Duration::from_millis(120_000);

/// Command that needs an approval.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequest {
    /// The command line.
    pub command: String,
    /// Working directory.
    pub cwd: Option<String>,
    /// `gateway` or `node`.
    pub host: Option<String>,
    /// The security mode in force.
    pub security: Option<String>,
    /// The ask mode in force.
    pub ask: Option<String>,
    /// Agent that asks.
    pub agent_id: Option<String>,
    /// The program that would run.
    pub resolved_path: Option<String>,
    /// Session that asks.
    pub session_key: Option<String>,
    /// True if the command may run files that it does not name, which nothing holds to what they are now.
    #[serde(skip)]
    pub is_partial: bool,
}

/// Decision of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Run it.
    AllowOnce,
    /// Run it, and from now on without asking.
    AllowAlways,
    /// Do not run it.
    Deny,
}

impl Decision {
    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AllowOnce => "allow-once",
            Self::AllowAlways => "allow-always",
            Self::Deny => "deny",
        }
    }

    /// Reads its name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::AllowOnce, Self::AllowAlways, Self::Deny]
            .into_iter()
            .find(|decision| decision.as_str() == name)
    }
}

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Id of the question.
    pub id: String,
    /// Command in question.
    pub request: ApprovalRequest,
    /// Unix milliseconds.
    pub created_at: i64,
    /// Unix milliseconds.
    pub expires_at: i64,
}

/// Event about an approval for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalEvent<'a> {
    /// A question waits for people.
    Requested(&'a Question),
    /// A person has decided.
    Resolved {
        /// Question that waited.
        question: &'a Question,
        /// Decision that was made.
        decision: Decision,
        /// Person who decided.
        by: Option<&'a str>,
    },
    /// The question has expired: no decision came in time, or the caller no longer waits for it.
    Expired(&'a Question),
}

/// Reason why nobody was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAsked {
    /// The id is taken.
    #[error("approval id already pending")]
    Pending,
    /// More questions are waiting than people can look at.
    #[error("too many approvals are pending; decide on some first")]
    TooMany,
}

/// Reason why a decision has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotResolved {
    /// No question with this id is waiting.
    #[error("unknown approval id")]
    Unknown,
    /// The question was waiting when the gateway ended.
    #[error("the gateway restarted while this approval was waiting: nothing was run; have it asked again")]
    Forgotten,
    /// Several ids begin so.
    #[error("several approvals begin with that id; give more of it")]
    Ambiguous,
}

type Listener = Box<dyn Fn(ApprovalEvent<'_>) + Send + Sync>;

/// All that wait.
#[derive(Default)]
pub struct Approvals {
    waiting: Mutex<Vec<PendingQuestion>>,
    /// The ids of those that waited when an earlier gateway ended.
    forgotten: Mutex<VecDeque<String>>,
    listener: OnceLock<Listener>,
}

struct PendingQuestion {
    question: Arc<Question>,
    answer: oneshot::Sender<Decision>,
}

impl std::fmt::Debug for Approvals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Approvals").finish_non_exhaustive()
    }
}

impl Approvals {
    /// Sets who tells people; the first one counts.
    pub fn listen(&self, listener: Listener) {
        let _ = self.listener.set(listener);
    }

    /// Remembers questions that waited when earlier gateways ended, oldest first.
    pub fn remember_forgotten(&self, ids: impl IntoIterator<Item = String>) {
        let mut forgotten = self.forgotten.lock();
        forgotten.extend(ids);
        let too_many = forgotten.len().saturating_sub(MOST_FORGOTTEN);
        forgotten.drain(..too_many);
    }

    fn is_forgotten(&self, id: &str) -> bool {
        let is_named = |whole: &String| whole == id || (id.len() >= SHORT && whole.starts_with(id));
        self.forgotten.lock().iter().any(is_named)
    }

    /// Asks people. The future gives what they say; `None` where nobody said anything in time. Dropping it takes the question back.
    ///
    /// # Errors
    /// [`NotAsked`].
    pub fn ask(
        self: &Arc<Self>,
        id: Option<String>,
        request: ApprovalRequest,
        wait: Duration,
    ) -> Result<(Arc<Question>, impl Future<Output = Option<Decision>> + Send + use<>), NotAsked> {
        let id = id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        let created_at = now_ms();
        let wait_ms = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        let question = Question { id, request, created_at, expires_at: created_at.saturating_add(wait_ms) };
        let question = Arc::new(question);
        let (answer, answered) = oneshot::channel();
        {
            let mut waiting = self.waiting.lock();
            if waiting.iter().any(|other| other.question.id == question.id) {
                return Err(NotAsked::Pending);
            }
            if waiting.len() >= MOST_WAITING {
                return Err(NotAsked::TooMany);
            }
            waiting.push(PendingQuestion { question: Arc::clone(&question), answer });
        }
        let asked = QuestionGuard { approvals: Arc::clone(self), question: Arc::clone(&question) };
        self.tell(ApprovalEvent::Requested(&question));
        let deciding = async move {
            let _asked = asked;
            // No other clone of the sender exists.
            tokio::time::timeout(wait, answered).await.ok()?.ok()
        };
        Ok((question, deciding))
    }

    /// Takes a decision. `id` may be the beginning of one, as people type it.
    ///
    /// # Errors
    /// [`NotResolved`].
    pub fn resolve(
        &self,
        id: &str,
        decision: Decision,
        by: Option<&str>,
    ) -> Result<Arc<Question>, NotResolved> {
        let PendingQuestion { question, answer } = {
            let mut waiting = self.waiting.lock();
            let whole = waiting.iter().position(|waiting| waiting.question.id == id);
            let mut found =
                waiting.iter().enumerate().filter(|(_, waiting)| waiting.question.id.starts_with(id));
            let at = match (whole, found.next(), found.next()) {
                (Some(at), ..) => at,
                (None, Some((at, _)), None) if id.len() >= SHORT => at,
                (None, Some(_), Some(_)) if id.len() >= SHORT => return Err(NotResolved::Ambiguous),
                (None, ..) if self.is_forgotten(id) => return Err(NotResolved::Forgotten),
                (None, ..) => return Err(NotResolved::Unknown),
            };
            waiting.remove(at)
        };
        self.tell(ApprovalEvent::Resolved { question: &question, decision, by });
        // The caller may be gone.
        let _ = answer.send(decision);
        Ok(question)
    }

    /// All that wait, the oldest first.
    pub fn waiting(&self) -> Vec<Arc<Question>> {
        self.waiting.lock().iter().map(|waiting| Arc::clone(&waiting.question)).collect()
    }

    fn tell(&self, event: ApprovalEvent<'_>) {
        if let Some(listener) = self.listener.get() {
            listener(event);
        }
    }
}

/// A question that somebody waits for.
struct QuestionGuard {
    approvals: Arc<Approvals>,
    question: Arc<Question>,
}

impl Drop for QuestionGuard {
    fn drop(&mut self) {
        let mut waiting = self.approvals.waiting.lock();
        let before = waiting.len();
        waiting.retain(|other| !Arc::ptr_eq(&other.question, &self.question));
        let was_open = waiting.len() < before;
        drop(waiting);
        if was_open {
            self.approvals.tell(ApprovalEvent::Expired(&self.question));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(command: &str) -> ApprovalRequest {
        ApprovalRequest { command: command.to_owned(), ..ApprovalRequest::default() }
    }

    fn heard(approvals: &Approvals) -> Arc<Mutex<Vec<String>>> {
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let into = Arc::clone(&heard);
        approvals.listen(Box::new(move |event| {
            into.lock().push(match event {
                ApprovalEvent::Requested(question) => format!("asked {}", question.id),
                ApprovalEvent::Resolved { question, decision, by } => {
                    format!("{} {} by {by:?}", decision.as_str(), question.id)
                }
                ApprovalEvent::Expired(question) => format!("expired {}", question.id),
            });
        }));
        heard
    }

    #[tokio::test]
    async fn who_asks_gets_what_a_person_says() {
        let approvals = Arc::new(Approvals::default());
        let heard = heard(&approvals);
        let id = |id: &str| Some(id.to_owned());
        let (question, first) = approvals.ask(id("abcdefgh-1"), asking("ls"), DEFAULT_WAIT).unwrap();
        assert_eq!(question.expires_at - question.created_at, 120_000);
        let again = approvals.ask(id("abcdefgh-1"), asking("dup"), DEFAULT_WAIT).err();
        assert_eq!(again, Some(NotAsked::Pending));
        let (_, second) = approvals.ask(id("abcdefgh-2"), asking("rm"), DEFAULT_WAIT).unwrap();
        let by =
            |id, decision| approvals.resolve(id, decision, Some("Ada")).map(|question| question.id.clone());
        assert_eq!(by("abcdefgh", Decision::Deny), Err(NotResolved::Ambiguous));
        for id in ["", "x", "abcdefg"] {
            assert_eq!(by(id, Decision::Deny), Err(NotResolved::Unknown), "{id}");
        }
        assert_eq!(by("abcdefgh-1", Decision::AllowOnce), Ok("abcdefgh-1".to_owned()));
        assert_eq!(by("abcdefgh-1", Decision::Deny), Err(NotResolved::Unknown), "it is decided");
        assert_eq!(
            by("abcdefgh", Decision::AllowAlways),
            Ok("abcdefgh-2".to_owned()),
            "one is left that begins so"
        );
        assert_eq!((first.await, second.await), (Some(Decision::AllowOnce), Some(Decision::AllowAlways)));
        let expect = [
            "asked abcdefgh-1",
            "asked abcdefgh-2",
            "allow-once abcdefgh-1 by Some(\"Ada\")",
            "allow-always abcdefgh-2 by Some(\"Ada\")",
        ];
        assert_eq!(*heard.lock(), expect);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_answers_in_time_and_who_asked_may_go() {
        let approvals = Arc::new(Approvals::default());
        let heard = heard(&approvals);
        let (question, waiting) = approvals.ask(None, asking("ls"), Duration::from_millis(300)).unwrap();
        assert_eq!(waiting.await, None);
        assert_eq!(approvals.resolve(&question.id, Decision::Deny, None), Err(NotResolved::Unknown));
        let (gone, waiting) = approvals.ask(None, asking("ls"), DEFAULT_WAIT).unwrap();
        drop(waiting);
        assert!(approvals.waiting().is_empty());
        let expect = [&question.id, &gone.id]
            .into_iter()
            .flat_map(|id| [format!("asked {id}"), format!("expired {id}")]);
        assert_eq!(*heard.lock(), expect.collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn what_an_earlier_gateway_asked_is_known() {
        let approvals = Arc::new(Approvals::default());
        approvals.remember_forgotten(["abcdefgh-1".to_owned()]);
        for (id, expect) in [
            ("abcdefgh-1", NotResolved::Forgotten),
            ("abcdefgh", NotResolved::Forgotten),
            ("abcdefg", NotResolved::Unknown),
            ("abcdefgh-12", NotResolved::Unknown),
        ] {
            assert_eq!(approvals.resolve(id, Decision::Deny, None), Err(expect), "{id}");
        }
        approvals.remember_forgotten((0..MOST_FORGOTTEN).map(|n| format!("other-{n}")));
        assert_eq!(approvals.resolve("abcdefgh-1", Decision::Deny, None), Err(NotResolved::Unknown));
    }

    #[tokio::test]
    async fn no_more_wait_than_people_can_look_at() {
        let approvals = Arc::new(Approvals::default());
        let all: Vec<_> =
            (0..MOST_WAITING).map(|_| approvals.ask(None, asking("ls"), DEFAULT_WAIT).unwrap()).collect();
        assert_eq!(approvals.ask(None, asking("ls"), DEFAULT_WAIT).err(), Some(NotAsked::TooMany));
        drop(all);
        assert!(approvals.ask(None, asking("ls"), DEFAULT_WAIT).is_ok());
    }
}
