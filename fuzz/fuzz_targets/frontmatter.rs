//! The block at the head of `SKILL.md` and `HOOK.md` is read or refused, never a panic, and takes no more memory than its file allows.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openclaw_agent::frontmatter::MarkdownDocument;

fuzz_target!(|text: &str| {
    let Ok(document) = MarkdownDocument::parse(text) else { return };
    let settings = document.frontmatter;
    for key in ["name", "description", "user-invocable"] {
        let _ = (settings.text(key), settings.switch(key));
    }
    if let Ok(Some(manifest)) = settings.manifest() {
        let _ = manifest.requirements();
        for install in manifest.objects("install") {
            let _ = (install.text("kind"), install.list("bins"), install.number("stripComponents"));
        }
    }
});
