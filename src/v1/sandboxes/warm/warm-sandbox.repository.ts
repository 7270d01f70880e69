import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Column, Entity, type EntityManager, Index, PrimaryColumn, Repository } from 'typeorm';
import { Clock } from '@slipway/common/clock.js';
import { lockFree } from '@slipway/database/leased-rows.js';
import { NamedStatement } from '@slipway/database/named-statement.js';
import { countRows } from '../../../observability/program-metrics.js';
import { HostIdentity } from '../host-identity.js';
import { hostIsLost } from '../sandbox-host.repository.js';

/** A sandbox started ahead of requests. A claim moves its row to `sandboxes` under the same id. */
@Entity('warm_sandboxes')
@Index('warm_sandboxes_host_id_idx', ['hostId', 'fingerprint', 'status', 'createdAt'])
export class WarmSandbox {
  @PrimaryColumn('text') id: string;
  @Column('text') specId: string;
  @Column('text') fingerprint: string;

  /** READY: its agent server waits for its key. */
  @Column('text') status: 'STARTING' | 'READY';
  @Column('text') backend: string;
  @Column('text') hostId: string;
  @Column('timestamptz') createdAt: Date;

  /** As `Sandbox.egressAuthority`, which it becomes. */
  @Column('text', { nullable: true }) egressAuthority: string | null;
}

export type ClaimedSandbox = Pick<WarmSandbox, 'id' | 'egressAuthority'>;

/** Unique among our advisory locks. */
const RESERVE_LOCK = 7_305_218_443;

/** Each request takes another one: what a concurrent request has locked is skipped. */
const CLAIM = new NamedStatement<ClaimedSandbox>(
  'warm_sandbox_claim',
  `DELETE FROM warm_sandboxes WHERE id = (
     SELECT id FROM warm_sandboxes
     WHERE host_id = $1 AND fingerprint = $2 AND status = 'READY'
     ORDER BY created_at, id
     LIMIT 1
     ${lockFree()})
   RETURNING id, egress_authority AS "egressAuthority"`,
);

const RESERVE = `
  INSERT INTO warm_sandboxes (id, spec_id, fingerprint, status, backend, host_id, created_at)
  SELECT $1, $2, $3, 'STARTING', $4, $5, $6
  WHERE (SELECT count(*) FROM warm_sandboxes WHERE host_id = $5 AND fingerprint = $3) < $7
  RETURNING id`;

const COUNT_BY_STATUS =
  'SELECT lower(status) AS value, count(*)::int AS count FROM warm_sandboxes GROUP BY status';

/** A row is of use only to the host that runs the sandbox. */
@Injectable()
export class WarmSandboxRepository {
  constructor(
    @InjectRepository(WarmSandbox) private readonly rows: Repository<WarmSandbox>,
    private readonly host: HostIdentity,
    private readonly clock: Clock,
  ) {}

  /** Takes a ready one out of the pool in the caller's transaction; returns null when none is ready. */
  async claim(
    manager: EntityManager,
    fingerprint: string,
    hostId = this.host.id,
  ): Promise<ClaimedSandbox | null> {
    const [row] = await CLAIM.within(manager, [hostId, fingerprint]);
    return row ?? null;
  }

  /** Makes the row of a sandbox to be started; false when there are enough. Replicas of a host take turns. */
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

  /** False when it was dropped meanwhile. */
  async markReady(id: string): Promise<boolean> {
    const { affected } = await this.rows.update({ id, status: 'STARTING' }, { status: 'READY' });
    return affected === 1;
  }

  /** False when it was claimed or dropped before. */
  async drop(id: string): Promise<boolean> {
    const { affected } = await this.rows.delete({ id });
    return affected === 1;
  }

  /** False when it was dropped meanwhile. */
  async keepAuthority(id: string, egressAuthority: string): Promise<boolean> {
    const { affected } = await this.rows.update({ id }, { egressAuthority });
    return affected === 1;
  }

  async find(id: string): Promise<WarmSandbox | null> {
    return this.rows.findOneBy({ id });
  }

  async exists(id: string): Promise<boolean> {
    return this.rows.existsBy({ id });
  }

  async ofHost(): Promise<WarmSandbox[]> {
    return this.rows.find({ where: { hostId: this.host.id }, order: { createdAt: 'ASC', id: 'ASC' } });
  }

  /** Forgets those of hosts not seen for so long; what still runs there becomes an orphan. */
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
