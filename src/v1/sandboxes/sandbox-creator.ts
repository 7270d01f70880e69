import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Clock } from '../../common/clock.js';
import { SecretCipher } from '../../common/crypto/secret-cipher.js';
import type { SandboxSpec } from '../sandbox-specs/sandbox-specs.js';
import { SandboxBackend } from './backends/sandbox-backend.js';
import { HostIdentity } from './host-identity.js';
import { pausedNotes } from './sandbox-quota.js';
import { deadlineSeconds } from './sandbox-status.js';
import { SandboxRepository } from './sandbox.repository.js';
import { newSandboxId, newSessionKey, sessionKeyBinding, sessionKeyHash } from './session-key.js';
import type { SandboxOverrides } from './user-overrides.js';
import { WarmSandboxClaims } from './warm/warm-sandbox-claims.js';

interface NewSandbox {
  /** From `newSandboxId()`; null: that of a warm sandbox, where one is ready, else a new one. */
  id: string | null;
  userId: string;
  spec: SandboxSpec;
  /** Null: the user's settings ask for nothing special. */
  overrides: SandboxOverrides | null;
  /** The host that is to run it; this one by default. */
  hostId?: string;
  /** For how long it does not count as idle. */
  keepAliveSeconds: number;
  /** Sandboxes that were paused to make room for it. */
  paused: readonly string[];
}

/** Makes rows of sandboxes; a worker of the row's host starts them. */
@Injectable()
export class SandboxCreator {
  constructor(
    private readonly sandboxes: SandboxRepository,
    private readonly host: HostIdentity,
    private readonly backend: SandboxBackend,
    private readonly cipher: SecretCipher,
    private readonly clock: Clock,
    private readonly warm: WarmSandboxClaims,
  ) {}

  /**
   * Inserts a STARTING row in the caller's transaction, which has made room for it (`SandboxQuota.claim`). The caller
   * calls `SandboxWorkerSignal.wake` once it is committed.
   *
   * @returns its id
   */
  async create(manager: EntityManager, sandbox: NewSandbox): Promise<string> {
    const { userId, spec, overrides, keepAliveSeconds, hostId = this.host.id } = sandbox;
    const id = sandbox.id ?? (await this.warm.claim(manager, spec, overrides, hostId)) ?? newSandboxId();
    const now = this.clock.now();
    const after = (seconds: number): Date => new Date(now + seconds * 1000);
    const sessionKey = newSessionKey();
    const timeoutSeconds = deadlineSeconds('STARTING', spec.startTimeoutSeconds);
    await this.sandboxes.insert(manager, {
      id,
      userId,
      specId: spec.id,
      statusDetail: pausedNotes(sandbox.paused).join(' ') || null,
      backend: this.backend.kind,
      hostId,
      sessionKey: this.cipher.encrypt(sessionKey, sessionKeyBinding(id)),
      sessionKeyHash: sessionKeyHash(sessionKey),
      overrides,
      deadlineAt: timeoutSeconds === null ? null : after(timeoutSeconds),
      heldUntil: keepAliveSeconds > 0 ? after(keepAliveSeconds) : null,
      lastActivityAt: new Date(now),
    });
    return id;
  }
}
