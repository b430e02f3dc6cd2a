// This browser as a device of the gateway: an Ed25519 key and the token that the gateway gave it. With them a new tab needs no secret.
// Keys exist in secure contexts only. A device is paired without a person on the gateway's own computer alone, so only pages that are
// opened there have one.
import type { ConnectParams, HelloAuth } from "./protocol";

const KEY = "openclaw.device";

interface Stored {
  privateKey: string;
  publicKey: string;
  token?: string | undefined;
}

export interface Device {
  /** What a connection is opened with, without a secret of a person. */
  token: string | undefined;
  /** The proof that goes with a challenge of the gateway. */
  sign(params: ConnectParams, nonce: string): Promise<ConnectParams>;
  keep(auth: HelloAuth): void;
  forgetToken(): void;
}

/** The device of this browser, made when there is none yet. Nothing where the browser or the place of the page can't have one. */
export async function findDevice(location: Location, storage: Storage): Promise<Device | undefined> {
  if (!isOfThisComputer(location.hostname) || !globalThis.crypto?.subtle) return undefined;
  try {
    const stored = read(storage) ?? (await make(storage));
    const key = await crypto.subtle.importKey("pkcs8", bytes(stored.privateKey), "Ed25519", false, ["sign"]);
    const id = hex(await crypto.subtle.digest("SHA-256", bytes(stored.publicKey)));
    return device(stored, key, id, storage);
  } catch {
    // A browser without Ed25519, or one that keeps nothing.
    return undefined;
  }
}

function device(stored: Stored, key: CryptoKey, id: string, storage: Storage): Device {
  const write = (token: string | undefined) => {
    stored.token = token;
    storage.setItem(KEY, JSON.stringify(stored));
  };
  return {
    get token() {
      return stored.token;
    },
    async sign(params, nonce) {
      const signedAt = Date.now();
      const { client, role, scopes, auth } = params;
      const fields = ["v2", id, client.id, client.mode, role, (scopes ?? []).join(","), signedAt, auth?.token ?? "", nonce];
      const signature = await crypto.subtle.sign("Ed25519", key, new TextEncoder().encode(fields.join("|")));
      return { ...params, device: { id, publicKey: stored.publicKey, signature: base64url(signature), signedAt, nonce } };
    },
    keep: (auth) => write(auth.deviceToken),
    forgetToken: () => write(undefined),
  };
}

function isOfThisComputer(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127(\.\d+){3}$/.test(host);
}

function read(storage: Storage): Stored | undefined {
  const text = storage.getItem(KEY);
  return text ? (JSON.parse(text) as Stored) : undefined;
}

async function make(storage: Storage): Promise<Stored> {
  const pair = (await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"])) as CryptoKeyPair;
  const privateKey = base64url(await crypto.subtle.exportKey("pkcs8", pair.privateKey));
  const publicKey = base64url(await crypto.subtle.exportKey("raw", pair.publicKey));
  const stored = { privateKey, publicKey };
  storage.setItem(KEY, JSON.stringify(stored));
  return stored;
}

function base64url(data: ArrayBuffer): string {
  return btoa(String.fromCharCode(...new Uint8Array(data))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function bytes(base64url: string): Uint8Array<ArrayBuffer> {
  const binary = atob(base64url.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (char) => char.charCodeAt(0));
}

function hex(data: ArrayBuffer): string {
  return Array.from(new Uint8Array(data), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
