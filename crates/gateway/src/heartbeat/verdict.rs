//! Handling of the answer to a heartbeat (spec `agent-runtime.md` §11.3, steps 5 to 7). Pure.

use openclaw_config::settings::BeatVisibility;
use openclaw_dispatch::BeatAnswer;
use openclaw_protocol::params::heartbeat::{HeartbeatEvent, HeartbeatStatus};
use openclaw_protocol::text_length::utf16_head;

use super::target::HeartbeatTarget;

/// An alert that was sent is not sent again for this long.
const DUPLICATE_MS: i64 = 24 * 60 * 60 * 1000;
/// Length of a preview.
const PREVIEW: usize = 200;
/// Text sent for an acknowledgement.
const ACKNOWLEDGED: &str = "HEARTBEAT_OK";

/// Facts besides the answer.
#[derive(Debug, Clone)]
pub(super) struct Circumstances<'a> {
    /// Unix milliseconds.
    pub(super) now: i64,
    /// Time at which the beat began, Unix milliseconds.
    pub(super) began_at: i64,
    /// Reason for the beat.
    pub(super) reason: &'a str,
    pub(super) agent: &'a str,
    pub(super) shown: BeatVisibility,
    pub(super) target: &'a HeartbeatTarget,
    /// Reason why the channel can't send now, if it can't.
    pub(super) not_ready: Option<&'static str>,
    /// The last alert that was sent, and when.
    pub(super) last_sent: Option<(&'a str, i64)>,
    pub(super) with_reasoning: bool,
}

/// Actions to take.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HeartbeatVerdict {
    pub(super) event: HeartbeatEvent,
    /// Texts to be sent to the target, in order, and media with the last.
    pub(super) send: Option<Sending>,
}

/// Content to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sending {
    pub(super) texts: Vec<String>,
    pub(super) media_urls: Vec<String>,
    /// True if the text is remembered, so that it is not sent twice.
    pub(super) is_alert: bool,
}

/// Decides.
pub(super) fn of(answer: &BeatAnswer, given: &Circumstances<'_>) -> HeartbeatVerdict {
    match answer {
        BeatAnswer::Empty => acknowledged(HeartbeatStatus::OkEmpty, given),
        BeatAnswer::Acknowledged => acknowledged(HeartbeatStatus::OkToken, given),
        BeatAnswer::Alert { text, media_urls, reasoning } => alert(text, media_urls, reasoning, given),
    }
}

/// The event of a beat that was not made, or went wrong.
pub(super) fn without_answer(
    status: HeartbeatStatus,
    why: &str,
    given: &Circumstances<'_>,
) -> HeartbeatEvent {
    HeartbeatEvent { reason: Some(why.to_owned()), ..event(status, given) }
}

fn acknowledged(status: HeartbeatStatus, given: &Circumstances<'_>) -> HeartbeatVerdict {
    let is_sent = given.shown.show_ok && given.not_ready.is_none();
    match given.target {
        HeartbeatTarget::Chat(_) if is_sent => HeartbeatVerdict {
            event: HeartbeatEvent { silent: Some(false), ..addressed(event(status, given), given) },
            send: Some(Sending {
                texts: vec![ACKNOWLEDGED.to_owned()],
                media_urls: Vec::new(),
                is_alert: false,
            }),
        },
        HeartbeatTarget::Chat(_) | HeartbeatTarget::Nobody(_) => HeartbeatVerdict {
            event: HeartbeatEvent { silent: Some(true), ..event(status, given) },
            send: None,
        },
    }
}

fn alert(
    text: &str,
    media_urls: &[String],
    reasoning: &[String],
    given: &Circumstances<'_>,
) -> HeartbeatVerdict {
    let about = |event: HeartbeatEvent| HeartbeatEvent {
        preview: Some(utf16_head(text, PREVIEW).to_owned()),
        has_media: Some(!media_urls.is_empty()),
        ..event
    };
    if let Some(why) = why_not_sent(text, media_urls, given) {
        let event = without_answer(HeartbeatStatus::Skipped, why, given);
        return HeartbeatVerdict { event: about(addressed(event, given)), send: None };
    }
    let reasoning = reasoning.iter().filter(|_| given.with_reasoning).cloned();
    let texts = reasoning.chain([text.to_owned()]).collect();
    HeartbeatVerdict {
        event: about(addressed(event(HeartbeatStatus::Sent, given), given)),
        send: Some(Sending { texts, media_urls: media_urls.to_vec(), is_alert: true }),
    }
}

fn why_not_sent(text: &str, media_urls: &[String], given: &Circumstances<'_>) -> Option<&'static str> {
    let is_repeated = given.last_sent.is_some_and(|(last, at)| {
        !last.trim().is_empty() && last.trim() == text.trim() && given.now.saturating_sub(at) < DUPLICATE_MS
    });
    if is_repeated && media_urls.is_empty() {
        return Some("duplicate");
    }
    match given.target {
        HeartbeatTarget::Nobody(why) => Some(why),
        HeartbeatTarget::Chat(_) if !given.shown.show_alerts => Some("alerts-disabled"),
        HeartbeatTarget::Chat(_) => given.not_ready,
    }
}

fn event(status: HeartbeatStatus, given: &Circumstances<'_>) -> HeartbeatEvent {
    HeartbeatEvent {
        ts: given.now,
        status,
        to: None,
        account_id: None,
        preview: None,
        duration_ms: Some(u64::try_from(given.now.saturating_sub(given.began_at)).unwrap_or(0)),
        has_media: None,
        reason: Some(given.reason.to_owned()),
        channel: None,
        silent: None,
        indicator_type: status.indicator().filter(|_| given.shown.use_indicator),
        agent_id: Some(given.agent.to_owned()),
    }
}

fn addressed(event: HeartbeatEvent, given: &Circumstances<'_>) -> HeartbeatEvent {
    match given.target {
        HeartbeatTarget::Chat(address) => HeartbeatEvent {
            channel: Some(address.channel.clone()),
            to: Some(address.target.clone()),
            account_id: Some(address.account.clone()),
            ..event
        },
        HeartbeatTarget::Nobody(_) => event,
    }
}

#[cfg(test)]
mod tests {
    use openclaw_channels::Address;
    use openclaw_protocol::params::heartbeat::IndicatorType;
    use serde_json::json;

    use super::*;

    const SHOWN: BeatVisibility = BeatVisibility { show_ok: false, show_alerts: true, use_indicator: true };
    const DAY: i64 = 86_400_000;

    fn telegram() -> HeartbeatTarget {
        let address = |text: &str| text.to_owned();
        HeartbeatTarget::Chat(Address {
            channel: address("telegram"),
            account: address("default"),
            target: address("7"),
            thread: None,
        })
    }

    fn given(target: &HeartbeatTarget) -> Circumstances<'_> {
        Circumstances {
            now: 2 * DAY,
            began_at: 2 * DAY - 70,
            reason: "wake",
            agent: "main",
            shown: SHOWN,
            target,
            not_ready: None,
            last_sent: None,
            with_reasoning: false,
        }
    }

    fn said(text: &str) -> BeatAnswer {
        let reasoning = vec!["Reasoning:\n_hm_".to_owned()];
        BeatAnswer::Alert { text: text.to_owned(), media_urls: Vec::new(), reasoning }
    }

    /// The event of `golden/gw-heartbeat.jsonl`.
    #[test]
    fn an_acknowledgement_is_told_to_nobody() {
        let nobody = HeartbeatTarget::Nobody("no-target");
        let verdict = of(&BeatAnswer::Acknowledged, &given(&nobody));
        let expect = json!({"ts": 2 * DAY, "status": "ok-token", "durationMs": 70, "reason": "wake", "silent": true,
                            "indicatorType": "ok", "agentId": "main"});
        assert_eq!(serde_json::to_value(&verdict.event).unwrap(), expect);
        assert_eq!(verdict.send, None);
        assert_eq!(of(&BeatAnswer::Empty, &given(&telegram())).event.status, HeartbeatStatus::OkEmpty);
    }

    #[test]
    fn an_acknowledgement_is_sent_where_that_is_wanted() {
        let telegram = telegram();
        let shown = BeatVisibility { show_ok: true, use_indicator: false, ..SHOWN };
        let verdict = of(&BeatAnswer::Acknowledged, &Circumstances { shown, ..given(&telegram) });
        assert_eq!(verdict.send.unwrap().texts, ["HEARTBEAT_OK"]);
        assert_eq!((verdict.event.silent, verdict.event.indicator_type), (Some(false), None));
        let busy = Circumstances { shown, not_ready: Some("offline"), ..given(&telegram) };
        assert_eq!(of(&BeatAnswer::Acknowledged, &busy).send, None);
    }

    #[test]
    fn an_alert_is_sent_once_a_day_to_whom_it_may_be() {
        let (telegram, nobody) = (telegram(), HeartbeatTarget::Nobody("target-none"));
        let alert = said("the door is open");
        let sent = of(&alert, &given(&telegram));
        assert_eq!(sent.event.indicator_type, Some(IndicatorType::Alert));
        assert_eq!(
            (sent.event.preview.as_deref(), sent.event.has_media),
            (Some("the door is open"), Some(false))
        );
        assert_eq!((sent.event.channel.as_deref(), sent.event.to.as_deref()), (Some("telegram"), Some("7")));
        assert_eq!(sent.send.unwrap().texts, ["the door is open"]);
        let reasoned = of(&alert, &Circumstances { with_reasoning: true, ..given(&telegram) });
        assert_eq!(reasoned.send.unwrap().texts, ["Reasoning:\n_hm_", "the door is open"]);

        let hidden = BeatVisibility { show_alerts: false, ..SHOWN };
        let rows = [
            (
                Circumstances { last_sent: Some((" the door is open", DAY + 1)), ..given(&telegram) },
                Some("duplicate"),
            ),
            (Circumstances { last_sent: Some(("the door is open", DAY)), ..given(&telegram) }, None),
            (Circumstances { last_sent: Some(("another", DAY + 1)), ..given(&telegram) }, None),
            (given(&nobody), Some("target-none")),
            (Circumstances { shown: hidden, ..given(&telegram) }, Some("alerts-disabled")),
            (Circumstances { not_ready: Some("offline"), ..given(&telegram) }, Some("offline")),
        ];
        for (given, expect) in rows {
            let verdict = of(&alert, &given);
            let why =
                (verdict.event.status == HeartbeatStatus::Skipped).then_some(verdict.event.reason).flatten();
            assert_eq!((why.as_deref(), verdict.send.is_none()), (expect, expect.is_some()));
        }
    }

    #[test]
    fn media_is_never_a_repetition_and_a_preview_is_short() {
        let telegram = telegram();
        let long = "é".repeat(300);
        let answer = BeatAnswer::Alert {
            text: long.clone(),
            media_urls: vec!["a.png".to_owned()],
            reasoning: Vec::new(),
        };
        let verdict = of(&answer, &Circumstances { last_sent: Some((&long, 2 * DAY)), ..given(&telegram) });
        assert_eq!(verdict.event.status, HeartbeatStatus::Sent);
        assert_eq!(verdict.event.preview.unwrap().chars().count(), 200);
        assert_eq!(verdict.event.has_media, Some(true));
    }
}
