use serde_json::{Value, json};

use super::super::allowlist::{AllowedBy, Extent, Finding};
use super::super::analysis::NotAnalysable;
use super::*;
use ExecAsk::{Always, Off, OnMiss};
use ExecSecurity::{Allowlist, Deny, Full};

fn file(value: &Value) -> ApprovalsFile {
    ApprovalsFile::parse(&value.to_string(), &mut || "new".into()).unwrap()
}

#[test]
fn the_nearest_level_says_what_holds_and_the_tool_can_only_narrow() {
    let layered = file(&json!({
        "version": 1,
        "defaults": {"security": "full", "ask": "off", "askFallback": "full", "autoAllowSkills": true},
        "agents": {
            "*": {"ask": "on-miss", "askFallback": "allowlist", "allowlist": ["/all"]},
            "main": {"security": "allowlist", "autoAllowSkills": false, "allowlist": ["/own"]},
            "shut": {"security": "deny"},
        },
    }));
    let empty = file(&json!({"version": 1}));
    let defaults = file(&json!({"version": 1, "defaults": {"security": "allowlist", "ask": "always"}}));
    for (file, agent, tool, expect) in [
        (&layered, "main", (Full, Off), (Allowlist, OnMiss, Allowlist, false, vec!["/all", "/own"])),
        (&layered, "", (Full, Off), (Allowlist, OnMiss, Allowlist, false, vec!["/all", "/own"])),
        (&layered, "main", (Deny, Always), (Deny, Always, Allowlist, false, vec!["/all", "/own"])),
        (&layered, "new", (Full, Off), (Full, OnMiss, Allowlist, true, vec!["/all"])),
        (&layered, "new", (Allowlist, Off), (Allowlist, OnMiss, Allowlist, true, vec!["/all"])),
        (&layered, "default", (Full, Off), (Full, OnMiss, Allowlist, true, vec!["/all"])),
        (&layered, "shut", (Full, Off), (Deny, OnMiss, Allowlist, true, vec!["/all"])),
        (&empty, "main", (Allowlist, OnMiss), (Allowlist, OnMiss, Deny, false, vec![])),
        (&empty, "main", (Full, Off), (Full, Off, Deny, false, vec![])),
        (&defaults, "main", (Full, Off), (Allowlist, Always, Deny, false, vec![])),
    ] {
        let (security, ask) = tool;
        let found = resolve(file, agent, ToolValues { security, ask });
        let patterns: Vec<&str> = found.allowlist.iter().map(|entry| entry.pattern.as_str()).collect();
        let shown = (found.security, found.ask, found.ask_fallback, found.auto_allow_skills, patterns);
        assert_eq!(shown, expect, "{agent} {tool:?}");
    }
}

fn findings(allowed_by: Option<AllowedBy>) -> Evaluation {
    Evaluation { findings: Ok(vec![Finding { resolved: None, allowed_by, extent: Extent::Path }]) }
}

#[test]
fn what_follows_for_a_command() {
    let listed = findings(Some(AllowedBy::SafeBin));
    let miss = findings(None);
    let unread = Evaluation { findings: Err(NotAnalysable::EmptyPart) };
    let empty = Evaluation { findings: Ok(vec![]) };
    let deny = |text: &str| Decision::Deny(text.to_owned());
    let denied = || deny("exec denied: host=gateway security=deny");
    let answered = ApprovalProgress::Answered;
    let (yes, always, no) =
        (answered(Answer::AllowOnce), answered(Answer::AllowAlways), answered(Answer::Deny));
    for (security, ask, ask_fallback, found, asked, expect) in [
        // Before a person is asked.
        (Deny, Off, Full, &listed, ApprovalProgress::NotYet, denied()),
        (Deny, Always, Full, &listed, ApprovalProgress::NotYet, denied()),
        (Allowlist, Off, Deny, &listed, ApprovalProgress::NotYet, Decision::Run),
        (Allowlist, OnMiss, Deny, &listed, ApprovalProgress::NotYet, Decision::Run),
        (Allowlist, Always, Deny, &listed, ApprovalProgress::NotYet, Decision::Ask),
        (Allowlist, Off, Full, &miss, ApprovalProgress::NotYet, deny("exec denied: allowlist miss")),
        (Allowlist, OnMiss, Full, &miss, ApprovalProgress::NotYet, Decision::Ask),
        (Allowlist, Always, Full, &miss, ApprovalProgress::NotYet, Decision::Ask),
        (Allowlist, Off, Full, &unread, ApprovalProgress::NotYet, deny("exec denied: allowlist miss")),
        (Allowlist, OnMiss, Full, &unread, ApprovalProgress::NotYet, Decision::Ask),
        (Allowlist, OnMiss, Full, &empty, ApprovalProgress::NotYet, Decision::Ask),
        (Full, Off, Deny, &miss, ApprovalProgress::NotYet, Decision::Run),
        (Full, OnMiss, Deny, &unread, ApprovalProgress::NotYet, Decision::Run),
        (Full, Always, Deny, &listed, ApprovalProgress::NotYet, Decision::Ask),
        // After it.
        (Allowlist, OnMiss, Deny, &miss, no, deny("user-denied")),
        (Full, Always, Full, &listed, no, deny("user-denied")),
        (Allowlist, OnMiss, Deny, &miss, yes, Decision::Run),
        (Allowlist, OnMiss, Deny, &miss, always, Decision::RunAndRemember),
        (Allowlist, OnMiss, Deny, &unread, always, Decision::RunAndRemember),
        (Full, Always, Deny, &miss, always, Decision::Run),
        (Deny, OnMiss, Full, &listed, always, denied()),
        // No person answered.
        (Allowlist, OnMiss, Full, &miss, ApprovalProgress::TimedOut, Decision::Run),
        (Allowlist, Always, Allowlist, &listed, ApprovalProgress::TimedOut, Decision::Run),
        (
            Allowlist,
            OnMiss,
            Allowlist,
            &miss,
            ApprovalProgress::TimedOut,
            deny("approval-timeout (allowlist-miss)"),
        ),
        (
            Full,
            Always,
            Allowlist,
            &unread,
            ApprovalProgress::TimedOut,
            deny("approval-timeout (allowlist-miss)"),
        ),
        (Allowlist, Always, Deny, &listed, ApprovalProgress::TimedOut, deny("approval-timeout")),
        (Deny, OnMiss, Full, &listed, ApprovalProgress::TimedOut, denied()),
    ] {
        let rules =
            EffectivePolicy { security, ask, ask_fallback, auto_allow_skills: false, allowlist: vec![] };
        let decision = decide(ExecHost::Gateway, &rules, found, asked);
        assert_eq!(decision, expect, "{security:?} {ask:?} {ask_fallback:?} {asked:?} {found:?}");
    }
    let shut = EffectivePolicy {
        security: Deny,
        ask: Off,
        ask_fallback: Full,
        auto_allow_skills: false,
        allowlist: vec![],
    };
    let on_node = decide(ExecHost::Node, &shut, &listed, ApprovalProgress::NotYet);
    assert_eq!(on_node, deny("exec denied: host=node security=deny"));
}
