// Loaded before OpenClaw: what it sends to Telegram goes to the server of a check.
const send = globalThis.fetch;
const here = (url) => url.replace("https://api.telegram.org", process.env.TELEGRAM_ROOT);
globalThis.fetch = (url, options) => send(typeof url === "string" ? here(url) : url, options);
