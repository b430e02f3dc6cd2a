use serde_json::json;

use super::*;

fn settings(value: serde_json::Value) -> ResetSettings {
    serde_json::from_value(value).unwrap()
}

/// Vectors of `sessions.md` §5.1.
#[test]
fn policy_is_resolved_from_type_channel_base_and_legacy_minutes() {
    use ResetMode::{Daily, Idle};
    use ResetType::{Direct, Group, Thread};
    let thread_only = json!({"resetByType": {"thread": {"mode": "idle", "idleMinutes": 180}}});
    let rows = [
        (json!({}), Direct, None, (Daily, 4, None)),
        (json!({"idleMinutes": 30}), Direct, None, (Idle, 4, Some(30))),
        (
            json!({"reset": {"mode": "daily", "atHour": 4, "idleMinutes": 120}}),
            Direct,
            None,
            (Daily, 4, Some(120)),
        ),
        (thread_only.clone(), Direct, None, (Daily, 4, None)),
        (thread_only, Thread, None, (Idle, 4, Some(180))),
        (
            json!({"resetByType": {"dm": {"mode": "idle", "idleMinutes": 5}}}),
            Direct,
            None,
            (Idle, 4, Some(5)),
        ),
        (json!({"reset": {"mode": "idle"}}), Group, None, (Idle, 4, Some(60))),
        (json!({"idleMinutes": 30, "reset": {"mode": "daily"}}), Direct, None, (Daily, 4, Some(30))),
        (
            json!({"idleMinutes": 5, "resetByType": {"direct": {"mode": "daily"}},
                   "resetByChannel": {"discord": {"mode": "idle", "idleMinutes": 10080}}}),
            Direct,
            Some("Discord "),
            (Idle, 4, Some(10080)),
        ),
        (json!({"reset": {"mode": "daily", "atHour": 25}}), Direct, None, (Daily, 23, None)),
        (json!({"reset": {"mode": "daily", "atHour": -3}}), Direct, None, (Daily, 0, None)),
        (json!({"reset": {"mode": "daily", "atHour": 4.9}}), Direct, None, (Daily, 4, None)),
        (json!({"reset": {"mode": "idle", "idleMinutes": 0.2}}), Direct, None, (Idle, 4, Some(1))),
    ];
    for (config, kind, channel, (mode, at_hour, idle_minutes)) in rows {
        let got = policy(&settings(config.clone()), kind, channel);
        assert_eq!(got, ResetPolicy { mode, at_hour, idle_minutes }, "{config} {kind:?} {channel:?}");
    }
}

fn ms(text: &str, zone: &TimeZone) -> i64 {
    let local: jiff::civil::DateTime = text.parse().unwrap();
    local.to_zoned(zone.clone()).unwrap().timestamp().as_millisecond()
}

/// Vectors of `sessions.md` §5.2.
#[test]
fn freshness_follows_the_local_day_and_the_silence() {
    let zone = TimeZone::get("America/New_York").unwrap();
    let daily = ResetPolicy { mode: ResetMode::Daily, at_hour: 4, idle_minutes: None };
    let both = ResetPolicy { idle_minutes: Some(30), ..daily };
    let rows = [
        ("2026-02-10T03:00", "2026-02-10T05:00", daily, false),
        ("2026-02-10T04:00", "2026-02-10T05:00", daily, true),
        ("2026-02-10T04:30", "2026-02-10T05:00", daily, true),
        ("2026-02-09T03:30", "2026-02-10T03:00", daily, false),
        ("2026-02-09T05:00", "2026-02-10T03:00", daily, true),
        ("2026-02-10T04:45", "2026-02-10T05:30", both, false),
        // the day of spring forward: 03:30 EDT belongs to the day before
        ("2026-03-07T04:30", "2026-03-08T03:30", daily, true),
        ("2026-03-07T03:30", "2026-03-08T03:30", daily, false),
    ];
    for (updated, now, policy, fresh) in rows {
        assert_eq!(
            is_fresh(&policy, Some(ms(updated, &zone)), ms(now, &zone), &zone),
            fresh,
            "{updated} {now}"
        );
    }
}

#[test]
fn silence_is_counted_to_the_millisecond() {
    let idle = ResetPolicy { mode: ResetMode::Idle, at_hour: 4, idle_minutes: Some(30) };
    let zone = TimeZone::UTC;
    assert!(is_fresh(&idle, Some(1_000), 1_000 + 30 * 60_000, &zone));
    assert!(!is_fresh(&idle, Some(1_000), 1_001 + 30 * 60_000, &zone));
    assert!(!is_fresh(&idle, None, 0, &zone));
}

#[test]
fn extreme_clocks_do_not_panic() {
    let daily = ResetPolicy { mode: ResetMode::Daily, at_hour: 23, idle_minutes: Some(60) };
    for now in [i64::MIN, i64::MAX, 0, -1, 253_402_300_799_999] {
        let _ = is_fresh(&daily, Some(i64::MAX), now, &TimeZone::UTC);
    }
}

#[test]
fn triggers_match_whole_words_and_keep_the_rest() {
    let triggers = ["/new", "/reset"];
    let rows = [
        ("/new", "/new", Some(("/new", ""))),
        ("  /RESET ", "/RESET", Some(("/reset", ""))),
        ("/New take Notes", "/New take Notes", Some(("/new", "take Notes"))),
        ("@bot /new hello", "/new hello", Some(("/new", "hello"))),
        ("/newer", "/newer", None),
        ("please /new", "please /new", None),
        ("", "", None),
    ];
    for (raw, stripped, expect) in rows {
        let got = find_trigger(&triggers, raw, stripped);
        let got = got.as_ref().map(|request| (request.trigger.as_str(), request.rest.as_str()));
        assert_eq!(got, expect, "{raw:?}");
    }
}

#[test]
fn kinds_of_conversations_are_read_from_key_and_context() {
    let rows = [
        ("agent:main:main", false, false, ResetType::Direct),
        ("agent:main:slack:channel:c1:thread:1.2", false, true, ResetType::Thread),
        ("agent:main:telegram:group:-1:topic:5", false, false, ResetType::Thread),
        ("agent:main:discord:channel:1", false, false, ResetType::Group),
        ("agent:main:main", false, true, ResetType::Group),
        ("agent:main:main", true, true, ResetType::Thread),
    ];
    for (key, thread, group, expect) in rows {
        assert_eq!(ResetType::of(key, thread, group), expect, "{key}");
    }
}
