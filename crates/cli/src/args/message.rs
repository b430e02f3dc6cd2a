//! `openclaw message`: one command for each action of the `message` tool (spec `cli.md` §2). A row is a command; its options are the
//! parameters of the action.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use serde_json::{Map, Value};

use super::value::no_option;

/// What an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArgKind {
    Text,
    Number,
    Flag,
    /// It may be repeated.
    Texts,
    /// What stands behind the command, without a name.
    Behind,
}

/// One option: how it is typed, its parameter, and what it is for.
#[derive(Debug, Clone, Copy)]
struct Opt {
    long: &'static str,
    short: Option<char>,
    param: &'static str,
    kind: ArgKind,
    value: &'static str,
    help: &'static str,
    is_required: bool,
}

impl Opt {
    const fn short(mut self, short: char) -> Self {
        self.short = Some(short);
        self
    }

    const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }
}

const fn opt(
    long: &'static str,
    param: &'static str,
    kind: ArgKind,
    value: &'static str,
    help: &'static str,
) -> Opt {
    Opt { long, short: None, param, kind, value, help, is_required: false }
}

const fn id(long: &'static str, param: &'static str, help: &'static str) -> Opt {
    opt(long, param, ArgKind::Text, "id", help)
}

const fn text(long: &'static str, param: &'static str, help: &'static str) -> Opt {
    opt(long, param, ArgKind::Text, "text", help)
}

const fn number(long: &'static str, param: &'static str, help: &'static str) -> Opt {
    opt(long, param, ArgKind::Number, "n", help)
}

const fn flag(long: &'static str, param: &'static str, help: &'static str) -> Opt {
    opt(long, param, ArgKind::Flag, "", help)
}

const GUILD: Opt = id("guild-id", "guildId", "Server");
const USER: Opt = id("user-id", "userId", "Person");
const ROLE: Opt = id("role-id", "roleId", "Role");
const MESSAGE_ID: Opt = id("message-id", "messageId", "The message it is about");
const MESSAGE: Opt = text("message", "message", "Markdown").short('m');
const MEDIA: Opt = opt("media", "media", ArgKind::Text, "path-or-url", "A file");
const REPLY_TO: Opt = id("reply-to", "replyTo", "The message it answers");
const THREAD_ID: Opt = id("thread-id", "threadId", "Thread");
const REASON: Opt = text("reason", "reason", "Why");
const LIMIT: Opt = number("limit", "limit", "How many at most");
const BEFORE: Opt = id("before", "before", "Those before a message");
const CHANNEL_ID: Opt = id("channel-id", "channelId", "Channel");

/// What concerns messages that were given up: no actions of the `message` tool.
pub(crate) const FAILED: &str = "failed";
pub(crate) const RETRY: &str = "retry";
pub(crate) const DISCARD: &str = "discard";

/// One command.
#[derive(Debug)]
pub(crate) struct MessageRow {
    /// What is typed after `message`.
    words: &'static [&'static str],
    /// The action.
    pub(crate) action: &'static str,
    about: &'static str,
    /// Whether it has a target.
    pub(crate) has_target: bool,
    options: &'static [Opt],
}

const fn at(
    words: &'static [&'static str],
    action: &'static str,
    about: &'static str,
    options: &'static [Opt],
) -> MessageRow {
    MessageRow { words, action, about, has_target: true, options }
}

const fn row(
    words: &'static [&'static str],
    action: &'static str,
    about: &'static str,
    options: &'static [Opt],
) -> MessageRow {
    MessageRow { words, action, about, has_target: false, options }
}

const WHICH: Opt = opt("ids", "ids", ArgKind::Behind, "id", "Which, as `message failed` lists them");
const ALL_FAILED: Opt = flag("all", "all", "All that were given up (of --channel and --account)");

/// All of them.
const ROWS: &[MessageRow] = &[
    row(&["failed"], FAILED, "List what could not be sent and was given up, and what waits", &[LIMIT]),
    row(&["retry"], RETRY, "Send again what was given up, and now what waits", &[WHICH, ALL_FAILED]),
    row(&["discard"], DISCARD, "Throw away what was given up, or waits", &[WHICH, ALL_FAILED]),
    at(
        &["send"],
        "send",
        "Send a message",
        &[
            MESSAGE,
            MEDIA,
            REPLY_TO,
            THREAD_ID,
            flag("silent", "silent", "The reader's device stays silent"),
            flag("gif-playback", "gifPlayback", "A video plays as a GIF does"),
            opt(
                "buttons",
                "buttons",
                ArgKind::Text,
                "json",
                "Rows of buttons: [[{\"text\":…,\"callback_data\":…}]]",
            ),
            opt("card", "card", ArgKind::Text, "json", "A card, where the platform has them"),
        ],
    ),
    row(
        &["broadcast"],
        "broadcast",
        "Send a message to several",
        &[
            opt(
                "targets",
                "targets",
                ArgKind::Texts,
                "target",
                "Where to; one or more, and it may be repeated",
            )
            .required(),
            MESSAGE,
            MEDIA,
        ],
    ),
    at(
        &["poll"],
        "poll",
        "Ask a question with answers to choose from",
        &[
            text("poll-question", "pollQuestion", "The question").required(),
            opt("poll-option", "pollOption", ArgKind::Texts, "choice", "An answer; repeat it").required(),
            flag("poll-multi", "pollMulti", "More than one may be chosen"),
            number(
                "poll-duration-hours",
                "pollDurationHours",
                "How long it is open, where the platform lets bots say",
            ),
            MESSAGE,
        ],
    ),
    at(
        &["react"],
        "react",
        "React to a message, or take that back",
        &[
            MESSAGE_ID,
            opt("emoji", "emoji", ArgKind::Text, "emoji", "Which; empty takes all back"),
            flag("remove", "remove", "Take it back"),
            id("participant", "participant", "Who said it, in groups of WhatsApp"),
            flag("from-me", "fromMe", "It was said by us"),
            id("target-author", "targetAuthor", "Who said it, on Signal"),
            opt("target-author-uuid", "targetAuthorUuid", ArgKind::Text, "uuid", "The same by id"),
        ],
    ),
    at(&["reactions"], "reactions", "List the reactions to a message", &[MESSAGE_ID, LIMIT]),
    at(&["edit"], "edit", "Change a message", &[MESSAGE_ID, MESSAGE.required(), THREAD_ID]),
    at(&["delete"], "delete", "Delete a message", &[MESSAGE_ID]),
    at(&["pin"], "pin", "Pin a message", &[MESSAGE_ID]),
    at(&["unpin"], "unpin", "Unpin a message", &[MESSAGE_ID]),
    at(&["pins"], "list-pins", "List what is pinned", &[LIMIT]),
    at(
        &["read"],
        "read",
        "Read messages",
        &[
            LIMIT,
            BEFORE,
            id("after", "after", "Those after a message"),
            id("around", "around", "Those around a message"),
            flag("include-thread", "includeThread", "Those of the thread too"),
        ],
    ),
    row(
        &["search"],
        "search",
        "Search messages",
        &[
            GUILD,
            text("query", "query", "What for"),
            CHANNEL_ID,
            opt("channel-ids", "channelIds", ArgKind::Texts, "id", "Channels; repeat it"),
            id("author-id", "authorId", "Who said it"),
            opt("author-ids", "authorIds", ArgKind::Texts, "id", "Who said it; repeat it"),
            LIMIT,
        ],
    ),
    at(&["permissions"], "permissions", "What may be done in a channel", &[]),
    at(
        &["thread", "create"],
        "thread-create",
        "Make a thread, or a topic of a forum",
        &[
            text("thread-name", "threadName", "Its name"),
            MESSAGE,
            MESSAGE_ID,
            number(
                "auto-archive-min",
                "autoArchiveMin",
                "Minutes without a message after which it is put away",
            ),
        ],
    ),
    row(
        &["thread", "list"],
        "thread-list",
        "List threads",
        &[
            GUILD,
            CHANNEL_ID,
            flag("include-archived", "includeArchived", "Those that were put away too"),
            BEFORE,
            LIMIT,
        ],
    ),
    at(
        &["thread", "reply"],
        "thread-reply",
        "Say something in a thread",
        &[MESSAGE, MEDIA, REPLY_TO, THREAD_ID],
    ),
    at(
        &["sticker", "send"],
        "sticker",
        "Send a sticker",
        &[opt("sticker-id", "stickerId", ArgKind::Texts, "id", "Which").required(), MESSAGE],
    ),
    row(
        &["sticker", "search"],
        "sticker-search",
        "Find a sticker that was seen",
        &[text("query", "query", "What for").required(), LIMIT],
    ),
    row(
        &["sticker", "upload"],
        "sticker-upload",
        "Upload a sticker",
        &[
            GUILD,
            MEDIA,
            text("sticker-name", "stickerName", "Its name"),
            text("sticker-desc", "stickerDesc", "What it shows"),
            text("sticker-tags", "stickerTags", "Words that find it"),
        ],
    ),
    row(&["emoji", "list"], "emoji-list", "List emoji", &[GUILD]),
    row(
        &["emoji", "upload"],
        "emoji-upload",
        "Upload an emoji",
        &[
            GUILD,
            MEDIA,
            text("emoji-name", "emojiName", "Its name"),
            opt("role-ids", "roleIds", ArgKind::Texts, "id", "Who may use it; repeat it"),
        ],
    ),
    row(&["member", "info"], "member-info", "Who somebody is", &[GUILD, USER]),
    row(&["role", "info"], "role-info", "List roles", &[GUILD]),
    row(&["role", "add"], "role-add", "Give somebody a role", &[GUILD, USER, ROLE]),
    row(&["role", "remove"], "role-remove", "Take a role from somebody", &[GUILD, USER, ROLE]),
    at(&["channel", "info"], "channel-info", "What a channel is", &[]),
    row(&["channel", "list"], "channel-list", "List channels", &[GUILD]),
    row(&["voice", "status"], "voice-status", "Whether somebody is in a voice channel", &[GUILD, USER]),
    row(&["event", "list"], "event-list", "List events", &[GUILD]),
    row(
        &["event", "create"],
        "event-create",
        "Make an event",
        &[
            GUILD,
            text("event-name", "eventName", "Its name"),
            opt("event-type", "eventType", ArgKind::Text, "stage|external|voice", "What kind"),
            opt("start-time", "startTime", ArgKind::Text, "iso", "When it begins"),
            opt("end-time", "endTime", ArgKind::Text, "iso", "When it ends"),
            text("desc", "desc", "What it is about"),
            text("location", "location", "Where"),
            CHANNEL_ID,
        ],
    ),
    row(
        &["timeout"],
        "timeout",
        "Keep somebody from writing for a while",
        &[
            GUILD,
            USER,
            number("duration-min", "durationMin", "Minutes"),
            opt("until", "until", ArgKind::Text, "iso", "Until when"),
            REASON,
        ],
    ),
    row(&["kick"], "kick", "Put somebody out", &[GUILD, USER, REASON]),
    row(
        &["ban"],
        "ban",
        "Put somebody out for good",
        &[GUILD, USER, REASON, number("delete-days", "deleteDays", "Days of messages that are deleted too")],
    ),
];

/// `openclaw message`, read.
#[derive(Debug)]
pub(crate) struct MessageArgs {
    /// The command.
    pub(crate) row: &'static MessageRow,
    /// Platform.
    pub(crate) channel: Option<String>,
    /// Account.
    pub(crate) account: Option<String>,
    /// Where to.
    pub(crate) target: Option<String>,
    /// Whether it is only said what would be done.
    pub(crate) dry_run: bool,
    /// Whether JSON is printed.
    pub(crate) json: bool,
    /// The parameters of the action that were given.
    pub(crate) params: Map<String, Value>,
}

impl MessageArgs {
    /// A parameter that is a text.
    pub(crate) fn text(&self, param: &str) -> Option<&str> {
        self.params.get(param).and_then(Value::as_str)
    }

    /// A parameter that may be repeated.
    pub(crate) fn texts(&self, param: &str) -> Vec<String> {
        let items = self.params.get(param).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// A text in which parameters have the names of their flags: `--message-id` for `messageId`.
    pub(crate) fn naming_flags(&self, text: &str) -> String {
        let flag_of =
            |word: &str| self.row.options.iter().find(|option| option.param == word && option.long != word);
        let named = text
            .split(' ')
            .map(|word| flag_of(word).map_or(word.to_owned(), |option| format!("--{}", option.long)));
        named.collect::<Vec<_>>().join(" ")
    }

    /// A switch.
    pub(crate) fn flag(&self, param: &str) -> bool {
        self.params.get(param) == Some(&Value::Bool(true))
    }
}

impl Args for MessageArgs {
    fn augment_args(command: Command) -> Command {
        let command = command.subcommand_required(true).arg_required_else_help(true);
        ROWS.iter().fold(command, |command, row| add(command, row, row.words))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Adds a row where its words lead.
fn add(command: Command, row: &'static MessageRow, words: &'static [&'static str]) -> Command {
    let Some((first, rest)) = words.split_first() else { return options(command.about(row.about), row) };
    let has_it = command.find_subcommand(first).is_some();
    if has_it {
        return command.mut_subcommand(first, |own| add(own, row, rest));
    }
    let mut own = Command::new(*first);
    if !rest.is_empty() {
        own =
            own.subcommand_required(true).arg_required_else_help(true).about(format!("All {first} actions"));
    }
    command.subcommand(add(own, row, rest))
}

fn options(command: Command, row: &'static MessageRow) -> Command {
    let mut command = command;
    if row.has_target {
        command = command.arg(
            Arg::new("target")
                .short('t')
                .long("target")
                .value_name("dest")
                .help("Where to")
                .allow_hyphen_values(true)
                .value_parser(no_option),
        );
    }
    command = row.options.iter().fold(command, |command, option| command.arg(argument(option)));
    command
        .arg(Arg::new("channel").long("channel").value_name("channel").help("Platform"))
        .arg(Arg::new("account").long("account").value_name("id").help("Account"))
        .arg(Arg::new("dry-run").long("dry-run").action(ArgAction::SetTrue).help("Say what would be done"))
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON"))
        .arg(Arg::new("verbose").long("verbose").action(ArgAction::SetTrue).hide(true))
}

fn argument(option: &Opt) -> Arg {
    let argument = Arg::new(option.long).long(option.long).help(option.help).required(option.is_required);
    let argument = match option.short {
        Some(short) => argument.short(short),
        None => argument,
    };
    match option.kind {
        ArgKind::Flag => argument.action(ArgAction::SetTrue),
        // As in the reference: `--targets a b`, and `--targets a --targets b`.
        ArgKind::Texts if option.long == "targets" => argument
            .action(ArgAction::Append)
            .num_args(1..)
            .value_name(option.value)
            .allow_negative_numbers(true),
        ArgKind::Texts => {
            argument.action(ArgAction::Append).value_name(option.value).allow_negative_numbers(true)
        }
        ArgKind::Behind => Arg::new(option.long).num_args(0..).value_name(option.value).help(option.help),
        ArgKind::Number => argument.value_name(option.value).value_parser(clap::value_parser!(u32)),
        ArgKind::Text => argument.value_name(option.value).allow_hyphen_values(true).value_parser(no_option),
    }
}

impl FromArgMatches for MessageArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut words: Vec<&str> = Vec::new();
        let mut own = matches;
        while let Some((name, inner)) = own.subcommand() {
            words.push(name);
            own = inner;
        }
        let found = ROWS.iter().find(|row| row.words == words.as_slice());
        let row = found.ok_or_else(|| clap::Error::new(clap::error::ErrorKind::MissingSubcommand))?;
        let given = |name: &str| own.get_one::<String>(name).cloned();
        let mut params = Map::new();
        for option in row.options {
            if let Some(value) = value(option, own) {
                params.insert(option.param.to_owned(), value);
            }
        }
        Ok(Self {
            row,
            channel: given("channel"),
            account: given("account"),
            target: if row.has_target { given("target") } else { None },
            dry_run: own.get_flag("dry-run"),
            json: own.get_flag("json"),
            params,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn value(option: &Opt, matches: &ArgMatches) -> Option<Value> {
    match option.kind {
        ArgKind::Flag => matches.get_flag(option.long).then_some(Value::Bool(true)),
        ArgKind::Number => matches.get_one::<u32>(option.long).map(|number| Value::from(*number)),
        ArgKind::Text => matches.get_one::<String>(option.long).map(|text| Value::from(text.as_str())),
        ArgKind::Texts | ArgKind::Behind => {
            let texts: Vec<&str> = matches.get_many::<String>(option.long)?.map(String::as_str).collect();
            Some(Value::from(texts))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: MessageArgs,
    }

    fn parsed(words: &[&str]) -> MessageArgs {
        Line::try_parse_from(std::iter::once(&"message").chain(words)).unwrap().args
    }

    #[test]
    fn every_command_of_the_reference_is_there() {
        let names: Vec<String> = ROWS.iter().map(|row| row.words.join(" ")).collect();
        let reference = "ban|broadcast|channel info|channel list|delete|edit|emoji list|emoji upload|event create|event list|kick|\
            member info|permissions|pin|pins|poll|react|reactions|read|role add|role info|role remove|search|send|sticker send|\
            sticker upload|thread create|thread list|thread reply|timeout|unpin|voice status";
        for name in reference.split('|') {
            assert!(names.iter().any(|own| own == name), "{name}");
        }
        Line::try_parse_from(["message", "poll"]).unwrap_err();
        let args = parsed(&["retry", "a:1", "b:2", "--json"]);
        assert_eq!(
            (args.row.action, args.texts("ids"), args.json),
            (RETRY, vec!["a:1".to_owned(), "b:2".to_owned()], true)
        );
    }

    #[test]
    fn values_may_begin_with_a_hyphen_and_options_are_none() {
        for id in ["-1001", "-1001:topic:7", "--=x"] {
            assert_eq!(parsed(&["send", "--target", id, "-m", "- a\n- b"]).target.as_deref(), Some(id));
        }
        let args = parsed(&["broadcast", "--targets", "-1001", "5", "--message", "-5 degrees"]);
        assert_eq!((args.texts("targets").len(), args.text("message")), (2, Some("-5 degrees")));
        for words in [["send", "--target", "--mesage"], ["send", "-m", "--target"]] {
            let error =
                Line::try_parse_from(std::iter::once("message").chain(words)).unwrap_err().to_string();
            assert!(error.contains("this is an option, and the value before it is missing"), "{error}");
        }
    }

    #[test]
    fn options_become_the_parameters_of_the_action() {
        let args =
            parsed(&["thread", "create", "-t", "-100", "--thread-name", "Plans", "--auto-archive-min", "60"]);
        assert_eq!((args.row.action, args.target.as_deref()), ("thread-create", Some("-100")));
        assert_eq!(Value::Object(args.params), json!({"threadName": "Plans", "autoArchiveMin": 60}));
        let words = [
            "poll",
            "--target",
            "5",
            "--poll-question",
            "?",
            "--poll-option",
            "a",
            "--poll-option",
            "b",
            "--poll-multi",
        ];
        let args = parsed(&words);
        assert_eq!(
            Value::Object(args.params.clone()),
            json!({"pollQuestion": "?", "pollOption": ["a", "b"], "pollMulti": true})
        );
        assert_eq!(
            (args.texts("pollOption").len(), args.flag("pollMulti"), args.text("message")),
            (2, true, None)
        );
    }
}
