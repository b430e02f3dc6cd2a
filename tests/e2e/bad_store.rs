//! A `sessions.json` that was cut in half.

use openclaw_testkit::model_server::{ModelServer, Reply};
use serde_json::json;

use crate::conversation::{history, sessions_dir, turn};
use crate::gateway;

#[tokio::test]
async fn a_store_cut_in_half_is_kept_in_a_copy_and_what_can_be_read_goes_on() {
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let sessions = ["first", "second", "third", "fourth"];
    for session in sessions {
        turn(&mut client, session, &format!("hello {session}"), &format!("run-{session}")).await;
    }
    gateway.terminate().await.unwrap();
    let dir = sessions_dir(&gateway);
    let store = dir.join("sessions.json");
    let whole = std::fs::read(&store).unwrap();
    let half = &whole[..whole.len() / 2];
    std::fs::write(&store, half).unwrap();

    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let listed = client.request("sessions.list", json!({})).await.unwrap();
    let keys: Vec<&str> =
        listed["sessions"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect();
    assert!(keys.contains(&"agent:main:first") && !keys.contains(&"agent:main:fourth"), "{keys:?}");

    let copies: Vec<_> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("sessions.json.damaged-"))
        .collect();
    assert_eq!(copies.len(), 1, "{copies:?}");
    assert_eq!(std::fs::read(&copies[0]).unwrap(), half);
    gateway.logged(&copies[0].display().to_string()).await.unwrap();

    // A row that survived goes on in its transcript; a lost one begins anew, its old transcript untouched.
    let transcripts = || {
        std::fs::read_dir(&dir)
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|e| e == "jsonl"))
            .count()
    };
    assert_eq!(transcripts(), sessions.len());
    turn(&mut client, "first", "again", "run-5").await;
    assert_eq!(
        history(&mut client, "first").await,
        ["user: hello first", "assistant: here", "user: again", "assistant: here"]
    );
    turn(&mut client, "fourth", "again", "run-6").await;
    assert_eq!(history(&mut client, "fourth").await, ["user: again", "assistant: here"]);
    assert_eq!(transcripts(), sessions.len() + 1);

    // The next start finds a whole store and makes no further copy.
    gateway.terminate().await.unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(history(&mut client, "fourth").await, ["user: again", "assistant: here"]);
    let again = std::fs::read_dir(&dir)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().contains("damaged"))
        .count();
    assert_eq!(again, 1);
}
