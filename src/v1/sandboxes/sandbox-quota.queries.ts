import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, In, Not, Repository } from 'typeorm';
import { NamedStatement } from '../../database/named-statement.js';
import type { SandboxRowStatus } from './sandbox-status.js';
import { Sandbox } from './sandbox.entity.js';

/** Statuses that count towards the quota. */
const ACTIVE: SandboxRowStatus[] = ['STARTING', 'RUNNING'];

const COUNT_ACTIVE = new NamedStatement<{ count: number }>(
  'sandboxes_count_taken',
  `SELECT count(*)::int AS count FROM sandboxes
   WHERE user_id = $1 AND status IN ('STARTING', 'RUNNING') AND id <> $2`,
);

/** Any number that no other advisory lock of ours has. */
const FIRST_USER_LOCK = 7_305_218_441;

/** Two ends of an index: `<>` would read all sandboxes of the user. */
const EXISTS_OF_OTHERS = `
  SELECT EXISTS (SELECT FROM sandboxes WHERE user_id < $1) OR EXISTS (SELECT FROM sandboxes WHERE user_id > $1) AS found`;

/**
 * What the quota, and the separation of users, count. `manager`: the transaction to read in; null: none. `exceptId`: a
 * sandbox that does not count.
 */
@Injectable()
export class SandboxQuotaQueries {
  constructor(@InjectRepository(Sandbox) private readonly sandboxes: Repository<Sandbox>) {}

  /** How many sandboxes of the user start or run. */
  async countActive(manager: EntityManager | null, userId: string, exceptId: string | null): Promise<number> {
    const values = [userId, exceptId ?? ''];
    const [row] = manager
      ? await COUNT_ACTIVE.within(manager, values)
      : await COUNT_ACTIVE.run(this.sandboxes.manager.connection, values);
    return row?.count ?? 0;
  }

  /** The sandboxes of the user that start or run. */
  async findActive(
    manager: EntityManager | null,
    userId: string,
    exceptId: string | null,
  ): Promise<Sandbox[]> {
    const sandboxes = manager?.getRepository(Sandbox) ?? this.sandboxes;
    return sandboxes.findBy({ userId, status: In(ACTIVE), ...(exceptId !== null && { id: Not(exceptId) }) });
  }

  /**
   * Whether any other user has a sandbox. Callers take turns until their transactions end: of two users who start their
   * first sandboxes at the same time the second one sees the first.
   */
  async othersHaveSandboxes(manager: EntityManager, userId: string): Promise<boolean> {
    await manager.query('SELECT pg_advisory_xact_lock($1)', [FIRST_USER_LOCK]);
    const [row] = await manager.query<{ found: boolean }[]>(EXISTS_OF_OTHERS, [userId]);
    return row?.found === true;
  }
}
