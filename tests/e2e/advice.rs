//! Advice of commands when something is in the way: the problem, and a next step that works.

use std::net::Ipv4Addr;

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::{GatewayUnderTest, TOKEN};
use serde_json::{Value, json};
use tokio::net::TcpSocket;

use crate::gateway;
use crate::support::command::{Ended, has, openclaw, unprivileged};
use crate::support::conversation::sessions_dir;
use crate::support::files::chmod;

fn config_path(gateway: &GatewayUnderTest) -> std::path::PathBuf {
    gateway.state_dir().join("openclaw.json")
}

#[track_caller]
fn lacks(ended: &Ended, words: &[&str]) {
    for words in words {
        assert!(!ended.out.contains(words) && !ended.err.contains(words), "\"{words}\" in {ended:?}");
    }
}

#[track_caller]
fn document(ended: &Ended) -> Value {
    serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

#[tokio::test]
async fn a_broken_config_is_named_instead_of_a_missing_secret() {
    let gateway = gateway().prepare().unwrap();
    std::fs::write(config_path(&gateway), "{ gateway: { auth: { token: 's3cret' }, port: 'x' } }").unwrap();
    let dashboard = openclaw(&gateway, &["dashboard", "--no-open"]).await;
    dashboard.failed(&["Config invalid", "gateway.port"]);
    let health = openclaw(&gateway, &["health"]).await;
    health.failed(&["The config ~/.openclaw/openclaw.json cannot be used (gateway.port", "openclaw doctor"]);
    let status = openclaw(&gateway, &["status"]).await;
    assert_eq!(status.code, Some(0), "{status:?}");
    has(&status.out, &["its settings were not checked", "gateway.port", "openclaw doctor"]);
    let verb = openclaw(&gateway, &["gateway", "status"]).await;
    has(&verb.out, &["Next: ", "cannot be used (gateway.port"]);
    for ended in [&dashboard, &health, &status, &verb] {
        lacks(
            ended,
            &["s3cret", "auth missing", "openclaw setup", "Start a gateway", "Next: openclaw gateway"],
        );
    }
    lacks(&status, &["Need a gateway?     openclaw gateway", "openclaw dashboard"]);
}

#[tokio::test]
async fn a_config_that_may_not_be_read_is_named_with_what_lets_it_be_read() {
    let gateway = gateway().prepare().unwrap();
    let config = config_path(&gateway);
    chmod(&config, 0o000);
    for args in [&["config", "get", "gateway.mode"][..], &["config", "unset", "gateway.mode"], &["sessions"]]
    {
        let ended = unprivileged(&gateway, args).await;
        ended.failed(&["read failed: Permission denied", &format!("chmod 600 {}", config.display())]);
        lacks(&ended, &["not found", "Fix what is named"]);
    }
    chmod(&config, 0o600);
    let dir = sessions_dir(&gateway);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("sessions.json"), "{}").unwrap();
    chmod(&dir.join("sessions.json"), 0o000);
    let status = unprivileged(&gateway, &["status"]).await;
    assert_eq!(status.code, Some(0), "{status:?}");
    has(&status.out, &["sessions.json cannot be read: Permission denied", "openclaw doctor"]);
}

#[tokio::test]
async fn a_store_that_is_none_is_no_empty_one() {
    let gateway = gateway().prepare().unwrap();
    let none = openclaw(&gateway, &["sessions"]).await;
    assert!(none.code == Some(0) && none.out.contains("No sessions found."), "{none:?}");
    let dir = sessions_dir(&gateway);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("sessions.json"), "no json at all").unwrap();
    let damaged = openclaw(&gateway, &["sessions"]).await;
    damaged.failed(&["sessions.json is damaged", "`openclaw doctor --fix`"]);
    lacks(&damaged, &["No sessions found."]);
    let listed = openclaw(&gateway, &["sessions", "--json"]).await;
    assert_eq!(listed.code, Some(1), "{listed:?}");
    has(document(&listed)["problems"][0].as_str().unwrap(), &["sessions.json is damaged"]);
    for (store, words) in [("/etc/passwd", "is damaged"), ("/nonexistent/x", "There is no session store at")]
    {
        let ended = openclaw(&gateway, &["sessions", "--store", store]).await;
        ended.failed(&[store, words]);
        lacks(&ended, &["No sessions found."]);
    }
    let status = openclaw(&gateway, &["status"]).await;
    has(&status.out, &["sessions.json is damaged", "openclaw doctor"]);
    lacks(&status, &["no sessions yet"]);
}

#[tokio::test]
async fn an_address_that_is_none_is_refused_with_the_form_of_one() {
    let gateway = gateway().whole_config(Value::Null).prepare().unwrap();
    let setup = openclaw(&gateway, &["setup", "--mode", "remote", "--remote-url", "http://x"]).await;
    setup.failed(&["--remote-url http://x", "ws:// or wss://", "for example ws://x"]);
    let probe = openclaw(&gateway, &["health", "--url", "foo", "--token", "t"]).await;
    probe.failed(&["--url foo", "ws:// or wss://", "for example ws://foo"]);
    std::fs::write(config_path(&gateway), "{ gateway: { mode: 'remote', remote: { url: 'http://x' } } }")
        .unwrap();
    for args in [&["health"][..], &["logs"]] {
        openclaw(&gateway, args).await.failed(&[
            "gateway.remote.url",
            "ws:// or wss://",
            "openclaw config set",
        ]);
    }
    let doctor = openclaw(&gateway, &["doctor", "--check"]).await;
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    has(&doctor.out, &["gateway.remote.url is no address of a gateway", "ws:// or wss://"]);
    lacks(&doctor, &["State is in order"]);
}

#[tokio::test]
async fn with_a_gateway_elsewhere_nothing_is_advised_that_is_only_for_one_here() {
    let gateway = gateway().whole_config(Value::Null).prepare().unwrap();
    let url = "ws://nosuchhost.invalid:18789";
    let setup = openclaw(&gateway, &["setup", "--mode", "remote", "--remote-url", url]).await;
    assert_eq!(setup.code, Some(0), "{setup:?}");
    let run = openclaw(&gateway, &["gateway", "run"]).await;
    run.failed(&[
        "set gateway.mode=local (current: remote)",
        "openclaw setup --mode local",
        "openclaw gateway probe",
    ]);
    let health = openclaw(&gateway, &["health"]).await;
    health.failed(&["Check the name in gateway.remote.url"]);
    let status = openclaw(&gateway, &["status"]).await;
    has(&status.out, &["Check the name in gateway.remote.url"]);
    let verb = openclaw(&gateway, &["gateway", "status"]).await;
    has(&verb.out, &["A gateway elsewhere", "Next: Check the name in gateway.remote.url"]);
    let dashboard = openclaw(&gateway, &["dashboard", "--no-open"]).await;
    has(&dashboard.err, &["gateway.remote.token"]);
    for ended in [&run, &health, &status, &verb, &dashboard] {
        lacks(ended, &["Loopback-only", "auth missing", "--generate-gateway-token", "Start a gateway"]);
    }
    lacks(&status, &["Need a gateway?     openclaw gateway"]);
    // The advice of `gateway run` works.
    assert_eq!(openclaw(&gateway, &["setup", "--mode", "local"]).await.code, Some(0));
    let doctor = openclaw(&gateway, &["doctor", "--check"]).await;
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    lacks(&doctor, &["Gateway start blocked", "no token"]);
}

#[tokio::test]
async fn a_gateway_on_another_port_is_told_by_every_command() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let wrong = socket.local_addr().unwrap().port();
    let gateway = gateway().config(json!({"gateway": {"port": wrong}})).start().await.unwrap();
    let pass = format!("OPENCLAW_GATEWAY_PORT={}", gateway.port());
    for args in [&["gateway", "status"][..], &["status"], &["logs"]] {
        let mut command = gateway.command();
        command.args(args);
        let ended = Ended::of(command).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        has(&format!("{}{}", ended.out, ended.err), &[&pass, "listens on port"]);
        lacks(&ended, &["Next: openclaw gateway", "Need a gateway?     openclaw gateway"]);
    }
    let wrong = openclaw(&gateway, &["health", "--token", "wrong"]).await;
    wrong.failed(&["gateway token mismatch", "--token is not the gateway's token. Leave it out"]);
    lacks(&wrong, &["gateway.remote.token", "auth.mode", TOKEN]);
}

#[tokio::test]
async fn words_that_are_missing_are_named_and_with_json_in_a_document() {
    let gateway = gateway().prepare().unwrap();
    let route = openclaw(&gateway, &["agents", "route", "--json"]).await;
    route.failed(&["error: required option '--channel <channel>' not specified"]);
    has(document(&route)["error"]["message"].as_str().unwrap(), &["--channel <channel>"]);
    let order = openclaw(&gateway, &["models", "auth", "order", "set", "--provider", "x"]).await;
    order.failed(&["error: missing required argument 'profile_ids'"]);
    let missing = openclaw(&gateway, &["cron", "list", "--json"]).await;
    has(document(&missing)["error"]["message"].as_str().unwrap(), &["not implemented yet"]);
}

#[tokio::test]
async fn a_model_that_could_not_be_set_is_not_said_to_be_kept() {
    let gateway = gateway().prepare().unwrap();
    chmod(&gateway.state_dir(), 0o500);
    let set = unprivileged(&gateway, &["models", "set", "c/d"]).await;
    set.failed(&["could not write"]);
    lacks(&set, &["It is kept"]);
    chmod(&gateway.state_dir(), 0o700);
    let set = unprivileged(&gateway, &["models", "set", "c/d"]).await;
    assert!(set.code == Some(0) && set.err.contains("It is kept"), "{set:?}");
}

/// The same turn with more words.
async fn agent(gateway: &GatewayUnderTest, words: &[&str]) -> Ended {
    openclaw(gateway, &[&["agent", "--agent", "main", "--message", "hello"], words].concat()).await
}

#[tokio::test]
async fn a_reply_that_went_nowhere_or_was_cut_off_is_no_success() {
    let model = ModelServer::answering(|request| match request.last_user_text().contains("hang") {
        true => Reply::never(),
        false => Reply::text("here"),
    })
    .await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let plain = agent(&gateway, &[]).await;
    assert_eq!((plain.code, plain.out.as_str()), (Some(0), "here\n"), "{plain:?}");
    let kept = agent(&gateway, &["--deliver"]).await;
    kept.failed(&["was not delivered", "no channel is connected"]);
    assert_eq!(kept.out, "here\n");
    let told = agent(&gateway, &["--deliver", "--json"]).await;
    assert_eq!((told.code, &document(&told)["status"]), (Some(1), &json!("ok")));
    has(document(&told)["deliveryError"].as_str().unwrap(), &["was not delivered"]);

    let args = ["agent", "--agent", "main", "--message", "hang", "--timeout", "1"];
    let late = openclaw(&gateway, &args).await;
    late.failed(&["timed out", "time limit of 1 s", "--timeout of the command"]);
    gateway.terminate().await.unwrap();
    let alone = openclaw(&gateway, &[&args[..], &["--local"]].concat()).await;
    alone.failed(&["time limit of 1 s", "--timeout of the command"]);
}

#[tokio::test]
async fn a_message_right_after_a_change_of_the_config_is_answered_with_the_new_one() {
    let model = ModelServer::answering(|_| Reply::text("from the fake model")).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    assert_eq!(agent(&gateway, &[]).await.out, "from the fake model\n");
    let set = openclaw(&gateway, &["models", "set", "offline/guide"]).await;
    assert_eq!(set.code, Some(0), "{set:?}");
    let told = agent(&gateway, &[]).await;
    assert!(told.code == Some(0) && told.out.contains("offline guide"), "{told:?}");
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn a_missing_key_comes_with_how_to_add_one() {
    let primary = json!({"agents": {"defaults": {"model": {"primary": "groq/llama-3.3-70b-versatile"}}}});
    let gateway = gateway().config(primary).start().await.unwrap();
    let ended = agent(&gateway, &[]).await;
    ended.failed(&["groq", "Set GROQ_API_KEY", "openclaw models auth paste-token --provider groq"]);
    lacks(&ended, &["agents add", "main agentDir", "--agent main"]);
}

/// Commands mean the default agent, whose credentials no other agent uses.
#[tokio::test]
async fn advice_on_credentials_names_an_agent_that_is_not_the_default_one() {
    let model =
        ModelServer::answering(|_| Reply::openai_error(401, "invalid_request_error", "bad key")).await;
    let groq = json!({"id": "other", "model": "groq/llama-3.3-70b-versatile"});
    let agents = json!({"agents": {"list": [{"id": "main", "default": true}, {"id": "work"}, groq]}});
    let gateway = gateway().fake_model(&model.v1()).config(agents).start().await.unwrap();
    let ask =
        async |agent: &str| openclaw(&gateway, &["agent", "--agent", agent, "--message", "hello"]).await;
    ask("work").await.failed(&[
        "run `openclaw models auth --agent work paste-token --provider fake`",
        "`openclaw models status --agent work` shows which credential is used",
    ]);
    ask("other").await.failed(&["run `openclaw models auth --agent other paste-token --provider groq`"]);
    ask("main").await.failed(&["run `openclaw models auth paste-token --provider fake`"]);
    let status = openclaw(&gateway, &["models", "status", "--agent", "other"]).await;
    has(&status.out, &["openclaw models auth --agent other paste-token --provider groq"]);
}

/// Commands without the flag would mean another instance.
#[tokio::test]
async fn advice_means_the_profile_that_gives_it() {
    let model =
        ModelServer::answering(|_| Reply::openai_error(401, "invalid_request_error", "bad key")).await;
    let others = [("other", "groq/llama-3.3-70b-versatile"), ("guide", "offline/guide")];
    let others = others.map(|(id, model)| json!({"id": id, "model": model}));
    let agents = json!({"agents": {"list": [{"id": "main", "default": true}, others[0], others[1]]}});
    let gateway = gateway().fake_model(&model.v1()).config(agents).env("OPENCLAW_PROFILE", "job");
    let gateway = gateway.start().await.unwrap();
    let rows: [(&[&str], &[&str]); 5] = [
        (
            &["agent", "--agent", "main", "--message", "hello"],
            &[
                "run `openclaw --profile job models auth paste-token --provider fake`",
                "`openclaw --profile job models status` shows which credential is used",
            ],
        ),
        (
            &["agent", "--agent", "other", "--message", "hello"],
            &["run `openclaw --profile job models auth --agent other paste-token --provider groq`"],
        ),
        (
            &["agent", "--agent", "nobody", "--message", "hello"],
            &["Use \"openclaw --profile job agents list\" to see"],
        ),
        (&["onboard"], &["`openclaw --profile job setup`"]),
        (&["channels", "add"], &["`openclaw --profile job channels add --channel telegram --token <token>`"]),
    ];
    for (args, words) in rows {
        let ended = openclaw(&gateway, args).await;
        ended.failed(words);
        lacks(&ended, &["`openclaw models", "`openclaw setup", "`openclaw channels"]);
    }
    let guide = openclaw(&gateway, &["agent", "--agent", "guide", "--message", "hello"]).await;
    has(&guide.out, &["`openclaw --profile job models auth paste-token --provider anthropic`"]);
    let listed = openclaw(&gateway, &["channels", "list"]).await;
    has(
        &listed.out,
        &["Add one: openclaw --profile job channels add", "openclaw --profile job status --usage shows"],
    );
}

#[tokio::test]
async fn a_base_url_without_a_scheme_is_told_by_a_run_with_the_model_and_what_was_meant() {
    let gateway = gateway().fake_model("localhost:1234/v1").start().await.unwrap();
    let ended = agent(&gateway, &[]).await;
    // The list of a configured provider is what its owner wrote.
    lacks(&ended, &["models list --all"]);
    ended.failed(&[
        "\"localhost:1234/v1\" is not an http(s) address; check the provider's baseUrl: http://localhost:1234/v1 or \
         https://localhost:1234/v1",
        "This came of asking fake (model fake-1). ",
        "models.providers.fake.baseUrl is the address",
    ]);
}
