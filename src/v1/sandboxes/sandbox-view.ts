import type { SandboxRowStatus } from './sandbox-status.js';

/** What a sandbox's owner may know of it. */
export interface SandboxView {
  id: string;
  userId: string;
  specId: string;
  status: SandboxRowStatus;
  statusDetail: string | null;
  /** Null unless it is RUNNING, like the key. */
  address: string | null;
  /** Where the ports of what agents start are reached, by name. */
  ports: Readonly<Record<string, string>>;
  sessionKey: string | null;
  createdAt: Date;
}
