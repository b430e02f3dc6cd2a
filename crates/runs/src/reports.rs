//! Reports of the last runs' system prompts, kept so that a report that says the same is neither
//! serialised nor written again: it is several kilobytes, and nearly always the same as in the turn
//! before.

use std::collections::VecDeque;

use openclaw_agent::prompt::SystemPromptReport;
use openclaw_protocol::SessionKey;
use openclaw_sessions::entry::Json;
use parking_lot::Mutex;

/// Sessions whose report is remembered: those that may run at once, several times over. About 5 KB each.
const MOST: usize = 64;

/// The last report of each of the sessions that ran last.
#[derive(Debug, Default)]
pub(super) struct Reports {
    last: Mutex<VecDeque<KeptReport>>,
}

#[derive(Debug)]
struct KeptReport {
    key: SessionKey,
    report: SystemPromptReport,
    json: Json,
}

impl Reports {
    /// Writes the parts of a system prompt as a report for the session's row, once the model is
    /// asked.
    pub(super) async fn keep_for_row(
        &self,
        key: &SessionKey,
        report: Option<SystemPromptReport>,
    ) -> Option<Json> {
        tokio::task::yield_now().await;
        let kept = self.keep(key, report?);
        kept.inspect_err(|error| tracing::warn!(session = %key, %error, "the row does not say what the prompt was made of")).ok()
    }

    /// The report as the session's row keeps it. One that says the same as the last but for its time is that one.
    pub(super) fn keep(
        &self,
        key: &SessionKey,
        report: SystemPromptReport,
    ) -> Result<Json, serde_json::Error> {
        let mut last = self.last.lock();
        let known = last.iter().position(|kept| kept.key == *key).and_then(|at| last.remove(at));
        let kept = match known {
            Some(kept) if kept.report.says_the_same_as(&report) => kept,
            Some(_) | None => {
                let json = Json::of_row_field(&report)?;
                KeptReport { key: key.clone(), report, json }
            }
        };
        let json = kept.json.clone();
        last.push_back(kept);
        if last.len() > MOST {
            last.pop_front();
        }
        Ok(json)
    }
}

#[cfg(test)]
mod tests {
    use openclaw_agent::prompt::{self, PromptInputs, ReportFrame};

    use super::*;

    fn report(generated_at: i64, model: &str) -> SystemPromptReport {
        let frame = ReportFrame { model: Some(model.to_owned()), ..ReportFrame::default() };
        prompt::build(&PromptInputs::default()).report(
            generated_at,
            frame,
            &[],
            prompt::SkillsReport::default(),
            &[],
        )
    }

    #[test]
    fn a_report_that_says_the_same_is_the_one_before() {
        let reports = Reports::default();
        let (here, there) = (SessionKey::global(), SessionKey::unknown());
        let made_at = |json: Json| json.read::<serde_json::Value>().unwrap()["generatedAt"].as_i64().unwrap();
        let keep = |key, at, model| made_at(reports.keep(key, report(at, model)).unwrap());
        assert_eq!(keep(&here, 1, "a"), 1);
        assert_eq!(keep(&here, 2, "a"), 1);
        assert_eq!(keep(&there, 3, "a"), 3);
        assert_eq!(keep(&here, 4, "b"), 4);
        assert_eq!(keep(&here, 5, "a"), 5);
    }
}
