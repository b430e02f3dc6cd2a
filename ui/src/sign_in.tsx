// The page of those who are not signed in: what the gateway asks for, and what was wrong with what it got.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Credentials } from "./credentials";
import type { ErrorShape } from "./protocol";

/** What a person reads when the gateway refuses the page. */
export interface Advice {
  /** What was wrong; nothing when the page has not given a secret yet. */
  problem?: string;
  /** Whether another secret could help. */
  asksSecret: boolean;
  /** Whether the secret that was given is wrong. */
  wrongSecret: boolean;
}

/** The gateway's texts are the protocol's. Their advice is written for pages that send people here. */
export function advise(error: ErrorShape): Advice {
  const [, secret, fault] = /gateway (token|password) (missing|mismatch)/.exec(error.message) ?? [];
  if (fault === "mismatch") {
    return { problem: `This is not the ${secret} of this gateway.`, asksSecret: true, wrongSecret: true };
  }
  if (fault === "missing" || error.code === "NOT_PAIRED") return { asksSecret: true, wrongSecret: false };
  const problem = `The gateway refused: ${error.message.replace(/^unauthorized: /, "")}.`;
  return { problem, asksSecret: error.message.startsWith("unauthorized"), wrongSecret: false };
}

interface SignInProps {
  advice: Advice;
  busy: boolean;
  submit(secret: Credentials): void;
  retry(): void;
}

export function SignIn({ advice, busy, submit, retry }: SignInProps) {
  const [text, setText] = useState("");
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.select(), [advice]);
  return (
    <form
      class="sign-in"
      onSubmit={(event) => {
        event.preventDefault();
        const secret = text.trim();
        // Which of the two it is, the gateway knows.
        if (!advice.asksSecret) retry();
        else if (secret) submit({ token: secret, password: secret });
      }}
    >
      <h2>Sign in to your gateway</h2>
      {advice.problem && (
        <p id="problem" class="problem" role="alert">
          {advice.problem}
        </p>
      )}
      {advice.asksSecret && (
        <>
          <label>
            Gateway token or password
            <input
              ref={field}
              type="password"
              autocomplete="off"
              required
              aria-invalid={advice.wrongSecret}
              aria-describedby={advice.problem ? "problem help" : "help"}
              value={text}
              onInput={(event) => setText(event.currentTarget.value)}
            />
          </label>
          <p id="help">
            It is <code>gateway.auth.token</code> or <code>gateway.auth.password</code> in the gateway's configuration. On the
            gateway's own computer, <code>openclaw dashboard</code> opens this page signed in.
          </p>
        </>
      )}
      <button type="submit" disabled={busy}>
        {advice.asksSecret ? "Sign in" : "Try again"}
      </button>
    </form>
  );
}
