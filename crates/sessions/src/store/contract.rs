//! Contract of [`SessionStore`]: laws that every implementation keeps, whatever it stores rows in.
//! An implementation's tests give [`keeps_every_law`] a way to make a [`Storage`]; other crates
//! find this module behind the feature `contract`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test support: a broken law panics"
)]

use std::pin::Pin;
use std::sync::Arc;

use openclaw_protocol::AgentId;
use serde_json::{Value, json};

use super::{
    Change, Hidden, Query, Refused, Row, Rows, SessionStore, StoreError, UpdateError, gather, update_with,
};
use crate::key::SessionKey;

/// Storage that outlives a store that is closed or dropped. It must take the agents `main` (the
/// default) and `ops`, with the default key rules.
pub trait Storage: Send + Sync {
    /// Opens the store, as a process does at its start. The former one, if any, was closed or just dropped.
    fn open(&self) -> Arc<dyn SessionStore>;
}

/// A law is checked in a storage of its own.
type Law = for<'a> fn(&'a dyn Storage) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

macro_rules! laws {
    ($($law:ident),* $(,)?) => { &[$((stringify!($law), |storage| Box::pin($law(storage)))),*] };
}

/// The laws by name.
const LAWS: &[(&str, Law)] = laws![
    a_new_row_gets_an_id_and_a_time,
    an_unchanged_row_stays_as_it_is,
    a_refused_change_leaves_the_row_alone,
    a_typed_change_hands_back_its_result_or_its_error,
    a_label_belongs_to_one_row_of_an_agent,
    dm_and_direct_are_the_same_row,
    unknown_fields_and_wrong_types_survive,
    time_never_runs_backwards,
    updates_of_a_row_happen_one_after_the_other,
    what_is_acknowledged_survives_the_process,
    a_deleted_row_is_gone_and_can_be_made_again,
    rows_are_those_of_one_agent_or_of_all,
    a_query_is_answered_with_what_meets_all_of_it,
    a_visitor_is_shown_what_a_query_finds,
    delivery_fields_agree,
    agents_may_come_later,
    a_closed_store_says_so,
];

/// Checks every law, each in a new storage. Panics in the first that is broken.
pub async fn keeps_every_law<S: Storage>(new_storage: impl Fn() -> S) {
    for (name, law) in LAWS {
        tracing::info!(law = name, "checking");
        law(&new_storage()).await;
    }
}

fn key(store: &dyn SessionStore, text: &str) -> SessionKey {
    store.rules().canonical(text).unwrap()
}

/// Sets fields by their names in the file; `null` removes one.
fn set(fields: Value) -> Change {
    Box::new(move |edit| {
        for (name, value) in fields.as_object().unwrap() {
            if value.is_null() {
                edit.entry.clear_field(name);
            } else {
                edit.entry.set_field(name, value.clone());
            }
        }
        Ok(())
    })
}

async fn put(store: &dyn SessionStore, text: &str, fields: Value) -> Row {
    store.update(&key(store, text), set(fields)).await.unwrap()
}

async fn row(store: &dyn SessionStore, text: &str) -> Option<Row> {
    store.get(&key(store, text)).await.unwrap()
}

async fn json_of(store: &dyn SessionStore, text: &str) -> Value {
    row(store, text).await.map_or(Value::Null, |row| json_row(&row))
}

fn json_row(row: &Row) -> Value {
    serde_json::to_value(&*row.entry).unwrap()
}

async fn a_new_row_gets_an_id_and_a_time(storage: &dyn Storage) {
    let store = storage.open();
    assert_eq!(row(&*store, "main").await, None);
    let made = put(&*store, "main", json!({"label": "x"})).await;
    assert!(made.entry.session_id.is_some() && made.entry.updated_at.is_some());
    assert_eq!(made.key.as_str(), "agent:main:main");
    assert_eq!(row(&*store, "main").await.unwrap(), made);
    let given = put(&*store, "given", json!({"sessionId": "mine", "updatedAt": 5})).await;
    assert_eq!(json_row(&given), json!({"sessionId": "mine", "updatedAt": 5}));
    store.close().await.unwrap();
}

async fn an_unchanged_row_stays_as_it_is(storage: &dyn Storage) {
    let store = storage.open();
    let made = put(&*store, "main", json!({"novel": {"b": 1, "a": 2}})).await;
    let same = put(&*store, "main", json!({})).await;
    assert_eq!(same, made);
    store.close().await.unwrap();
}

async fn a_refused_change_leaves_the_row_alone(storage: &dyn Storage) {
    let store = storage.open();
    let made = put(&*store, "main", json!({"label": "x"})).await;
    let refused: Change = Box::new(|edit| {
        assert!(!edit.is_new);
        edit.entry.label = None;
        Err(Refused("no".to_owned()))
    });
    let error = store.update(&key(&*store, "main"), refused).await.unwrap_err();
    assert!(matches!(error, StoreError::Refused(Refused(text)) if text == "no"));
    let panics: Change = Box::new(|_| panic!("a change that panics"));
    assert!(store.update(&key(&*store, "main"), panics).await.is_err());
    assert_eq!(row(&*store, "main").await.unwrap(), made);
    let refused: Change = Box::new(|edit| Err(Refused(format!("new: {}", edit.is_new))));
    let error = store.update(&key(&*store, "other"), refused).await.unwrap_err();
    assert_eq!(error.to_string(), "new: true");
    assert_eq!(row(&*store, "other").await, None);
    store.close().await.unwrap();
}

async fn a_typed_change_hands_back_its_result_or_its_error(storage: &dyn Storage) {
    let store = storage.open();
    let main = key(&*store, "main");
    let (row, is_new) = update_with(&*store, &main, |edit| Ok::<_, Refused>(edit.is_new)).await.unwrap();
    assert!(is_new && row.entry.session_id.is_some());
    let error = update_with(&*store, &main, |_| Err::<(), _>(std::fmt::Error)).await.unwrap_err();
    assert!(matches!(error, UpdateError::Refused(std::fmt::Error)));
    store.close().await.unwrap();
}

async fn a_label_belongs_to_one_row_of_an_agent(storage: &dyn Storage) {
    let store = storage.open();
    put(&*store, "main", json!({"label": "x"})).await;
    let error = store.update(&key(&*store, "other"), set(json!({"label": "x"}))).await.unwrap_err();
    assert_eq!(error.to_string(), "label already in use: x");
    assert_eq!(row(&*store, "other").await, None);
    // A row may keep its own label.
    put(&*store, "main", json!({"label": "x", "subject": "s"})).await;
    put(&*store, "main", json!({"label": null})).await;
    put(&*store, "other", json!({"label": "x"})).await;
    store.delete(&key(&*store, "other")).await.unwrap().unwrap();
    put(&*store, "main", json!({"label": "x"})).await;
    store.close().await.unwrap();
}

async fn dm_and_direct_are_the_same_row(storage: &dyn Storage) {
    let store = storage.open();
    put(&*store, "agent:main:telegram:dm:7", json!({"sessionId": "a"})).await;
    put(&*store, "agent:main:telegram:direct:7", json!({"inputTokens": 5})).await;
    let rows = store.rows(Rows::All).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].key.as_str(), "agent:main:telegram:dm:7");
    let value = json_row(&rows[0]);
    assert_eq!((&value["sessionId"], &value["inputTokens"]), (&json!("a"), &json!(5)));
    store.delete(&key(&*store, "agent:main:telegram:direct:7")).await.unwrap().unwrap();
    assert_eq!(row(&*store, "agent:main:telegram:dm:7").await, None);
    store.close().await.unwrap();
}

async fn unknown_fields_and_wrong_types_survive(storage: &dyn Storage) {
    let odd = json!({
        "sessionId": "s", "updatedAt": 5, "novel": {"b": [1, null, "é"], "a": {}}, "chatType": "no such type",
        "inputTokens": "many", "thinkingLevel": 7, "origin": [], "nothing": false
    });
    {
        let store = storage.open();
        put(&*store, "main", odd.clone()).await;
        assert_eq!(json_of(&*store, "main").await, odd);
        put(&*store, "main", json!({"outputTokens": 1})).await;
    }
    let mut expect = odd;
    expect["outputTokens"] = json!(1);
    let store = storage.open();
    assert_eq!(json_of(&*store, "main").await, expect, "after a crash");
    store.close().await.unwrap();
    let store = storage.open();
    assert_eq!(json_of(&*store, "main").await, expect, "after a close");
    store.close().await.unwrap();
}

async fn time_never_runs_backwards(storage: &dyn Storage) {
    let store = storage.open();
    put(&*store, "main", json!({"updatedAt": 100})).await;
    let back = put(&*store, "main", json!({"updatedAt": 5, "inputTokens": 1})).await;
    assert_eq!((back.entry.updated_at, back.entry.input_tokens), (Some(100), Some(1)));
    let none = put(&*store, "main", json!({"updatedAt": null})).await;
    assert!(none.entry.updated_at >= Some(100));
    store.close().await.unwrap();
}

async fn updates_of_a_row_happen_one_after_the_other(storage: &dyn Storage) {
    let store = storage.open();
    let main = key(&*store, "main");
    let count = || -> Change {
        Box::new(|edit| {
            edit.entry.input_tokens = Some(edit.entry.input_tokens.unwrap_or(0) + 1);
            Ok(())
        })
    };
    let mut counted: Vec<_> = (0..50).map(|_| store.update(&main, count())).collect();
    let mut seen = Vec::new();
    // The last asked for is waited for first: who waits does not decide.
    while let Some(update) = counted.pop() {
        seen.push(update.await.unwrap().entry.input_tokens.unwrap());
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..=50).collect::<Vec<_>>());
    store.close().await.unwrap();
}

async fn what_is_acknowledged_survives_the_process(storage: &dyn Storage) {
    {
        let store = storage.open();
        put(&*store, "a", json!({"sessionId": "a", "updatedAt": 1})).await;
        put(&*store, "b", json!({"sessionId": "b", "updatedAt": 2, "label": "l"})).await;
        put(&*store, "agent:ops:c", json!({"sessionId": "c", "updatedAt": 3})).await;
        put(&*store, "b", json!({"label": null})).await;
        store.delete(&key(&*store, "a")).await.unwrap().unwrap();
    }
    for _ in 0..2 {
        let store = storage.open();
        assert_eq!(row(&*store, "a").await, None);
        assert_eq!(json_of(&*store, "b").await, json!({"sessionId": "b", "updatedAt": 2}));
        assert_eq!(json_of(&*store, "agent:ops:c").await, json!({"sessionId": "c", "updatedAt": 3}));
        store.flush().await.unwrap();
        store.close().await.unwrap();
    }
}

async fn a_deleted_row_is_gone_and_can_be_made_again(storage: &dyn Storage) {
    let store = storage.open();
    assert_eq!(store.delete(&key(&*store, "main")).await.unwrap(), None);
    let made = put(&*store, "main", json!({"sessionId": "a", "inputTokens": 5})).await;
    assert_eq!(store.delete(&key(&*store, "main")).await.unwrap(), Some(made));
    assert_eq!(row(&*store, "main").await, None);
    assert_eq!(store.delete(&key(&*store, "main")).await.unwrap(), None);
    let again: Change = Box::new(|edit| {
        assert!(edit.is_new && edit.entry.input_tokens.is_none());
        Ok(())
    });
    let again = store.update(&key(&*store, "main"), again).await.unwrap();
    assert_eq!(again.entry.input_tokens, None);
    store.close().await.unwrap();
}

async fn rows_are_those_of_one_agent_or_of_all(storage: &dyn Storage) {
    let store = storage.open();
    assert_eq!(store.rows(Rows::All).await.unwrap(), []);
    for (text, time) in [("main", 1), ("agent:ops:main", 3), ("other", 2)] {
        put(&*store, text, json!({"updatedAt": time})).await;
    }
    let (main, ops) = (AgentId::normalize("main"), AgentId::normalize("ops"));
    let rows = [
        (Rows::All, vec!["agent:ops:main", "agent:main:other", "agent:main:main"]),
        (Rows::Of(&main), vec!["agent:main:other", "agent:main:main"]),
        (Rows::Of(&ops), vec!["agent:ops:main"]),
    ];
    for (which, expect) in rows {
        let rows = store.rows(which).await.unwrap();
        let keys: Vec<&str> = rows.iter().map(|row| row.key.as_str()).collect();
        assert_eq!(keys, expect, "newest first");
    }
    store.close().await.unwrap();
}

async fn a_query_is_answered_with_what_meets_all_of_it(storage: &dyn Storage) {
    let store = storage.open();
    let rows = [
        ("main", json!({"updatedAt": 1, "sessionId": "id-main"})),
        (
            "agent:main:telegram:group:-1",
            json!({"updatedAt": 7, "subject": "Launch", "sessionFile": "/x/launch.jsonl"}),
        ),
        ("agent:main:subagent:1", json!({"updatedAt": 6, "label": "task", "spawnedBy": "main"})),
        ("agent:ops:subagent:1", json!({"updatedAt": 5, "spawnedBy": "agent:main:main"})),
        ("agent:main:cron:j:run:r", json!({"updatedAt": 8})),
        ("global", json!({"updatedAt": 9, "space": "Launchpad"})),
    ];
    for (text, fields) in rows {
        put(&*store, text, fields).await;
    }
    let (group, child, other) =
        ("agent:main:telegram:group:-1", "agent:main:subagent:1", "agent:ops:subagent:1");
    let text = |text: &str| Some(text.to_owned());
    let hidden = Hidden { global: true, unknown: true, cron_runs: true };
    let all = Query::default();
    let cases: Vec<(Query, Vec<&str>, u64)> = vec![
        (Query::newest(2), vec!["global", "agent:main:cron:j:run:r"], 6),
        (Query { hidden, ..Query::newest(2) }, vec![group, child], 4),
        (Query { hidden, since: Some(6), ..all.clone() }, vec![group, child], 4),
        (Query { agent: Some(AgentId::normalize("ops")), ..all.clone() }, vec![other], 6),
        (Query { spawned_by: text("main"), ..all.clone() }, vec![child, other], 6),
        (Query { spawned_by: text("main"), ..Query::newest(1) }, vec![child], 6),
        (Query { label: text("task"), ..all.clone() }, vec![child], 6),
        (Query { label: text("Task"), ..all.clone() }, vec![], 6),
        (Query { session_id: text("id-main"), ..all.clone() }, vec!["agent:main:main"], 6),
        (Query { session_file: text("/x/launch.jsonl"), ..all.clone() }, vec![group], 6),
        (Query { search: text("LAUNCH"), hidden, ..all.clone() }, vec![group], 4),
        (Query { search: text("telegram:g-launch"), ..all.clone() }, vec![group], 6),
        (Query { search: text("nobody"), ..all }, vec![], 6),
    ];
    for (query, expect, total) in cases {
        let found = store.select(Rows::All, &query).await.unwrap();
        let keys: Vec<&str> = found.rows.iter().map(|row| row.key.as_str()).collect();
        assert_eq!((keys, found.total), (expect, total), "{query:?}");
        for row in &found.rows {
            assert_eq!(store.get(&row.key).await.unwrap().as_ref(), Some(row));
        }
    }
    store.close().await.unwrap();
}

async fn a_visitor_is_shown_what_a_query_finds(storage: &dyn Storage) {
    let store = storage.open();
    for number in 0..40 {
        let agent = if number % 3 == 0 { "ops" } else { "main" };
        put(&*store, &format!("agent:{agent}:s{number}"), json!({"updatedAt": number % 7})).await;
    }
    let ops = AgentId::normalize("ops");
    let since = Query { since: Some(4), ..Query::default() };
    let queries = [Query::default(), Query::newest(5), since, Query { limit: Some(0), ..Query::default() }];
    for which in [Rows::All, Rows::Of(&ops)] {
        for query in &queries {
            let shown = gather(&*store, which, query, Some).await.unwrap();
            assert_eq!(shown, store.select(which, query).await.unwrap().rows, "{which:?} {query:?}");
        }
    }
    let odd = |row: Row| (row.entry.updated_at_ms() % 2 == 1).then_some(row.key);
    let some = gather(&*store, Rows::All, &Query::default(), odd).await.unwrap();
    assert_eq!(some.len(), (0..40).filter(|number| number % 7 % 2 == 1).count());
    store.close().await.unwrap();
}

async fn delivery_fields_agree(storage: &dyn Storage) {
    let store = storage.open();
    put(&*store, "main", json!({"lastChannel": "slack", "lastTo": "C1"})).await;
    let context = json_of(&*store, "main").await["deliveryContext"].clone();
    assert_eq!(context, json!({"channel": "slack", "to": "C1"}));
    store.close().await.unwrap();
}

async fn agents_may_come_later(storage: &dyn Storage) {
    let store = storage.open();
    let later = AgentId::normalize("later");
    store.set_agents(vec![AgentId::default(), AgentId::normalize("ops"), later.clone()]);
    put(&*store, "agent:later:main", json!({})).await;
    assert_eq!(store.rows(Rows::Of(&later)).await.unwrap().len(), 1);
    assert_eq!(store.rows(Rows::All).await.unwrap().len(), 1);
    store.close().await.unwrap();
}

async fn a_closed_store_says_so(storage: &dyn Storage) {
    let store = storage.open();
    put(&*store, "main", json!({})).await;
    let main = key(&*store, "main");
    store.close().await.unwrap();
    assert!(matches!(store.get(&main).await, Err(StoreError::Closed)));
    assert!(matches!(store.rows(Rows::All).await, Err(StoreError::Closed)));
    assert!(matches!(gather(&*store, Rows::All, &Query::default(), Some).await, Err(StoreError::Closed)));
    assert!(matches!(store.update(&main, set(json!({}))).await, Err(StoreError::Closed)));
    assert!(matches!(store.delete(&main).await, Err(StoreError::Closed)));
    assert!(matches!(store.flush().await, Err(StoreError::Closed)));
    assert!(matches!(store.close().await, Err(StoreError::Closed)));
}
