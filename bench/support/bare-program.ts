/** An agent server that something simpler than the service starts; what the service does is compared with this. */
export interface BareProgram {
  /** Returns when `/alive` is answered. */
  start(): Promise<void>;
  /** Asks it to end; returns when it has. */
  stop(): Promise<void>;
  /** After `stop`, on the same files; returns when `/alive` is answered. */
  restart(): Promise<void>;
  remove(): Promise<void>;
}
