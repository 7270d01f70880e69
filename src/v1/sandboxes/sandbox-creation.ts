import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Clock } from '../../common/clock.js';
import { SecretCipher } from '../../common/crypto/secret-cipher.js';
import { NamedStatement } from '../../database/named-statement.js';
import type { SandboxSpec } from '../sandbox-specs/sandbox-spec.js';
import { SandboxBackend } from './backends/sandbox-backend.js';
import { HostIdentity } from './host-identity.js';
import { SandboxWorkerSignal } from './sandbox-leases.js';
import { deadlineSeconds } from './sandbox.entity.js';
import { newSessionKey, sessionKeyBinding, sessionKeyHash } from './session-key.js';
import type { SandboxOverrides } from './user-overrides.js';

const INSERT = new NamedStatement(
  'sandbox_insert',
  `INSERT INTO sandboxes
     (id, user_id, spec_id, status, status_detail, backend, host_id, session_key, session_key_hash, wishes, deadline_at,
      held_until, last_activity_at, updated_at)
   VALUES ($1, $2, $3, 'STARTING', $4, $5, $6, $7, $8, $9, $10, $11, $12, $12)`,
);

interface NewSandbox {
  /** Of `newSandboxId()`. */
  id: string;
  userId: string;
  spec: SandboxSpec;
  /** What the user's settings ask for; null: nothing. */
  overrides: SandboxOverrides | null;
  /** The host that is to look after it; this one by default. */
  hostId?: string;
  /** It does not count as idle for so long. */
  heldSeconds: number;
  /** Sandboxes that were paused to make room for it. */
  paused: readonly string[];
}

/** Makes rows of sandboxes; a worker of the row's host starts them. */
@Injectable()
export class SandboxCreation {
  constructor(
    private readonly host: HostIdentity,
    private readonly backend: SandboxBackend,
    private readonly cipher: SecretCipher,
    private readonly clock: Clock,
    private readonly kicks: SandboxWorkerSignal,
  ) {}

  /**
   * Inserts a STARTING row as part of the caller's transaction, which has claimed a place (`SandboxQuota`) before.
   * Call `kick` once that is committed.
   */
  async insert(manager: EntityManager, sandbox: NewSandbox): Promise<void> {
    const now = new Date(this.clock.now());
    const sessionKey = newSessionKey();
    const seconds = deadlineSeconds('STARTING', sandbox.spec.startTimeoutSeconds);
    await INSERT.within(manager, [
      sandbox.id,
      sandbox.userId,
      sandbox.spec.id,
      pausedNotes(sandbox.paused).join(' ') || null,
      this.backend.kind,
      sandbox.hostId ?? this.host.id,
      this.cipher.encrypt(sessionKey, sessionKeyBinding(sandbox.id)),
      sessionKeyHash(sessionKey),
      sandbox.overrides === null ? null : JSON.stringify(sandbox.overrides),
      seconds === null ? null : secondsAfter(now, seconds),
      sandbox.heldSeconds > 0 ? secondsAfter(now, sandbox.heldSeconds) : null,
      now,
    ]);
  }

  /** Has the new row worked on at once; without it the next sweep finds it, within a second. */
  kick(_id: string): void {
    this.kicks.wake();
  }
}

function secondsAfter(moment: Date, seconds: number): Date {
  return new Date(moment.getTime() + seconds * 1000);
}

/** Says for people which idle sandboxes gave up their places to another one; nothing when none did. */
export function pausedNotes(ids: readonly string[]): string[] {
  const [first, ...others] = ids;
  if (first === undefined) {
    return [];
  }
  return others.length === 0
    ? [`Sandbox ${first} was idle for longest, and was paused to make room.`]
    : [`Sandboxes ${[first, ...others].join(', ')} were idle for longest, and were paused to make room.`];
}
