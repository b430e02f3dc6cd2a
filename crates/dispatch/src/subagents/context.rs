//! Prompts of a sub-agent besides its task (spec `sessions.md` §8.4, decision 3).

use openclaw_journal::child_run::ChildRun;
use openclaw_protocol::printable::excerpt;

/// Message of the turn in which a sub-agent words its announcement.
pub(super) const STEP: &str = "Sub-agent announce step.";
/// Characters of a task in a line.
const TASK: usize = 400;

/// Text in a child's system prompt.
pub(super) fn of_child(run: &ChildRun) -> String {
    let task = one_line(&run.task);
    let mut lines = vec![
        "# Subagent Context".to_owned(),
        String::new(),
        "You are a sub-agent. The main agent started you for one task.".to_owned(),
        String::new(),
        "## Your Role".to_owned(),
        format!("- Your task: {task}"),
        "- Finish this task and nothing else. It is all you are here for.".to_owned(),
        String::new(),
        "## Rules".to_owned(),
        "1. Stay with the task from beginning to end.".to_owned(),
        "2. Your last message is reported to the main agent's chat by itself: end with it.".to_owned(),
        "3. Do nothing on the side: no heartbeats, no work that nobody asked for.".to_owned(),
        "4. You last as long as the task. Your session may be deleted afterwards.".to_owned(),
        String::new(),
        "## Output Format".to_owned(),
        "Let your last message say:".to_owned(),
        "- what you did or found".to_owned(),
        "- what the main agent has to know of it".to_owned(),
        "- nothing more: short, but with everything that counts".to_owned(),
        String::new(),
        "## What You DON'T Do".to_owned(),
        "- No talk with the user: that is for the main agent.".to_owned(),
        "- No messages to others (mail, posts, chats), unless the task asks for them with a recipient.".to_owned(),
        "- No cron jobs, and no state that outlasts you.".to_owned(),
        "- No posing as the main agent.".to_owned(),
        "- No use of the `message` tool, unless you were told to reach somebody outside. Otherwise say it in plain text.".to_owned(),
        String::new(),
        "## Session Context".to_owned(),
    ];
    lines.extend(run.label.as_ref().map(|label| format!("- Label: {label}")));
    lines.push(format!("- Requester session: {}.", run.requester_session_key.shown()));
    lines.extend(channel(run).map(|channel| format!("- Requester channel: {channel}.")));
    lines.push(format!("- Your session: {}.", run.child_session_key));
    lines.join("\n")
}

/// Prompt of the turn in which a child words its announcement.
pub(super) fn of_step(run: &ChildRun) -> String {
    let mut lines =
        vec![STEP.replace('.', ":"), format!("Requester session: {}.", run.requester_session_key.shown())];
    lines.extend(channel(run).map(|channel| format!("Requester channel: {channel}.")));
    lines.push(format!("Your session: {}.", run.child_session_key));
    lines.push(format!("Task: {}", one_line(&run.task)));
    lines.push(
        "The task is finished. Use no tools now: say what the requester's chat is told of it.".to_owned(),
    );
    lines.push("Write the result in a few sentences for the person there. You may begin parts with \"Result:\" and \"Notes:\".".to_owned());
    lines.push("Whether it succeeded is added by the gateway; do not write a status.".to_owned());
    lines.push("If you want to remain silent, reply exactly \"ANNOUNCE_SKIP\".".to_owned());
    lines.push("Any other reply will be posted to the requester's chat.".to_owned());
    lines.join("\n")
}

fn channel(run: &ChildRun) -> Option<&str> {
    run.requester_origin.as_ref()?.channel.as_deref()
}

fn one_line(text: &str) -> String {
    excerpt(&text.split_whitespace().collect::<Vec<_>>().join(" "), TASK).into_owned()
}
