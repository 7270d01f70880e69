import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Clock } from '../../common/clock.js';
import { SecretCipher } from '../../common/crypto/secret-cipher.js';
import type { SandboxSpec } from '../sandbox-specs/sandbox-spec.js';
import { SandboxBackend } from './backends/sandbox-backend.js';
import { HostIdentity } from './host-identity.js';
import { SandboxKicks } from './sandbox-kicks.js';
import { newSessionKey, sessionKeyBinding, sessionKeyHash } from './sandbox-session-key.js';
import { deadlineSeconds } from './sandbox-transitions.js';
import { Sandbox, type SandboxWishes } from './sandbox.entity.js';

export interface NewSandbox {
  /** Of `newSandboxId()`. */
  id: string;
  userId: string;
  spec: SandboxSpec;
  /** What the user's settings ask for; null: nothing. */
  wishes: SandboxWishes | null;
  /** The host that is to look after it; this one by default. */
  hostId?: string;
  /** It does not count as idle for so long. */
  heldSeconds: number;
}

/** Makes rows of sandboxes; a worker of the row's host starts them. */
@Injectable()
export class SandboxCreation {
  constructor(
    private readonly host: HostIdentity,
    private readonly backend: SandboxBackend,
    private readonly cipher: SecretCipher,
    private readonly clock: Clock,
    private readonly kicks: SandboxKicks,
  ) {}

  /**
   * Inserts a STARTING row as part of the caller's transaction, which has claimed a place (`SandboxPlaces`) before.
   * Call `kick` once that is committed.
   */
  async insert(manager: EntityManager, sandbox: NewSandbox): Promise<Sandbox> {
    const now = this.clock.now();
    const sessionKey = newSessionKey();
    const seconds = deadlineSeconds('STARTING', sandbox.spec.startTimeoutSeconds);
    const repository = manager.getRepository(Sandbox);
    const row = repository.create({
      id: sandbox.id,
      userId: sandbox.userId,
      specId: sandbox.spec.id,
      status: 'STARTING',
      backend: this.backend.kind,
      hostId: sandbox.hostId ?? this.host.id,
      sessionKey: this.cipher.encrypt(sessionKey, sessionKeyBinding(sandbox.id)),
      sessionKeyHash: sessionKeyHash(sessionKey),
      wishes: sandbox.wishes,
      deadlineAt: seconds === null ? null : new Date(now + seconds * 1000),
      heldUntil: sandbox.heldSeconds > 0 ? new Date(now + sandbox.heldSeconds * 1000) : null,
      lastActivityAt: new Date(now),
      updatedAt: new Date(now),
    });
    // Its id is new: nothing has to be looked up before.
    await repository.insert(row);
    return row;
  }

  /** Has the new row worked on at once; without it the next sweep finds it, within a second. */
  kick(_id: string): void {
    this.kicks.kick();
  }
}
