import { timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Not, Repository } from 'typeorm';
import { Sandbox } from './sandbox.entity.js';
import { sessionKeyHash } from './session-key.js';

export interface SandboxKeyHolder {
  sandboxId: string;
  userId: string;
  /** Unless it is RUNNING, its key opens nothing. */
  running: boolean;
}

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
