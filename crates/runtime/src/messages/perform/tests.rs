//! Tests of how arguments are read before anything is done.

use super::*;

fn read(action: &str, args: &Value) -> Result<Option<String>, String> {
    target(actions::find(action).unwrap(), ActionArguments(args)).map_err(|error| error.to_string())
}

#[test]
fn a_target_goes_by_several_names() {
    let several = "Use action=broadcast for several targets.";
    let rows = [
        ("send", json!({"target": " 5 "}), Ok(Some("5"))),
        ("send", json!({"to": "5"}), Ok(Some("5"))),
        ("send", json!({"channelId": 5}), Ok(Some("5"))),
        ("send", json!({"target": "5", "to": "5"}), Ok(Some("5"))),
        ("send", json!({"target": "5", "to": "6"}), Err("Use `target` instead of `to`/`channelId`.")),
        ("send", json!({"targets": ["5"]}), Ok(Some("5"))),
        ("send", json!({"targets": ["5", "6"]}), Err(several)),
        ("send", json!({"target": " "}), Ok(None)),
        ("channel-info", json!({"target": "C1"}), Ok(Some("C1"))),
        ("search", json!({"query": "x"}), Ok(None)),
        ("search", json!({"channelId": "C1"}), Ok(None)),
        ("search", json!({"target": "C1"}), Err("Action search does not accept a target.")),
    ];
    for (action, args, expect) in rows {
        let expect = expect.map(|target| target.map(str::to_owned)).map_err(str::to_owned);
        assert_eq!(read(action, &args), expect, "{action} {args}");
    }
}

/// Spec `channels.md` §6.2: sub-agents and isolated runs.
#[test]
fn a_run_that_answers_nobody_says_where_its_words_go() {
    let refused =
        "Explicit message target required for this run. Provide target/targets (and channel when needed).";
    let said = ["send", "sendWithEffect", "sendAttachment", "reply", "thread-reply", "broadcast"];
    for action in actions::ACTIONS {
        let bare = require_target(action, ActionArguments(&json!({"message": "hi"})));
        let expect = if said.contains(&action.name) { Err(refused.to_owned()) } else { Ok(()) };
        assert_eq!(bare.map_err(|error| error.to_string()), expect, "{}", action.name);
        for args in [json!({"target": "5"}), json!({"to": "5"}), json!({"targets": ["5"]})] {
            assert_eq!(require_target(action, ActionArguments(&args)), Ok(()), "{} {args}", action.name);
        }
    }
}
