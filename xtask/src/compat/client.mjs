// OpenClaw 2026.2.9's own client of the gateway: asks what each line of its input says, and prints all that it hears.
import { createInterface } from "node:readline";

const [dist, url, token, instanceId] = process.argv.slice(2);
const { l: GatewayClient } = await import(`${dist}/net-CYzQzbew.js`);
const print = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

const client = new GatewayClient({
  url,
  token,
  instanceId,
  mode: "ui",
  // As its command line asks: both have one device, whose token is for what was asked first.
  scopes: ["operator.admin", "operator.approvals", "operator.pairing"],
  caps: ["tool-events"],
  onHelloOk: (hello) => print({ hello }),
  onEvent: ({ event, payload }) => print({ event, payload }),
  onClose: (closed, reason) => print({ closed, reason }),
});
client.start();
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  client.request(method, params).then(
    (payload) => print({ id, payload }),
    (error) => print({ id, error: error.message }),
  );
}
process.exit();
