import type { OutgoingHttpHeaders } from 'node:http';

/** A request on its way to a program in a sandbox. */
export interface Passage {
  /** Base address of the program. */
  target: string;
  /** Path and query as the program gets them. */
  path: string;
  /** Changes what the program is told. */
  toProgram: (headers: OutgoingHttpHeaders) => void;
  /** Changes what the client is told. */
  toClient: (headers: OutgoingHttpHeaders) => void;
  /** Called whenever the client sends something over a WebSocket. */
  onUse?: () => void;
}
