// Messages as `chat.history` answers them.

const text = (text: string) => [{ type: "text", text }];

export const user = (said: string, timestamp = 0) => ({ role: "user", content: text(said), timestamp });

export const answer = (said: string, fields: object = {}) => {
  return { role: "assistant", content: said ? text(said) : [], provider: "fake", stopReason: "stop", ...fields };
};

/** What the gateway says in the assistant's name. */
export const remark = (said: string) => answer(said, { provider: "openclaw" });

export const call = (id: string) => {
  return answer("", { content: [{ type: "toolCall", id, name: "exec", arguments: { command: "ls" } }], stopReason: "toolUse" });
};

export const result = (toolCallId: string, said: string) => ({ role: "toolResult", toolCallId, content: text(said) });
