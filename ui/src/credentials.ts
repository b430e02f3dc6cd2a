// The shared secret arrives in the URL fragment (`#token=…` or `#password=…`): a fragment is never sent to a server and
// never lands in a log. It is moved to the tab's session storage at once, so that it does not stay in the address bar, and forgotten where
// the gateway knows this browser as a device (`device.ts`).

export interface Credentials {
  token?: string;
  password?: string;
}

const KEY = "openclaw.credentials";

export function takeCredentials(location: Location, storage: Storage): Credentials {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const given = pick(fragment.get("token"), fragment.get("password"));
  if (given) {
    // Until the gateway has accepted it, so that a reload does not lose it.
    remember(storage, given);
    history.replaceState(null, "", location.pathname + location.search);
    return given;
  }
  try {
    return JSON.parse(storage.getItem(KEY) ?? "{}") as Credentials;
  } catch {
    return {};
  }
}

export function remember(storage: Storage, credentials: Credentials): void {
  storage.setItem(KEY, JSON.stringify(credentials));
}

export function forget(storage: Storage): void {
  storage.removeItem(KEY);
}

function pick(token: string | null, password: string | null): Credentials | undefined {
  if (token) return { token };
  if (password) return { password };
  return undefined;
}
