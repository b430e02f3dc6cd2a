// The page: status line, conversation, composer.
import { useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { EMPTY, failed, fromHistory, onAgent, onChat, sent, type Conversation, type Line } from "./conversation";
import { remember, type Credentials } from "./credentials";
import { Gateway, type Status } from "./gateway";
import { toHtml } from "./markdown";
import type { AgentEvent, ChatEvent, ChatHistoryResult } from "./protocol";

const HISTORY_LIMIT = 200;

type Change = (conversation: Conversation) => Conversation;

interface Session {
  gateway: Gateway;
  key: string;
}

export function ChatView({ credentials }: { credentials: Credentials }) {
  const [conversation, change] = useReducer((state: Conversation, apply: Change) => apply(state), EMPTY);
  const [status, setStatus] = useState<Status>({ kind: "connecting" });
  const [given, setGiven] = useState(credentials);
  const session = useRef<Session>();

  useEffect(() => {
    const gateway = new Gateway(socketUrl(window.location), given, {
      status(next) {
        setStatus(next);
        if (next.kind !== "online") return;
        const key = next.hello.snapshot.sessionDefaults?.mainSessionKey ?? "main";
        session.current = { gateway, key };
        void load(session.current, change);
      },
      event(name, payload) {
        const key = session.current?.key;
        if (name === "chat" && (payload as ChatEvent).sessionKey === key) change((c) => onChat(c, payload as ChatEvent));
        if (name === "agent" && (payload as AgentEvent).sessionKey === key) change((c) => onAgent(c, payload as AgentEvent));
      },
    });
    gateway.start();
    return () => gateway.stop();
  }, [given]);

  const send = (text: string) => {
    const current = session.current;
    if (current) void submit(current, text, change);
  };
  const abort = () => {
    const current = session.current;
    if (current) void current.gateway.request("chat.abort", { sessionKey: current.key });
  };

  return (
    <main>
      <header>
        <h1>OpenClaw</h1>
        <StatusLine status={status} />
      </header>
      {status.kind === "refused" ? (
        <SecretForm
          reason={status.reason}
          submit={(secret) => {
            remember(window.sessionStorage, secret);
            setGiven(secret);
          }}
        />
      ) : (
        <>
          <Lines conversation={conversation} />
          <Composer online={status.kind === "online"} busy={conversation.run !== undefined} send={send} abort={abort} />
        </>
      )}
    </main>
  );
}

async function load(session: Session, change: (apply: Change) => void): Promise<void> {
  const history = await session.gateway.request<ChatHistoryResult>("chat.history", {
    sessionKey: session.key,
    limit: HISTORY_LIMIT,
  });
  change(() => fromHistory(history));
}

async function submit(session: Session, text: string, change: (apply: Change) => void): Promise<void> {
  const run = newRunId();
  change((c) => sent(c, run, text));
  try {
    await session.gateway.request("chat.send", { sessionKey: session.key, message: text, idempotencyKey: run });
  } catch (error) {
    change((c) => failed(c, run, (error as Error).message));
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
    <span role="status" class={`status ${status.kind}`} title={"reason" in status ? status.reason : undefined}>
      {text}
    </span>
  );
}

function SecretForm({ reason, submit }: { reason: string; submit(secret: Credentials): void }) {
  const [text, setText] = useState("");
  const password = reason.includes("password");
  return (
    <form
      class="secret"
      onSubmit={(event) => {
        event.preventDefault();
        submit(password ? { password: text.trim() } : { token: text.trim() });
      }}
    >
      <p>{reason}</p>
      <label>
        {password ? "Gateway password" : "Gateway token"}
        <input type="password" autocomplete="off" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <button type="submit">Connect</button>
    </form>
  );
}

function Lines({ conversation }: { conversation: Conversation }) {
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => end.current?.scrollIntoView({ block: "end" }), [conversation]);
  return (
    <section class="lines" aria-live="polite">
      {conversation.lines.map((line) => (
        <LineView key={line.id} line={line} />
      ))}
      {conversation.run !== undefined && (
        <LineView line={{ id: "arriving", kind: "assistant", text: conversation.arriving || "…" }} />
      )}
      <div ref={end} />
    </section>
  );
}

function LineView({ line }: { line: Line }) {
  const html = useMemo(() => (line.kind === "assistant" ? toHtml(line.text) : ""), [line.kind, line.text]);
  if (line.kind === "assistant") {
    return <article class="assistant" data-id={line.id} dangerouslySetInnerHTML={{ __html: html }} />;
  }
  return (
    <article class={line.running ? `${line.kind} running` : line.kind} data-id={line.id}>
      {line.text}
    </article>
  );
}

interface ComposerProps {
  online: boolean;
  busy: boolean;
  send(text: string): void;
  abort(): void;
}

function Composer({ online, busy, send, abort }: ComposerProps) {
  const [text, setText] = useState("");
  const submit = () => {
    const message = text.trim();
    if (!message || !online) return;
    setText("");
    send(message);
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <textarea
        aria-label="Message"
        placeholder="Message"
        rows={2}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          submit();
        }}
      />
      {busy && (
        <button type="button" class="stop" onClick={abort}>
          Stop
        </button>
      )}
      <button type="submit" disabled={!online}>
        Send
      </button>
    </form>
  );
}
