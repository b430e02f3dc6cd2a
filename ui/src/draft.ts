// A message that is not on its way yet: what is written, the pictures that go with it, and whether it is to be sent by itself once there
// is a connection.

export interface Picture {
  name: string;
  type: string;
  /** A `data:` address of the whole file. */
  address: string;
}

export interface Draft {
  text: string;
  pictures: readonly Picture[];
  /** The run of a message that was sent and did not arrive, as far as the page knows. With the same name it can't be taken twice. */
  waiting?: string | undefined;
}

export const NOTHING: Draft = { text: "", pictures: [] };

/** Pictures of a message, as the gateway takes them (5 MB each). */
export const LARGEST_PICTURE = 5_000_000;

/** The formats that models take. Another one would be refused with every later message of the conversation. */
export const PICTURE_TYPES: readonly string[] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

export function isEmpty(draft: Draft): boolean {
  return !draft.text.trim() && draft.pictures.length === 0;
}

/** A change by its writer: the message is another one then, and waits for its writer again. */
export function edited(draft: Draft, change: Partial<Draft>): Draft {
  return { ...draft, ...change, waiting: undefined };
}

/** A message that did not arrive comes back into the field. What was written there since stays below it, and then nothing is sent by itself. */
export function returned(draft: Draft, message: Draft): Draft {
  if (isEmpty(draft)) return message;
  const text = [message.text, draft.text].filter(Boolean).join("\n\n");
  return { text, pictures: [...message.pictures, ...draft.pictures] };
}

/** Sorts files into pictures that can go with a message, and what its writer is told of the others. */
export async function takePictures(files: readonly File[]): Promise<{ pictures: Picture[]; refused: string[] }> {
  const refused: string[] = [];
  const taken = files.filter((file) => {
    const reason = refusal(file);
    if (reason) refused.push(reason);
    return !reason;
  });
  return { pictures: await Promise.all(taken.map(read)), refused };
}

export function refusal(file: Pick<File, "name" | "type" | "size">): string | undefined {
  const name = file.name || "The file";
  if (!file.type.startsWith("image/")) return `${name} is no picture. Only pictures can be attached here.`;
  if (!PICTURE_TYPES.includes(file.type)) return `Models do not take ${name}. Make it a PNG, JPEG, GIF or WebP picture and attach it again.`;
  if (file.size > LARGEST_PICTURE) return `${name} is larger than 5 MB. Make it smaller and attach it again.`;
  return undefined;
}

function read(file: File): Promise<Picture> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve({ name: file.name || "picture", type: file.type, address: String(reader.result) });
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

/** What `chat.send` takes. */
export function attachment({ name, type, address }: Picture): object {
  return { type: "image", mimeType: type, fileName: name, content: address.slice(address.indexOf(",") + 1) };
}
