use openclaw_protocol::params::sessions::SessionsListResult;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::layout::Layout;
use crate::store::StoredRows;
use crate::transcript::Transcripts;

const KEYS: [&str; 3] = ["main", "agent:main:telegram:group:7", "agent:ops:cron:j"];

#[derive(Debug, Clone)]
enum Step {
    /// Changes a row as a patch does.
    Change(usize, Value),
    Delete(usize),
    /// Lists all, each agent having the default model of this number.
    List(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let patch = prop::sample::select(vec![
        json!({"label": "a \"b\" é"}),
        json!({"label": null, "displayName": "A name"}),
        json!({"modelOverride": "m", "providerOverride": "p"}),
        json!({"modelOverride": "m", "providerOverride": null}),
        json!({"modelOverride": null}),
        json!({"origin": {"label": "from", "modelProvider": "x"}, "contextTokens": 5}),
        json!({"lastChannel": "telegram", "lastTo": "7", "inputTokens": 3}),
        json!({}),
    ]);
    let step = prop_oneof![
        3 => (0..KEYS.len(), patch).prop_map(|(key, patch)| Step::Change(key, patch)),
        1 => (0..KEYS.len()).prop_map(Step::Delete),
        3 => (0..3_usize).prop_map(Step::List),
    ];
    prop::collection::vec(step, 0..24)
}

fn model_of(number: usize, agent: &AgentId) -> Arc<ModelName> {
    Arc::new(match number {
        0 => ModelName::default(),
        number => ModelName::new(format!("provider-{number}"), format!("model of {agent}")),
    })
}

async fn listed(
    store: &dyn SessionStore,
    params: SessionsListParams,
    model: usize,
) -> SessionsListResult<Arc<RawValue>> {
    let transcripts = Transcripts::in_files(Layout::new("/", "/", None));
    let defaults = SessionListDefaults { model_provider: None, model: None, context_tokens: None };
    list(store, &transcripts, &params, defaults, move |agent| model_of(model, agent), |_| None).await.unwrap()
}

proptest! {
    #[test]
    fn what_is_kept_of_rows_is_what_they_say_now(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let store = StoredRows::new(KeyRules::default()).open();
        let rules = store.rules();
        runtime.block_on(async {
            for step in steps {
                match step {
                    Step::Change(key, patch) => {
                        let change = move |edit: crate::store::Edit<'_>| {
                            edit.entry.merge(patch.as_object().unwrap(), edit.now);
                            Ok(())
                        };
                        // An update whose label another row has is refused.
                        let _ = store.update(&rules.canonical(KEYS[key]).unwrap(), Box::new(change)).await;
                    }
                    Step::Delete(key) => {
                        store.delete(&rules.canonical(KEYS[key]).unwrap()).await.unwrap();
                    }
                    Step::List(model) => {
                        let all = listed(&store, SessionsListParams::default(), model).await;
                        let rows = store.rows(Rows::All).await.unwrap();
                        prop_assert_eq!(all.sessions.len(), rows.len());
                        for (listed, row) in all.sessions.iter().zip(&rows) {
                            let fresh = row_of(row, &model_of(model, &rules.agent_of(&row.key)));
                            prop_assert_eq!(listed.get(), serde_json::to_string(&fresh).unwrap());
                        }
                    }
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn what_an_entry_does_not_say_are_the_last_fields_of_a_row(
        state in prop::option::of(prop::sample::select(vec!["queued", "running", "done"])),
        title in prop::option::of(any::<String>()),
        last in prop::option::of(any::<String>()),
    ) {
        let row = Row { key: SessionKey::global(), entry: Arc::default() };
        let fresh = row_of(&row, &ModelName::new("p", "m"));
        let behind = Last { state, derived_title: title.clone(), last_message_preview: last.clone() };
        let joined = with_last(encoded(&fresh), &behind);
        let state = state.map(str::to_owned);
        let whole = SessionRow { state, derived_title: title, last_message_preview: last, ..fresh };
        prop_assert_eq!(joined.get(), serde_json::to_string(&whole).unwrap());
    }
}
