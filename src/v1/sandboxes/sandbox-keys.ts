/** Whose a sandbox key is. */
export interface SandboxKeyHolder {
  sandboxId: string;
  /** The user whom the sandbox belongs to. */
  userId: string;
  /** Whether the sandbox was RUNNING when last observed; its key opens nothing otherwise. */
  running: boolean;
}

/** Knows sandboxes by the key that their agent servers, and what runs beside these, present. */
export abstract class SandboxKeys {
  /** The sandbox that a presented key belongs to; null for a key of none. */
  abstract find(sessionKey: string): Promise<SandboxKeyHolder | null>;
}
