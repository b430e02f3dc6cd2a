//! Checks at the end of a chapter.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::client::{self, Client};
use super::people::{MessageWords, People, PlatformMessage};
use super::world::{answers_in, foretold_in};
use super::{PATIENCE, Tally, children, model};
use crate::telegram::{Moment, TelegramServer};
use crate::{GatewayUnderTest, WsClient};

/// Pause between two looks at a message that is not done.
pub(super) const PAUSE: Duration = Duration::from_millis(50);
/// A pause that the end of a chapter does not wait for.
const LONG_PAUSE_MS: i64 = 60_000;
/// Lines of the log that a failure shows.
const LINES: usize = 60;

/// End of a message, according to its trace.
struct TracedEnd {
    disposition: String,
    is_answered: bool,
    /// True if it came to an agent, so that it stands in a transcript.
    is_run: bool,
    /// True if a full queue dropped it.
    is_dropped: bool,
    /// True if its reader may have seen the answer twice.
    is_flagged: bool,
    /// True if the platform did not take its answer, and the trace says so.
    is_undelivered: bool,
    trace: Value,
}

/// Counts of a message in transcripts and with readers.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct MessageTally {
    asked: usize,
    answered: usize,
    shown: usize,
    /// Words before a tool call in transcripts.
    foretold: usize,
    /// Words before a tool call that a reader has seen.
    foreshown: usize,
}

/// Expected counts of a message.
#[derive(Debug, Clone, Copy)]
struct Expected {
    /// Largest number of runs that read it: two where it is steered into one and kept for another.
    times: usize,
    /// True if its reader is on the platform.
    is_shown: bool,
}

/// Checks all messages; each is read by at most `times` runs.
pub(super) async fn all(
    gateway: &mut GatewayUnderTest,
    server: &TelegramServer,
    people: &People,
    clients: &[Client],
    times: usize,
    tally: &mut Tally,
) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    let pushed = people.said.len();
    let confirmed = tokio::time::timeout(PATIENCE, server.counted(Moment::Confirmed, pushed)).await;
    ensure!(
        confirmed.is_ok(),
        "updates are never fetched: {:?}\n{}",
        server.unconfirmed(),
        log_of(gateway, &[])
    );
    let mut socket = gateway.client().await?;
    let mut ends = BTreeMap::new();
    for said in &people.said {
        ends.insert(said.run.clone(), of_person(gateway, &mut socket, said, until).await?);
    }
    for run in clients.iter().flat_map(|client| &client.accepted) {
        ends.insert(run.clone(), of_client(gateway, &mut socket, run, until).await?);
    }
    each_event_has_one_fate(&mut socket, pushed).await?;
    let told_of = children::told(gateway, &mut socket, until).await?;
    drop(socket);
    gateway.terminate().await?;
    ensure!(!gateway.log().contains("damaged"), "a kill damages nothing:\n{}", log_of(gateway, &["damaged"]));

    let mut found: BTreeMap<String, MessageTally> = BTreeMap::new();
    let told = transcripts(&gateway.state_dir().join("agents/main/sessions"))?;
    for entry in told.values().flatten() {
        match entry {
            ReadEntry::Asked(run) => found.entry(run.clone()).or_default().asked += 1,
            ReadEntry::Answered(run) => found.entry(run.clone()).or_default().answered += 1,
            ReadEntry::Foretold(run) => found.entry(run.clone()).or_default().foretold += 1,
            ReadEntry::SentByTool => tally.sent_by_tool += 1,
        }
    }
    let made = server.made();
    for message in &made {
        for run in answers_in(message) {
            found.entry(run).or_default().shown += 1;
        }
        for run in foretold_in(message) {
            found.entry(run).or_default().foreshown += 1;
        }
    }
    children::judge(gateway, &made, told_of, tally)?;
    flag_answered_together(&made, &mut ends);
    for said in people.said.iter().filter(|said| said.words == MessageWords::Numbered) {
        judge(gateway, &said.run, &ends, &found, Expected { times, is_shown: true }, tally)?;
    }
    for run in clients.iter().flat_map(|client| &client.accepted) {
        judge(gateway, run, &ends, &found, Expected { times, is_shown: false }, tally)?;
    }
    in_order(people, &told)?;
    words_before_answers(&made, times)?;
    tally.from_people += pushed;
    tally.from_clients += clients.iter().map(|client| client.accepted.len()).sum::<usize>();
    for end in ends.into_values() {
        *tally.dispositions.entry(end.disposition).or_default() += 1;
    }
    Ok(())
}

/// An answer that may have been seen twice answers all it names: also what was stopped, and taken up by the run behind it, and what
/// the run that gave it has read before the message's own did.
fn flag_answered_together(made: &[Value], ends: &mut BTreeMap<String, TracedEnd>) {
    let repeated: BTreeSet<String> = ends.values().flat_map(|end| repeated_in(&end.trace)).collect();
    for message in made {
        let mut runs = answers_in(message);
        runs.extend(foretold_in(message));
        let is_flagged = repeated.contains(&message["message_id"].to_string())
            || runs.iter().any(|run| ends.get(run).is_some_and(|end| end.is_flagged));
        for run in runs.iter().filter(|_| is_flagged) {
            if let Some(end) = ends.get_mut(run) {
                end.is_flagged = true;
            }
        }
    }
}

/// The platform's ids of what may have been seen twice, by the trace of a message.
fn repeated_in(trace: &Value) -> Vec<String> {
    let deliveries =
        ["/deliveries", "/run/deliveries"].into_iter().filter_map(|at| trace.pointer(at)?.as_array());
    let uncertain = deliveries.flatten().filter(|delivery| delivery["uncertain"] == true);
    let ids = uncertain.filter_map(|delivery| delivery["messageIds"].as_array()).flatten();
    ids.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Checks a message: asked, answered as its end says, and shown, each once or as often as runs read
/// it.
fn judge(
    gateway: &GatewayUnderTest,
    run: &str,
    ends: &BTreeMap<String, TracedEnd>,
    found: &BTreeMap<String, MessageTally>,
    expected: Expected,
    tally: &mut Tally,
) -> Result<()> {
    let Expected { times, is_shown } = expected;
    let end = ends.get(run).with_context(|| format!("{run} has no end"))?;
    let found = found.get(run).copied().unwrap_or_default();
    let MessageTally { asked, answered, shown, foretold, foreshown } = found;
    // A summary may mention a message that a full queue dropped. Where its own run reads it and
    // another may, it is asked once at least.
    let is_asked = match end.is_run {
        true => (1..=times).contains(&asked),
        false => asked == 0 || asked <= times && (end.is_dropped || times > 1),
    };
    let is_answered = (usize::from(end.is_answered)..=times).contains(&answered);
    let most = if end.is_flagged { usize::MAX } else { times };
    let least = usize::from(is_shown && end.is_answered && !end.is_undelivered);
    // A reader sees the words before a tool call as often as they were said.
    let most_words = if end.is_flagged { usize::MAX } else { foretold };
    // Words kept for a run of its own may be cut short where another run has read the message: they
    // belong to no answer.
    let least_words = least.min(foretold.saturating_sub(times - 1));
    let is_shown = match is_shown {
        true => (least..=most).contains(&shown) && (least_words..=most_words).contains(&foreshown),
        false => shown == 0 && foreshown == 0,
    };
    tally.flagged += usize::from(end.is_flagged);
    tally.seen_twice += usize::from(shown > times || foreshown > foretold);
    tally.foretold += usize::from(foretold > 0);
    if is_asked && is_answered && is_shown && foretold <= times {
        return Ok(());
    }
    bail!(
        "{run}: {}, flagged {}, but {found:?}\nits trace: {:#}\nthe log:\n{}",
        end.disposition,
        end.is_flagged,
        end.trace,
        log_of(gateway, &names(&end.trace, run))
    );
}

/// The number of the message and the ids under which the log has it.
fn names<'a>(trace: &'a Value, run: &'a str) -> Vec<&'a str> {
    let ids = ["/runId", "/takenBy", "/run/runId", "/run/takenBy"];
    ids.iter().filter_map(|id| trace.pointer(id)?.as_str()).chain([run]).collect()
}

/// The last lines of the log that name one of these; of everything where nothing is named.
pub(super) fn log_of(gateway: &GatewayUnderTest, names: &[&str]) -> String {
    let log = gateway.log();
    let lines: Vec<&str> =
        log.lines().filter(|line| names.is_empty() || names.iter().any(|name| line.contains(name))).collect();
    let mut text = String::new();
    for line in lines.iter().skip(lines.len().saturating_sub(LINES)) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{line}");
    }
    text
}

/// Waits until nothing is left to do for a message of a person.
async fn of_person(
    gateway: &GatewayUnderTest,
    socket: &mut WsClient,
    said: &PlatformMessage,
    until: Instant,
) -> Result<TracedEnd> {
    loop {
        let traced = socket.request("trace", json!({"id": said.message_id})).await?;
        let events = traced["events"].as_array().context("events")?;
        let [event] = events.as_slice() else {
            bail!("{} is {} events: {traced:#}", said.run, events.len());
        };
        if let Some(end) = end_of_event(socket, event).await? {
            return Ok(end);
        }
        hasten(socket, &event["run"]).await?;
        wait(gateway, &said.run, event, until).await?;
    }
}

/// Waits until nothing is left to do for a message of a client.
async fn of_client(
    gateway: &GatewayUnderTest,
    socket: &mut WsClient,
    run: &str,
    until: Instant,
) -> Result<TracedEnd> {
    loop {
        let traced = socket.request("trace", json!({"id": run})).await?;
        let runs = traced["runs"].as_array().context("runs")?;
        let [traced] = runs.as_slice() else { bail!("{run} is {} runs: {traced:#}", runs.len()) };
        if let Some(end) = end_of_run(socket, traced, traced).await? {
            return Ok(end);
        }
        hasten(socket, traced).await?;
        wait(gateway, run, traced, until).await?;
    }
}

/// Tries what a run still has to send, as a person would who does not want to wait: a kill counts as a try, and after some the pauses
/// are longer than a chapter.
async fn hasten(socket: &mut WsClient, run: &Value) -> Result<()> {
    let deliveries = run["deliveries"].as_array().map(Vec::as_slice).unwrap_or_default();
    let now = jiff::Timestamp::now().as_millisecond();
    let waits_long = |delivery: &&Value| {
        matches!(delivery["state"].as_str(), Some("pending" | "uncertain"))
            && delivery["nextAt"].as_i64().is_some_and(|at| at - now > LONG_PAUSE_MS)
    };
    for delivery in deliveries.iter().filter(waits_long) {
        socket.request("message.retry", json!({"ids": [delivery["id"]]})).await?;
    }
    Ok(())
}

async fn wait(gateway: &GatewayUnderTest, run: &str, trace: &Value, until: Instant) -> Result<()> {
    if Instant::now() > until {
        bail!("{run} never ends: {trace:#}\nthe log:\n{}", log_of(gateway, &names(trace, run)));
    }
    tokio::time::sleep(PAUSE).await;
    Ok(())
}

async fn end_of_event(socket: &mut WsClient, event: &Value) -> Result<Option<TracedEnd>> {
    match event["fate"].as_str().unwrap_or_default() {
        "waiting" => Ok(None),
        "run" => end_of_run(socket, &event["run"], event).await,
        fate @ ("handled" | "dropped") => {
            let reason = event["reason"].as_str().unwrap_or_default();
            ensure!(!reason.is_empty(), "a fate without a rule: {event:#}");
            Ok(Some(TracedEnd {
                disposition: format!("{fate}: {reason}"),
                is_answered: false,
                is_run: false,
                is_dropped: fate == "dropped",
                is_flagged: false,
                is_undelivered: false,
                trace: event.clone(),
            }))
        }
        fate => bail!("no fate of a message that speaks to the agent: {fate}: {event:#}"),
    }
}

/// `None` while it is under way or something of its answer is.
async fn end_of_run(socket: &mut WsClient, run: &Value, trace: &Value) -> Result<Option<TracedEnd>> {
    let state = run["state"].as_str().unwrap_or_default();
    if state == "accepted" {
        return Ok(None);
    }
    let mut deliveries = run["deliveries"].as_array().cloned().unwrap_or_default();
    if let Some(other) = run["takenBy"].as_str() {
        let traced = socket.request("trace", json!({"id": other})).await?;
        let runs = traced["runs"].as_array().context("runs")?;
        ensure!(runs.len() == 1, "{other} took a message: {traced:#}");
        for run in runs {
            deliveries.extend(run["deliveries"].as_array().cloned().unwrap_or_default());
        }
    }
    let is = |delivery: &Value, states: &[&str]| states.iter().any(|state| delivery["state"] == *state);
    if deliveries.iter().any(|delivery| is(delivery, &["pending", "sending", "uncertain"])) {
        return Ok(None);
    }
    let error = run["error"].as_str().unwrap_or_default();
    // A message that a client sent and a full queue dropped ends so.
    let dropped =
        error.split_once("dropped (").and_then(|(_, rest)| rest.split_once(')')).map(|(rule, _)| rule);
    let disposition = match (state, run["takenBy"].is_string()) {
        ("ok", false) => "answered".to_owned(),
        ("ok", true) => "answered by another run that took it".to_owned(),
        ("aborted", _) => format!("stopped: {error}"),
        ("error", _) if dropped.is_some() => format!("dropped: {}", dropped.unwrap_or_default()),
        (state, _) => bail!("a run ends with {state}: {trace:#}"),
    };
    Ok(Some(TracedEnd {
        disposition,
        is_answered: state == "ok",
        is_run: dropped.is_none(),
        is_dropped: dropped.is_some(),
        is_flagged: deliveries.iter().any(|delivery| delivery["uncertain"] == true),
        is_undelivered: deliveries.iter().any(|delivery| is(delivery, &["failed"])),
        trace: trace.clone(),
    }))
}

/// The law: what was received is the sum of what became of it.
async fn each_event_has_one_fate(socket: &mut WsClient, pushed: usize) -> Result<()> {
    let last = socket.request("trace", json!({})).await?;
    let tally = last["tally"].as_object().context("tally")?;
    let sum: u64 = tally.values().filter_map(Value::as_u64).sum();
    ensure!(sum == pushed as u64, "{pushed} messages were received, and their fates are {tally:?}");
    ensure!(!tally.contains_key("waiting"), "something waits for ever: {tally:?}");
    Ok(())
}

/// Entry read from a line of a transcript.
enum ReadEntry {
    Asked(String),
    Answered(String),
    /// Words before a tool call.
    Foretold(String),
    /// The `message` tool was called.
    SentByTool,
}

/// All transcripts, archived ones too, in order.
fn transcripts(dir: &Path) -> Result<BTreeMap<String, Vec<ReadEntry>>> {
    let mut told = BTreeMap::new();
    for file in std::fs::read_dir(dir)? {
        let path = file?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if !name.contains(".jsonl") || name.ends_with(".lock") {
            continue;
        }
        let (mut entries, mut sent) = (Vec::new(), None);
        for line in std::fs::read_to_string(&path)?.lines() {
            let entry: Value = serde_json::from_str(line).with_context(|| format!("{name}: {line}"))?;
            let message = &entry["message"];
            let text = message["content"].to_string();
            let is_whole = !matches!(message["stopReason"].as_str(), Some("aborted" | "error"));
            match message["role"].as_str() {
                Some("user") => entries.extend(model::asked(&text).into_iter().map(ReadEntry::Asked)),
                Some("assistant") if is_whole => {
                    entries.extend(said(&message["content"], &mut sent));
                }
                _ => {}
            }
        }
        told.insert(name, entries);
    }
    Ok(told)
}

/// Texts of one answer of the model: said by itself and by the `message` tool. A repetition behind
/// the tool is no other answer.
fn said(content: &Value, sent: &mut Option<String>) -> Vec<ReadEntry> {
    let mut entries = Vec::new();
    for block in content.as_array().into_iter().flatten() {
        if let Some(text) = block["text"].as_str().filter(|text| sent.as_deref() != Some(*text)) {
            entries.extend(model::foretold(text).into_iter().map(ReadEntry::Foretold));
            entries.extend(model::answered(text).into_iter().map(ReadEntry::Answered));
        }
        if block["name"] == model::MESSAGE
            && let Some(text) = block["arguments"]["message"].as_str()
        {
            entries.extend(model::answered(text).into_iter().map(ReadEntry::Answered));
            entries.push(ReadEntry::SentByTool);
            *sent = Some(text.to_owned());
        }
    }
    entries
}

/// Readers see the words before a tool call before the answer of the same message. If two runs may
/// read a message, one of them may have answered it without such words.
fn words_before_answers(made: &[Value], times: usize) -> Result<()> {
    let (mut words, mut answers) = (BTreeMap::new(), BTreeMap::new());
    for (at, message) in made.iter().enumerate() {
        for run in foretold_in(message) {
            words.entry(run).or_insert(at);
        }
        for run in answers_in(message) {
            let answer = answers.entry(run).or_insert(at);
            if times > 1 {
                *answer = at;
            }
        }
    }
    for (run, at) in words {
        let Some(answer) = answers.get(&run).copied() else { continue };
        let text = made[at]["text"].as_str().unwrap_or_default();
        let is_before = at < answer || at == answer && text.starts_with("first words");
        ensure!(is_before, "{run} has its first words behind its answer: {:#?}", &made[answer..=at]);
    }
    Ok(())
}

/// Checks that each transcript has the words of one chat or client in the order in which they were
/// said.
fn in_order(people: &People, told: &BTreeMap<String, Vec<ReadEntry>>) -> Result<()> {
    let chats: BTreeMap<&str, i64> = people.said.iter().map(|said| (said.run.as_str(), said.chat)).collect();
    for (file, entries) in told {
        let mut last: BTreeMap<String, usize> = BTreeMap::new();
        let asked: BTreeSet<&str> = entries.iter().filter_map(ReadEntry::asked).collect();
        let mut known = BTreeSet::new();
        // A message that is asked again was said where it was asked first.
        for run in entries.iter().filter_map(ReadEntry::asked).filter(|run| known.insert(*run)) {
            let speaker = match chats.get(run) {
                Some(chat) if people.reordered.contains(chat) => continue,
                Some(chat) => chat.to_string(),
                None => run.rsplit_once('-').map(|(client, _)| client.to_owned()).unwrap_or_default(),
            };
            let number = client::number(run).context("a number")?;
            let before = last.insert(speaker, number);
            ensure!(
                before.is_none_or(|before| before < number),
                "{run} stands behind {before:?} in {file}: {asked:?}"
            );
        }
    }
    Ok(())
}

impl ReadEntry {
    fn asked(&self) -> Option<&str> {
        match self {
            Self::Asked(run) => Some(run),
            Self::Answered(_) | Self::Foretold(_) | Self::SentByTool => None,
        }
    }
}
