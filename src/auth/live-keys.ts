import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { Clock } from '../common/clock.js';
import { NamedStatement } from '../database/named-statement.js';

const FIND_LIVE = `
  SELECT id FROM api_keys
  WHERE id = ANY ($1::text[]) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)`;

/** For answers that go on for longer than a key was checked for. */
@Injectable()
export class LiveKeys {
  private readonly findLive = new NamedStatement<{ id: string }>('api_keys_live', FIND_LIVE);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly clock: Clock,
  ) {}

  /** Those of the keys, by id, that open something right now: neither revoked nor expired, and of a user who is there. */
  async among(keyIds: readonly string[]): Promise<Set<string>> {
    const rows = await this.findLive.run(this.dataSource, [keyIds, new Date(this.clock.now())]);
    return new Set(rows.map(({ id }) => id));
  }
}
