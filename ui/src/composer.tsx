// Where a person writes. What can't be sent stays written.
import { useEffect, useState } from "preact/hooks";

interface ComposerProps {
  online: boolean;
  busy: boolean;
  send(text: string): void;
  abort(): void;
}

export function Composer({ online, busy, send, abort }: ComposerProps) {
  const [text, setText] = useState("");
  const [refused, setRefused] = useState(false);
  useEffect(() => {
    if (online) setRefused(false);
  }, [online]);
  const submit = () => {
    const message = text.trim();
    if (!message) return;
    setRefused(!online);
    if (!online) return;
    setText("");
    send(message);
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {refused && (
        <p class="problem" role="alert">
          Not sent: there is no connection to the gateway. Your message stays here; send it when the page is online again.
        </p>
      )}
      <textarea
        aria-label="Message"
        placeholder="Message"
        rows={2}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          submit();
        }}
      />
      {busy && (
        <button type="button" class="stop" onClick={abort}>
          Stop
        </button>
      )}
      <button type="submit">Send</button>
    </form>
  );
}
