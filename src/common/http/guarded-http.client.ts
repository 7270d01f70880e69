import type { HostAllowlist } from './host-allowlist.js';

export interface GuardedHttpOptions {
  /** Hosts and origins the operator trusts; everything else must resolve to public addresses only. */
  allowlist: HostAllowlist;
  /** Largest accepted answer in bytes. */
  maxResponseBytes: number;
  /** Deadline of a request in milliseconds unless the request names its own. */
  timeoutMs: number;
}

export interface GuardedRequestInit {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  signal?: AbortSignal;
  /** Deadline in milliseconds; the client's own by default. */
  timeoutMs?: number;
}
