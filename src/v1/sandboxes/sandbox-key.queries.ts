import { timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { NamedStatement } from '../../database/named-statement.js';
import type { SandboxRowStatus } from './sandbox-status.js';
import { sessionKeyHash } from './session-key.js';

const FIND_BY_KEY = `
  SELECT id, user_id, status, session_key_hash
  FROM sandboxes
  WHERE session_key_hash = $1 AND status <> 'DELETING'`;

interface KeyRow {
  id: string;
  user_id: string;
  status: SandboxRowStatus;
  session_key_hash: Buffer;
}

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
  private readonly findByKey = new NamedStatement<KeyRow>('sandbox_by_key', FIND_BY_KEY);

  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** Null for a key of no sandbox. */
  async find(sessionKey: string): Promise<SandboxKeyHolder | null> {
    const hash = sessionKeyHash(sessionKey);
    const [row] = await this.findByKey.run(this.dataSource, [hash]);
    return row && timingSafeEqual(row.session_key_hash, hash)
      ? { sandboxId: row.id, userId: row.user_id, running: row.status === 'RUNNING' }
      : null;
  }
}
