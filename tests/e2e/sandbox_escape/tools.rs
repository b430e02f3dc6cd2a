//! Files of the host, by the file tools: those run outside, and are held to the directory.

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use openclaw_tools::sandbox::Level;
use serde_json::json;

use super::bench::bench;

#[tokio::test]
async fn paths_that_leave_the_workspace_are_refused() {
    let Some(bench) = bench(Level::Namespaces, json!({})).await else { return };
    let (state, root) = (bench.state().display().to_string(), bench.box_dir().to_owned());
    // As a command would make them; one is made by a command.
    bench.run(&format!("ln -s {state} dir; ln -s {state}/openclaw.json file; ln -s / slash; mkfifo pipe; ln -s /dev/zero zero")).await;
    symlink("..", root.join("up")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    let escapes = "Path escapes sandbox root (";
    let link = "Symlink not allowed in sandbox path: ";
    let paths = [
        ("../x".to_owned(), escapes),
        ("../../openclaw.json".into(), escapes),
        ("a/../../x".into(), escapes),
        (format!("{state}/openclaw.json"), escapes),
        (format!("{state}/workspace/private.txt"), escapes),
        ("/etc/passwd".into(), escapes),
        ("/workspace/../etc/passwd".into(), escapes),
        ("@/etc/passwd".into(), escapes),
        ("~/../other/f.txt".into(), escapes),
        ("/proc/self/environ".into(), escapes),
        ("/dev/zero".into(), escapes),
        ("/agent/x".into(), escapes),
        ("/".into(), escapes),
        ("/workspace".into(), escapes),
        (".".into(), escapes),
        ("dir/openclaw.json".into(), link),
        ("file".into(), link),
        (format!("slash{state}/openclaw.json"), link),
        ("up/other/f.txt".into(), link),
        ("loop".into(), link),
        ("zero".into(), link),
        ("/workspace/file".into(), link),
        ("pipe".into(), "Not a regular file: pipe"),
        ("pipe/x".into(), "Not a directory"),
    ];
    let before = bench.outside();
    for (path, reason) in &paths {
        for (tool, args) in [
            ("read", json!({"path": path})),
            ("write", json!({"path": path, "content": "x"})),
            ("edit", json!({"path": path, "oldText": "C", "newText": "x"})),
        ] {
            let said = bench.call(tool, args).await;
            assert!(said.starts_with("error: ") && said.contains(reason), "{tool} {path}: {said}");
        }
    }
    assert_eq!(bench.outside(), before);
}

#[tokio::test]
async fn both_names_of_a_file_are_understood() {
    let Some(bench) = bench(Level::Namespaces, json!({})).await else { return };
    for path in [
        "/workspace/sub/a.txt".to_owned(),
        "sub/b.txt".into(),
        format!("{}/sub/c.txt", bench.box_dir().display()),
        "~/sub/d.txt".into(),
    ] {
        let said = bench.call("write", json!({"path": path, "content": "own\n"})).await;
        assert!(said.starts_with("Successfully wrote"), "{said}");
        assert!(bench.call("read", json!({"path": path})).await.starts_with("own"));
    }
    assert_eq!(bench.run("cat /workspace/sub/*").await, "own\nown\nown\nown");
    let said = bench.call("exec", json!({"command": "pwd", "workdir": "/workspace/sub"})).await;
    assert_eq!(said, "/workspace/sub");
    for workdir in ["/etc", "..", "nowhere"] {
        let said = bench.call("exec", json!({"command": "pwd", "workdir": workdir})).await;
        assert_eq!(
            said,
            format!("Warning: workdir \"{workdir}\" is unavailable; using \"/workspace\".\n\n/workspace")
        );
    }
    for host in ["gateway", "node"] {
        let said = bench.call("exec", json!({"command": "pwd", "host": host})).await;
        assert_eq!(
            said,
            format!("error: exec host not allowed (requested {host}; this session runs in a sandbox).")
        );
    }
    let said = bench.call("exec", json!({"command": "pwd", "elevated": true})).await;
    assert!(said.contains("elevated is not available right now (runtime=sandboxed)"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_directory_that_becomes_a_link_in_between_leads_nowhere() {
    let Some(bench) = bench(Level::Namespaces, json!({})).await else { return };
    let (root, target) = (bench.box_dir().to_owned(), bench.state().join("workspace"));
    std::fs::create_dir(root.join("real")).unwrap();
    let before = bench.outside();
    let done = std::sync::Arc::new(AtomicBool::new(false));
    let swapping = {
        let (done, root) = (std::sync::Arc::clone(&done), root.clone());
        std::thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                let _ = std::fs::rename(root.join("real"), root.join("dir"));
                let _ = std::fs::rename(root.join("dir"), root.join("real"));
                let _ = symlink(&target, root.join("dir"));
                let _ = std::fs::remove_file(root.join("dir"));
            }
        })
    };
    for round in 0..400 {
        bench.call("write", json!({"path": "dir/private.txt", "content": format!("{round}")})).await;
        bench.call("read", json!({"path": "dir/private.txt"})).await;
    }
    done.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    assert_eq!(bench.outside(), before);
}
