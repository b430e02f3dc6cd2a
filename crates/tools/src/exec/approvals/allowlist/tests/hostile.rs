//! Command lines that must not run unasked.

use super::{PLAIN, Setup, judged, satisfied};

/// Commands, with `/usr/bin/rg`, `~/bin/*` and the default safe bins allowed.
const COMMANDS: &[&str] = &[
    // Other commands behind an allowed one.
    "rg x; rm y",
    "rg x;rm y",
    "rg x || rm y",
    "rg x | rm y",
    "rg x & rm y",
    "rg x &",
    "rg x\nrm y",
    "rg x\r\nrm y",
    "rg x |& rm y",
    "rg x && sudo rm y",
    "rg x\u{2028}rm y",
    "rg x \\\n; rm y",
    "wc -l;\u{a0}rm y",
    "rg x # y\nrm z",
    "rg x\0; rm y",
    "rg x ;; rm y",
    "(rm y)",
    "{ rm y; }",
    "rg x && (rm y)",
    "! rm y",
    "if rg x; then rm y; fi",
    // Substitutions and expansions.
    "rg $(rm y)",
    "rg `rm y`",
    "rg \"$(rm y)\"",
    "rg \"`rm y`\"",
    "rg <(rm y)",
    "rg >(rm y)",
    "rg $HOME",
    "rg \"$HOME\"",
    "rg ${x:-y}",
    "rg $((1+1))",
    "rg $'\\x41'",
    "rg $\"x\"",
    "$SHELL -c x",
    "r$Xg x",
    "rg *",
    "rg {a,b}",
    "rg ~root/x",
    "rg !!",
    "rg \"!rm\"",
    "=rm y",
    "rg =rm",
    // Redirections.
    "rg x > /etc/passwd",
    "rg x >> y",
    "rg x < y",
    "rg x 2>y",
    "rg x &> y",
    "rg x >| y",
    "rg x <<EOF",
    "rg x <<< y",
    // Assignments and words of the shell.
    "PATH=/w rg x",
    "A=1 rg x",
    "LD_PRELOAD=/w/x.so rg x",
    "A=1",
    "A+=1 rg x",
    "'A'=1 rg x",
    "alias rg=rm",
    "export A=b",
    "eval 'rm y'",
    ". ./x",
    "source x",
    "exec rg x",
    "cd /tmp",
    "set -x",
    "trap 'rm y' EXIT",
    "function rg { rm y; }",
    "rg() { rm y; }",
    "hash -p /w/rg rg",
    "unset x",
    "time rg x",
    "builtin rg",
    "coproc rg x",
    "noglob rg x",
    "- rg x",
    // Programs that run others.
    "env rg x",
    "sudo rg x",
    "doas rg x",
    "nice rg x",
    "nohup rg x",
    "timeout 5 rg x",
    "rg x | xargs rm",
    "sh -c 'rg x'",
    "bash -c 'rg x'",
    "find . -exec rg x",
    "ssh host rg x",
    "rg x | sh",
    "rg x | tee y",
    "python3.11 -c x",
    "command rg x",
    "/usr/bin/time rg x",
    "/usr/bin/env rg x",
    // Another program of that name.
    "./rg x",
    "/w/rg x",
    "../w/rg x",
    "/usr/bin/../../w/rg x",
    "/home/o/bin/../../../w/rg",
    "./wc",
    "/home/o/bin/sub/deep",
    "/usr/bin/rg/x",
    "rg\\ x",
    "'rg x'",
    "RG x",
    "nowhere x",
    "''",
    "\\rm y",
    // Safe bins that are told files: named, attached, in the option's value, or found by themselves.
    "head notes.txt",
    "head -n 5 notes.txt",
    "head missing.txt",
    "head dir/x",
    "head /etc/passwd",
    "head ./x",
    "head ../x",
    "head '~/x'",
    "head -- notes.txt",
    "head -- x",
    "wc 'C:\\x'",
    "wc --files0-from=x",
    "wc --files0-from x",
    "wc --files0-from=/x",
    "wc --files0-fro=x",
    "tail -f x",
    "tail -f",
    "tail --follow=name",
    "tail -n 1 -F",
    "tail +5",
    "grep -f/etc/passwd",
    "grep -f x",
    "grep -fx",
    "grep -nfx",
    "grep --file=x y",
    "grep --fil=x",
    "grep -r x",
    "grep -R x",
    "grep -rn x",
    "grep --recursive x",
    "grep -d recurse x",
    "grep --directories=recurse x",
    "grep x y",
    "grep -e x y",
    "grep -ex y",
    "grep --regexp=x y",
    "grep -e /x",
    "grep -e notes.txt",
    "grep --include=x y",
    "grep /x",
    "grep -P x",
    "grep -e/x",
    "grep --regexp=/x",
    "grep --regexp=notes.txt",
    "grep -enotes.txt",
    "sort -o out",
    "sort -oout",
    "sort -uo out",
    "sort --output=out",
    "sort --output out",
    "sort -T x",
    "sort --files0-from=x",
    "sort --compress-program=rm",
    "sort -S 1",
    "sort --random-source=x",
    "sort x",
    "sort +1",
    "sort -k/x",
    "uniq - out",
    "uniq x",
    "uniq - -",
    "uniq -c - out",
    "cut -f1 x",
    "cut -d",
    "cut -f 1 -- x",
    "tr a b c",
    "tr a b -- x",
    "sort --reverse=x",
    "jq . x",
    "jq -f x",
    "jq -fx",
    "jq -rf x",
    "jq --from-file x",
    "jq -L x .",
    "jq -Lx .",
    "jq --slurpfile a x .",
    "jq --rawfile a x .",
    "jq --arg a /x .",
    "jq --arg=a x .",
    "jq --args . x",
    "jq --jsonargs . x",
    "jq -n env",
    "jq -n '$ENV'",
    "jq 'env.A'",
    "jq 'import \"a\" as $a; .'",
    "jq 'include \"a\"; .'",
    "jq '\"a\" | modulemeta'",
    "jq input_filename",
    "jq -- .",
    "jq --indent . . x",
    "jq . - -",
    "jq --run-tests x",
    "jq --arg a",
    "jq --indent",
];

#[test]
fn no_hostile_command_line_is_satisfied() {
    for command in COMMANDS {
        assert!(!satisfied(&PLAIN, command), "{command:?}");
    }
}

#[test]
fn a_broad_pattern_does_not_mean_words_of_the_shell() {
    let setup = Setup { patterns: &["/usr/bin/*"], ..PLAIN };
    for command in [
        "command rm x",
        "printf -v PATH /w",
        "test -v 'a[$(id)]'",
        "/usr/bin/../../w/rg",
        "/usr/bin/./../x/rg",
        "-n x",
    ] {
        assert!(!satisfied(&setup, command), "{command}");
    }
    for command in ["/usr/bin/command rm x", "/usr/bin/printf x", "echo x", "rm x"] {
        assert!(satisfied(&setup, command), "{command}");
    }
}

#[test]
fn safe_bins_come_from_directories_of_the_system() {
    for path in [
        "/home/o/bin:/usr/bin",
        "/w:/usr/bin",
        ":/usr/bin",
        ".:/usr/bin",
        "/usr/../w:/usr/bin",
        "~/bin:/usr/bin",
    ] {
        let setup = Setup { path, patterns: &[], ..PLAIN };
        assert!(!satisfied(&setup, "wc -l"), "{path}");
    }
    let setup = Setup { path: "/opt/loose", ..PLAIN };
    assert!(!satisfied(&setup, "head"));
    assert!(satisfied(&Setup { path: "/nowhere:/usr/bin", ..PLAIN }, "wc -l"));
}

#[test]
fn neither_the_shell_nor_variables_may_change_what_is_meant() {
    for shell in ["/usr/bin/fish", "/bin/tcsh", "pwsh", ""] {
        assert!(judged(&Setup { shell, ..PLAIN }, "rg x").findings.is_err(), "{shell}");
    }
    assert!(judged(&Setup { sets_variables: true, ..PLAIN }, "rg x").findings.is_err());
}
