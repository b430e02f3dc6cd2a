// One WebSocket to the gateway: handshake, request/response, events, reconnect. It knows frames, not chats.
import type { ConnectParams, ErrorShape, HelloOk } from "./protocol";
import type { Credentials } from "./credentials";

export type Status =
  | { kind: "connecting" }
  | { kind: "online"; hello: HelloOk }
  | { kind: "offline"; reason: string }
  | { kind: "refused"; error: ErrorShape };

export interface Listener {
  status(status: Status): void;
  event(name: string, payload: unknown): void;
}

interface Pending {
  resolve(payload: unknown): void;
  reject(error: GatewayError): void;
}

interface InboundFrame {
  type: "res" | "event";
  id?: string;
  ok?: boolean;
  payload?: unknown;
  error?: ErrorShape;
  event?: string;
}

export class GatewayError extends Error {
  constructor(readonly shape: ErrorShape) {
    super(shape.message);
  }
}

const FIRST_RETRY_MS = 800;
const RETRY_FACTOR = 1.7;
const LAST_RETRY_MS = 15_000;

export class Gateway {
  private socket: WebSocket | undefined;
  private readonly pending = new Map<string, Pending>();
  private nextId = 1;
  private retryMs = FIRST_RETRY_MS;
  private retryTimer: number | undefined;
  private stopped = false;
  private refused = false;

  constructor(
    private readonly url: string,
    private readonly credentials: Credentials,
    private readonly listener: Listener,
  ) {}

  start(): void {
    this.listener.status({ kind: "connecting" });
    const socket = new WebSocket(this.url);
    this.socket = socket;
    socket.onmessage = (message) => this.receive(String(message.data));
    socket.onclose = (close) => this.closed(close.reason);
  }

  stop(): void {
    this.stopped = true;
    window.clearTimeout(this.retryTimer);
    this.socket?.close();
  }

  request<T>(method: string, params: object): Promise<T> {
    const socket = this.socket;
    if (socket?.readyState !== WebSocket.OPEN) {
      return Promise.reject(new GatewayError({ code: "UNAVAILABLE", message: "not connected to the gateway" }));
    }
    const id = String(this.nextId++);
    socket.send(JSON.stringify({ type: "req", id, method, params }));
    return new Promise<T>((resolve, reject) => {
      this.pending.set(id, { resolve: resolve as (payload: unknown) => void, reject });
    });
  }

  private receive(text: string): void {
    const frame = JSON.parse(text) as InboundFrame;
    if (frame.type === "event") {
      if (frame.event === "connect.challenge") void this.connect();
      else this.listener.event(frame.event ?? "", frame.payload);
      return;
    }
    const pending = this.pending.get(frame.id ?? "");
    this.pending.delete(frame.id ?? "");
    if (frame.ok) pending?.resolve(frame.payload);
    else pending?.reject(new GatewayError(frame.error ?? { code: "UNAVAILABLE", message: "no reason was given" }));
  }

  private async connect(): Promise<void> {
    const params: ConnectParams = {
      minProtocol: 3,
      maxProtocol: 3,
      client: { id: "webchat-ui", version: "2026.2.9", platform: navigator.platform || "web", mode: "webchat" },
      role: "operator",
      scopes: ["operator.read", "operator.write"],
      caps: ["tool-activity"],
      auth: { ...this.credentials },
      locale: navigator.language,
      userAgent: navigator.userAgent,
    };
    try {
      const hello = await this.request<HelloOk>("connect", params);
      this.retryMs = FIRST_RETRY_MS;
      this.listener.status({ kind: "online", hello });
    } catch (error) {
      const refusal = (error as GatewayError).shape;
      // A refusal does not get better by itself: ask the person instead of knocking again. A gateway that goes away does.
      if (refusal.code !== "UNAVAILABLE") {
        this.refused = true;
        this.listener.status({ kind: "refused", error: refusal });
      }
      this.socket?.close(4008, "connect failed");
    }
  }

  private closed(reason: string): void {
    for (const waiting of this.pending.values()) {
      waiting.reject(new GatewayError({ code: "UNAVAILABLE", message: "the connection to the gateway was lost" }));
    }
    this.pending.clear();
    if (this.stopped || this.refused) return;
    this.listener.status({ kind: "offline", reason: reason || "the gateway does not answer" });
    this.retryTimer = window.setTimeout(() => this.start(), this.retryMs);
    this.retryMs = Math.min(this.retryMs * RETRY_FACTOR, LAST_RETRY_MS);
  }
}
