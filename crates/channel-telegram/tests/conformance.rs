//! The suite that every platform passes, for Telegram.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;

use openclaw_channel_telegram::Telegram;
use openclaw_channels::{Address, Channel};
use openclaw_config::{Config, Environment};
use openclaw_testkit::conformance::{
    ACCOUNTS, Fixture, FixtureFuture, Meets, ShownMessage, TestConversations,
};
use openclaw_testkit::telegram::{CallFault, TelegramServer, forum_message, group_message, private_message};
use serde_json::{Value, json};

mod telegram {
    openclaw_testkit::conformance!(super::TelegramFixture);
}

/// Two bots, each on a server of its own.
struct TelegramFixture {
    servers: [TelegramServer; 2],
}

impl TelegramFixture {
    fn server(&self, account: &str) -> &TelegramServer {
        &self.servers[ACCOUNTS.iter().position(|id| *id == account).unwrap()]
    }

    fn with(&self, dir: &Path, token: impl Fn(&TelegramServer) -> Option<String>) -> Arc<Config> {
        let account = |id: &str| {
            let server = self.server(id);
            let mut section = json!({"apiRoot": server.root()});
            if let Some(token) = token(server) {
                section["botToken"] = json!(token);
            }
            (id.to_owned(), section)
        };
        let accounts: serde_json::Map<String, Value> = ACCOUNTS.map(account).into_iter().collect();
        let env = Environment::new([("HOME", dir.display().to_string())], dir);
        let document = json!({"channels": {"telegram": {"accounts": accounts}}});
        Config::from_json5(&document.to_string(), &env).unwrap()
    }
}

fn thread(params: &Value) -> Option<String> {
    params["message_thread_id"].as_i64().map(|id| id.to_string())
}

impl Fixture for TelegramFixture {
    fn start() -> FixtureFuture<'static, Self> {
        Box::pin(async {
            Self { servers: [TelegramServer::start().await, TelegramServer::start_for(7001).await] }
        })
    }

    fn channel(&self) -> Arc<dyn Channel> {
        Arc::new(Telegram)
    }

    fn config(&self, dir: &Path) -> Arc<Config> {
        self.with(dir, |server| Some(server.token()))
    }

    fn config_without_credentials(&self, dir: &Path) -> Arc<Config> {
        self.with(dir, |_| None)
    }

    fn places(&self, account: &str) -> TestConversations {
        let at = |target: &str, thread: Option<&str>| Address {
            channel: "telegram".to_owned(),
            account: account.to_owned(),
            target: target.to_owned(),
            thread: thread.map(str::to_owned),
        };
        TestConversations {
            direct: at("5", None),
            other: at("6", None),
            group: at("-1001234567890123", None),
            thread: Some(at("-1009", Some("42"))),
        }
    }

    fn says(&self, account: &str, at: &Address, text: &str) {
        let chat: i64 = at.target.parse().unwrap();
        let update = match &at.thread {
            Some(topic) => forum_message(chat, topic.parse().unwrap(), 5, text),
            None if chat < 0 => group_message(chat, 5, text),
            None => private_message(chat, text),
        };
        self.server(account).push(update);
    }

    fn repeats_last(&self, account: &str) {
        self.server(account).push_last_again();
    }

    fn is_all_taken<'a>(&'a self, account: &'a str) -> FixtureFuture<'a, ()> {
        Box::pin(self.server(account).all_confirmed())
    }

    fn left(&self, account: &str) -> usize {
        self.server(account).unconfirmed().len()
    }

    fn falls_silent(&self, account: &str) {
        self.server(account).fail("getUpdates", CallFault::Silence);
    }

    fn revokes(&self, account: &str, revoked: bool) {
        self.server(account).revoke(revoked);
    }

    fn next_send(&self, account: &str, meets: Meets) {
        let fault = match meets {
            Meets::Slower(seconds) => CallFault::Slower(seconds),
            Meets::LostAnswer => CallFault::DoneAndDropped,
            Meets::Trouble => CallFault::Refuse(500, "Internal Server Error"),
            Meets::NoSuchChat => CallFault::Refuse(400, "Bad Request: chat not found"),
        };
        self.server(account).fail("sendMessage", fault);
    }

    fn shown(&self, account: &str) -> Vec<ShownMessage> {
        let shown = |params: Value| ShownMessage {
            target: params["chat_id"].to_string(),
            thread: thread(&params),
            text: openclaw_testkit::telegram::visible(&params),
        };
        self.server(account).made().into_iter().map(shown).collect()
    }

    fn activity(&self, account: &str) -> Vec<(String, Option<String>)> {
        let calls = self.server(account).calls("sendChatAction");
        calls.iter().map(|call| (call.params["chat_id"].to_string(), thread(&call.params))).collect()
    }
}
