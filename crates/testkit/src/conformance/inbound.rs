//! Conformance tests of inbound messages.

use std::time::Duration;

use openclaw_channels::{Exit, Unusable};

use super::{ACCOUNTS, ConformanceScene, Fixture, Inbox};

/// Longer than any platform may be silent before it counts as gone (spec `channels.md` §15, §18.3).
const SILENCE: Duration = Duration::from_secs(90);

/// Ids byte for byte, and told only when it is on disk.
pub async fn what_is_said_comes_whole_and_is_taken_only_then<F: Fixture>() {
    let scene = ConformanceScene::<F>::new().await;
    let (account, inbox) = (ACCOUNTS[0], Inbox::new());
    let places = scene.fixture.places(account);
    let said: Vec<_> =
        [Some(places.direct), Some(places.group), places.thread].into_iter().flatten().collect();
    for (at, address) in said.iter().enumerate() {
        scene.fixture.says(account, address, &format!("words {at}"));
    }
    let life = scene.start(account, &inbox);
    inbox.handed(said.len()).await;
    scene.fixture.is_all_taken(account).await;
    let expect: Vec<_> =
        said.into_iter().enumerate().map(|(at, address)| (address, format!("words {at}"))).collect();
    assert_eq!(inbox.words(), expect);
    let status = life.until("connected", |status| status.connected).await;
    assert!(status.running && status.last_error.is_none() && status.mode.is_some(), "{status:?}");
    life.stop().await;
}

/// A full disk loses nothing.
pub async fn what_was_not_taken_is_brought_again<F: Fixture>() {
    let scene = ConformanceScene::<F>::new().await;
    let (account, inbox) = (ACCOUNTS[0], Inbox::refusing(1));
    let at = scene.fixture.places(account).direct;
    scene.fixture.says(account, &at, "words");
    let life = scene.start(account, &inbox);
    inbox.handed(1).await;
    scene.fixture.is_all_taken(account).await;
    assert_eq!(inbox.words(), [(at, "words".to_owned())]);
    life.stop().await;
}

/// The process dies when the inbox has it and the platform does not know.
pub async fn a_kill_between_taking_and_telling_doubles_nothing<F: Fixture>() {
    let scene = ConformanceScene::<F>::new().await;
    let (account, inbox) = (ACCOUNTS[0], Inbox::hanging());
    let at = scene.fixture.places(account).direct;
    scene.fixture.says(account, &at, "words");
    let life = scene.start(account, &inbox);
    inbox.handed(1).await;
    assert_eq!(scene.fixture.left(account), 1, "nobody told the platform");
    life.kill().await;
    let inbox = inbox.reopened();
    let life = scene.start(account, &inbox);
    inbox.handed(1).await;
    scene.fixture.says(account, &at, "more");
    inbox.handed(2).await;
    scene.fixture.is_all_taken(account).await;
    assert_eq!(inbox.words(), [(at.clone(), "words".to_owned()), (at, "more".to_owned())]);
    life.stop().await;
}

/// Redelivered after it was told, also to another life.
pub async fn what_is_brought_twice_has_one_id<F: Fixture>() {
    let scene = ConformanceScene::<F>::new().await;
    let (account, inbox) = (ACCOUNTS[0], Inbox::new());
    let at = scene.fixture.places(account).direct;
    scene.fixture.says(account, &at, "words");
    let life = scene.start(account, &inbox);
    inbox.handed(1).await;
    scene.fixture.is_all_taken(account).await;
    life.stop().await;
    scene.fixture.repeats_last(account);
    let life = scene.start(account, &inbox);
    scene.fixture.says(account, &at, "more");
    scene.fixture.is_all_taken(account).await;
    life.until("connected", |status| status.connected).await;
    assert_eq!(inbox.words(), [(at.clone(), "words".to_owned()), (at, "more".to_owned())]);
    life.stop().await;
}

/// Checks a connection that falls silent (no FIN, no answer): the account alone notices, within the
/// time people would wait.
pub async fn a_connection_that_fell_silent_is_replaced<F: Fixture>() {
    let scene = ConformanceScene::<F>::new().await;
    let (account, inbox) = (ACCOUNTS[0], Inbox::new());
    let at = scene.fixture.places(account).direct;
    scene.fixture.falls_silent(account);
    scene.fixture.says(account, &at, "words");
    let life = scene.start(account, &inbox);
    let heard = tokio::time::timeout(SILENCE, inbox.handed(1)).await;
    assert!(heard.is_ok(), "nothing is heard for {SILENCE:?}: {:?}", life.status.now());
    scene.fixture.is_all_taken(account).await;
    life.until("connected", |status| status.connected).await;
    life.stop().await;
}

/// While it works.
pub async fn revoked_credentials_end_it_and_say_so<F: Fixture>() {
    let scene = ConformanceScene::<F>::new().await;
    let (account, inbox) = (ACCOUNTS[0], Inbox::new());
    let at = scene.fixture.places(account).direct;
    let mut life = scene.start(account, &inbox);
    scene.fixture.says(account, &at, "words");
    inbox.handed(1).await;
    scene.fixture.revokes(account, true);
    // Something makes the account ask.
    scene.fixture.says(account, &at, "more");
    let exit = life.ended().await;
    assert!(matches!(&exit, Exit::Refused(why) if !why.trim().is_empty()), "{exit:?}");
    let status = life.status.now();
    assert!(!status.connected && status.last_error.is_some(), "{status:?}");
    scene.fixture.revokes(account, false);
    let life = scene.start(account, &inbox);
    inbox.handed(2).await;
    life.stop().await;
}

/// Both work at once.
pub async fn accounts_do_not_hear_each_other<F: Fixture>() {
    let scene = ConformanceScene::<F>::new().await;
    let inbox = Inbox::new();
    let lives = ACCOUNTS.map(|account| scene.start(account, &inbox));
    for round in 0..5 {
        for account in ACCOUNTS {
            let at = scene.fixture.places(account).direct;
            scene.fixture.says(account, &at, &format!("{round} for {account}"));
        }
    }
    inbox.handed(10).await;
    for (address, words) in inbox.words() {
        assert!(words.ends_with(&format!("for {}", address.account)), "{address:?} heard {words}");
    }
    for account in ACCOUNTS {
        let own = inbox.words().into_iter().filter(|(at, _)| at.account == account).map(|(_, words)| words);
        let expect: Vec<String> = (0..5).map(|round| format!("{round} for {account}")).collect();
        assert_eq!(own.collect::<Vec<_>>(), expect, "in the order in which it was said");
    }
    for life in lives {
        life.stop().await;
    }
}

/// Within the patience that its manager has.
pub async fn it_stops_when_it_is_told<F: Fixture>() {
    let scene = ConformanceScene::<F>::new().await;
    let inbox = Inbox::new();
    let life = scene.start(ACCOUNTS[0], &inbox);
    life.until("connected", |status| status.connected).await;
    let status = life.status.clone();
    let stopped = tokio::time::timeout(Duration::from_secs(5), life.stop()).await;
    assert_eq!(stopped.unwrap_or_else(|_| panic!("it goes on")), Exit::Stopped);
    assert!(!status.now().running && !status.now().connected, "{:?}", status.now());
}

/// Checks that missing credentials are named, with the setting for them.
pub async fn credentials_that_are_missing_are_named<F: Fixture>() {
    let scene = ConformanceScene::<F>::new().await;
    let channel = scene.fixture.channel();
    assert_eq!(channel.account_ids(&scene.config), ACCOUNTS);
    let config = scene.fixture.config_without_credentials(scene.dir.path());
    let id = channel.info().id;
    match channel.account(&config, ACCOUNTS[0]).err() {
        Some(Unusable::NotConfigured { why, fix: None }) => {
            assert!(why.contains(&format!("channels.{id}")) && why.contains(ACCOUNTS[0]), "{why}");
        }
        other => panic!("without credentials: {other:?}"),
    }
    assert_eq!(channel.credential_source(&config, ACCOUNTS[0]), "none");
    assert!(matches!(
        channel.account(&config, "nobody").err(),
        Some(Unusable::Unknown(_) | Unusable::NotConfigured { .. })
    ));
}
