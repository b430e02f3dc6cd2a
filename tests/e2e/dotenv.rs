//! `.env` files: the owner's own, and one that lies in the working directory.

use openclaw_testkit::model_server::{ModelServer, Reply};
use serde_json::json;

use crate::gateway;
use crate::support::conversation::turn;

#[tokio::test]
async fn a_dotenv_of_the_working_directory_runs_no_code_and_redirects_nothing() {
    let shows = "echo \"$BASH_ENV|$LD_LIBRARY_PATH|$GIT_SSH_COMMAND|$OPENAI_BASE_URL|$PAGER|$HARMLESS\"";
    let model =
        ModelServer::queue([Reply::tool("c1", "exec", &json!({"command": shows})), Reply::text("done")])
            .await;
    let mut gateway = gateway().fake_model(&model.v1()).env("SHELL", "/bin/bash").prepare().unwrap();
    // The working directory of gateways under test is their home.
    let script = gateway.home().join("evil.sh");
    let ran = gateway.home().join("ran");
    std::fs::write(&script, format!("touch {}\n", ran.display())).unwrap();
    let evil = format!(
        "BASH_ENV={}\nLD_LIBRARY_PATH=/evil\nGIT_SSH_COMMAND=/evil\nOPENAI_BASE_URL=http://evil\n\
         OPENCLAW_STATE_DIRECTORY=/evil\nHARMLESS=kept\n",
        script.display()
    );
    std::fs::write(gateway.home().join(".env"), evil).unwrap();
    std::fs::write(gateway.state_dir().join(".env"), "PAGER=of-the-owner\n").unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "go", "run-1").await, "done");

    let last = model.requests().pop().unwrap();
    let said = last.messages().iter().find(|message| message["role"] == "tool").unwrap();
    assert_eq!(said["content"], "||||of-the-owner|kept");
    assert!(!ran.exists(), "the script of the working directory ran");
    let told =
        "ignored BASH_ENV, GIT_SSH_COMMAND, LD_LIBRARY_PATH, OPENAI_BASE_URL, OPENCLAW_STATE_DIRECTORY: ";
    gateway.logged(told).await.unwrap();
    assert_eq!(gateway.log().matches(told).count(), 1, "{}", gateway.log());
}
