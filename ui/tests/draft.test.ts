import assert from "node:assert/strict";
import test from "node:test";
import { attachment, edited, isEmpty, LARGEST_PICTURE, NOTHING, refusal, returned, type Draft, type Picture } from "../src/draft";

const picture: Picture = { name: "a.png", type: "image/png", address: "data:image/png;base64,AAAA" };
const draft = (text: string, fields: Partial<Draft> = {}): Draft => ({ ...NOTHING, text, ...fields });

test("a message that did not arrive comes back as it was and is sent again by its own name", () => {
  const message = draft("hello", { pictures: [picture], waiting: "r" });
  assert.deepEqual(returned(NOTHING, message), message);
});

test("what was written since stays, and then nothing is sent by itself", () => {
  const both = returned(draft("and more"), draft("hello", { pictures: [picture], waiting: "r" }));
  assert.deepEqual(both, { text: "hello\n\nand more", pictures: [picture] });
});

test("a message that its writer changes is another one", () => {
  assert.deepEqual(edited(draft("hello", { waiting: "r" }), { text: "hello you" }), draft("hello you", { waiting: undefined }));
});

test("a message is empty without words and pictures", () => {
  assert.deepEqual(isEmpty(draft("  ")), true);
  assert.deepEqual(isEmpty(draft("a")), false);
  assert.deepEqual(isEmpty(draft("", { pictures: [picture] })), false);
});

test("a picture goes to the gateway without the head of its address", () => {
  assert.deepEqual(attachment(picture), { type: "image", mimeType: "image/png", fileName: "a.png", content: "AAAA" });
});

test("only pictures that models take can be attached, and its writer is told of the others", () => {
  const file = (name: string, type: string, size = 1) => refusal({ name, type, size });
  const says = (reason: string | undefined, words: string) => reason?.startsWith(words) ?? false;
  for (const type of ["image/png", "image/jpeg", "image/gif", "image/webp"]) assert.deepEqual(file("a", type), undefined);
  for (const type of ["image/svg+xml", "image/heic", "image/bmp"]) assert.deepEqual(says(file("a.x", type), "Models do not take a.x."), true);
  assert.deepEqual(says(file("a.pdf", "application/pdf"), "a.pdf is no picture."), true);
  assert.deepEqual(says(file("a.png", "image/png", LARGEST_PICTURE + 1), "a.png is larger than 5 MB"), true);
});
