use openclaw_channels::InboundEvent;
use openclaw_testkit::telegram::{
    CallFault, button, forum_message, group_message, private_message, reaction,
};
use serde_json::json;

use super::*;

#[tokio::test]
async fn updates_are_confirmed_behind_the_inbox() {
    let scene = Scene::new().await;
    let inbox = Inbox::new();
    let first = scene.server.push(private_message(5, "one"));
    scene.server.push(group_message(-100, 6, "two"));
    let running = scene.start(&inbox);
    assert_eq!(inbox.texts(2).await, ["one", "two"]);
    scene.server.all_confirmed().await;
    let status = running.until(|status| status.connected).await;
    assert_eq!((status.mode, status.last_error.clone()), (Some("polling"), None));
    assert_eq!(running.stop().await, Exit::Stopped);
    // The offset is written beside the work, and before the stop ends.
    assert_eq!(scene.offset(), Some(first + 1));
    assert_eq!(scene.server.calls("deleteWebhook")[0].params["drop_pending_updates"], false);
}

#[tokio::test]
async fn what_the_inbox_did_not_take_is_brought_again() {
    let scene = Scene::new().await;
    let inbox = Inbox::refusing(1);
    scene.server.push(private_message(5, "one"));
    let running = scene.start(&inbox);
    inbox.refused.subscribe().wait_for(|count| *count == 1).await.unwrap();
    assert_eq!(scene.offset(), None, "nothing was taken");
    assert_eq!(scene.server.unconfirmed().len(), 1);
    assert_eq!(inbox.texts(1).await, ["one"]);
    scene.server.all_confirmed().await;
    running.stop().await;
}

#[tokio::test]
async fn after_a_start_it_goes_on_where_it_was() {
    let scene = Scene::new().await;
    let inbox = Inbox::new();
    let last = scene.server.push(private_message(5, "one"));
    let running = scene.start(&inbox);
    inbox.holds(1).await;
    scene.server.all_confirmed().await;
    running.stop().await;
    let before = scene.server.calls("getUpdates").len();
    let running = scene.start(&inbox);
    let call = scene.server.nth_call("getUpdates", before + 1).await;
    assert_eq!(call.params["offset"], last + 1);
    running.stop().await;
}

#[tokio::test]
async fn what_is_brought_twice_is_taken_once_and_strange_updates_harm_no_other() {
    let scene = Scene::new().await;
    let inbox = Inbox::new();
    scene.server.push(private_message(5, "one"));
    let running = scene.start(&inbox);
    inbox.holds(1).await;
    let mut twice = private_message(5, "one");
    twice["update_id"] = json!(1000);
    scene.server.push_again(twice);
    scene.server.push_again(json!({"update_id": "x"}));
    scene.server.push(json!({"kind_of_tomorrow": {"a": 1}}));
    scene.server.push(json!({"message": "not an object"}));
    scene.server.push(json!({"message": {"message_id": "x", "chat": []}}));
    scene.server.push(private_message(5, &"long ".repeat(200_000)));
    scene.server.push(private_message(5, "two"));
    let texts = inbox.texts(6).await;
    let (unreadable, read): (Vec<&String>, Vec<&String>) =
        texts.iter().partition(|text| text.starts_with("Unreadable"));
    assert_eq!(unreadable.len(), 3, "{unreadable:?}");
    assert_eq!((read[0].as_str(), read[1].len(), read[2].as_str()), ("one", 1_000_000, "two"));
    scene.server.all_confirmed().await;
    running.stop().await;
}

#[tokio::test]
async fn a_second_poller_and_broken_connections_are_survived() {
    let faults = [
        CallFault::Refuse(409, "Conflict: terminated by other getUpdates request"),
        CallFault::Drop,
        CallFault::CutOff,
        CallFault::Garbage(502, "<html>bad gateway</html>"),
    ];
    let check = async |fault: CallFault| {
        let scene = Scene::new().await;
        let inbox = Inbox::new();
        scene.server.fail("getUpdates", fault.clone());
        scene.server.push(private_message(5, "one"));
        let running = scene.start(&inbox);
        let status = running.until(|status| status.last_error.is_some()).await;
        assert!(!status.connected, "{fault:?}");
        assert_eq!(inbox.texts(1).await, ["one"], "{fault:?}");
        running.until(|status| status.connected && status.last_error.is_none()).await;
        running.stop().await;
    };
    // Each waits two seconds before it asks again.
    futures_util::future::join_all(faults.map(check)).await;
}

#[tokio::test]
async fn a_token_that_is_refused_ends_it() {
    let scene = Scene::new().await;
    scene.server.revoke(true);
    let running = scene.start(&Inbox::new());
    let io = running.io.clone();
    let exit = running.task.await.unwrap();
    assert!(matches!(&exit, Exit::Refused(why) if why.contains("Unauthorized")), "{exit:?}");
    assert!(!io.status.now().running);
    assert!(!format!("{exit:?} {:?}", io.status.now()).contains("TEST-token"));
}

#[tokio::test]
async fn a_token_that_is_taken_back_while_it_polls_ends_it() {
    let scene = Scene::new().await;
    let running = scene.start(&Inbox::new());
    scene.server.nth_call("getUpdates", 1).await;
    scene.server.revoke(true);
    scene.server.push(private_message(5, "one"));
    assert!(matches!(running.task.await.unwrap(), Exit::Refused(_)));
}

#[tokio::test]
async fn two_accounts_with_one_token_do_not_poll_together() {
    let scene = Scene::new().await;
    let inbox = Inbox::new();
    let running = scene.start(&inbox);
    scene.server.nth_call("getUpdates", 1).await;
    let waiting = scene.start(&inbox);
    let status = waiting.until(|status| status.last_error.is_some()).await;
    assert!(status.last_error.unwrap().contains("the same bot token"));
    assert_eq!(running.stop().await, Exit::Stopped);
    let before = scene.server.calls("getUpdates").len();
    scene.server.nth_call("getUpdates", before + 1).await;
    assert_eq!(waiting.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_pressed_button_is_answered_and_brought() {
    let scene = Scene::new().await;
    let inbox = Inbox::new();
    scene.server.push(button(5, 42, "yes"));
    let running = scene.start(&inbox);
    let events = inbox.holds(1).await;
    assert_eq!(events[0].event, InboundEvent::Button { message_id: "42".to_owned(), data: "yes".to_owned() });
    assert_eq!((events[0].sender.id.as_str(), events[0].sender.is_self), ("5", false));
    let call = scene.server.nth_call("answerCallbackQuery", 1).await;
    assert_eq!(call.params["callback_query_id"], "77");
    running.stop().await;
}

#[tokio::test]
async fn topics_and_reactions_keep_their_place() {
    let scene = Scene::new().await;
    let inbox = Inbox::new();
    scene.server.push(forum_message(-100, 99, 5, "in a topic"));
    scene.server.push(reaction(-100, 5, 42, &["👍"], &["🔥", "❤"]));
    let running = scene.start(&inbox);
    let events = inbox.holds(4).await;
    assert_eq!(events[0].address.thread.as_deref(), Some("99"));
    let ids: Vec<&str> = events.iter().map(|event| event.native_id.as_str()).collect();
    assert_eq!(ids, ["update:1000", "update:1001", "update:1001:1", "update:1001:2"]);
    let removed: Vec<bool> = events
        .iter()
        .filter_map(|event| match &event.event {
            InboundEvent::Reaction { removed, .. } => Some(*removed),
            _ => None,
        })
        .collect();
    assert_eq!(removed, [false, false, true]);
    running.stop().await;
}

/// Telegram says of no press when it was; that it can't be answered any more tells.
#[tokio::test]
async fn an_old_press_is_as_old_as_what_was_said_before_it() {
    let scene = Scene::new().await;
    let inbox = Inbox::new();
    let hours_ago = |hours: i64| openclaw_config::clock::now_ms() / 1_000 - hours * 3_600;
    let (said_at, shown_at) = (hours_ago(2), hours_ago(3));
    let mut said = private_message(5, "one");
    said["message"]["date"] = json!(said_at);
    let mut old = button(5, 42, "yes");
    old["callback_query"]["message"]["date"] = json!(shown_at);
    let too_old = "Bad Request: query is too old and response timeout expired or query ID is invalid";
    scene.server.fail("answerCallbackQuery", CallFault::Refuse(400, too_old));
    scene.server.push(said);
    scene.server.push(old.clone());
    let running = scene.start(&inbox);
    inbox.holds(2).await;
    assert_eq!(inbox.taken.lock()[1].at, said_at * 1_000);
    // A press that can be answered has just happened, and so has one that comes when everything
    // that waited was delivered.
    scene.server.all_confirmed().await;
    for number in [3, 4] {
        scene.server.push(old.clone());
        inbox.holds(number).await;
        scene.server.nth_call("answerCallbackQuery", number - 1).await;
        let at = inbox.taken.lock()[number - 1].at;
        assert!(at > hours_ago(1) * 1_000, "{at}");
    }
    running.stop().await;
}

#[tokio::test]
async fn numbers_below_what_was_taken_are_told_of_and_begin_anew_with_something_younger() {
    let scene = Scene::new().await;
    let inbox = Inbox::new();
    let last = scene.server.push(private_message(5, "one"));
    let running = scene.start(&inbox);
    inbox.holds(1).await;
    scene.server.all_confirmed().await;
    let below = |number: i64, text: &str, later: i64| {
        let mut update = private_message(5, text);
        update["update_id"] = json!(number);
        update["message"]["message_id"] = json!(number);
        update["message"]["date"] = json!(scene.server.now() + later);
        update
    };
    // No number of Telegram's: it is not taken for the last one.
    scene.server.push_again(below(i64::MAX, "absurd", 0));
    running
        .until(|status| status.last_error.as_ref().is_some_and(|why| why.contains("no update with a number")))
        .await;
    scene.server.push_again(below(3, "of the same time", 0));
    let status = running
        .until(|status| status.last_error.as_ref().is_some_and(|why| why.contains("passed over until")))
        .await;
    assert!(status.connected && status.last_error.unwrap().contains(&format!("up to {last}")));
    assert_eq!(scene.offset(), Some(last));
    scene.server.push_again(below(4, "much later", 600));
    assert_eq!(inbox.texts(2).await, ["one", "much later"]);
    running.stop().await;
    assert_eq!(scene.offset(), Some(4));
}
