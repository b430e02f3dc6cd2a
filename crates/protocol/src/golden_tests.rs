//! Every recorded frame is read into the types and written back the same (spec `gateway-protocol.md` §15).

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::frame::{Frame, Inbound, parse_inbound};
use crate::params::{
    Call, agent, agents, chat, config, connect, health, logs, models, sessions, status, system, usage,
};
use crate::{event, method};

/// Reads a value into a type and writes it back.
type RoundTrip = fn(Value) -> Result<Value, String>;

/// Access of the test to the types of one method.
struct Types {
    params: RoundTrip,
    output: RoundTrip,
}

fn types<C: Call>() -> (&'static str, Types) {
    let params =
        |value| C::read(Some(value)).map(|p| serde_json::to_value(p).unwrap()).map_err(|e| e.message);
    (C::NAME, Types { params, output: round_trip::<C::Output> })
}

fn round_trip<T: Serialize + DeserializeOwned>(value: Value) -> Result<Value, String> {
    let read: T = serde_json::from_value(value).map_err(|error| error.to_string())?;
    serde_json::to_value(read).map_err(|error| error.to_string())
}

fn all_types() -> HashMap<&'static str, Types> {
    HashMap::from([
        types::<connect::Connect>(),
        types::<health::Health>(),
        types::<status::Status>(),
        types::<system::SystemPresence>(),
        types::<system::SystemEvent>(),
        types::<agent::Agent>(),
        types::<agent::AgentWait>(),
        types::<agent::AgentIdentityGet>(),
        types::<chat::ChatHistory>(),
        types::<chat::ChatSend>(),
        types::<chat::ChatAbort>(),
        types::<chat::ChatInject>(),
        types::<sessions::SessionsList>(),
        types::<sessions::SessionsPreview>(),
        types::<sessions::SessionsResolve>(),
        types::<sessions::SessionsPatch>(),
        types::<sessions::SessionsReset>(),
        types::<sessions::SessionsDelete>(),
        types::<sessions::SessionsCompact>(),
        types::<usage::UsageCost>(),
        types::<usage::SessionsUsage>(),
        types::<usage::SessionsUsageLogs>(),
        types::<models::ModelsList>(),
        types::<agents::AgentsList>(),
        types::<agents::AgentsCreate>(),
        types::<agents::AgentsUpdate>(),
        types::<agents::AgentsDelete>(),
        types::<agents::AgentsFilesList>(),
        types::<agents::AgentsFilesGet>(),
        types::<agents::AgentsFilesSet>(),
        types::<config::ConfigGet>(),
        types::<config::ConfigSchema>(),
        types::<logs::LogsTail>(),
    ])
}

fn event_types() -> HashMap<&'static str, RoundTrip> {
    HashMap::from([
        ("connect.challenge", round_trip::<event::ConnectChallenge> as RoundTrip),
        ("agent", round_trip::<event::AgentEvent<'_>>),
        ("chat", round_trip::<event::ChatEvent>),
        ("presence", round_trip::<event::PresenceEvent>),
        ("tick", round_trip::<event::Tick>),
        ("shutdown", round_trip::<event::Shutdown>),
        ("health", round_trip::<health::HealthSnapshot>),
    ])
}

/// Recordings that show what we do otherwise: `restartExpectedMs: null` is left out (KB-39).
fn as_we_do_it(event: &str, mut payload: Value) -> Value {
    if event == "shutdown"
        && let Some(fields) = payload.as_object_mut()
    {
        fields.retain(|_, value| !value.is_null());
    }
    payload
}

/// 2.9 repeats an alias as it was sent; our events have the canonical key (`docs/compatibility.md`).
fn with_canonical_key(mut payload: Value) -> Value {
    if payload["sessionKey"] == "main" {
        payload["sessionKey"] = "agent:main:main".into();
    }
    payload
}

/// Cut recordings carry this mark in place of what was cut.
fn is_cut(value: &Value) -> bool {
    value.to_string().contains('…')
}

/// All lines of all recordings, with their place.
fn lines() -> impl Iterator<Item = (String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    files.into_iter().flat_map(|path| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).unwrap();
        let parsed: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        parsed.into_iter().enumerate().map(move |(index, line)| (format!("{name}:{}", index + 1), line))
    })
}

#[test]
fn envelopes_keep_their_bytes() {
    let mut seen = 0;
    for (place, line) in lines() {
        let (Some(frame), Some(dir)) = (line.get("frame").filter(|f| f.is_object()), line["dir"].as_str())
        else {
            continue;
        };
        let text = frame.to_string();
        if dir == "in" {
            let read: Frame = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{place}: {error}"));
            assert_eq!(serde_json::to_string(&read).unwrap(), text, "{place}");
        } else if let Inbound::Request(request) = parse_inbound(&text) {
            let read: Frame = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{place}: {error}"));
            assert_eq!(serde_json::to_string(&read).unwrap(), text, "{place}");
            assert_eq!(
                request.params().unwrap(),
                frame.get("params").cloned().unwrap_or_else(|| serde_json::json!({})),
                "{place}"
            );
        }
        seen += 1;
    }
    assert!(seen > 1300, "{seen}");
}

#[test]
fn requests_are_read_or_refused_as_recorded() {
    let types = all_types();
    let mut open: HashMap<(String, String), (String, Result<Value, String>)> = HashMap::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (place, line) in lines() {
        let file = place.split(':').next().unwrap_or_default();
        let frame = &line["frame"];
        let at = (format!("{file} {}", line["conn"]), frame["id"].to_string());
        let method = frame["method"].as_str().unwrap_or_default().to_owned();
        if line["dir"] == "out"
            && let Some(kind) = types.get(method.as_str())
        {
            let params = frame.get("params").cloned().unwrap_or_else(|| serde_json::json!({}));
            let ours = (kind.params)(params.clone());
            if let Ok(written) = &ours {
                assert!(loose(&method) || *written == params, "{place}: {written} is not {params}");
            }
            *seen.entry(method.clone()).or_default() += 1;
            open.insert(at, (method, ours));
        } else if line["dir"] == "in"
            && let Some((method, ours)) = open.get(&at)
        {
            let recorded = frame["error"]["message"].as_str().unwrap_or_default();
            if let Err(ours) = ours
                && recorded.starts_with("invalid ")
            {
                assert_eq!(ours, recorded, "{place} {method}");
            }
            assert!(ours.is_ok() || frame["ok"] == false, "{place}: we refuse what was accepted: {ours:?}");
        }
    }
    for name in types.keys() {
        assert!(seen.contains_key(*name), "no recorded request of {name}");
    }
}

fn loose(name: &str) -> bool {
    method::find(name).unwrap().shape.unwrap().strictness == crate::params::Strictness::Loose
}

#[test]
fn results_are_written_back_the_same() {
    let types = all_types();
    let mut open: HashMap<(String, String), String> = HashMap::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (place, line) in lines() {
        let file = place.split(':').next().unwrap_or_default();
        let frame = &line["frame"];
        let at = (format!("{file} {}", line["conn"]), frame["id"].to_string());
        if line["dir"] == "out" {
            open.insert(at, frame["method"].as_str().unwrap_or_default().to_owned());
        } else if let Some(method) = open.get(&at)
            && let Some(kind) = types.get(method.as_str())
            && let Some(payload) = frame.get("payload").filter(|payload| !payload.is_null())
            && frame["type"] == "res"
            && !(method == "connect" && is_cut(payload))
        {
            let ours =
                (kind.output)(payload.clone()).unwrap_or_else(|error| panic!("{place} {method}: {error}"));
            assert_eq!(ours, *payload, "{place} {method}");
            *seen.entry(method.clone()).or_default() += 1;
        }
    }
    for name in types.keys() {
        assert!(seen.contains_key(*name), "no recorded result of {name}");
    }
}

#[test]
fn events_are_written_back_the_same() {
    let types = event_types();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (place, line) in lines() {
        let frame = &line["frame"];
        let Some(name) = frame["event"].as_str().filter(|_| line["dir"] == "in") else { continue };
        let Some(read) = types.get(name) else { continue };
        let payload = frame["payload"].clone();
        if name == "health" && is_cut(&payload) {
            continue;
        }
        let payload = with_canonical_key(payload);
        let ours = read(payload.clone()).unwrap_or_else(|error| panic!("{place} {name}: {error}"));
        assert_eq!(ours, as_we_do_it(name, payload), "{place} {name}");
        *seen.entry(name.to_owned()).or_default() += 1;
    }
    for name in types.keys() {
        assert!(seen.contains_key(*name), "no recorded event {name}");
    }
}

/// Checks that events which clients parse with ordered decoders keep their key order, too.
#[test]
fn agent_and_chat_events_keep_their_bytes() {
    for (place, line) in lines() {
        let frame = &line["frame"];
        if line["dir"] == "in" && (frame["event"] == "agent" || frame["event"] == "chat") {
            let text = with_canonical_key(frame["payload"].clone()).to_string();
            let ours = if frame["event"] == "agent" {
                serde_json::to_string(&serde_json::from_str::<event::AgentEvent<'_>>(&text).unwrap()).unwrap()
            } else {
                serde_json::to_string(&serde_json::from_str::<event::ChatEvent>(&text).unwrap()).unwrap()
            };
            assert_eq!(ours, text, "{place}");
        }
    }
}
