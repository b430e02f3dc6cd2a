// The end of a text that grows stays in view while its reader is there, and the text stands still while they read above it.
import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** Somebody who is this close to the end, in pixels, reads there. */
const CLOSE = 48;

export interface FollowedEnd {
  /** For the element that scrolls. */
  ref: preact.RefObject<HTMLElement>;
  onScroll(): void;
  isAtEnd: boolean;
  toEnd(): void;
}

/** Follows the end as `content` grows. A new `own`, such as a message of the reader, leads to the end from anywhere. */
export function useFollowedEnd(content: unknown, own: unknown): FollowedEnd {
  const ref = useRef<HTMLElement>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  const toEnd = () => {
    const element = ref.current;
    if (element) element.scrollTop = element.scrollHeight;
  };
  useLayoutEffect(() => {
    if (isAtEnd) toEnd();
  }, [content]);
  useLayoutEffect(toEnd, [own]);
  const onScroll = () => {
    const element = ref.current;
    if (element) setAtEnd(element.scrollHeight - element.scrollTop - element.clientHeight <= CLOSE);
  };
  return { ref, onScroll, isAtEnd, toEnd };
}
