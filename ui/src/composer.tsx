// Where a person writes. What can't be sent stays written, and is sent once there is a connection.
import { useEffect, useRef, useState } from "preact/hooks";
import { edited, isEmpty, PICTURE_TYPES, takePictures, type Draft } from "./draft";

interface ComposerProps {
  draft: Draft;
  online: boolean;
  busy: boolean;
  write(change: (draft: Draft) => Draft): void;
  send(): void;
  abort(): void;
}

/** The field grows with what is written. Browsers that know `field-sizing` do it by themselves. */
function grow(field: HTMLTextAreaElement): void {
  if (CSS.supports("field-sizing", "content")) return;
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

export function Composer({ draft, online, busy, write, send, abort }: ComposerProps) {
  const [refused, setRefused] = useState<readonly string[]>([]);
  const field = useRef<HTMLTextAreaElement>(null);
  const files = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const attach = async (chosen: readonly File[]) => {
    const { pictures, refused } = await takePictures(chosen);
    setRefused(refused);
    if (pictures.length > 0) write((draft) => edited(draft, { pictures: [...draft.pictures, ...pictures] }));
  };
  const submit = () => {
    if (isEmpty(draft)) return;
    setRefused([]);
    send();
  };
  const onTransfer = (event: Event, data: DataTransfer | null) => {
    const given = Array.from(data?.files ?? []);
    if (given.length === 0) return;
    event.preventDefault();
    void attach(given);
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => onTransfer(event, event.dataTransfer)}
    >
      {draft.waiting && (
        <p class="problem" role="alert">
          Not sent yet: {online ? "the gateway is not taking messages right now." : "there is no connection to the gateway."} Your
          message stays here and is sent as soon as it can be.
        </p>
      )}
      {refused.map((reason) => (
        <p key={reason} class="problem" role="alert">
          {reason}
        </p>
      ))}
      {draft.pictures.length > 0 && (
        <ul class="pictures">
          {draft.pictures.map((picture) => (
            <li key={picture.address}>
              <img src={picture.address} alt={picture.name} />
              <button
                type="button"
                class="plain"
                aria-label={`Remove ${picture.name}`}
                onClick={() => write((draft) => edited(draft, { pictures: draft.pictures.filter((other) => other !== picture) }))}
              >
                ×
              </button>
            </li>
          ))}
        </ul>
      )}
      <textarea
        ref={field}
        aria-label="Message"
        placeholder="Message"
        rows={2}
        value={draft.text}
        onInput={(event) => {
          const text = event.currentTarget.value;
          grow(event.currentTarget);
          write((draft) => edited(draft, { text }));
        }}
        onPaste={(event) => onTransfer(event, event.clipboardData)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          submit();
        }}
      />
      <input
        ref={files}
        type="file"
        accept={PICTURE_TYPES.join(",")}
        multiple
        hidden
        onChange={(event) => {
          void attach(Array.from(event.currentTarget.files ?? []));
          event.currentTarget.value = "";
        }}
      />
      <button type="button" class="plain" aria-label="Attach pictures" title="Attach pictures" onClick={() => files.current?.click()}>
        📎
      </button>
      {busy && (
        <button type="button" class="stop" title="Stop (Esc)" onClick={abort}>
          Stop
        </button>
      )}
      <button type="submit">Send</button>
    </form>
  );
}
