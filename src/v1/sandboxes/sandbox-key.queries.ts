import { timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Not, Repository } from 'typeorm';
import { Sandbox } from './sandbox.entity.js';
import { sessionKeyHash } from './session-key.js';

/** The sandbox that a key belongs to. */
export interface SandboxKeyHolder {
  sandboxId: string;
  /** The owner of the sandbox. */
  userId: string;
  /** Whether the sandbox is RUNNING; otherwise its key opens nothing. */
  running: boolean;
}

/** Finds sandboxes by the key that their agent servers, and what runs beside these, present. */
@Injectable()
export class SandboxKeyQueries {
  constructor(@InjectRepository(Sandbox) private readonly sandboxes: Repository<Sandbox>) {}

  /** Null for a key of no sandbox. */
  async find(sessionKey: string): Promise<SandboxKeyHolder | null> {
    const hash = sessionKeyHash(sessionKey);
    const found = await this.sandboxes.findOne({
      select: { id: true, userId: true, status: true, sessionKeyHash: true },
      where: { sessionKeyHash: hash, status: Not('DELETING') },
    });
    return found && timingSafeEqual(found.sessionKeyHash, hash)
      ? { sandboxId: found.id, userId: found.userId, running: found.status === 'RUNNING' }
      : null;
  }
}
