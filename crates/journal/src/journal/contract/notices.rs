//! Tests of the notices that agents are owed about their commands.

use openclaw_tools::{Notice, Promise, PromiseKind};

use super::*;
use crate::notices::{KeptLine, Lost};

fn promise(id: &str, line: &str) -> Promise {
    let session_key = SessionKey::parse("agent:main:main").unwrap();
    Promise {
        id: id.to_owned(),
        kind: PromiseKind::Command,
        scope: "agent:main".to_owned(),
        name: format!("name-{id}"),
        notice: (!line.is_empty()).then(|| Notice { session_key, line: line.to_owned() }),
    }
}

fn line(number: i64, text: &str) -> KeptLine {
    let session_key = SessionKey::parse("agent:main:main").unwrap();
    KeptLine { number, session_key, text: text.to_owned(), ts: 5, told_by: None }
}

async fn make(journal: &Arc<dyn Journal>, update: Update) {
    journal.update(update).await.unwrap();
}

pub(super) async fn promised(journal: &Arc<dyn Journal>, id: &str, line: &str) {
    make(journal, Update::Promise(Box::new(promise(id, line)), 1)).await;
}

fn notice(line: Option<KeptLine>, fulfils: &str) -> Update {
    Update::Notice { line, fulfils: Some(fulfils.to_owned()) }
}

/// Returns the lines that a start finds, and the runs that told them.
fn lines(opened: &OpenedJournal) -> Vec<(&str, Option<&str>)> {
    let lines = opened.notices.lines.iter();
    lines.map(|line| (line.text.as_str(), line.told_by.as_ref().map(RunId::as_str))).collect()
}

pub(super) async fn what_was_promised_is_told_by_the_next_start_once(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    for (id, line) in [("a", "a died"), ("b", "b died"), ("c", "c died"), ("quiet", "")] {
        promised(&journal, id, line).await;
    }
    make(&journal, notice(Some(line(1, "a is done")), "a")).await;
    make(&journal, notice(None, "b")).await;
    let mut approval = promise("c", "c died :: half");
    approval.kind = PromiseKind::Approval;
    make(&journal, Update::Amend(vec![approval, promise("a", "a died after all")])).await;
    let (first, opened) = restarted(open, dir.path());
    assert_eq!(lines(&opened), [("a is done", None), ("c died :: half", None)]);
    let lost = |kind, name: &str| Lost { kind, scope: "agent:main".to_owned(), name: name.to_owned() };
    let all = [lost(PromiseKind::Approval, "name-c"), lost(PromiseKind::Command, "name-quiet")];
    assert_eq!(opened.notices.lost, all);
    let (_second, again) = restarted(open, first.path());
    assert_eq!(again.notices, opened.notices, "each is told once, and remembered");
}

pub(super) async fn a_line_waits_until_the_run_that_told_it_has_ended(open: OpenFn) {
    let dir = dir();
    let journal = open(dir.path()).unwrap().journal;
    assert_eq!(accept(&journal, chat("run-1", "x")).await, Insert::New);
    for (number, text) in [(1, "one"), (2, "two"), (3, "three")] {
        make(&journal, Update::Notice { line: Some(line(number, text)), fulfils: None }).await;
    }
    make(&journal, Update::Told { run_id: run("run-1"), numbers: vec![1, 9] }).await;
    make(&journal, Update::DropLines(vec![2])).await;
    let (_crashed, opened) = restarted(open, dir.path());
    assert_eq!(lines(&opened), [("one", Some("run-1")), ("three", None)]);
    make(&journal, Update::Finish(finished("run-1", "hi"), Vec::new())).await;
    let (_crashed, opened) = restarted(open, dir.path());
    assert_eq!(lines(&opened), [("three", None)]);
    make(&journal, Update::Told { run_id: run("unknown"), numbers: vec![3] }).await;
    let (_crashed, opened) = restarted(open, dir.path());
    assert_eq!(lines(&opened), [("three", None)], "nobody will say that it was told");
}
