// The page: status line, conversation and composer, or the sign-in.
import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { Composer } from "./composer";
import {
  EMPTY,
  failed,
  isBusy,
  loaded,
  loading,
  onAgent,
  onChat,
  onStart,
  onStop,
  sent,
  startOf,
  withdrawn,
  withResult,
  type Conversation,
} from "./conversation";
import { forget, remember, takeCredentials, type Credentials } from "./credentials";
import { attachment, NOTHING, returned, type Draft } from "./draft";
import { Gateway, GatewayError, type Status } from "./gateway";
import { resultOf } from "./history";
import type { Line } from "./line";
import { Lines } from "./lines";
import { isOver, outlook } from "./outlook";
import { advise, SignIn, type Advice } from "./sign_in";
import type {
  AgentEvent,
  ChatAborted,
  ChatEvent,
  ChatHistoryResult,
  ChatSendResult,
  SessionsListResult,
} from "./protocol";

const HISTORY_LIMIT = 200;
/** How long a message waits that the gateway did not take, before it is sent again. */
const AGAIN_MS = 1000;
/** Messages in which a run that just began finds what it answers: it has hardly said anything since. */
const START_LIMIT = 20;

type Change = (conversation: Conversation) => Conversation;

interface Session {
  gateway: Gateway;
  key: string;
  /** Settled when the history is on the page, or the connection gone. */
  loaded: Promise<void>;
  /** How many runs have ended since the page is connected. */
  ended: number;
}

export function ChatView({ credentials }: { credentials: Credentials }) {
  const [conversation, change] = useReducer((state: Conversation, apply: Change) => apply(state), EMPTY);
  const [status, setStatus] = useState<Status>({ kind: "connecting" });
  const [given, setGiven] = useState(credentials);
  const [advice, setAdvice] = useState<Advice>();
  const [draft, write] = useReducer((state: Draft, apply: (draft: Draft) => Draft) => apply(state), NOTHING);
  const session = useRef<Session>();

  useEffect(() => {
    const gateway = new Gateway(socketUrl(window.location), given, {
      status(next) {
        setStatus(next);
        if (next.kind === "refused") {
          const advice = advise(next.error);
          if (advice.wrongSecret) forget(window.sessionStorage);
          setAdvice(advice);
        }
        if (next.kind !== "online") return;
        if (next.isKnownDevice) forget(window.sessionStorage);
        else remember(window.sessionStorage, given);
        setAdvice(undefined);
        const key = next.hello.snapshot.sessionDefaults?.mainSessionKey ?? "main";
        const current: Session = { gateway, key, loaded: Promise.resolve(), ended: 0 };
        session.current = current;
        current.loaded = load(current, change);
      },
      event(name, payload) {
        const current = session.current;
        if (!current || (payload as Partial<ChatEvent>).sessionKey !== current.key) return;
        if (name === "chat") {
          const event = payload as ChatEvent;
          if (event.state !== "delta") current.ended++;
          change((c) => onChat(c, event));
        }
        if (name !== "agent") return;
        const event = payload as AgentEvent;
        change((c) => onAgent(c, event));
        const startedAt = startOf(event);
        if (startedAt !== undefined) void follow(current, event.runId, startedAt, change);
      },
    });
    gateway.start();
    return () => gateway.stop();
  }, [given]);

  useEffect(() => {
    // The address with the secret, opened where the page is open already, does not load it again.
    const take = () => {
      if (window.location.hash) setGiven(takeCredentials(window.location, window.sessionStorage));
    };
    window.addEventListener("hashchange", take);
    return () => window.removeEventListener("hashchange", take);
  }, []);

  // A message that did not arrive is sent again, by the same name, as soon as the gateway is there and takes messages.
  useEffect(() => {
    if (status.kind !== "online" || draft.waiting === undefined) return;
    const timer = window.setTimeout(() => void post(draft), AGAIN_MS);
    return () => window.clearTimeout(timer);
  }, [status, draft]);

  const post = async (message: Draft) => {
    const current = session.current;
    const run = message.waiting ?? newRunId();
    const isOnline = status.kind === "online" && current !== undefined;
    if (!isOnline) return write((draft) => ({ ...draft, waiting: run }));
    write(() => NOTHING);
    // What may have arrived before a connection was lost is in the history then.
    await current.loaded;
    const arrived = await submit(current, run, message, change);
    if (!arrived) write((draft) => returned(draft, { ...message, waiting: run }));
  };
  const abort = () => {
    const current = session.current;
    if (current) void stop(current, change);
  };
  const busy = isBusy(conversation);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "Escape" && busy && !event.isComposing) abort();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [busy]);
  const reveal = (line: Line) => {
    const current = session.current;
    if (current) void fetchResult(current, line, change);
  };

  return (
    <main>
      <header>
        <h1>OpenClaw</h1>
        <StatusLine status={status} />
      </header>
      {advice ? (
        <SignIn advice={advice} busy={status.kind === "connecting"} submit={setGiven} retry={() => setGiven({ ...given })} />
      ) : (
        <>
          <Lines conversation={conversation} reveal={reveal} />
          <Composer
            draft={draft}
            online={status.kind === "online"}
            busy={busy}
            write={write}
            send={() => void post(draft)}
            abort={abort}
          />
        </>
      )}
    </main>
  );
}

async function load(session: Session, change: (apply: Change) => void): Promise<void> {
  const { gateway, key } = session;
  change(loading);
  try {
    let ended: number;
    do {
      // The history is read again when a run ends meanwhile: the page would wait for that end.
      ended = session.ended;
      const history = await gateway.request<ChatHistoryResult>("chat.history", { sessionKey: key, limit: HISTORY_LIMIT });
      const rows = () => gateway.request<SessionsListResult>("sessions.list", { search: key, includeGlobal: true });
      const next = isOver(history) ? "over" : outlook(history, key, await rows());
      if (ended === session.ended) change((c) => loaded(c, history, next));
    } while (ended !== session.ended);
  } catch {
    // Without a connection everything is loaded anew as soon as there is one.
  }
}

/** A run has begun: who asked it what, and in which session, the history tells. */
async function follow(session: Session, run: string, startedAt: number, change: (apply: Change) => void): Promise<void> {
  const { gateway, key } = session;
  try {
    await session.loaded;
    const history = await gateway.request<ChatHistoryResult>("chat.history", { sessionKey: key, limit: START_LIMIT });
    change((c) => onStart(c, history, run, startedAt));
  } catch {
    // As above.
  }
}

/** Sends a message. `false`: the gateway is not there, or takes none now, and it may be sent again by the same name. */
async function submit(session: Session, run: string, message: Draft, change: (apply: Change) => void): Promise<boolean> {
  const { text, pictures } = message;
  const isRepeated = message.waiting !== undefined;
  const show = () => change((c) => sent(c, run, text.trim(), pictures.map((picture) => picture.address)));
  if (!isRepeated) show();
  try {
    const params = {
      sessionKey: session.key,
      message: text.trim(),
      idempotencyKey: run,
      ...(pictures.length > 0 && { attachments: pictures.map(attachment) }),
    };
    const answer = await session.gateway.request<ChatSendResult>("chat.send", params);
    // A message that had arrived the first time is in the history.
    if (isRepeated && "status" in answer && answer.status === "started") show();
    // `/stop` and its like are commands that make no run: this is all that comes of them.
    if ("aborted" in answer) change((c) => onStop(c, run, answer));
    return true;
  } catch (error) {
    if (error instanceof GatewayError && error.shape.code === "UNAVAILABLE") {
      change((c) => withdrawn(c, run));
      return false;
    }
    if (isRepeated) show();
    change((c) => failed(c, run, (error as Error).message));
    return true;
  }
}

async function fetchResult(session: Session, line: Line, change: (apply: Change) => void): Promise<void> {
  const { gateway, key } = session;
  try {
    const history = await gateway.request<ChatHistoryResult>("chat.history", { sessionKey: key, limit: HISTORY_LIMIT });
    const result = resultOf(history.messages, line.call?.id);
    if (result !== undefined) change((c) => withResult(c, line.id, result));
  } catch {
    // The line says that there is no result; opening it again asks again.
  }
}

async function stop(session: Session, change: (apply: Change) => void): Promise<void> {
  try {
    const answer = await session.gateway.request<ChatAborted>("chat.abort", { sessionKey: session.key });
    change((c) => onStop(c, newRunId(), answer));
  } catch {
    // Without a connection everything is loaded anew as soon as there is one.
  }
}

/** `crypto.randomUUID` exists in secure contexts only; a page on the local network is none. */
function newRunId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function socketUrl(location: Location): string {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  return `${scheme}//${location.host}${location.pathname}`;
}

function StatusLine({ status }: { status: Status }) {
  const text = {
    connecting: "Connecting…",
    online: "Online",
    offline: "Offline, trying again…",
    refused: "Not signed in",
  }[status.kind];
  return (
    <span role="status" class={`status ${status.kind}`} title={status.kind === "offline" ? status.reason : undefined}>
      {text}
    </span>
  );
}
