use jiff::tz::TimeZone;
use serde_json::json;

use super::trigger::{command_body, slash_command, strip_structural_prefixes};
use super::*;

fn settings(value: serde_json::Value) -> Session {
    serde_json::from_value(value).unwrap()
}

/// Vectors of `sessions.md` §5.1.
#[test]
fn policy_is_resolved_from_type_channel_base_and_legacy_minutes() {
    use ResetMode::{Daily, Idle};
    use ResetType::{Direct, Group, Thread};
    let thread_only = json!({"resetByType": {"thread": {"mode": "idle", "idleMinutes": 180}}});
    let by_channel = json!({"idleMinutes": 30, "resetByChannel": {"discord": {"atHour": 9}}});
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
        (by_channel.clone(), Direct, Some("discord"), (Daily, 9, None)),
        (by_channel, Direct, Some("telegram"), (Idle, 4, Some(30))),
        (
            json!({"resetByType": {"thread": {"mode": "idle", "idleMinutes": 180}},
                   "resetByChannel": {"discord": {"atHour": 9}}}),
            Thread,
            Some("discord"),
            (Daily, 9, None),
        ),
        (
            json!({"reset": {"atHour": 6, "idleMinutes": 10}, "resetByType": {"group": {"mode": "idle"}}}),
            Group,
            None,
            (Idle, 6, Some(10)),
        ),
        (
            json!({"resetByType": {"direct": {"mode": "daily"}, "dm": {"mode": "idle"}}}),
            Direct,
            None,
            (Daily, 4, None),
        ),
        (json!({"idleMinutes": 30, "resetByType": {}}), Direct, None, (Daily, 4, Some(30))),
        (json!({"reset": {"mode": "daily", "atHour": 25}}), Direct, None, (Daily, 23, None)),
        (json!({"reset": {"mode": "daily", "atHour": 0}}), Direct, None, (Daily, 0, None)),
        (json!({"reset": {"mode": "idle", "idleMinutes": 0}}), Direct, None, (Idle, 4, Some(1))),
        (json!({"reset": {"idleMinutes": u64::MAX}}), Direct, None, (Daily, 4, Some(52_560_000))),
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

/// The hour of the reset on days that lack it, have it twice, or do not exist.
#[test]
fn the_daily_reset_follows_every_calendar() {
    let rows = [
        // An ordinary day, before, at and after the hour.
        ("America/New_York", 4, "2026-02-10T03:59:59.999-05:00", "2026-02-09T04:00-05:00"),
        ("America/New_York", 4, "2026-02-10T04:00-05:00", "2026-02-10T04:00-05:00"),
        ("America/New_York", 4, "2026-02-10T23:59-05:00", "2026-02-10T04:00-05:00"),
        // Spring forward at 02:00.
        ("America/New_York", 4, "2026-03-08T03:30-04:00", "2026-03-07T04:00-05:00"),
        ("America/New_York", 4, "2026-03-08T04:00-04:00", "2026-03-08T04:00-04:00"),
        ("America/New_York", 2, "2026-03-08T01:59-05:00", "2026-03-07T02:00-05:00"),
        ("America/New_York", 2, "2026-03-08T03:00-04:00", "2026-03-08T03:00-04:00"),
        ("America/New_York", 3, "2026-03-09T02:59-04:00", "2026-03-08T03:00-04:00"),
        // Fall back at 02:00: 01:00 comes twice, the first counts.
        ("America/New_York", 1, "2026-11-01T01:30-04:00", "2026-11-01T01:00-04:00"),
        ("America/New_York", 1, "2026-11-01T01:30-05:00", "2026-11-01T01:00-04:00"),
        ("America/New_York", 4, "2026-11-01T03:30-05:00", "2026-10-31T04:00-04:00"),
        ("Europe/Berlin", 2, "2026-03-29T03:10+02:00", "2026-03-29T03:00+02:00"),
        ("Europe/Berlin", 2, "2026-10-25T02:30+01:00", "2026-10-25T02:00+02:00"),
        // Half an hour of daylight saving.
        ("Australia/Lord_Howe", 2, "2026-10-04T02:45+11:00", "2026-10-04T02:30+11:00"),
        // Midnight that does not exist.
        ("Africa/Cairo", 0, "2026-04-24T01:30+03:00", "2026-04-24T01:00+03:00"),
        // A day that does not exist: Samoa had no 30 December 2011.
        ("Pacific/Apia", 4, "2011-12-31T03:00+14:00", "2011-12-29T04:00-10:00"),
        ("Pacific/Apia", 4, "2011-12-31T04:00+14:00", "2011-12-31T04:00+14:00"),
        ("Asia/Kathmandu", 0, "2026-02-10T00:00+05:45", "2026-02-10T00:00+05:45"),
        ("UTC", 23, "2026-02-10T22:59Z", "2026-02-09T23:00Z"),
    ];
    for (zone, hour, now, expected) in rows {
        let ms = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_millisecond();
        let got = last_daily_reset(hour, ms(now), &TimeZone::get(zone).unwrap());
        let got = jiff::Timestamp::from_millisecond(got).unwrap();
        assert_eq!(got.as_millisecond(), ms(expected), "{zone} {hour} {now}: {got}");
    }
}

#[test]
fn a_clock_that_was_put_back_makes_nothing_stale() {
    const DAY: i64 = 24 * 60 * 60_000;
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    let touched = ms("2026-02-10T12:00", &zone);
    for policy in [
        ResetPolicy { mode: ResetMode::Daily, at_hour: 4, idle_minutes: Some(5) },
        ResetPolicy { mode: ResetMode::Idle, at_hour: 4, idle_minutes: Some(1) },
    ] {
        for back in [1, 60_000, DAY, 400 * DAY] {
            assert!(is_fresh(&policy, Some(touched), touched - back, &zone), "{policy:?} {back}");
        }
        assert!(!is_fresh(&policy, Some(touched), touched + DAY, &zone));
    }
}

#[test]
fn the_row_of_a_new_conversation_is_not_older_than_the_last_one() {
    let old: crate::SessionEntry =
        serde_json::from_value(json!({"sessionId": "old", "updatedAt": 100})).unwrap();
    for (now, expected) in [(50, 100), (150, 150)] {
        let new = old.reset(openclaw_protocol::SessionId::new("new"), now, crate::entry::ResetKind::Chat);
        assert_eq!(new.updated_at, Some(expected));
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
    let triggers = ["/new", "/reset", "Neues Gespräch"];
    let rows = [
        ("/new", "/new", Some(("/new", ""))),
        ("  /RESET ", "/RESET", Some(("/reset", ""))),
        ("/New take Notes", "/New take Notes", Some(("/new", "take Notes"))),
        ("@bot /new hello", "/new hello", Some(("/new", "hello"))),
        ("/new\nwrite:\n\n  code", "/new write: code", Some(("/new", "write:\n\n  code"))),
        ("neues GESPRÄCH mit Dir", "neues GESPRÄCH mit Dir", Some(("Neues Gespräch", "mit Dir"))),
        ("neues", "neues", None),
        ("/newer", "/newer", None),
        ("/new: hello", "/new: hello", Some(("/new", "hello"))),
        ("/NEW:\n hello", "/new: hello", Some(("/new", "hello"))),
        ("/new :) hello", "/new :) hello", Some(("/new", ":) hello"))),
        ("/news: hello", "/news: hello", None),
        ("Neues Gespräch: hello", "hello", None),
        ("please /new", "please /new", None),
        ("", "", None),
    ];
    for (raw, stripped, expect) in rows {
        let got = find_trigger(&triggers, raw, stripped, true);
        let got = got.as_ref().map(|request| (request.trigger.as_str(), request.rest.as_str()));
        assert_eq!(got, expect, "{raw:?}");
        assert_eq!(find_trigger(&triggers, raw, stripped, false), None, "{raw:?}");
    }
}

#[test]
fn a_command_is_a_name_and_what_follows_it() {
    let rows = [
        ("/new", Some(("new", ""))),
        ("/new: a b", Some(("new", "a b"))),
        ("/new\n a\n  b", Some(("new", "a\n  b"))),
        ("/weather Vienna", Some(("weather", "Vienna"))),
        ("/etc/passwd", Some(("etc/passwd", ""))),
        ("/", None),
        ("/ new", None),
        ("/: new", None),
        ("new", None),
        ("", None),
    ];
    for (text, expect) in rows {
        assert_eq!(slash_command(text), expect, "{text:?}");
    }
    assert_eq!(command_body(" /new [a]\n  b "), "/new [a]\n  b");
    assert_eq!(command_body("[Chat Bob] Bob: /new\n  b"), "/new b");
}

/// Vectors of `messages.md` §3.
#[test]
fn envelopes_and_names_do_not_hide_a_command() {
    let rows = [
        ("[WhatsApp +1 Thu 2026-02-10 10:00] hello", "hello"),
        ("[Chat messages since]\nAl: hi\n[Current message - respond to this]\nBob: /status", "/status"),
        ("Alice: /think high", "/think high"),
        ("hello: world test", "world test"),
        ("http://x.y", "//x.y"),
        ("a  b\\nc\n d", "a b c d"),
        ("a b", "a b"),
        (" a", "a"),
        ("a ", "a"),
        ("a\u{a0}b", "a b"),
        ("", ""),
        (" ", ""),
        ("[] [open /new", "[] [open /new"),
        ("[a] [b [c", "[b [c"),
        ("/new", "/new"),
    ];
    for (text, expected) in rows {
        assert_eq!(strip_structural_prefixes(text), expected, "{text:?}");
    }
}

#[test]
fn the_notice_names_the_default_where_it_is_another() {
    assert_eq!(notice("a/b", "a/b"), "✅ New session started · model: a/b");
    assert_eq!(notice("a/b", "c/d"), "✅ New session started · model: a/b (default: c/d)");
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
        assert_eq!(ResetType::of(&SessionKey::parse(key).unwrap(), thread, group), expect, "{key}");
    }
}
