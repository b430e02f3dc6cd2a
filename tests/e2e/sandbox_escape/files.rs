//! Files of the host, by commands.

use openclaw_tools::sandbox::Level;
use serde_json::json;

use super::bench::{Attempt, attempt, bench};

const GONE: &[&str] = &["No such file"];
const CLOSED: &[&str] = &["Permission denied"];
/// Errors for a process that can't be looked at.
const UNSEEN: &[&str] = &["No such file", "Permission denied", "Operation not permitted"];
const READ_ONLY: &[&str] = &["Read-only file system", "Permission denied", "Directory nonexistent"];
const NOT_PERMITTED: &[&str] = &["Operation not permitted", "Permission denied"];

#[tokio::test]
async fn what_is_hidden_below_a_mount_is_not_reached_and_keeps_its_place() {
    const HELD: &[&str] = &["Device or resource busy"];
    let binds = json!({"docker": {"binds": ["{home}/kept:/outside"]}});
    let Some(bench) = bench(Level::Namespaces, binds).await else { return };
    let rows = [
        attempt("credentials", "cat /outside/deep/credentials/oauth.json", UNSEEN),
        attempt("a file beside them", "touch /outside/deep/credentials/new", READ_ONLY),
        attempt("out of the way", "mv /outside/deep/credentials /outside/deep/old", HELD),
        attempt("what is above them", "mv /outside/deep /outside/old", HELD),
        attempt("away", "rm -r /outside/deep", &["Device or resource busy", "Permission denied"]),
    ];
    bench.refuses(&rows).await;
}

#[tokio::test]
async fn nothing_of_the_host_is_read() {
    let Some(bench) = bench(Level::Namespaces, json!({})).await else { return };
    let (home, state) = (bench.home.path().display().to_string(), bench.state().display().to_string());
    let cat = |path: &str| format!("cat {path}");
    let rows: Vec<Attempt<'_>> = vec![
        attempt("config", cat(&format!("{state}/openclaw.json")), GONE),
        attempt("credentials", cat(&format!("{state}/credentials/oauth.json")), GONE),
        attempt("approvals", cat(&format!("{state}/exec-approvals.json")), GONE),
        attempt("profiles", cat(&format!("{state}/agents/main/agent/auth-profiles.json")), GONE),
        attempt("transcripts", cat(&format!("{state}/agents/main/sessions/s.jsonl")), GONE),
        attempt("the agent's workspace", cat(&format!("{state}/workspace/private.txt")), GONE),
        attempt("another sandbox", cat(&format!("{state}/sandboxes/other/f.txt")), GONE),
        attempt("another sandbox, beside", "cat ../other/f.txt /workspace/../other/f.txt", GONE),
        attempt("the home", cat(&format!("{home}/.ssh/id_ed25519")), GONE),
        attempt("by dots", cat(&format!("../../../../../../..{home}/secret.txt")), GONE),
        attempt("by a symbolic link", format!("ln -sfn {state} l; cat l/openclaw.json"), GONE),
        attempt("by a link to the root", format!("ln -sfn / r; cat r{state}/openclaw.json"), GONE),
        attempt("by the own root", cat(&format!("/proc/self/root{state}/openclaw.json")), GONE),
        attempt("by the own directory", cat(&format!("/proc/self/cwd/../..{state}/openclaw.json")), GONE),
        attempt("by the first process", cat(&format!("/proc/1/root{state}/openclaw.json")), UNSEEN),
        attempt("by its environment", "cat /proc/1/environ", UNSEEN),
        attempt("by its arguments", "cat /proc/1/cmdline", UNSEEN),
        attempt("by its files", "ls /proc/1/fd/", UNSEEN),
        attempt("by its program", "head -c 4 /proc/1/exe", UNSEEN),
        attempt("the old root", "ls /.host", GONE),
        attempt("passwords", "cat /etc/shadow", GONE),
        attempt("keys of the host", "ls /etc/ssh /etc/ssl/private", GONE),
        attempt("root's home", "ls /root", GONE),
        attempt("logs", "ls /var/log /var/lib", GONE),
        attempt("devices and buses", "ls /sys", GONE),
        attempt("the kernel's memory", "head -c 4 /proc/kcore && echo nothing", &["nothing", "No such file"]),
        attempt("its log", "cat /proc/kmsg; cat /dev/kmsg", GONE),
        attempt("other mounts", "ls /mnt /media /srv /opt /boot /home", GONE),
        attempt("docker", "ls /run/docker.sock /var/run/docker.sock", GONE),
        attempt("dbus", "ls /run/dbus /run/systemd", GONE),
        attempt(
            "open files",
            "for f in /proc/self/fd/*; do readlink $f; done | grep -v -e '^pipe:' -e '^/dev/null' -e '^/proc/' || echo none",
            &["none"],
        ),
        attempt("variables of the gateway", "env | grep -i -e token -e canary || echo none", &["none"]),
    ];
    bench.refuses(&rows).await;
}

#[tokio::test]
async fn nothing_of_the_host_is_written() {
    let Some(bench) = bench(Level::Namespaces, json!({})).await else { return };
    let rows = vec![
        attempt("programs", "touch /usr/bin/evil", READ_ONLY),
        attempt("replacing a program", "cp /bin/true /bin/sh", READ_ONLY),
        attempt("removing a library", "rm -f /usr/lib/os-release", READ_ONLY),
        attempt("accounts", "echo x >> /etc/passwd", READ_ONLY),
        attempt("name lookup", "echo x >> /etc/nsswitch.conf", READ_ONLY),
        attempt("the root", "mkdir /evil", READ_ONLY),
        attempt("devices", "touch /dev/evil", READ_ONLY),
        attempt("sysctl", "echo 1 > /proc/sys/kernel/panic", READ_ONLY),
        attempt("core_pattern", "echo '|/workspace/x' > /proc/sys/kernel/core_pattern", READ_ONLY),
        attempt("modprobe path", "echo /workspace/x > /proc/sys/kernel/modprobe", READ_ONLY),
        attempt("sysrq", "echo b > /proc/sysrq-trigger", READ_ONLY),
        attempt("the limit of processes", "echo 4000000 > /proc/sys/kernel/pid_max", READ_ONLY),
        attempt("the maps of users", "echo 0 0 1 > /proc/self/uid_map", NOT_PERMITTED_OR_READ_ONLY),
        attempt("own memory", "printf x | dd of=/proc/self/mem bs=1 seek=4096", READ_ONLY),
        attempt("out of memory score", "echo -1000 > /proc/self/oom_score_adj", READ_ONLY),
        attempt(
            "cgroups",
            "mkdir /sys/fs/cgroup/x; mkdir -p /cgroup",
            &["No such file", "Read-only file system"],
        ),
        attempt(
            "a hard link to a file outside",
            "ln /etc/passwd pw",
            &["Invalid cross-device link", "Operation not permitted"],
        ),
        attempt("moving outside", "touch f; mv f /usr/f", READ_ONLY),
        attempt("a device for memory", "mknod mem c 1 1", NOT_PERMITTED),
        attempt("a device for the disk", "mknod /tmp/disk b 8 0", NOT_PERMITTED),
        attempt("the device itself", "cat /dev/mem; cat /dev/sda; cat /dev/vda", &["No such file"]),
        attempt("another owner", "touch o; chown 0 o", &["Operation not permitted", "Invalid argument"]),
        attempt(
            "attributes",
            "touch a; setfattr -n trusted.x -v 1 a || python3 -c \"import os; os.setxattr('a','trusted.x',b'1')\"",
            NOT_PERMITTED,
        ),
    ];
    bench.refuses(&rows).await;
}

const NOT_PERMITTED_OR_READ_ONLY: &[&str] =
    &["Operation not permitted", "Permission denied", "Read-only file system"];

#[tokio::test]
async fn the_agents_workspace_is_there_to_be_read_or_is_the_workspace() {
    let Some(bench) = bench(Level::Namespaces, json!({"workspaceAccess": "ro"})).await else { return };
    assert_eq!(bench.run("ls /agent").await, "MEMORY.md\nprivate.txt");
    bench
        .refuses(&[
            attempt("writing", "echo x > /agent/new", READ_ONLY),
            attempt("removing", "rm -f /agent/private.txt", READ_ONLY),
            attempt("from there to the state", "ls /agent/../credentials; cat /agent/../openclaw.json", GONE),
        ])
        .await;
    let Some(bench) = super::bench::bench(Level::Namespaces, json!({"workspaceAccess": "rw"})).await else {
        return;
    };
    assert_eq!(bench.run("ls; echo made > made; pwd").await, "MEMORY.md\nprivate.txt\n/workspace");
    assert_eq!(std::fs::read_to_string(bench.state().join("workspace/made")).unwrap(), "made\n");
}

#[tokio::test]
async fn a_bind_of_the_home_does_not_show_the_state() {
    let shared = tempfile::tempdir().unwrap();
    std::fs::write(shared.path().join("f"), "shared").unwrap();
    let binds = [format!("{}:/data:ro", shared.path().display())];
    let Some(bench) = bench(Level::Namespaces, json!({"docker": {"binds": binds}})).await else { return };
    assert_eq!(bench.run("cat /data/f").await, "shared");
    bench.refuses(&[attempt("writing to it", "echo x > /data/f", READ_ONLY)]).await;
    assert_eq!(std::fs::read_to_string(shared.path().join("f")).unwrap(), "shared");
}

#[tokio::test]
async fn without_namespaces_files_are_closed_all_the_same() {
    let Some(bench) = bench(Level::Landlock, json!({})).await else { return };
    let (home, state) = (bench.home.path().display().to_string(), bench.state().display().to_string());
    let workspace = bench.box_dir().display().to_string();
    assert_eq!(
        bench.run("pwd; echo x > f; cat f; echo $HOME; : > $TMPDIR/t && echo tmp").await,
        format!("{workspace}\nx\n{workspace}\ntmp")
    );
    let cat = |path: &str| format!("cat {path}");
    let rows = vec![
        attempt("config", cat(&format!("{state}/openclaw.json")), CLOSED),
        attempt("credentials", cat(&format!("{state}/credentials/oauth.json")), CLOSED),
        attempt("the agent's workspace", cat(&format!("{state}/workspace/private.txt")), CLOSED),
        attempt("another sandbox", "cat ../other/f.txt", CLOSED),
        attempt("the home", cat(&format!("{home}/secret.txt")), CLOSED),
        attempt("a symbolic link", format!("ln -sfn {state} l; cat l/openclaw.json"), CLOSED),
        attempt("the own root", cat(&format!("/proc/self/root{state}/openclaw.json")), CLOSED),
        attempt("passwords", "cat /etc/shadow", CLOSED),
        attempt("listing the root", "ls /", CLOSED),
        attempt("programs", "touch /usr/bin/evil", CLOSED),
        attempt("temporary files of others", "touch /tmp/evil", CLOSED),
        attempt("sysctl", "echo x > /proc/sys/kernel/core_pattern", CLOSED),
        attempt("truncating", format!(": > {home}/secret.txt"), CLOSED),
        attempt(
            "a hard link",
            format!("ln {home}/secret.txt s"),
            &["Permission denied", "Invalid cross-device link"],
        ),
        attempt("renaming", "touch f; mv f ../f", CLOSED),
        attempt("devices", "cat /dev/vda /dev/mem", &["Permission denied", "No such file"]),
        attempt("a file of a neighbour process", format!("cat /proc/{}/environ", std::process::id()), CLOSED),
        attempt("its root", format!("ls /proc/{}/root/", std::process::id()), CLOSED),
        attempt("its end", format!("kill -TERM {}", std::process::id()), NOT_PERMITTED),
        attempt("leaving the guard", "setsid true", NOT_PERMITTED),
    ];
    bench.refuses(&rows).await;
}
