// What the tests use of Node.js; its own types would be a dependency of this alone.
declare module "node:test" {
  export default function test(name: string, body: () => void): void;
}
declare module "node:assert/strict" {
  const assert: { deepEqual(actual: unknown, expected: unknown, message?: string): void };
  export default assert;
}
