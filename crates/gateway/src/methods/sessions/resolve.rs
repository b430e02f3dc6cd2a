//! `sessions.resolve`.

use openclaw_protocol::params::sessions::{SessionsResolveParams, SessionsResolveResult};
use openclaw_protocol::{AgentId, ErrorShape};
use openclaw_sessions::store::Rows;
use openclaw_sessions::{KeyRules, Row};

use crate::methods::keys::{canonical, given};
use crate::request::{Failure, RequestContext};

/// What a session is looked for by.
#[derive(Debug, PartialEq, Eq)]
enum Selector<'a> {
    Key(&'a str),
    SessionId(&'a str),
    Label(&'a str),
}

pub(in crate::methods) async fn resolve(
    ctx: RequestContext,
    params: SessionsResolveParams,
) -> Result<SessionsResolveResult, Failure> {
    let key = match selector(&params)? {
        Selector::Key(text) => {
            let key = canonical(&ctx, text)?;
            let row = ctx.gateway.sessions.get(&key).await?;
            row.ok_or_else(|| ErrorShape::invalid(format!("No session found: {text}")))?.key
        }
        by @ (Selector::SessionId(_) | Selector::Label(_)) => {
            let rows = ctx.gateway.sessions.rows(Rows::All).await?;
            only(&by, &params, rows, ctx.gateway.sessions.rules())?.key
        }
    };
    Ok(SessionsResolveResult { ok: true, key: key.as_str().to_owned() })
}

fn selector(params: &SessionsResolveParams) -> Result<Selector<'_>, ErrorShape> {
    let key = params.key.as_ref().and_then(|key| given(Some(&key.0)));
    let session_id = params.session_id.as_ref().and_then(|id| given(Some(&id.0)));
    let label = params.label.as_ref().and_then(|label| given(Some(&label.0)));
    match (key, session_id, label) {
        (Some(key), None, None) => Ok(Selector::Key(key)),
        (None, Some(id), None) => Ok(Selector::SessionId(id)),
        (None, None, Some(label)) => Ok(Selector::Label(label)),
        (None, None, None) => Err(ErrorShape::invalid("Either key, sessionId, or label is required")),
        _ => Err(ErrorShape::invalid("Provide either key, sessionId, or label (not multiple)")),
    }
}

/// The one visible row that matches.
fn only(
    by: &Selector<'_>,
    params: &SessionsResolveParams,
    rows: Vec<Row>,
    rules: &KeyRules,
) -> Result<Row, ErrorShape> {
    let mut found: Vec<Row> = rows.into_iter().filter(|row| is_visible(row, params, rules) && matches(by, row)).collect();
    found.sort_by(|a, b| b.entry.updated_at.cmp(&a.entry.updated_at).then_with(|| a.key.as_str().cmp(b.key.as_str())));
    let keys = || found.iter().map(|row| row.key.as_str()).collect::<Vec<_>>().join(", ");
    match (found.len(), by) {
        (0, Selector::Label(label)) => Err(ErrorShape::invalid(format!("No session found with label: {label}"))),
        (0, Selector::SessionId(text) | Selector::Key(text)) => {
            Err(ErrorShape::invalid(format!("No session found: {text}")))
        }
        (1, _) => found.pop().ok_or_else(|| ErrorShape::unavailable("Error: the session has gone")),
        (_, Selector::Label(label)) => {
            Err(ErrorShape::invalid(format!("Multiple sessions found with label: {label} ({})", keys())))
        }
        (_, Selector::SessionId(text) | Selector::Key(text)) => {
            Err(ErrorShape::invalid(format!("Multiple sessions found for sessionId: {text} ({})", keys())))
        }
    }
}

fn is_visible(row: &Row, params: &SessionsResolveParams, rules: &KeyRules) -> bool {
    let key = &row.key;
    let shown = match () {
        () if key.is_global() => params.include_global == Some(true),
        () if key.is_unknown() => params.include_unknown == Some(true),
        () => !key.is_cron_run(),
    };
    let of_agent = params.agent_id.as_ref().is_none_or(|id| rules.agent_of(key) == AgentId::normalize(&id.0));
    let of_parent = params.spawned_by.as_ref().is_none_or(|by| row.entry.spawned_by.as_deref() == Some(by.0.as_str()));
    shown && of_agent && of_parent
}

fn matches(by: &Selector<'_>, row: &Row) -> bool {
    match by {
        Selector::Key(text) => row.key.as_str() == *text,
        Selector::SessionId(text) => {
            row.entry.session_id.as_ref().is_some_and(|id| id.as_str() == *text) || row.key.as_str() == *text
        }
        Selector::Label(text) => row.entry.label.as_deref() == Some(text),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use openclaw_protocol::Call;
    use openclaw_protocol::params::sessions::SessionsResolve;
    use openclaw_sessions::settings::Scope;
    use openclaw_sessions::{SessionEntry, SessionKey};
    use serde_json::{Value, json};

    use super::*;

    fn row(key: &str, entry: Value) -> Row {
        let entry: SessionEntry = serde_json::from_value(entry).unwrap();
        Row { key: SessionKey::parse(key).unwrap(), entry: Arc::new(entry) }
    }

    fn found(params: Value) -> String {
        let params = SessionsResolve::read(Some(params)).unwrap();
        let rules = KeyRules::new(AgentId::default(), "main", Scope::PerSender);
        let rows = vec![
            row("agent:main:a", json!({"sessionId": "s1", "label": "one", "updatedAt": 1})),
            row("agent:main:b", json!({"sessionId": "s2", "label": "two", "updatedAt": 2})),
            row("agent:ops:b", json!({"sessionId": "s2", "label": "two", "updatedAt": 3, "spawnedBy": "agent:main:a"})),
            row("global", json!({"sessionId": "s3"})),
            row("agent:main:cron:j:run:x", json!({"sessionId": "s4"})),
        ];
        let chosen = selector(&params).and_then(|by| only(&by, &params, rows, &rules));
        chosen.map_or_else(|error| error.message, |row| row.key.as_str().to_owned())
    }

    #[test]
    fn exactly_one_session_is_found_or_the_reason_is_told() {
        let rows = [
            (json!({}), "Either key, sessionId, or label is required"),
            (json!({"key": "a", "label": "b"}), "Provide either key, sessionId, or label (not multiple)"),
            (json!({"sessionId": "s1"}), "agent:main:a"),
            (json!({"sessionId": "agent:main:a"}), "agent:main:a"),
            (json!({"label": " one "}), "agent:main:a"),
            (json!({"sessionId": "nope"}), "No session found: nope"),
            (json!({"label": "nope"}), "No session found with label: nope"),
            (json!({"sessionId": "s2"}), "Multiple sessions found for sessionId: s2 (agent:ops:b, agent:main:b)"),
            (json!({"label": "two"}), "Multiple sessions found with label: two (agent:ops:b, agent:main:b)"),
            (json!({"label": "two", "agentId": "Ops"}), "agent:ops:b"),
            (json!({"label": "two", "spawnedBy": "agent:main:a"}), "agent:ops:b"),
            (json!({"sessionId": "s3"}), "No session found: s3"),
            (json!({"sessionId": "s3", "includeGlobal": true}), "global"),
            (json!({"sessionId": "s4"}), "No session found: s4"),
        ];
        for (params, expect) in rows {
            assert_eq!(found(params.clone()), expect, "{params}");
        }
    }
}
