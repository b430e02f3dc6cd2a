//! Two session keys that lead to one transcript, both at work when the process ends.

use super::*;

fn named(run: &str, key: &str) -> openclaw_journal::api::AgentMessage {
    let mut message = agent(run, &format!("question of {run}"));
    message.session_key = key_of(&format!("agent:main:{key}"));
    message.session_id = Some("shared".to_owned());
    message
}

/// Returns the answers of both runs. Each depends on the last question, so that no run can get the
/// other's by chance.
async fn both(rig: &Rig) -> [String; 2] {
    let mut answers = Vec::new();
    for run in ["r1", "r2"] {
        answers.push(texts(&rig.end(run).await).join("|"));
    }
    answers.try_into().unwrap()
}

#[tokio::test]
async fn each_finds_its_own_answer_after_a_crash() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Held("never heard")]).await);
    let rig = Rig::start(dir.path(), &model).await;
    drop(rig.agent(named("r1", "a")).await.unwrap());
    model.asked(1).await;
    drop(rig.agent(named("r2", "b")).await.unwrap());
    let crashed = crash(dir.path());

    // Every order in which the two can come first, as the last process may have left it.
    let (mut rigs, mut dirs) = (Vec::new(), vec![crashed]);
    for _ in 0..3 {
        let last = dirs.last().unwrap();
        let model = FakeModel::start([]).await;
        let rig = Rig::start(last.path(), &model).await;
        let [first, second] = both(&rig).await;
        assert_ne!(first, second, "{:?}", said(last.path()));
        let told = said(last.path());
        for (run, answer) in [("r1", &first), ("r2", &second)] {
            let asked = told.iter().rposition(|line| line == &format!("user: question of {run}")).unwrap();
            let answered = told.iter().position(|line| line == &format!("assistant: {answer}")).unwrap();
            assert!(asked < answered, "{told:?}");
        }
        let next = crash(last.path());
        for run in ["r1", "r2"] {
            unfinish(next.path(), run);
        }
        rigs.push((rig, model));
        dirs.push(next);
    }
    let counts: Vec<usize> = rigs.iter().map(|(_, model)| model.count()).collect();
    assert_eq!(counts, [2, 0, 0], "answers that are there are not asked for again");
}

#[tokio::test]
async fn a_run_that_another_overtook_is_answered_by_itself() {
    let (dir, model) = (dir(), FakeModel::start([Answer::Held("never heard")]).await);
    let rig = Rig::start(dir.path(), &model).await;
    drop(rig.agent(named("r1", "a")).await.unwrap());
    model.asked(1).await;
    drop(rig.agent(named("r2", "b")).await.unwrap());
    let crashed = crash(dir.path());
    // The first one is not known while the second one is worked on.
    let ended = RunRecord {
        run_id: RunId::new("r1"),
        started_at: None,
        ended_at: 0,
        outcome: RunOutcome::Ok { result: json!({}).into() },
        report: None,
    };
    memory::edit(crashed.path(), |message| {
        message.progress.is_finished = false;
        if message.run_id == ended.run_id {
            assert!(message.progress.finish(&ended).unwrap());
        }
    });
    let model = FakeModel::start([Answer::Text("to the second")]).await;
    let rig = Rig::start(crashed.path(), &model).await;
    assert_eq!(texts(&rig.end("r2").await), ["to the second"]);
    let next = crash(crashed.path());
    unfinish(next.path(), "r1");
    let model = FakeModel::start([Answer::Text("to the first")]).await;
    let rig = Rig::start(next.path(), &model).await;
    assert_eq!(texts(&rig.end("r1").await), ["to the first"]);
    let heard = model.heard(0);
    assert!(heard.last().unwrap().ends_with("question of r1"), "{heard:?}");
    // And once more, before its row was closed.
    let third = crash(next.path());
    unfinish(third.path(), "r1");
    let model = FakeModel::start([]).await;
    let rig = Rig::start(third.path(), &model).await;
    assert_eq!((texts(&rig.end("r1").await), model.count()), (vec!["to the first"], 0));
}
