//! Asks people in chats about commands that wait (`approvals.exec`), and tells them there what was decided.

use std::collections::HashMap;
use std::sync::Arc;

use openclaw_channels::{Address, Button, Part, Platforms};
use openclaw_config::settings::{ForwardMode, ForwardTarget, ForwardedApprovals, TextOrNumber};
use openclaw_config::{Config, normalize_account_id};
use openclaw_dispatch::Dispatch;
use openclaw_dispatch::delivery::{Author, Delivery};
use openclaw_protocol::SessionKey;
use openclaw_protocol::printable::visible;
use openclaw_sessions::SessionStore;
use openclaw_sessions::entry::ThreadId;
use openclaw_sessions::entry::delivery::of_entry;
use openclaw_tools::approvals::{Decision, Question};
use parking_lot::Mutex;
use regex::Regex;
use tokio_util::task::TaskTracker;

use crate::current_settings::CurrentSettings;

/// Parts of the gateway by which people in chats are reached.
pub(crate) struct ForwarderParts {
    pub(crate) settings: CurrentSettings,
    pub(crate) sessions: Arc<dyn SessionStore>,
    pub(crate) platforms: Arc<Platforms>,
    pub(crate) dispatch: Dispatch,
    /// Owns the tasks that send.
    pub(crate) tasks: TaskTracker,
}

/// Forwards approval questions to chats and remembers, by question, the addresses that were asked.
pub(crate) struct Forwarder {
    parts: ForwarderParts,
    asked: Mutex<HashMap<String, Vec<Address>>>,
}

impl Forwarder {
    pub(crate) fn new(parts: ForwarderParts) -> Self {
        Self { parts, asked: Mutex::default() }
    }

    /// Asks.
    pub(crate) fn asked(self: &Arc<Self>, question: &Question) {
        let config = self.parts.settings.config();
        if !is_wanted(&config.approvals.exec, question) {
            return;
        }
        let (this, question) = (Arc::clone(self), question.clone());
        // The question goes out only once the addresses are known.
        this.asked.lock().insert(question.id.clone(), Vec::new());
        self.parts.tasks.spawn(async move {
            let places = places(&this.parts, &config, &question).await;
            match this.asked.lock().get_mut(&question.id) {
                Some(known) => known.clone_from(&places),
                // The question was decided meanwhile.
                None => return,
            }
            let message = ApprovalNotice {
                id: format!("approval:{}:asked", question.id),
                text: asking(&question),
                buttons: buttons(&question.id),
                expires_at: Some(question.expires_at),
            };
            send(&this.parts, &places, message).await;
        });
    }

    /// Tells the decision to the people who were asked; `None` if there was none.
    pub(crate) fn settled(self: &Arc<Self>, question: &Question, decision: Option<(Decision, Option<&str>)>) {
        let Some(places) = self.asked.lock().remove(&question.id) else { return };
        let text = match decision {
            Some((decision, by)) => {
                let mark = if decision == Decision::Deny { "❌" } else { "✅" };
                let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
                format!("{mark} Exec approval: {}{by}.\nID: {}", decision.as_str(), question.id)
            }
            None => format!("⏱️ Exec approval: nobody decided in time.\nID: {}", question.id),
        };
        let id = format!("approval:{}:settled", question.id);
        let message = ApprovalNotice { id, text, buttons: Vec::new(), expires_at: None };
        let this = Arc::clone(self);
        self.parts.tasks.spawn(async move { send(&this.parts, &places, message).await });
    }
}

/// True if the settings want this question forwarded to chats.
fn is_wanted(settings: &ForwardedApprovals, question: &Question) -> bool {
    let request = &question.request;
    let agent = request.agent_id.as_deref().unwrap_or_default();
    let key = request.session_key.as_deref().unwrap_or_default();
    // Either spelling of a direct chat's key fits.
    let parsed = SessionKey::parse(key).ok();
    let other = parsed.as_ref().and_then(SessionKey::direct_spelling);
    let keys = [Some(key), parsed.as_ref().map(SessionKey::as_str), other.as_deref()];
    let matches = |pattern: &String| {
        let regex = Regex::new(pattern).ok();
        let fits =
            |key: &str| key.contains(pattern.as_str()) || regex.as_ref().is_some_and(|it| it.is_match(key));
        !pattern.is_empty() && keys.into_iter().flatten().any(fits)
    };
    settings.enabled
        && (settings.agent_filter.is_empty() || settings.agent_filter.iter().any(|own| own == agent))
        && (settings.session_filter.is_empty() || settings.session_filter.iter().any(matches))
}

async fn places(parts: &ForwarderParts, config: &Config, question: &Question) -> Vec<Address> {
    let settings = &config.approvals.exec;
    let mut places = Vec::new();
    if matches!(settings.mode, ForwardMode::Session | ForwardMode::Both) {
        places.extend(session_place(parts, config, question).await);
    }
    if matches!(settings.mode, ForwardMode::Targets | ForwardMode::Both) {
        for target in &settings.targets {
            match target_place(parts, config, target) {
                Some(place) if !places.contains(&place) => places.push(place),
                Some(_) => {}
                None => tracing::warn!(
                    channel = target.channel,
                    to = target.to,
                    "approvals.exec.targets names a conversation that can't be reached"
                ),
            }
        }
    }
    places
}

/// Address at which the session was last talked to.
async fn session_place(parts: &ForwarderParts, config: &Config, question: &Question) -> Option<Address> {
    let key = SessionKey::parse(question.request.session_key.as_deref()?).ok()?;
    let entry = parts.sessions.get(&key).await.ok()??.entry;
    let last = of_entry(&entry)?;
    let thread = last.thread_id.as_ref().map(|thread| match thread {
        ThreadId::Number(number) => number.to_string(),
        ThreadId::Text(text) => text.to_string(),
    });
    place(parts, config, &last.channel?, &last.to?, last.account_id.as_deref(), thread)
}

fn target_place(parts: &ForwarderParts, config: &Config, target: &ForwardTarget) -> Option<Address> {
    let thread = target.thread_id.as_ref().map(|thread| match thread {
        TextOrNumber::Text(text) => text.clone(),
        TextOrNumber::Number(number) => number.to_string(),
    });
    place(parts, config, &target.channel, &target.to, target.account_id.as_deref(), thread)
}

fn place(
    parts: &ForwarderParts,
    config: &Config,
    channel: &str,
    to: &str,
    account: Option<&str>,
    thread: Option<String>,
) -> Option<Address> {
    let platform = parts.platforms.channel(channel)?;
    let target = platform.target(to).ok()?;
    let account = account.map(normalize_account_id);
    let account = account.or_else(|| parts.platforms.sending_account(config, channel))?;
    Some(Address {
        channel: channel.to_owned(),
        account,
        target: target.id,
        thread: thread.or(target.thread),
    })
}

/// Characters of a command that are shown, and how many of them at its beginning. Platforms part longer messages, and the last part, with
/// the buttons, would begin with words of the command.
const MOST_SHOWN: usize = 1_200;
const BEGINNING: usize = 800;
/// Characters of a path that are shown, half of them at its end.
const MOST_OF_PATH: usize = 300;
/// Spaces in a row that are shown as they are; more of them could push what follows to where a line seems to begin.
const MOST_SPACES: usize = 8;

/// Text of the question, for people. The command stands in one line whatever it holds, with
/// invisible characters escaped.
fn asking(question: &Question) -> String {
    let request = &question.request;
    let mut lines = vec!["🔒 A command waits for your approval.".to_owned()];
    lines.extend(command_lines(&request.command));
    let parts = [
        ("In", &request.cwd),
        ("On", &request.host),
        ("Agent", &request.agent_id),
        ("Program", &request.resolved_path),
    ];
    lines.extend(
        parts.into_iter().filter_map(|(name, value)| Some(format!("{name}: {}", path(value.as_ref()?)))),
    );
    if request.is_partial {
        lines.push(
            "⚠️ It may run files that it does not name. They can change before it runs, and that is not noticed."
                .to_owned(),
        );
    }
    let seconds = (question.expires_at - question.created_at) / 1000;
    lines.push(format!("It waits for {seconds} s."));
    lines.push(format!("ID: {}", question.id));
    lines.push(format!("Reply with: /approve {} allow-once|allow-always|deny", question.id));
    lines.join("\n")
}

/// The command, or as much of it as people can look at here.
fn command_lines(command: &str) -> Vec<String> {
    let shown = shown(command);
    let count = shown.chars().count();
    if count <= MOST_SHOWN {
        return vec![format!("Command: {shown}")];
    }
    let beginning: String = shown.chars().take(BEGINNING).collect();
    let end: String = shown.chars().skip(count - (MOST_SHOWN - BEGINNING)).collect();
    let left_out = count - MOST_SHOWN;
    vec![
        format!("Command: {beginning}"),
        format!(
            "⚠️ {left_out} characters of it are left out here. Look at all of it with a client before you allow it."
        ),
        format!("Its end: {end}"),
    ]
}

/// A path, or another name.
fn path(name: &str) -> String {
    let shown = shown(name);
    let count = shown.chars().count();
    if count <= MOST_OF_PATH {
        return shown;
    }
    let half = MOST_OF_PATH / 2;
    let (beginning, end) = (shown.chars().take(half), shown.chars().skip(count - half));
    beginning.chain(" … ".chars()).chain(end).collect()
}

/// A text in one line, with what can't be seen escaped, and no gap in it that looks like the end of a line.
fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut spaces = 0;
    for c in visible(text).chars().map(Some).chain([None]) {
        if c == Some(' ') {
            spaces += 1;
            continue;
        }
        match std::mem::take(&mut spaces) {
            few if few <= MOST_SPACES => out.extend(std::iter::repeat_n(' ', few)),
            many => out.push_str(&format!("⟨{many} spaces⟩")),
        }
        out.extend(c);
    }
    out
}

fn buttons(id: &str) -> Vec<Vec<Button>> {
    let button = |text: &str, decision: Decision| Button {
        text: text.to_owned(),
        data: format!("/approve {id} {}", decision.as_str()),
    };
    vec![vec![
        button("Allow once", Decision::AllowOnce),
        button("Always", Decision::AllowAlways),
        button("Deny", Decision::Deny),
    ]]
}

/// Message for chats.
struct ApprovalNotice {
    id: String,
    text: String,
    buttons: Vec<Vec<Button>>,
    /// Time after which it is not worth saying, Unix milliseconds.
    expires_at: Option<i64>,
}

async fn send(parts: &ForwarderParts, places: &[Address], message: ApprovalNotice) {
    let ApprovalNotice { id, text, buttons, expires_at } = message;
    let config = parts.settings.config();
    for (at, address) in places.iter().enumerate() {
        let can_press = parts.platforms.shows_buttons(&config, address);
        let buttons = if can_press { buttons.clone() } else { Vec::new() };
        let delivery = Delivery {
            id: format!("{id}:{}", at + 1),
            address: address.clone(),
            session_key: None,
            author: Author::Gateway,
            part: Part { buttons, ..Part::text(&text) },
            expires_at,
            asked: None,
        };
        if let Err(error) = parts.dispatch.outbox().accept(delivery).await {
            tracing::warn!(%error, channel = address.channel, "people are not told there about a command");
        }
    }
}

#[cfg(test)]
mod tests {
    use openclaw_tools::approvals::ApprovalRequest;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_command_shows_no_gap_and_no_more_than_one_message_holds() {
        let line = |command: &str| command_lines(command).join("\n");
        for (command, expect) in [
            ("ls  -l".to_owned(), "Command: ls  -l".to_owned()),
            (format!("ls{}-l ", " ".repeat(8)), format!("Command: ls{}-l ", " ".repeat(8))),
            (format!("ls #{}ID: 5", " ".repeat(70)), "Command: ls #⟨70 spaces⟩ID: 5".to_owned()),
            ("x".repeat(1_200), format!("Command: {}", "x".repeat(1_200))),
            (
                format!("{}{}", "x".repeat(801), "é".repeat(2_000)),
                format!(
                    "Command: {}\n⚠️ 1601 characters of it are left out here. Look at all of it with a client before you allow \
                     it.\nIts end: {}",
                    "x".repeat(800),
                    "é".repeat(400)
                ),
            ),
        ] {
            assert_eq!(line(&command), expect);
        }
        assert_eq!(path(&"/a".repeat(150)), "/a".repeat(150));
        assert_eq!(
            path(&format!("/{}", "b".repeat(400))),
            format!("/{} … {}", "b".repeat(149), "b".repeat(150))
        );
        // All of it is one message of Telegram, whatever it is asked about.
        let wide = "🦞".repeat(5_000);
        let request = ApprovalRequest {
            command: wide.clone(),
            cwd: Some(wide.clone()),
            resolved_path: Some(wide),
            ..ApprovalRequest::default()
        };
        let id = uuid::Uuid::nil().to_string();
        let text = asking(&Question { id, request, created_at: 0, expires_at: 120_000 });
        assert!(text.encode_utf16().count() < 4_000, "{}", text.encode_utf16().count());
    }

    #[test]
    fn filters_say_what_is_asked_in_chats() {
        let question = Question {
            id: "q".to_owned(),
            request: ApprovalRequest {
                command: "ls".to_owned(),
                agent_id: Some("main".to_owned()),
                session_key: Some("agent:main:telegram:group:-1".to_owned()),
                ..ApprovalRequest::default()
            },
            created_at: 0,
            expires_at: 120_000,
        };
        let rows: [(Value, bool); 9] = [
            (json!({}), false),
            (json!({"enabled": true}), true),
            (json!({"enabled": true, "agentFilter": ["main"]}), true),
            (json!({"enabled": true, "agentFilter": ["work"]}), false),
            (json!({"enabled": true, "sessionFilter": ["telegram:group"]}), true),
            (json!({"enabled": true, "sessionFilter": ["^agent:.*:-1$"]}), true),
            (json!({"enabled": true, "sessionFilter": ["discord", "("]}), false),
            (json!({"enabled": true, "sessionFilter": [""]}), false),
            (json!({"enabled": true, "agentFilter": ["main"], "sessionFilter": ["discord"]}), false),
        ];
        for (settings, expect) in rows {
            let parsed: ForwardedApprovals = serde_json::from_value(settings.clone()).unwrap();
            assert_eq!(is_wanted(&parsed, &question), expect, "{settings}");
        }
        let text = asking(&question);
        assert!(text.contains("Command: ls\nAgent: main\nIt waits for 120 s.\nID: q\n"), "{text}");
        let request = ApprovalRequest { is_partial: true, ..question.request.clone() };
        let text = asking(&Question { request, ..question });
        assert!(text.contains("Agent: main\n⚠️ It may run files that it does not name. "), "{text}");
        assert!(
            buttons("0f8fad5b-d9cb-469f-a165-70867728950e")
                .concat()
                .iter()
                .all(|button| button.data.len() <= 64)
        );
    }

    #[test]
    fn a_filter_fits_either_spelling_of_a_direct_chat() {
        for spelling in ["dm", "direct"] {
            let request = ApprovalRequest {
                session_key: Some(format!("agent:main:telegram:{spelling}:7")),
                ..ApprovalRequest::default()
            };
            let question = Question { id: "q".to_owned(), request, created_at: 0, expires_at: 120_000 };
            for (filter, expect) in
                [("telegram:dm:7", true), ("^agent:main:telegram:direct:", true), ("telegram:dm:8", false)]
            {
                let settings = json!({"enabled": true, "sessionFilter": [filter]});
                let settings: ForwardedApprovals = serde_json::from_value(settings).unwrap();
                assert_eq!(is_wanted(&settings, &question), expect, "{filter} {spelling}");
            }
        }
    }
}
