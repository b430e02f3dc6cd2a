//! `POST /tools/invoke`: tools without a model.

use openclaw_testkit::TOKEN;
use openclaw_testkit::model_server::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::subagents::{are_over, lists};
use crate::support::tools_invoke::{bearer, invoke, invoke_from, request};

#[tokio::test]
async fn strange_pages_and_names_are_refused_whatever_they_know() {
    let gateway = gateway().start().await.unwrap();
    let port = gateway.port();
    let rows = [
        ("Host: gw.example.com\r\n".to_owned(), 403),
        ("Origin: https://evil.example\r\n".to_owned(), 403),
        ("Origin: null\r\n".to_owned(), 403),
        (format!("Host: localhost:{port}\r\nOrigin: http://localhost:{port}\r\n"), 200),
        (format!("Host: 127.0.0.1:{port}\r\n"), 200),
    ];
    for (headers, expect) in rows {
        let (status, answer) = invoke_from(port, &headers, &json!({"tool": "sessions_list"})).await;
        assert_eq!(status, expect, "{headers} {answer}");
        assert!(expect == 200 || answer["error"]["type"] == "forbidden", "{answer}");
    }
}

#[tokio::test]
async fn the_secret_alone_lets_nobody_in_through_a_proxy() {
    let trusting = json!({"gateway": {"trustedProxies": ["127.0.0.0/8"]}});
    for config in [json!({}), trusting] {
        let gateway = gateway().config(config).start().await.unwrap();
        for header in ["X-Forwarded-For: 203.0.113.9\r\n", "X-Forwarded-Proto: https\r\n", "Via: 1.1 x\r\n"] {
            let (status, answer) =
                invoke_from(gateway.port(), header, &json!({"tool": "sessions_list"})).await;
            assert_eq!((status, &answer["error"]["type"]), (403, &json!("forbidden")), "{header} {answer}");
        }
        assert_eq!(invoke(gateway.port(), &json!({"tool": "sessions_list"})).await.0, 200);
    }
}

/// `spec/golden/gw-http-tools-invoke.jsonl`, but for the tools that are not here yet.
#[tokio::test]
async fn requests_are_answered_as_they_were_recorded() {
    let gateway = gateway().start().await.unwrap();
    let port = gateway.port();
    let unauthorized = r#"{"error":{"message":"Unauthorized","type":"unauthorized"}}"#;
    for headers in ["", "Authorization: Bearer wrong\r\n", "Authorization: Basic eDp5\r\n", "X-Token: x\r\n"]
    {
        let (status, _, body) = request(port, "POST", headers, b"{\"tool\":\"sessions_list\"}").await;
        assert_eq!((status, body.as_str()), (401, unauthorized), "{headers}");
    }
    let (status, head, body) = request(port, "GET", &bearer(), b"").await;
    assert_eq!((status, body.as_str()), (405, "Method Not Allowed"));
    assert!(head.contains("allow: post"), "{head}");
    let rows: [(&[u8], u16, &str); 7] = [
        (b"{}", 400, r#"{"error":{"message":"tools.invoke requires body.tool","type":"invalid_request_error"}}"#),
        (b"", 400, r#"{"error":{"message":"tools.invoke requires body.tool","type":"invalid_request_error"}}"#),
        (b"[]", 400, r#"{"error":{"message":"tools.invoke requires body.tool","type":"invalid_request_error"}}"#),
        (
            b"{\"tool\":\"nope\"}",
            404,
            r#"{"ok":false,"error":{"type":"not_found","message":"Tool not available: nope"}}"#,
        ),
        (
            b"{\"tool\":\"agents_list\",\"args\":{}}",
            200,
            r#"{"ok":true,"result":{"content":[{"type":"text","text":"{\n  \"requester\": \"main\",\n  \"allowAny\": false,\n  \"agents\": [\n    {\n      \"id\": \"main\",\n      \"configured\": false\n    }\n  ]\n}"}],"details":{"requester":"main","allowAny":false,"agents":[{"id":"main","configured":false}]}}}"#,
        ),
        (
            b"{\"tool\":\"session_status\",\"args\":{\"sessionKey\":\"agent:main:nope\"},\"sessionKey\":\"main\"}",
            400,
            r#"{"ok":false,"error":{"type":"tool_error","message":"Unknown sessionKey: agent:main:nope"}}"#,
        ),
        (
            b"{\"tool\":\"exec\",\"args\":{\"command\":\"true\"}}",
            404,
            r#"{"ok":false,"error":{"type":"not_found","message":"Tool not available: exec"}}"#,
        ),
    ];
    for (body, status, expect) in rows {
        let answer = request(port, "POST", &bearer(), body).await;
        assert_eq!((answer.0, answer.2.as_str()), (status, expect), "{}", String::from_utf8_lossy(body));
        assert!(answer.1.contains("content-type: application/json; charset=utf-8"), "{}", answer.1);
    }
    let lower = format!("authorization: BEARER  {TOKEN}\r\n");
    assert_eq!(request(port, "POST", &lower, b"{\"tool\":\"agents_list\"}").await.0, 200);
}

#[tokio::test]
async fn bad_bodies_are_refused_in_json() {
    let gateway = gateway().start().await.unwrap();
    let port = gateway.port();
    let cases: [(Vec<u8>, u16, &str); 4] = [
        (b"{\"tool\":".to_vec(), 400, "request body is not valid JSON"),
        (vec![0xff, 0xfe, 0x00], 400, "request body is not valid JSON"),
        (vec![b'['; 100_000], 400, "request body is not valid JSON"),
        (vec![b' '; 2 * 1024 * 1024 + 1], 413, "request body is larger than 2 MiB"),
    ];
    for (body, status, expect) in cases {
        let (told, _, answer) = request(port, "POST", &bearer(), &body).await;
        assert_eq!(told, status, "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["error"]["type"], "invalid_request_error");
        assert!(answer["error"]["message"].as_str().unwrap().starts_with(expect), "{answer}");
    }
    let (status, answer) =
        invoke(port, &json!({"tool": "sessions_list", "sessionKey": "agent:", "dryRun": true})).await;
    assert_eq!((status, &answer["error"]["type"]), (400, &json!("invalid_request_error")), "{answer}");
    let (status, _) = invoke(port, &json!({"tool": "sessions_list", "args": "many", "action": 7})).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn the_policy_of_the_session_holds() {
    let rows = [
        (json!({"deny": ["sessions_list"]}), "sessions_list", "main", 404),
        (json!({"deny": ["group:sessions"]}), "session_status", "main", 404),
        (json!({"profile": "minimal"}), "agents_list", "main", 404),
        (json!({"allow": ["sessions_list"]}), "sessions_list", "main", 200),
        (json!({}), "sessions_list", "agent:main:subagent:x", 404),
        (json!({}), "Sessions_List", "main", 200),
        (json!({}), "read", "main", 404),
        (json!({}), "process", "main", 404),
        (json!({}), "apply_patch", "main", 404),
    ];
    for (tools, tool, session, expect) in rows {
        let gateway = gateway().config(json!({"tools": tools})).start().await.unwrap();
        let (status, body) = invoke(gateway.port(), &json!({"tool": tool, "sessionKey": session})).await;
        assert_eq!(status, expect, "{tools} {tool} {body}");
    }
}

/// The steps of an agent, of a provider and of a group (spec `tools.md` §8.2): each takes away, and none gives back.
#[tokio::test]
async fn the_policy_of_agent_provider_and_group_holds() {
    let deny = json!({"deny": ["sessions_list"]});
    let minimal = json!({"profile": "minimal"});
    let agent = |tools: &Value| json!({"agents": {"list": [{"id": "main", "default": true, "tools": tools}, {"id": "work"}]}});
    let shared = |tools: Value| json!({ "tools": tools });
    let group = |tools: &Value| json!({"channels": {"telegram": {"enabled": false, "groups": {"-1": {"tools": tools}}}}});
    let (main, work) = ("main", "agent:work:main");
    let (team, topic, other) = (
        "agent:main:telegram:group:-1",
        "agent:main:telegram:group:-1:topic:4",
        "agent:main:telegram:group:-2",
    );
    let rows = [
        (agent(&deny), vec![(main, 404), (work, 200)]),
        (agent(&minimal), vec![(main, 404), (work, 200)]),
        (agent(&json!({"allow": ["agents_list"]})), vec![(main, 404), (work, 200)]),
        (agent(&json!({"byProvider": {"fake": deny}})), vec![(main, 404), (work, 200)]),
        (agent(&json!({"byProvider": {"fake": minimal}})), vec![(main, 404), (work, 200)]),
        (agent(&json!({"byProvider": {"other": deny}})), vec![(main, 200)]),
        (shared(json!({"byProvider": {"fake": deny}})), vec![(main, 404), (work, 404)]),
        (shared(json!({"byProvider": {"fake/fake-1": deny}})), vec![(main, 404)]),
        (shared(json!({"byProvider": {"fake": deny, "fake/fake-1": {}}})), vec![(main, 200)]),
        (shared(json!({"byProvider": {"fake": minimal}})), vec![(main, 404)]),
        (shared(json!({"byProvider": {"other": deny}})), vec![(main, 200)]),
        (group(&deny), vec![(main, 200), (team, 404), (topic, 404), (other, 200)]),
        (group(&json!({"allow": ["agents_list"]})), vec![(team, 404), (other, 200)]),
        (
            json!({"tools": deny, "agents": {"list": [{"id": "main", "tools": {"allow": ["sessions_list"]}}]}}),
            vec![(main, 404)],
        ),
    ];
    for (config, probes) in rows {
        let gateway =
            gateway().fake_model("http://127.0.0.1:9/v1").config(config.clone()).start().await.unwrap();
        for (session, expect) in probes {
            let call = json!({"tool": "sessions_list", "sessionKey": session});
            let (status, body) = invoke(gateway.port(), &call).await;
            assert_eq!(status, expect, "{config} {session} {body}");
        }
    }
}

/// `x-openclaw-message-channel` and `x-openclaw-account-id`.
#[tokio::test]
async fn the_channel_that_a_client_names_counts_for_its_group() {
    let groups = |tool: &str| json!({"-1": {"tools": {"deny": [tool]}}});
    let config = json!({"channels": {
        "telegram": {
            "enabled": false,
            "groups": groups("sessions_list"),
            "accounts": {"work": {"groups": groups("agents_list")}},
        },
        "whatsapp": {"groups": groups("session_status")},
    }});
    let gateway = gateway().config(config).start().await.unwrap();
    let team = "agent:main:telegram:group:-1";
    let rows = [
        // No row says which account it is: the rules of all of them hold.
        (team, "", "sessions_list agents_list"),
        (team, "X-OpenClaw-Message-Channel:  \r\n", "sessions_list agents_list"),
        (team, "X-OpenClaw-Message-Channel: Telegram\r\n", "sessions_list agents_list"),
        (team, "x-openclaw-account-id: Work\r\n", "agents_list"),
        (team, "x-openclaw-message-channel: telegram\r\nx-openclaw-account-id: work\r\n", "agents_list"),
        (team, "x-openclaw-account-id: another\r\n", "sessions_list"),
        (team, "x-openclaw-message-channel: whatsapp\r\n", "session_status"),
        (team, "x-openclaw-message-channel: nobodys\r\n", ""),
        ("main", "x-openclaw-message-channel: telegram\r\n", ""),
    ];
    for (session, headers, denied) in rows {
        for tool in ["sessions_list", "agents_list", "session_status"] {
            let call = json!({"tool": tool, "sessionKey": session});
            let (status, body) = invoke_from(gateway.port(), headers, &call).await;
            assert_eq!(
                status == 404,
                denied.split(' ').any(|denied| denied == tool),
                "{session} {headers} {tool} {body}"
            );
        }
    }
}

/// The lists of sandboxes are for runs that are held to one: these tools work in the gateway, for who has its token.
#[tokio::test]
async fn what_a_sandbox_denies_its_runs_is_not_denied_to_clients() {
    let config = json!({
        "agents": {"defaults": {"sandbox": {"mode": "all", "backend": "local"}}},
        "tools": {"deny": ["session_status"], "sandbox": {"tools": {"deny": ["sessions_list", "agents_list"]}}},
    });
    let gateway = gateway().config(config).start().await.unwrap();
    for (tool, expect) in [("sessions_list", 200), ("agents_list", 200), ("session_status", 404)] {
        let (status, body) = invoke(gateway.port(), &json!({"tool": tool})).await;
        assert_eq!(status, expect, "{tool} {body}");
    }
}

#[tokio::test]
async fn the_channel_that_a_client_names_is_told_of_who_asks() {
    let model = ModelServer::answering(|_| Reply::text("pong")).await;
    let raw = json!({"agents": {"defaults": {"subagents": {"announceMode": "raw"}}}});
    let gateway = gateway().fake_model(&model.v1()).config(raw).start().await.unwrap();
    let from = "X-OpenClaw-Message-Channel: IMsg\r\nX-OpenClaw-Account-Id: Work\r\n";
    let send = json!({"tool": "sessions_send", "args": {"sessionKey": "agent:main:side", "message": "ping"}});
    let (status, body) = invoke_from(gateway.port(), from, &send).await;
    assert_eq!((status, &body["result"]["details"]["reply"]), (200, &json!("pong")), "{body}");
    let prompt = model.requests()[0].messages()[0]["content"].to_string();
    assert!(prompt.contains("Agent 1 (requester) channel: imessage."), "{prompt}");
    let spawn = json!({"tool": "sessions_spawn", "args": {"task": "dig"}});
    let (status, body) = invoke_from(gateway.port(), from, &spawn).await;
    assert_eq!((status, &body["result"]["details"]["status"]), (200, &json!("accepted")), "{body}");
    let rows = lists(&gateway, are_over).await;
    assert_eq!(rows[0]["requesterOrigin"], json!({"channel": "imessage", "accountId": "work"}));
    assert_eq!(rows[0]["announced"], json!({"status": "sent"}));
}

#[tokio::test]
async fn it_acts_in_the_name_of_its_session() {
    let model = ModelServer::answering(|_| Reply::text("pong")).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let port = gateway.port();
    let send = |from: &str| json!({"tool": "sessions_send", "sessionKey": from, "args": {"sessionKey": "agent:main:side", "message": "ping"}});
    for from in ["main", "agent:main:desk"] {
        let (status, body) = invoke(port, &send(from)).await;
        assert_eq!((status, &body["result"]["details"]["reply"]), (200, &json!("pong")), "{body}");
    }
    let prompts: Vec<String> =
        model.requests().iter().map(|request| request.messages()[0]["content"].to_string()).collect();
    for from in ["agent:main:main", "agent:main:desk"] {
        let line = format!("Agent 1 (requester) session: {from}.");
        assert!(prompts.iter().any(|prompt| prompt.contains(&line)), "{from}");
    }
}

#[tokio::test]
async fn half_a_character_is_left_out() {
    let model = ModelServer::answering(|_| Reply::text("heard")).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let body =
        br#"{"tool": "sessions_send", "args": {"sessionKey": "agent:main:other", "message": "and \udc00 then"}}"#;
    let (status, _, answer) = request(gateway.port(), "POST", &bearer(), body).await;
    assert_eq!(status, 200, "{answer}");
    assert!(model.requests().iter().any(|request| request.last_user_text().contains("and  then")));
}
