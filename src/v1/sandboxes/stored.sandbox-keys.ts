import { timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { NamedStatement } from '../../database/named-statement.js';
import { type SandboxKeyHolder, SandboxKeys } from './sandbox-keys.js';
import { sessionKeyHash } from './sandbox-session-key.js';
import type { SandboxRowStatus } from './sandbox-status.js';

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

/** Finds sandboxes by the hash of their keys. */
@Injectable()
export class StoredSandboxKeys extends SandboxKeys {
  private readonly findByKey = new NamedStatement<KeyRow>('sandbox_by_key', FIND_BY_KEY);

  constructor(@InjectDataSource() private readonly dataSource: DataSource) {
    super();
  }

  override async find(sessionKey: string): Promise<SandboxKeyHolder | null> {
    const hash = sessionKeyHash(sessionKey);
    const [row] = await this.findByKey.run(this.dataSource, [hash]);
    return row && timingSafeEqual(row.session_key_hash, hash)
      ? { sandboxId: row.id, userId: row.user_id, running: row.status === 'RUNNING' }
      : null;
  }
}
