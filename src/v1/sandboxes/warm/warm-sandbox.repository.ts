import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Column, Entity, type EntityManager, Index, PrimaryColumn, Repository } from 'typeorm';
import { Clock } from '../../../common/clock.js';
import { NamedStatement } from '../../../database/named-statement.js';
import { countRows } from '../../../observability/metrics.js';
import { HostIdentity } from '../host-identity.js';
import { hostIsLost } from '../sandbox-host.repository.js';

/**
 * A sandbox that is started before anybody asks for one. Whoever claims it takes the row away and makes one in `sandboxes`
 * under the same id, with an owner and a key.
 */
@Entity('warm_sandboxes')
@Index('warm_sandboxes_host_id_idx', ['hostId', 'fingerprint', 'status', 'createdAt'])
export class WarmSandbox {
  @PrimaryColumn('text')
  id: string;

  @Column('text', { name: 'spec_id' })
  specId: string;

  /** Identifies what it was started with (`WarmStarts.fingerprint`). */
  @Column('text')
  fingerprint: string;

  /** READY: its agent server waits for its key. */
  @Column('text')
  status: 'STARTING' | 'READY';

  @Column('text')
  backend: string;

  /** The host that runs it. */
  @Column('text', { name: 'host_id' })
  hostId: string;

  @Column('timestamptz', { name: 'created_at' })
  createdAt: Date;
}

/** Any number that no other advisory lock of ours has. */
const RESERVE_LOCK = 7_305_218_443;

/** Each request takes another one: what a concurrent request has locked is skipped. */
const CLAIM = new NamedStatement<{ id: string }>(
  'warm_sandbox_claim',
  `DELETE FROM warm_sandboxes WHERE id = (
     SELECT id FROM warm_sandboxes
     WHERE host_id = $1 AND fingerprint = $2 AND status = 'READY'
     ORDER BY created_at, id
     LIMIT 1
     FOR UPDATE SKIP LOCKED)
   RETURNING id`,
);

const RESERVE = `
  INSERT INTO warm_sandboxes (id, spec_id, fingerprint, status, backend, host_id, created_at)
  SELECT $1, $2, $3, 'STARTING', $4, $5, $6
  WHERE (SELECT count(*) FROM warm_sandboxes WHERE host_id = $5 AND fingerprint = $3) < $7
  RETURNING id`;

const COUNT_BY_STATUS =
  'SELECT lower(status) AS value, count(*)::int AS count FROM warm_sandboxes GROUP BY status';

/** The table of warm sandboxes. A row is of use to one host only, the one that runs the sandbox. */
@Injectable()
export class WarmSandboxRepository {
  constructor(
    @InjectRepository(WarmSandbox) private readonly rows: Repository<WarmSandbox>,
    private readonly host: HostIdentity,
    private readonly clock: Clock,
  ) {}

  /**
   * Takes one that is ready out of the pool, in the caller's transaction: it is back if that is rolled back.
   *
   * @returns its id; null when none is ready
   */
  async claim(manager: EntityManager, hostId: string, fingerprint: string): Promise<string | null> {
    const [row] = await CLAIM.within(manager, [hostId, fingerprint]);
    return row?.id ?? null;
  }

  /**
   * Makes the row of one that this process is about to start. Replicas of a host take turns, so that they never make more
   * than they should.
   *
   * @returns false when there are as many already
   */
  async reserve(
    { id, specId, fingerprint, backend }: Pick<WarmSandbox, 'id' | 'specId' | 'fingerprint' | 'backend'>,
    most: number,
  ): Promise<boolean> {
    return this.rows.manager.transaction(async (manager) => {
      await manager.query('SELECT pg_advisory_xact_lock($1)', [RESERVE_LOCK]);
      const now = new Date(this.clock.now());
      const values = [id, specId, fingerprint, backend, this.host.id, now, most];
      return (await manager.query<unknown[]>(RESERVE, values)).length === 1;
    });
  }

  /** @returns false when it was dropped meanwhile */
  async markReady(id: string): Promise<boolean> {
    const { affected } = await this.rows.update({ id, status: 'STARTING' }, { status: 'READY' });
    return affected === 1;
  }

  /** @returns false when somebody has claimed or dropped it */
  async drop(id: string): Promise<boolean> {
    const { affected } = await this.rows.delete({ id });
    return affected === 1;
  }

  async exists(id: string): Promise<boolean> {
    return this.rows.existsBy({ id });
  }

  /** Those of this host, the oldest first. */
  async ofHost(): Promise<WarmSandbox[]> {
    return this.rows.find({ where: { hostId: this.host.id }, order: { createdAt: 'ASC', id: 'ASC' } });
  }

  /** Forgets those of hosts that were not seen for so long; what still runs there becomes an orphan of its host. */
  async forgetLost(seconds: number): Promise<void> {
    await this.rows
      .createQueryBuilder()
      .delete()
      .where('host_id <> :hostId', { hostId: this.host.id })
      .andWhere(hostIsLost('host_id'), { seconds })
      .execute();
  }

  async countByStatus(): Promise<Map<string, number>> {
    return countRows(this.rows.manager.connection, COUNT_BY_STATUS);
  }
}
