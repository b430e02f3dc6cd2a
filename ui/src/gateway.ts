// One WebSocket to the gateway: handshake, request/response, events, reconnect. It knows frames, not chats.
import type { ConnectParams, ErrorShape, HelloOk } from "./protocol";
import type { Credentials } from "./credentials";
import { findDevice, type Device } from "./device";

export type Status =
  | { kind: "connecting" }
  | { kind: "online"; hello: HelloOk; isKnownDevice: boolean }
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

/** A device that the gateway does not know any more has to sign in anew; nothing that a person gave was wrong. */
const SECRET_MISSING = "gateway token missing";

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
  /** This browser as a device of the gateway; `undefined` where it is none, or the gateway does not want it. */
  private device: Promise<Device | undefined> = findDevice(window.location, window.localStorage);

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
      if (frame.event === "connect.challenge") void this.connect((frame.payload as { nonce?: string } | undefined)?.nonce ?? "");
      else this.listener.event(frame.event ?? "", frame.payload);
      return;
    }
    const pending = this.pending.get(frame.id ?? "");
    this.pending.delete(frame.id ?? "");
    if (frame.ok) pending?.resolve(frame.payload);
    else pending?.reject(new GatewayError(frame.error ?? { code: "UNAVAILABLE", message: "no reason was given" }));
  }

  private async connect(nonce: string): Promise<void> {
    const device = await this.device;
    try {
      const params = this.params(device);
      const hello = await this.request<HelloOk>("connect", device ? await device.sign(params, nonce) : params);
      if (hello.auth) device?.keep(hello.auth);
      this.retryMs = FIRST_RETRY_MS;
      this.listener.status({ kind: "online", hello, isKnownDevice: hello.auth !== undefined });
    } catch (error) {
      if (error instanceof GatewayError) this.onRefusal(error.shape, device);
      this.socket?.close(4008, "connect failed");
    }
  }

  /** A secret of a person goes before the token of the device: it was given for this page. */
  private params(device: Device | undefined): ConnectParams {
    const { credentials } = this;
    const isGiven = credentials.token !== undefined || credentials.password !== undefined;
    return {
      minProtocol: 3,
      maxProtocol: 3,
      client: { id: "webchat-ui", version: "2026.2.9", platform: navigator.platform || "web", mode: "webchat" },
      role: "operator",
      scopes: ["operator.read", "operator.write"],
      caps: ["tool-activity"],
      auth: isGiven || !device?.token ? { ...credentials } : { token: device.token },
      locale: navigator.language,
      userAgent: navigator.userAgent,
    };
  }

  private onRefusal(refusal: ErrorShape, device: Device | undefined): void {
    // A gateway that goes away comes back.
    if (refusal.code === "UNAVAILABLE") return;
    if (device && refusal.code === "NOT_PAIRED") {
      // Such as behind a proxy on this computer: the page is no device there, and comes in with its secret alone.
      this.device = Promise.resolve(undefined);
      this.retryMs = 0;
      return;
    }
    const isOwnToken = device?.token !== undefined && this.credentials.token === undefined && this.credentials.password === undefined;
    if (isOwnToken) device?.forgetToken();
    // A refusal does not get better by itself: ask the person instead of knocking again.
    this.refused = true;
    this.listener.status({ kind: "refused", error: isOwnToken ? { ...refusal, message: SECRET_MISSING } : refusal });
  }

  private closed(reason: string): void {
    for (const waiting of this.pending.values()) {
      waiting.reject(new GatewayError({ code: "UNAVAILABLE", message: "the connection to the gateway was lost" }));
    }
    this.pending.clear();
    if (this.stopped || this.refused) return;
    this.listener.status({ kind: "offline", reason: reason || "the gateway does not answer" });
    this.retryTimer = window.setTimeout(() => this.start(), this.retryMs);
    this.retryMs = Math.min(Math.max(this.retryMs, FIRST_RETRY_MS) * RETRY_FACTOR, LAST_RETRY_MS);
  }
}
