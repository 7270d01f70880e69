import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, IsNull, LessThan, MoreThan, Not, Or, Repository, Column, Entity, PrimaryColumn } from 'typeorm';
import { Clock } from '@slipway/common/clock.js';
import { EntityRows } from '@slipway/database/entity-rows.js';
import { type Lease, LeasedRows, type LeasedTable } from '@slipway/database/leased-rows.js';
import type { SandboxFacts } from '@slipway/sandboxes/sandbox-backend.js';
import { HostIdentity } from './host-identity.js';
import { SANDBOXES_CHANNEL } from './sandbox-events.js';
import { hostIsLost } from './sandbox-host.repository.js';
import type { SandboxRowStatus } from './sandbox-status.js';
import { currentPorts, type PortAddresses, Sandbox } from './sandbox.entity.js';

/** A lease that is not renewed for this long may be taken over: its process is dead. */
export const SANDBOX_LEASE_MS = 15_000;

/** A lease is no change of the sandbox. */
const SAME_TIME = { updatedAt: () => 'updated_at' };

const MAX_BATCH = 50;

/** Bounds a comparison, which runs every two seconds: there may be thousands of stopped rows. */
const STOPPED_ROWS = 1_000;
export const FIRST_ROW = '-infinity ';

/** One statement: a warm sandbox claimed meanwhile is in either table. A changed row moves to the end of the index. */
const EXPECTED = `
  WITH stopped AS MATERIALIZED (
    SELECT id, updated_at FROM sandboxes
    WHERE host_id = $1 AND status IN ('PAUSED', 'ERROR', 'MISSING') AND (updated_at, id) > ($4::timestamptz, $5)
    ORDER BY updated_at, id LIMIT ${STOPPED_ROWS})
  SELECT id, 'WARM' AS status, NULL AS address, NULL::jsonb AS "portAddresses", 0 AS generation, host_id = $1 AS ours,
    NULL AS cursor
  FROM warm_sandboxes
  WHERE id = ANY($3)
  UNION ALL
  SELECT id, status, address, port_addresses AS "portAddresses", generation, host_id = $1 AND backend = $2 AS ours,
    CASE WHEN id = (SELECT id FROM stopped ORDER BY updated_at, id OFFSET ${STOPPED_ROWS - 1})
      THEN to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || ' ' || id END AS cursor
  FROM sandboxes
  WHERE (host_id = $1 AND status = 'RUNNING') OR id = ANY(ARRAY(SELECT id FROM stopped)) OR id = ANY($3)`;

export interface ExpectedSandbox {
  id: string;
  /** WARM: it waits to be claimed, and its keeper looks after it. */
  status: SandboxRowStatus | 'WARM';
  address: string | null;
  ports: SandboxFacts['ports'];
  /** It belongs to this host and to the configured backend. */
  ours: boolean;
  /** A sandbox that was never started never had files. */
  everStarted: boolean;
}

interface ExpectedRow extends Omit<ExpectedSandbox, 'ports' | 'everStarted'> {
  portAddresses: PortAddresses | null;
  generation: number;
  cursor: string | null;
}

/** A lease with columns of the sandbox's row. */
export interface LeasedSandbox extends Lease {
  status: SandboxRowStatus;
  [column: string]: unknown;
}

/** Sandboxes of a host in transitional statuses. All starts have one owner, so that they leave room for stops. */
export function transitionalOf(hostId: string, returning = 'r.status'): LeasedTable {
  return {
    table: 'sandboxes',
    key: { column: 'id', type: 'text' },
    columns: { leased_by: 'lease_owner', leased_until: 'lease_until' },
    owner: `CASE r.status WHEN 'STARTING' THEN 'starts' ELSE r.id END`,
    condition: `r.host_id = $8 AND r.status IN ('STARTING', 'PAUSING', 'DELETING')`,
    values: [hostId],
    returning,
    renewing: 'r.status',
    channel: SANDBOXES_CHANNEL,
    payload: hostId,
  };
}

/** What background work looks for, and the leases that let at most one process work on a sandbox. */
@Injectable()
export class SandboxLifecycleRepository {
  readonly leases: LeasedRows<LeasedSandbox>;
  private readonly rows: EntityRows<Sandbox>;

  constructor(
    @InjectRepository(Sandbox) private readonly sandboxes: Repository<Sandbox>,
    private readonly host: HostIdentity,
    private readonly clock: Clock,
  ) {
    this.rows = new EntityRows(sandboxes, 'r');
    const { connection } = sandboxes.manager;
    this.leases = new LeasedRows(connection, clock, transitionalOf(host.id, this.rows.columns));
  }

  sandboxOf(row: LeasedSandbox): Sandbox {
    return this.rows.entity(row);
  }

  /** False when the sandbox has none of these statuses, or another process has its lease. */
  async take(id: string, statuses: readonly SandboxRowStatus[]): Promise<boolean> {
    const now = this.clock.now();
    const { affected } = await this.sandboxes.update(
      { id, status: In([...statuses]), leaseUntil: Or(IsNull(), LessThan(new Date(now))) },
      { leaseOwner: this.host.processId, leaseUntil: new Date(now + SANDBOX_LEASE_MS), ...SAME_TIME },
    );
    return affected === 1;
  }

  async release(id: string): Promise<void> {
    await this.sandboxes.update(
      { id, leaseOwner: this.host.processId },
      { leaseOwner: null, leaseUntil: null, ...SAME_TIME },
    );
  }

  /** Whether any sandbox that runs on this host needs the egress proxy. */
  async needsEgress(): Promise<boolean> {
    return await this.sandboxes.existsBy({
      hostId: this.host.id,
      status: 'RUNNING',
      egressMode: Not(IsNull()),
    });
  }

  async runningIds(): Promise<string[]> {
    const where = { hostId: this.host.id, status: 'RUNNING' } as const;
    const rows = await this.sandboxes.find({ select: { id: true }, where });
    return rows.map(({ id }) => id);
  }

  /** RUNNING rows of a host, stopped ones after the cursor `after`, and those of the `ids` that the backend has. */
  async expected(
    hostId: string,
    backend: Sandbox['backend'],
    ids: readonly string[],
    after: string,
  ): Promise<{ rows: ExpectedSandbox[]; until: string }> {
    const found = await this.sandboxes.query<ExpectedRow[]>(EXPECTED, [
      hostId,
      backend,
      [...ids],
      ...after.split(' '),
    ]);
    return {
      rows: found.map(({ portAddresses, generation, cursor: _position, ...row }) => ({
        ...row,
        ports: currentPorts(portAddresses, generation),
        everStarted: generation > 0,
      })),
      until: found.find(({ cursor }) => cursor !== null)?.cursor ?? FIRST_ROW,
    };
  }

  /** RUNNING sandboxes of this host without known activity since then, a page after the id `after`. */
  async idleSince(moment: Date, after: string): Promise<Sandbox[]> {
    return this.sandboxes.find({
      where: {
        id: MoreThan(after),
        hostId: this.host.id,
        status: 'RUNNING',
        lastActivityAt: LessThan(moment),
      },
      order: { id: 'ASC' },
      take: MAX_BATCH,
    });
  }

  /** Stopped sandboxes of this host, the longest stopped first. */
  async stoppedSince(moment: Date): Promise<Sandbox[]> {
    return this.sandboxes.find({
      where: {
        hostId: this.host.id,
        status: In(['PAUSED', 'ERROR', 'MISSING']),
        updatedAt: LessThan(moment),
      },
      order: { updatedAt: 'ASC' },
      take: MAX_BATCH,
    });
  }

  /** Sandboxes of other hosts whose start or stop is overdue since then, without a worker. */
  async abandonedSince(moment: Date): Promise<Sandbox[]> {
    return this.sandboxes.find({
      where: {
        hostId: Not(this.host.id),
        status: In(['STARTING', 'PAUSING']),
        deadlineAt: LessThan(moment),
        leaseUntil: Or(IsNull(), LessThan(moment)),
      },
      take: MAX_BATCH,
    });
  }

  /** RUNNING sandboxes of other hosts, not seen for `seconds`, by the database's clock as heartbeats are. */
  async runningOnLostHosts(moment: Date, seconds: number): Promise<Sandbox[]> {
    return this.sandboxes
      .createQueryBuilder('sandbox')
      .where({
        hostId: Not(this.host.id),
        status: 'RUNNING',
        updatedAt: LessThan(moment),
        lastActivityAt: LessThan(moment),
      })
      .andWhere(hostIsLost('sandbox.host_id'), { seconds })
      .orderBy('sandbox.updated_at')
      .take(MAX_BATCH)
      .getMany();
  }

  /** Overdue removals of other hosts without a worker; `seconds` as for `runningOnLostHosts`. */
  async unremovedOnLostHosts(moment: Date, seconds: number): Promise<Sandbox[]> {
    return this.sandboxes
      .createQueryBuilder('sandbox')
      .where({
        hostId: Not(this.host.id),
        status: 'DELETING',
        updatedAt: LessThan(moment),
        leaseUntil: Or(IsNull(), LessThan(moment)),
      })
      .andWhere(hostIsLost('sandbox.host_id'), { seconds })
      .orderBy('sandbox.updated_at')
      .take(MAX_BATCH)
      .getMany();
  }
}

@Entity('orphaned_sandboxes')
export class OrphanedSandbox {
  @PrimaryColumn('text') id: string;
  @Column('timestamptz') claimedUntil: Date;
}

/** Longer than a removal takes: a replica that has not finished by then is dead. */
const CLAIM = `interval '2 minutes'`;

const CLAIM_ONE = `
  WITH expired AS (
    DELETE FROM orphaned_sandboxes WHERE claimed_until < now() - interval '1 day')
  INSERT INTO orphaned_sandboxes (id, claimed_until) VALUES ($1, now() + ${CLAIM})
  ON CONFLICT (id) DO UPDATE SET claimed_until = excluded.claimed_until
    WHERE orphaned_sandboxes.claimed_until < now()
  RETURNING id`;

/** Orphans have no row for a lease. A claim outlasts the removal, because other replicas' lists may be older. */
@Injectable()
export class OrphanedSandboxRepository {
  constructor(@InjectRepository(OrphanedSandbox) private readonly orphans: Repository<OrphanedSandbox>) {}

  /** False when another replica removes it, or has just done so. */
  async claim(id: string): Promise<boolean> {
    const rows = await this.orphans.query<unknown[]>(CLAIM_ONE, [id]);
    return rows.length === 1;
  }

  async release(id: string): Promise<void> {
    await this.orphans.delete({ id });
  }
}
