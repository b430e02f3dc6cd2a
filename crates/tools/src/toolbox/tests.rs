use std::fs;
use std::path::Path;

use openclaw_agent::place::off_limits::OffLimits;
use openclaw_agent::prompt::{self, PromptInputs};
use openclaw_agent::tool_policy::{self, Candidate, PolicyCaller, PolicyStep};
use openclaw_agent::{Tool, ToolContext, ToolError, ToolOutput, tool::ToolFuture};
use openclaw_config::Environment;
use openclaw_config::settings::{Exec as ExecConfig, WebTools};
use openclaw_config::settings::{ToolPolicy, ToolProfile};
use openclaw_protocol::message::Block;
use serde_json::{Value, json};

use super::*;
use crate::exec::settings::ExecSettings;
use crate::path::Confinement;
use crate::testing::{self, context};

struct Bench {
    dir: tempfile::TempDir,
    tools: Toolbox,
}

impl Bench {
    fn new(confine: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let confinement =
            if confine { Confinement::Within(dir.path().to_owned()) } else { Confinement::Host };
        let at = |name: &str| dir.path().join(name).display().to_string();
        let environment = Environment::new([("HOME", at("home")), ("OPENCLAW_STATE_DIR", at("state"))], "/");
        let config = openclaw_config::Config::from_json5("{}", &environment).unwrap();
        let exec = ExecSettings::new(&ExecConfig::default(), environment);
        let all: Vec<String> = built_in().map(|facts| facts.name.to_owned()).collect();
        let tools = toolbox(
            Setup {
                confinement,
                exec,
                message: None,
                apply_patch: true,
                web: testing::web(&WebTools::default()),
                image: None,
                has_gateway: false,
                writes: crate::setup::Writes::default(),
                memory_off: None,
                off_limits: OffLimits::of(&config),
            },
            &all,
        );
        Self { dir, tools }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    async fn call(&self, name: &str, args: Value) -> Result<ToolOutput, ToolError> {
        self.tools.call(name, args, context(self.dir.path().to_owned())).await
    }

    /// Returns the text that the model reads.
    async fn says(&self, name: &str, args: Value) -> String {
        match self.call(name, args).await {
            Ok(output) => match output.content.as_slice() {
                [Block::Text(block)] => block.text.clone(),
                other => format!("{other:?}"),
            },
            Err(error) => format!("error: {error}"),
        }
    }
}

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn names(tools: &Toolbox) -> Vec<&str> {
    tools.specs().iter().map(|spec| &*spec.name).collect()
}

#[test]
fn only_allowed_tools_are_offered_and_exec_only_where_nothing_is_confined() {
    let offered = |allowed: &[&str], confinement| {
        let exec = ExecSettings::new(&ExecConfig::default(), Environment::default());
        let allowed = list(allowed);
        names(&toolbox(
            Setup {
                confinement,
                exec,
                message: None,
                apply_patch: false,
                web: testing::web(&WebTools::default()),
                image: None,
                has_gateway: false,
                writes: crate::setup::Writes::default(),
                memory_off: None,
                off_limits: Default::default(),
            },
            &allowed,
        ))
        .join(" ")
    };
    assert_eq!(
        offered(&["read", "edit", "write", "exec", "process"], Confinement::Host),
        "read edit write exec process"
    );
    assert_eq!(offered(&["exec", "browser"], Confinement::Host), "exec");
    assert_eq!(offered(&[], Confinement::Host), "");
    assert_eq!(offered(&["read", "exec"], Confinement::Within("/x".into())), "read");
}

#[test]
fn a_patch_is_offered_only_where_the_setup_says_so() {
    for (apply_patch, offered) in [(true, "read apply_patch"), (false, "read")] {
        let exec = ExecSettings::new(&ExecConfig::default(), Environment::default());
        let setup = Setup {
            confinement: Confinement::Within("/x".into()),
            exec,
            message: None,
            apply_patch,
            web: testing::web(&WebTools::default()),
            image: None,
            has_gateway: false,
            writes: crate::setup::Writes::default(),
            memory_off: None,
            off_limits: Default::default(),
        };
        assert_eq!(names(&toolbox(setup, &list(&["read", "apply_patch"]))).join(" "), offered);
    }
}

/// Names, types, required lists and order are what the reference sends; the words are ours.
#[test]
fn schemas_have_the_shape_of_the_reference() {
    const SHAPES: [(&str, &str); 5] = [
        (
            "read",
            r#"{"type":"object","properties":{"path":"string","offset":"number","limit":"number","file_path":"string"},"required":[]}"#,
        ),
        (
            "edit",
            r#"{"type":"object","properties":{"path":"string","oldText":"string","newText":"string","file_path":"string","old_string":"string","new_string":"string"},"required":[]}"#,
        ),
        (
            "write",
            r#"{"type":"object","properties":{"path":"string","content":"string","file_path":"string"},"required":["content"]}"#,
        ),
        ("apply_patch", r#"{"type":"object","properties":{"input":"string"},"required":["input"]}"#),
        (
            "exec",
            r#"{"type":"object","properties":{"command":"string","workdir":"string","env":"object","yieldMs":"number","background":"boolean","timeout":"number","pty":"boolean","elevated":"boolean","host":"string","security":"string","ask":"string","node":"string"},"required":["command"]}"#,
        ),
    ];
    let bench = Bench::new(false);
    for (spec, (name, shape)) in bench.tools.specs().iter().zip(SHAPES) {
        let mut schema = Value::clone(&spec.parameters);
        for property in schema["properties"].as_object_mut().unwrap().values_mut() {
            assert!(property.as_object().unwrap().keys().all(|key| key == "type" || key == "description"));
            *property = property["type"].clone();
        }
        assert_eq!((&*spec.name, schema.to_string().as_str()), (name, shape));
    }
}

#[test]
fn a_call_is_labelled_by_its_path_or_command() {
    let bench = Bench::new(false);
    for (name, args, label) in [
        ("read", json!({"path": "a.txt"}), Some("a.txt")),
        ("edit", json!({"file_path": " b.txt "}), Some("b.txt")),
        ("exec", json!({"command": "ls -l"}), Some("ls -l")),
        ("exec", json!({"command": " "}), None),
        ("write", json!({}), None),
        ("browser", json!({"path": "x"}), None),
    ] {
        assert_eq!(bench.tools.meta(name, &args).as_deref(), label, "{name} {args}");
    }
}

#[tokio::test]
async fn no_file_tool_touches_the_state_of_the_gateway() {
    for confine in [false, true] {
        let bench = Bench::new(confine);
        fs::create_dir_all(bench.path("state")).unwrap();
        fs::write(bench.path("state/openclaw.json"), "{}").unwrap();
        let patch = |what: &str, body: &str| json!({"input": format!("*** Begin Patch\n*** {what} File: {body}\n*** End Patch")});
        for (tool, args) in [
            ("read", json!({"path": "state/openclaw.json"})),
            ("write", json!({"path": "state/openclaw.json", "content": "x"})),
            ("write", json!({"path": "state/new/deep.txt", "content": "x"})),
            ("edit", json!({"path": "state/openclaw.json", "oldText": "{}", "newText": "x"})),
            ("apply_patch", patch("Add", "state/new.txt\n+x")),
            ("apply_patch", patch("Delete", "state/openclaw.json")),
            ("apply_patch", patch("Update", "state/openclaw.json\n@@\n-{}\n+x")),
            ("apply_patch", patch("Update", "state/openclaw.json\n*** Move to: mine.json\n@@\n-{}\n+x")),
        ] {
            let said = bench.says(tool, args.clone()).await;
            assert!(said.contains("which tools do not touch"), "{tool} {args}: {said}");
        }
        assert_eq!(fs::read_to_string(bench.path("state/openclaw.json")).unwrap(), "{}");
        assert_eq!(fs::read_dir(bench.path("state")).unwrap().count(), 1);
        assert!(!bench.path("mine.json").exists());
    }
}

#[tokio::test]
async fn files_are_written_read_and_edited() {
    let bench = Bench::new(false);
    let shown = |path: &Path| path.display().to_string();
    let away = bench.path("deep/er/x.txt");
    for (name, args, says) in [
        ("write", json!({"path": "a/b.txt", "content": "one\ntwo\n"}), "Successfully wrote 8 bytes to a/b.txt".to_owned()),
        ("write", json!({"path": shown(&away), "content": "é"}), format!("Successfully wrote 2 bytes to {}", shown(&away))),
        ("write", json!({"file_path": "~/h.txt", "content": ""}), "Successfully wrote 0 bytes to ~/h.txt".into()),
        ("write", json!({"path": "a"}), "error: Missing required parameter: content".into()),
        ("write", json!({"content": "x"}), "error: Missing required parameter: path (path or file_path)".into()),
        ("read", json!({"path": "@a/b.txt"}), "one\ntwo\n".into()),
        ("read", json!({"path": "a/b.txt", "offset": "2", "limit": 1}), "two\n\n[Lines 2-2 of 3. Go on with offset=3.]".into()),
        ("read", json!({"path": "a/b.txt", "offset": 9}), "error: Offset 9 is past the end: the file has 3 lines".into()),
        ("read", json!({"path": "none.txt"}), "error: File not found: none.txt".into()),
        ("edit", json!({"path": "a/b.txt", "oldText": "two", "newText": "2"}), "Successfully replaced text in a/b.txt.".into()),
        ("edit", json!({"path": "a/b.txt", "old_string": "2\n", "new_string": ""}), "Successfully replaced text in a/b.txt.".into()),
        ("read", json!({"path": "a/b.txt"}), "one\n".into()),
        ("edit", json!({"path": "none.txt", "oldText": "a", "newText": "b"}), "error: File not found: none.txt".into()),
        (
            "edit",
            json!({"path": "a/b.txt", "oldText": "two", "newText": "2"}),
            "error: a/b.txt does not hold the old text. It has to match the file to the letter, white space and line breaks included.".into(),
        ),
        (
            "edit",
            json!({"path": "a/b.txt", "oldText": "n", "newText": "n"}),
            "error: a/b.txt stays as it is: the new text changes nothing.".into(),
        ),
        ("edit", json!({"path": "a/b.txt", "newText": "n"}), "error: Missing required parameter: oldText (oldText or old_string)".into()),
        ("edit", json!({"path": "a/b.txt", "oldText": "n"}), "error: Missing required parameter: newText (newText or new_string)".into()),
        ("write", json!({"path": "a/b.txt", "content": "x x"}), "Successfully wrote 3 bytes to a/b.txt".into()),
        (
            "edit",
            json!({"path": "a/b.txt", "oldText": "x", "newText": "n"}),
            "error: The old text occurs 2 times in a/b.txt and must be unique. Include more of the lines around it.".into(),
        ),
        ("browser", json!({}), "error: Tool browser not found".into()),
        ("apply_patch", json!({"input": "*** Begin Patch\n*** Add File: p.txt\n+x\n*** End Patch"}), "Success. Updated the following files:\nA p.txt".into()),
        ("apply_patch", json!({}), "error: Provide a patch input.".into()),
    ] {
        assert_eq!(bench.says(name, args.clone()).await, says, "{name} {args}");
    }
    assert_eq!(fs::read_to_string(away).unwrap(), "é");
    assert_eq!(fs::read_to_string(bench.path("home/h.txt")).unwrap(), "");
}

#[tokio::test]
async fn an_edit_tells_clients_what_changed() {
    let bench = Bench::new(false);
    fs::write(bench.path("a.txt"), "one\ntwo\n").unwrap();
    let output =
        bench.call("edit", json!({"path": "a.txt", "oldText": "two", "newText": "2"})).await.unwrap();
    assert_eq!(output.details, Some(json!({"diff": " 1 one\n-2 two\n+2 2", "firstChangedLine": 2})));
}

#[tokio::test]
async fn an_image_comes_with_a_note() {
    let bench = Bench::new(false);
    let mut png = std::io::Cursor::new(Vec::new());
    image::RgbImage::new(2, 2).write_to(&mut png, image::ImageFormat::Png).unwrap();
    fs::write(bench.path("a.dat"), png.into_inner()).unwrap();
    let output = bench.call("read", json!({"path": "a.dat"})).await.unwrap();
    let [Block::Text(note), Block::Image(image)] = output.content.as_slice() else { panic!("{output:?}") };
    assert_eq!((note.text.as_str(), image.mime_type.as_str()), ("Read image file [image/png]", "image/png"));
}

#[tokio::test]
async fn a_confined_tool_cannot_leave_its_directory() {
    let bench = Bench::new(true);
    let root = bench.dir.path().display().to_string();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "s").unwrap();
    std::os::unix::fs::symlink(outside.path(), bench.path("link")).unwrap();
    let secret = outside.path().join("secret").display().to_string();
    for (name, path, says) in [
        ("read", "../x", format!("error: Path escapes sandbox root ({root}): ../x")),
        ("read", secret.as_str(), format!("error: Path escapes sandbox root ({root}): {secret}")),
        ("write", secret.as_str(), format!("error: Path escapes sandbox root ({root}): {secret}")),
        ("read", "link/secret", "error: Symlink not allowed in sandbox path: link/secret".into()),
        ("write", "link/new", "error: Symlink not allowed in sandbox path: link/new".into()),
        ("edit", "link/secret", "error: Symlink not allowed in sandbox path: link/secret".into()),
        ("write", "sub/../in.txt", "Successfully wrote 1 bytes to sub/../in.txt".into()),
        ("read", "in.txt", "x".into()),
        ("read", ".", format!("error: Path escapes sandbox root ({root}): .")),
        ("exec", "x", "error: Tool exec not found".into()),
    ] {
        let args = json!({"path": path, "content": "x", "oldText": "s", "newText": "x", "command": "true"});
        assert_eq!(bench.says(name, args).await, says, "{name} {path}");
    }
    assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), "s");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

/// Files that never end, never begin, or are none: refused at once, and left as they are.
#[tokio::test]
async fn what_is_no_plain_file_is_refused_at_once() {
    let bench = Bench::new(false);
    nix::unistd::mkfifo(&bench.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::os::unix::fs::symlink("/dev/zero", bench.path("zero")).unwrap();
    std::os::unix::net::UnixListener::bind(bench.path("socket")).unwrap();
    fs::create_dir(bench.path("directory")).unwrap();
    let update = |path: &str| json!({"input": format!("*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch")});
    for path in
        ["pipe", "zero", "/dev/zero", "/dev/full", "socket", "directory", "/proc/self/mem", "/proc/self/fd"]
    {
        for (tool, args) in [
            ("read", json!({"path": path})),
            ("write", json!({"path": path, "content": "x"})),
            ("edit", json!({"path": path, "oldText": "a", "newText": "b"})),
            ("apply_patch", update(path)),
        ] {
            let said = tokio::time::timeout(std::time::Duration::from_secs(20), bench.says(tool, args)).await;
            let said = said.unwrap_or_else(|_| panic!("{tool} {path} hangs"));
            assert!(said.starts_with("error: "), "{tool} {path}: {said}");
            let is_plain = path == "/proc/self/mem";
            assert!(
                is_plain || said.contains("Not a regular file") || said.contains("No such device"),
                "{tool} {path}: {said}"
            );
        }
    }
}

/// A file of two gigabytes is never loaded: it is refused, or read only as far as it is needed.
#[tokio::test]
async fn a_file_of_two_gigabytes_takes_no_memory_and_no_time() {
    let bench = Bench::new(false);
    let file = fs::File::create(bench.path("large")).unwrap();
    file.set_len(2 << 30).unwrap();
    let too_large = "error: large is larger than 32MB. Use exec to change it.";
    let edit = json!({"path": "large", "oldText": "a", "newText": "b"});
    assert_eq!(bench.says("edit", edit).await, too_large);
    let input = "*** Begin Patch\n*** Update File: large\n@@\n-a\n+b\n*** End Patch";
    assert_eq!(bench.says("apply_patch", json!({"input": input})).await, too_large);
    // Reading it counts its lines, until nobody waits any more.
    let context = context(bench.dir.path().to_owned());
    let cancel = context.cancel.clone();
    let (read, ()) = tokio::join!(bench.tools.call("read", json!({"path": "large"}), context), async {
        tokio::task::yield_now().await;
        cancel.cancel();
    });
    assert!(matches!(read, Err(ToolError::Aborted)), "{read:?}");
    // A picture that is as large is refused by its size alone.
    let mut picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x02\x08\x02\0\0\0".to_vec();
    picture.resize(64, 0);
    fs::write(bench.path("picture"), picture).unwrap();
    fs::OpenOptions::new().write(true).open(bench.path("picture")).unwrap().set_len(2 << 30).unwrap();
    let output = bench.call("read", json!({"path": "picture"})).await.unwrap();
    let [Block::Text(_), Block::Text(why)] = output.content.as_slice() else { panic!("{output:?}") };
    assert!(why.text.starts_with("[read:picture] omitted image payload: "), "{}", why.text);
}

#[tokio::test]
async fn a_cancelled_call_does_nothing() {
    let bench = Bench::new(false);
    let context = context(bench.dir.path().to_owned());
    context.cancel.cancel();
    let result = bench.tools.call("write", json!({"path": "a", "content": "x"}), context).await;
    assert!(matches!(result, Err(ToolError::Aborted)));
    assert!(!bench.path("a").exists());
}

fn step(profile: Option<ToolProfile>, allow: Option<&[&str]>, also: &[&str], deny: &[&str]) -> PolicyStep {
    PolicyStep {
        label: "tools.allow",
        policy: ToolPolicy {
            profile,
            allow: allow.map(list),
            also_allow: Some(list(also)),
            deny: Some(list(deny)),
        },
    }
}

/// Returns the tools in the table that remain after the policy, built in or not.
fn selected(steps: &[PolicyStep]) -> Vec<String> {
    selected_for(PolicyCaller::OWNER, steps)
}

fn selected_for(caller: PolicyCaller, steps: &[PolicyStep]) -> Vec<String> {
    let tools: Vec<Candidate<'_>> = CATALOGUE.facts().map(Candidate::from).collect();
    tool_policy::select(&CATALOGUE, &tools, caller, steps).names().map(str::to_owned).collect()
}

const SUBAGENT: PolicyCaller = PolicyCaller { is_subagent: true, ..PolicyCaller::OWNER };

/// Vectors of spec `tools.md` §8.2.
#[test]
fn the_chain_decides_as_the_reference_does() {
    let rows: [(Vec<PolicyStep>, &[&str], &[&str]); 10] = [
        (vec![step(None, Some(&["read"]), &[], &[])], &["read"], &["exec"]),
        (vec![step(None, Some(&["exec"]), &[], &[])], &["apply_patch", "exec"], &["read"]),
        (vec![step(None, None, &[], &["group:fs"])], &["exec"], &["read", "apply_patch"]),
        (
            vec![step(Some(ToolProfile::Minimal), None, &["web_fetch"], &[])],
            &["web_fetch", "session_status"],
            &["read"],
        ),
        (
            vec![step(Some(ToolProfile::Coding), None, &[], &[]), step(None, None, &[], &["exec"])],
            &["read", "memory_get"],
            &["exec", "browser"],
        ),
        (vec![step(None, Some(&["*"]), &[], &["browser"])], &["read"], &["browser"]),
        (vec![step(None, Some(&["web_*"]), &[], &[])], &["web_fetch"], &["read"]),
        (
            vec![step(None, None, &[], &["exec"]), step(None, Some(&["exec"]), &[], &[])],
            &[],
            &["exec", "read"],
        ),
        (vec![step(None, Some(&[]), &[], &[])], &["read", "exec"], &[]),
        (vec![step(None, None, &["my_tool"], &[])], &["read", "exec"], &[]),
    ];
    for (steps, inside, outside) in rows {
        let out = selected(&steps);
        for name in inside {
            assert!(out.iter().any(|n| n == name), "{name} in {out:?} for {steps:?}");
        }
        for name in outside {
            assert!(!out.iter().any(|n| n == name), "{name} not in {out:?} for {steps:?}");
        }
    }
    let spawning = [step(None, Some(&["sessions_spawn"]), &[], &[])];
    assert_eq!(selected_for(SUBAGENT, &spawning), Vec::<String>::new());
}

/// The table of spec `tools.md` §8.1, and the tools that sub-agents never have (§8.2).
#[test]
fn a_group_holds_the_tools_of_the_reference() {
    let left = |deny: &str| selected(&[step(None, None, &[], &[deny])]);
    let all = left("none");
    for (group, members) in [
        ("group:fs", "read edit write apply_patch"),
        ("group:runtime", "exec process"),
        ("group:web", "web_search web_fetch"),
        ("group:memory", "memory_search memory_get"),
        ("group:sessions", "sessions_list sessions_history sessions_send sessions_spawn session_status"),
        ("group:ui", "browser canvas"),
        ("group:automation", "cron gateway"),
        ("group:messaging", "message"),
        ("group:nodes", "nodes"),
        (
            "group:openclaw",
            "browser canvas nodes cron message gateway agents_list sessions_list sessions_history sessions_send \
             sessions_spawn session_status web_search web_fetch image memory_search memory_get",
        ),
        ("Bash", "exec process"),
        ("apply-patch", "apply_patch"),
    ] {
        let left = left(group);
        let denied: Vec<&str> = all.iter().filter(|name| !left.contains(name)).map(String::as_str).collect();
        assert_eq!(denied.join(" "), members, "{group}");
    }
    let left = selected_for(SUBAGENT, &[]);
    let denied: Vec<&str> = all.iter().filter(|name| !left.contains(name)).map(String::as_str).collect();
    assert_eq!(
        denied.join(" "),
        "whatsapp_login cron gateway agents_list sessions_list sessions_history sessions_send sessions_spawn \
         session_status memory_search memory_get"
    );
}

#[test]
fn the_reason_for_an_absence_is_the_one_that_a_toolbox_goes_by() {
    let dir = Confinement::Within("/".into());
    let off: WebTools =
        serde_json::from_value(json!({"search": {"enabled": false}, "fetch": {"enabled": false}})).unwrap();
    let on = WebTools::default();
    let conditions = Conditions {
        confinement: &Confinement::Host,
        has_sandbox: false,
        has_channel: true,
        apply_patch: None,
        web: &on,
        has_image_model: true,
        has_gateway: true,
        memory: None,
    };
    let no_patch = Some(Absence::OtherProviders);
    for (conditions, tool, expect) in [
        (conditions, "read", None),
        (conditions, "apply_patch", None),
        (conditions, "message", None),
        (conditions, "web_fetch", None),
        (conditions, "image", None),
        (conditions, "gateway", None),
        (Conditions { has_image_model: false, ..conditions }, "image", Some(Absence::NoImageModel)),
        (Conditions { has_gateway: false, ..conditions }, "gateway", Some(Absence::NoGateway)),
        (conditions, "browser", Some(Absence::NotBuiltIn)),
        (Conditions { has_channel: false, ..conditions }, "message", Some(Absence::NoChannel)),
        (Conditions { apply_patch: no_patch, ..conditions }, "apply_patch", no_patch),
        (Conditions { confinement: &dir, ..conditions }, "exec", Some(Absence::NotConfinable)),
        (Conditions { confinement: &dir, ..conditions }, "read", None),
        (
            Conditions { web: &off, ..conditions },
            "web_search",
            Some(Absence::SwitchedOff { setting: "tools.web.search.enabled" }),
        ),
        (
            Conditions { web: &off, ..conditions },
            "web_fetch",
            Some(Absence::SwitchedOff { setting: "tools.web.fetch.enabled" }),
        ),
    ] {
        let all: Vec<_> = absences(&conditions).collect();
        let absence = all.iter().find(|(facts, _)| facts.name == tool).unwrap().1;
        assert_eq!(absence, expect, "{tool} {conditions:?}");
    }
}

/// A tool of which only the row counts.
struct Named(&'static ToolFacts);

impl Tool for Named {
    fn facts(&self) -> &ToolFacts {
        self.0
    }

    fn schema(&self) -> openclaw_models::ToolSchema {
        json!({"type": "object"}).into()
    }

    fn run(&self, _: Value, _: ToolContext) -> ToolFuture<'_> {
        Box::pin(async { Ok(ToolOutput::default()) })
    }
}

#[test]
fn the_prompt_lists_the_tools_in_their_order_with_their_summaries() {
    let tools = TOOLS.iter().map(|row| -> Box<dyn Tool> { Box::new(Named(&row.facts)) }).collect();
    let tools = Toolbox::new(tools, &CATALOGUE);
    let text = prompt::build(&PromptInputs { tools: &tools, ..PromptInputs::default() }).text;
    let listed: Vec<&str> = text.lines().filter(|line| line.starts_with("- ")).take(TOOLS.len()).collect();
    let expected = "\
- read: Read a file
- write: Create or replace a file
- edit: Replace an exact piece of text in a file
- apply_patch: Change several files with one patch
- grep: Search file contents
- find: Find files by name pattern
- ls: List a directory
- exec: Run a shell command (pty for programs that need a terminal)
- process: Watch, feed and stop commands running in the background
- web_search: Search the web
- web_fetch: Fetch a page and extract its readable text
- browser: Drive a web browser
- canvas: Show, evaluate and capture canvases on nodes
- nodes: List, describe and use paired nodes: notifications, camera, screen
- cron: Schedule jobs and reminders (write reminder text so that it reads as a reminder when it fires, with the context it needs)
- message: Send messages and channel actions
- gateway: Read and change the gateway's configuration, restart or update it
- agents_list: List the agents that may be given work
- sessions_list: List sessions, filtered, with their last messages
- sessions_history: Read another session's history
- sessions_send: Send a message to another session
- session_status: Status card: usage, time, model
- image: Look at an image with the image model
- memory_get: Read lines of MEMORY.md or a memory/*.md file
- memory_search: Search MEMORY.md and memory/*.md
- sessions_spawn: Start a sub-agent
- tts: Turn text into speech
- whatsapp_login";
    assert_eq!(listed.join("\n"), expected);
}
