//! Running a handler of OpenClaw's, which is JavaScript or TypeScript, with the `node` that is installed.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::requirements::BinPath;

/// Time limit of `node --version`.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reads the event, calls the handler as OpenClaw does, and writes what it leaves. Output of the
/// handler goes to the log.
const SCRIPT: &str = r#"
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const answerTo = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);
const [file, name] = process.argv.slice(-2);
const input = JSON.parse(readFileSync(0, "utf8"));
const loaded = await import(pathToFileURL(file).href);
const handler = loaded[name] ?? loaded.default?.[name];
if (typeof handler !== "function") throw new TypeError(`${file} exports no function "${name}"`);
let answer;
if (typeof input.hook === "string") {
  answer = (await handler(input.payload, input.context)) ?? {};
} else {
  const event = { ...input, timestamp: new Date(input.timestamp) };
  await handler(event);
  answer = { messages: event.messages, context: { bootstrapFiles: event.context?.bootstrapFiles } };
}
answerTo(JSON.stringify(answer), () => process.exit(0));
"#;

/// An installed `node`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    path: PathBuf,
}

/// TypeScript support of a `node`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeScript {
    /// Reads TypeScript by default.
    Reads,
    /// Reads TypeScript when given a flag.
    ReadsWhenTold,
    /// Can't read TypeScript.
    CannotRead,
}

impl Node {
    /// The first of the path.
    pub fn find(bins: &BinPath) -> Option<Self> {
        bins.find("node").map(|path| Self { path })
    }

    /// Returns the version that node reports, or `None` if it does not answer in time. Blocking:
    /// starts it.
    pub fn version(&self) -> Option<String> {
        let mut command = Command::new(&self.path);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let mut out = child.stdout.take()?.take(64);
        let (send, heard) = mpsc::channel();
        // Ends with the program, which is killed below.
        std::thread::spawn(move || {
            let mut text = String::new();
            if out.read_to_string(&mut text).is_ok() {
                let _ = send.send(text.trim().to_owned());
            }
        });
        let version = heard.recv_timeout(PATIENCE).ok();
        let _ = child.kill();
        let _ = child.wait();
        version.filter(|version| !version.is_empty())
    }

    /// The command that calls an export of a file.
    pub fn command(&self, file: &Path, export: &str, script: TypeScript) -> Vec<OsString> {
        let mut command: Vec<OsString> = vec![self.path.clone().into_os_string()];
        if script == TypeScript::ReadsWhenTold {
            command.extend(["--experimental-strip-types", "--no-warnings"].map(OsString::from));
        }
        command.extend(["--input-type=module", "-e", SCRIPT, "--"].map(OsString::from));
        command.extend([file.as_os_str().to_owned(), export.into()]);
        command
    }
}

impl TypeScript {
    /// Returns the TypeScript support of a node version: since 22.6 with a flag, since 22.18 and
    /// 23.6 by default.
    pub fn of_version(version: &str) -> Self {
        let mut parts =
            version.trim_start_matches('v').split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        match (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) {
            (22, minor) if minor >= 18 => Self::Reads,
            (23, minor) if minor >= 6 => Self::Reads,
            (major, _) if major >= 24 => Self::Reads,
            (22, minor) if minor >= 6 => Self::ReadsWhenTold,
            (23, _) => Self::ReadsWhenTold,
            _ => Self::CannotRead,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_node_differ_in_typescript() {
        let rows = [
            ("v20.20.2", TypeScript::CannotRead),
            ("v22.5.1", TypeScript::CannotRead),
            ("v22.6.0", TypeScript::ReadsWhenTold),
            ("v22.18.0", TypeScript::Reads),
            ("v23.0.0", TypeScript::ReadsWhenTold),
            ("v23.6.1", TypeScript::Reads),
            ("v24.1.0", TypeScript::Reads),
            ("bun", TypeScript::CannotRead),
        ];
        for (version, expect) in rows {
            assert_eq!(TypeScript::of_version(version), expect, "{version}");
        }
    }
}
