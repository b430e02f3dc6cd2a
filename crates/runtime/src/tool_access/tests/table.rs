//! Every caller, by every way in, with every tool: none has more than the rule gives. Rights are settled here exactly as runs settle them;
//! `tests/e2e/rights.rs` has one end-to-end test per way.

use std::sync::Arc;

use openclaw_agent::tool_policy::Candidate;
use openclaw_config::settings::Config;
use openclaw_journal::api::Occasion;
use openclaw_journal::caller::{CallerIdentity, CallerRights};
use openclaw_journal::request::RunRequest;
use openclaw_journal::rights::settle::{RightsFacts, Within, of_nobody, of_owner, settled};
use openclaw_journal::rights::{Maker, Rights, groups};
use openclaw_journal::source::{ClientSource, ProgramSource, RequestSource};
use openclaw_journal::testing::{direct, group};
use openclaw_protocol::SessionKey;
use openclaw_sessions::{KeyRules, SessionEntry, SessionSettings};
use openclaw_tools::CATALOGUE;
use serde_json::json;

use crate::tool_access::{self, RunOf};

const MAIN: &str = "agent:main:main";
const GROUP: &str = "agent:main:telegram:group:-100";
/// A direct chat with the owner, where each person has a session of their own.
const OWNERS: &str = "agent:main:telegram:dm:1111";
const HELD: &str = "agent:held:main";
const CHILD: &str = "agent:main:subagent:x";
const FREE_CHILD: &str = "agent:free:subagent:x";

struct World {
    config: Arc<Config>,
    rules: KeyRules,
}

/// A caller, and the session that they speak in.
struct Caller {
    name: &'static str,
    session: &'static str,
    request: RunRequest,
}

/// A way by which a caller's words, or what they cause, come to be acted on. One that is not in this list is not tested: a new variant
/// belongs into [`WAYS`] and gets an arm in [`World::led`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Message,
    Collected,
    Steered,
    SubAgent,
    SessionsSend,
    Process,
    Button,
    Hook,
    ToolsInvoke,
}

const WAYS: [Way; 9] = [
    Way::Message,
    Way::Collected,
    Way::Steered,
    Way::SubAgent,
    Way::SessionsSend,
    Way::Process,
    Way::Button,
    Way::Hook,
    Way::ToolsInvoke,
];

/// Session and rights that a way in led to.
struct Reached {
    way: String,
    session: &'static str,
    rights: Rights,
}

impl World {
    fn new() -> Self {
        let config = config(&json!({
            "agents": {"list": [
                {"id": "main", "default": true},
                {"id": "held", "sandbox": {"mode": "all"}},
                {"id": "free", "sandbox": {"mode": "off"}},
            ]},
            "tools": {"elevated": {"allowFrom": {"telegram": ["1111"], "webchat": ["*"]}}},
            "channels": {"telegram": {"groups": {"-100": {"toolsBySender": {
                "1111": {}, "5": {"deny": ["write"]}, "*": {"deny": ["exec"]},
            }}}}},
        }));
        let rules = SessionSettings::from(&*config).key_rules();
        Self { config, rules }
    }

    fn settled(&self, key: &str, request: &RunRequest, started_with: Option<&Rights>) -> Rights {
        // Whoever adds a fact that rights depend on adds callers or ways that differ in it.
        let RightsFacts { carried: _, caller, button: _ } = request.asked();
        let CallerRights { may_command: _, is_owner: _, is_let_in: _, may_approve: _ } = caller.rights;
        let (CallerIdentity::Gateway
        | CallerIdentity::Program
        | CallerIdentity::Client
        | CallerIdentity::Sender(_)) = caller.identity;
        self.within(key, started_with, |within| settled(request.asked(), within))
    }

    /// Rights that the way leads the caller to, each with the rights that it may not exceed.
    fn led(&self, caller: &Caller, way: Way) -> Vec<(Rights, Reached)> {
        let (session, own) = (caller.session, self.settled(caller.session, &caller.request, None));
        let bound_by_own = |reached: Reached| (own.clone(), reached);
        let caused = |by: &[&str]| -> Vec<(Rights, Reached)> {
            let all = caused(self, session, &own).into_iter();
            all.filter(|reached| by.iter().any(|by| reached.way.contains(by))).map(bound_by_own).collect()
        };
        match way {
            Way::Message => {
                let rights = own.clone();
                vec![bound_by_own(Reached { way: "message".to_owned(), session, rights })]
            }
            // The words of two callers are in one run only where both have the same rights alone: it has neither more than the one nor
            // more than the other.
            Way::Collected | Way::Steered => {
                let others = callers().into_iter().filter(|other| other.session == session);
                let joined = others.filter_map(|other| {
                    let theirs = self.settled(session, &other.request, None);
                    let way = format!("{way:?} with {}", other.name);
                    (theirs == own).then(|| (theirs, Reached { way, session, rights: own.clone() }))
                });
                joined.collect()
            }
            Way::SubAgent => caused(&[CHILD, FREE_CHILD]),
            Way::SessionsSend => caused(&["sessions_send", "reply"]),
            Way::Process => caused(&["woken"]),
            Way::Button => {
                let pressed = callers().into_iter().filter_map(|presser| {
                    let press = pressed(&presser.request, Maker::Known(own.clone()))?;
                    let rights = self.settled(session, &press, None);
                    let way = format!("button that {} presses", presser.name);
                    Some(bound_by_own(Reached { way, session, rights }))
                });
                pressed.collect()
            }
            // `BOOT.md` is the owner's: who may not run any command unasked can't write it.
            Way::Hook => {
                let source = ProgramSource {
                    occasion: Occasion::Heartbeat,
                    rights: CallerRights::of_client(false, true),
                    ..ProgramSource::default()
                };
                let boot =
                    RunRequest { source: RequestSource::Program(Box::new(source)), ..RunRequest::default() };
                let bound = self.within(session, None, |within| of_owner(Vec::new(), within));
                let rights = self.settled(session, &boot, None);
                vec![(bound, Reached { way: "BOOT.md".to_owned(), session, rights })]
            }
            Way::ToolsInvoke => {
                let key = SessionKey::parse(session).unwrap();
                let of_group = groups::of_client(&self.config, &key, &SessionEntry::default(), (None, None));
                let bound = self.settled(session, &of_client(true), None);
                let rights = self.within(session, None, |within| of_owner(of_group, within));
                vec![(bound, Reached { way: "tools/invoke".to_owned(), session, rights })]
            }
        }
    }

    fn within<T>(&self, key: &str, started_with: Option<&Rights>, decide: impl FnOnce(Within<'_>) -> T) -> T {
        let (key, entry) = (SessionKey::parse(key).unwrap(), SessionEntry::default());
        let agent = self.rules.agent_of(&key);
        decide(Within {
            config: &self.config,
            rules: &self.rules,
            key: &key,
            agent: &agent,
            entry: &entry,
            started_with,
        })
    }

    /// Returns the built-in tools that a run has.
    fn tools(&self, key: &str, rights: &Rights) -> Vec<&'static str> {
        let key = SessionKey::parse(key).unwrap();
        let agent = self.config.agent(&self.rules.agent_of(&key));
        let run = RunOf {
            config: &self.config,
            agent: &agent,
            provider: "openai",
            model: "gpt-5.2",
            session: &key,
            is_owner: rights.are_owners(),
            has_image_model: true,
        };
        let tools: Vec<Candidate<'_>> = CATALOGUE.facts().map(Candidate::from).collect();
        tool_access::select(run, &tools, rights.tool_policies(), None).names().collect()
    }
}

fn config(document: &serde_json::Value) -> Arc<Config> {
    let env = openclaw_config::Environment::new([("HOME", "/home/user")], "/");
    Config::from_json5(&document.to_string(), &env).unwrap()
}

fn of_client(may_administer: bool) -> RunRequest {
    RunRequest {
        source: RequestSource::Client(ClientSource {
            rights: CallerRights::of_client(false, may_administer),
            ..ClientSource::default()
        }),
        ..RunRequest::default()
    }
}

/// Returns the press of a button; `None` for callers who have no buttons to press.
fn pressed(request: &RunRequest, maker: Maker) -> Option<RunRequest> {
    let mut press = request.clone();
    let RequestSource::Platform(platform) = &mut press.source else { return None };
    platform.button = Some(maker);
    Some(press)
}

fn said(origin: openclaw_journal::origin::MessageOrigin) -> RunRequest {
    RunRequest { source: RequestSource::platform(origin), ..RunRequest::default() }
}

fn callers() -> Vec<Caller> {
    let owner = |mut origin: openclaw_journal::origin::MessageOrigin| {
        origin.rights.is_owner = true;
        said(origin)
    };
    let mut named = group("-100", "7", None);
    named.sender.name = Some("1111".to_owned());
    named.sender.username = Some("1111".to_owned());
    let caller = |name, session, request| Caller { name, session, request };
    vec![
        caller("owner", MAIN, owner(direct("1111", None))),
        caller("owner in own chat", OWNERS, owner(direct("1111", None))),
        caller("owner in group", GROUP, owner(group("-100", "1111", None))),
        caller("friend in main", MAIN, said(direct("5", None))),
        caller("friend in own chat", "agent:main:telegram:dm:5", said(direct("5", None))),
        caller("friend in group", GROUP, said(group("-100", "5", None))),
        caller("stranger in group", GROUP, said(group("-100", "7", None))),
        caller("stranger with the owner's name", GROUP, said(named)),
        caller("admin client", MAIN, of_client(true)),
        caller("writing client", MAIN, of_client(false)),
        caller("writing client in group", GROUP, of_client(false)),
        caller("program", MAIN, RunRequest { source: RequestSource::program(), ..RunRequest::default() }),
        caller("admin client in a sandbox", HELD, of_client(true)),
        caller("nobody in group", GROUP, {
            let source = ProgramSource { occasion: Occasion::Heartbeat, ..ProgramSource::default() };
            RunRequest { source: RequestSource::Program(Box::new(source)), ..RunRequest::default() }
        }),
    ]
}

/// Returns everything that a run with these rights in this session can cause.
fn caused(world: &World, session: &'static str, rights: &Rights) -> Vec<Reached> {
    let carried = RunRequest {
        source: RequestSource::program(),
        rights: Some(rights.caused()),
        ..RunRequest::default()
    };
    let mut reached = Vec::new();
    let mut add = |way: String, session, rights| reached.push(Reached { way, session, rights });
    for to in [MAIN, GROUP, OWNERS, HELD, "agent:main:anew"] {
        let sent = world.settled(to, &carried, None);
        let reply = RunRequest { rights: Some(sent.caused()), ..carried.clone() };
        add(format!("sessions_send to {to}"), to, sent);
        add(format!("reply from {to}"), session, world.settled(session, &reply, None));
    }
    for child in [CHILD, FREE_CHILD] {
        let own = rights.caused();
        let first = world.settled(child, &carried, Some(&own));
        let again = RunRequest { rights: Some(first.caused()), ..carried.clone() };
        add(format!("sub-agent {child}"), child, first);
        add(format!("what {child} sends on"), MAIN, world.settled(MAIN, &again, None));
        add(format!("announcement of {child}"), session, world.settled(session, &carried, None));
        for asked in [of_client(true), said(direct("1111", None))] {
            add(format!("said to {child}"), child, world.settled(child, &asked, Some(&own)));
        }
        add(format!("woken {child}"), child, world.within(child, Some(&own), of_nobody));
    }
    // A command in the background wakes its session where that gains nothing.
    let woken = world.within(session, None, of_nobody);
    if rights.cover(&woken) {
        add("woken".to_owned(), session, woken);
    }
    reached
}

/// Checks that the rights that were reached allow nothing that `bound`, the rights they came from, does not.
fn no_more(world: &World, of: &str, bound: &Rights, found: &Reached) {
    let Reached { way, session, rights } = found;
    assert!(bound.cover(rights), "{of} by {way}: {rights:?} is more than {bound:?}");
    let (may, has) = (world.tools(session, bound), world.tools(session, rights));
    assert!(has.iter().all(|tool| may.contains(tool)), "{of} by {way}: {has:?} of {may:?}");
    assert!(has.contains(&"exec") || !has.contains(&"process"), "{of} by {way}");
}

/// Every caller, by every way in, with every tool there is.
#[test]
fn no_caller_has_a_tool_by_any_way_in_that_the_rule_does_not_give() {
    let world = World::new();
    let names: Vec<&str> = CATALOGUE.facts().map(|facts| facts.name).collect();
    let mut cells = 0;
    for way in WAYS {
        let mut is_open = false;
        for caller in callers() {
            let name = caller.name;
            for (bound, reached) in world.led(&caller, way) {
                is_open = true;
                no_more(&world, name, &bound, &reached);
                let (may, has) =
                    (world.tools(reached.session, &bound), world.tools(reached.session, &reached.rights));
                for tool in &names {
                    cells += 1;
                    assert!(
                        !has.contains(tool) || may.contains(tool),
                        "{name} has {tool} by {}",
                        reached.way
                    );
                }
            }
        }
        assert!(is_open, "{way:?} leads nobody anywhere");
    }
    assert!(cells > WAYS.len() * callers().len() * names.len(), "{cells}");
}

#[test]
fn nobody_has_more_than_the_rule_gives_by_any_way_in() {
    let world = World::new();
    for Caller { name, session, request } in callers() {
        let own = world.settled(session, &request, None);
        for first in caused(&world, session, &own) {
            no_more(&world, name, &own, &first);
            assert!(!first.rights.are_owners() && !first.rights.may_elevate(), "{name} by {}", first.way);
            // And so on: chains gain nothing either.
            for second in caused(&world, first.session, &first.rights) {
                no_more(&world, name, &first.rights, &second);
                assert!(own.cover(&second.rights), "{name} by {} and {}", first.way, second.way);
            }
        }
        // A client that calls a tool in the name of the session is the owner, limited by the session.
        let key = SessionKey::parse(session).unwrap();
        let of_group = groups::of_client(&world.config, &key, &SessionEntry::default(), (None, None));
        let invoked = world.within(session, None, |within| of_owner(of_group, within));
        let has_tool = |tool: &str| world.tools(session, &invoked).contains(&tool);
        assert_eq!(has_tool("exec"), session != GROUP, "{session}");
        assert_eq!(invoked.may_use_host(), session != HELD, "{session}");
    }
}

#[test]
fn a_press_has_what_both_its_presser_and_the_maker_of_its_button_have() {
    let world = World::new();
    for Caller { name, session, request } in callers() {
        let made = world.settled(session, &request, None);
        for Caller { name: presser, session, request } in callers() {
            let press = |maker| pressed(&request, maker);
            let (Some(known), Some(unknown)) = (press(Maker::Known(made.clone())), press(Maker::Unknown))
            else {
                continue;
            };
            let way = || format!("a button that {presser} presses");
            let alone = world.settled(session, &request, None);
            let pressed = world.settled(session, &known, None);
            assert_eq!(pressed, made.least(&alone), "{name} by {}", way());
            no_more(&world, name, &made, &Reached { way: way(), session, rights: pressed.clone() });
            for next in caused(&world, session, &pressed) {
                no_more(&world, name, &made, &next);
                assert!(alone.cover(&next.rights), "{name} by {} and {}", way(), next.way);
            }
            let unknown = world.settled(session, &unknown, None);
            let nobodys = world.within(session, None, of_nobody);
            assert_eq!(unknown, nobodys.least(&alone), "{}", way());
        }
    }
}

#[test]
fn words_are_put_together_only_where_the_rights_are_the_same() {
    let world = World::new();
    for one in callers() {
        let rights = world.settled(one.session, &one.request, None);
        for other in callers().iter().filter(|other| other.session == one.session) {
            let others = world.settled(other.session, &other.request, None);
            let together = rights.least(&others);
            let is_same = rights == others;
            assert_eq!(is_same, together == rights && together == others, "{} and {}", one.name, other.name);
            let way = format!("together with {}", other.name);
            no_more(&world, one.name, &rights, &Reached { way, session: one.session, rights: together });
        }
    }
}

/// Lists the rights of each caller, so that the other tests can't pass merely because callers have none.
#[test]
fn callers_have_what_their_standing_gives() {
    let world = World::new();
    let rows = [
        ("owner", "owner elevated host memory sessions exec write"),
        ("owner in own chat", "owner elevated host memory sessions exec write"),
        ("owner in group", "owner elevated host memory sessions exec write"),
        ("friend in main", "host memory exec write"),
        ("friend in own chat", "host exec write"),
        ("friend in group", "host exec"),
        ("stranger in group", "host write"),
        ("stranger with the owner's name", "host write"),
        ("admin client", "owner elevated host memory sessions exec write"),
        ("writing client", "elevated host memory exec write"),
        ("writing client in group", "elevated host write"),
        ("program", "host memory exec write"),
        ("admin client in a sandbox", "owner elevated memory sessions exec write"),
        ("nobody in group", "host"),
    ];
    let callers = callers();
    assert_eq!(callers.len(), rows.len());
    for (Caller { name, session, request }, (row, expect)) in callers.iter().zip(rows) {
        let rights = world.settled(session, request, None);
        let tools = world.tools(session, &rights);
        let marks = [
            (rights.are_owners(), "owner"),
            (rights.may_elevate(), "elevated"),
            (rights.may_use_host(), "host"),
            (rights.read_memory(), "memory"),
            (rights.see_other_sessions(), "sessions"),
            (tools.contains(&"exec"), "exec"),
            (tools.contains(&"write"), "write"),
        ];
        let found: Vec<&str> = marks.into_iter().filter(|(is_so, _)| *is_so).map(|(_, mark)| mark).collect();
        assert_eq!((*name, found.join(" ").as_str()), (row, expect));
        assert_eq!(tools.contains(&"gateway"), rights.are_owners(), "{name}");
    }
}
