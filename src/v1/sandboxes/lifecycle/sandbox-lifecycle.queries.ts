import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, IsNull, LessThan, Not, Or, Repository } from 'typeorm';
import type { SandboxFacts } from '../backends/sandbox-backend.js';
import { hostIsLost } from '../sandbox-host.repository.js';
import type { SandboxRowStatus } from '../sandbox-status.js';
import { currentPorts, type PortAddresses, Sandbox } from '../sandbox.entity.js';

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
  SELECT id, 'WARM' AS status, NULL AS address, NULL::jsonb AS port_addresses, 0 AS generation, host_id = $1 AS ours,
    NULL AS cursor
  FROM warm_sandboxes
  WHERE id = ANY($3)
  UNION ALL
  SELECT id, status, address, port_addresses, generation, host_id = $1 AND backend = $2 AS ours,
    CASE WHEN id = (SELECT id FROM stopped ORDER BY updated_at, id OFFSET ${STOPPED_ROWS - 1})
      THEN to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || ' ' || id END AS cursor
  FROM sandboxes
  WHERE (host_id = $1 AND status = 'RUNNING') OR id = ANY(ARRAY(SELECT id FROM stopped)) OR id = ANY($3)`;

interface ExpectedRow {
  id: string;
  status: SandboxRowStatus | 'WARM';
  address: string | null;
  port_addresses: PortAddresses | null;
  generation: number;
  ours: boolean;
  cursor: string | null;
}

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

@Injectable()
export class SandboxLifecycleQueries {
  constructor(@InjectRepository(Sandbox) private readonly sandboxes: Repository<Sandbox>) {}

  async runningIds(hostId: string): Promise<string[]> {
    const rows = await this.sandboxes.find({ select: { id: true }, where: { hostId, status: 'RUNNING' } });
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
      rows: found.map(({ id, status, address, port_addresses: ports, generation, ours }) => ({
        id,
        status,
        address,
        ours,
        ports: currentPorts(ports, generation),
        everStarted: generation > 0,
      })),
      until: found.find(({ cursor }) => cursor !== null)?.cursor ?? FIRST_ROW,
    };
  }

  /** RUNNING sandboxes of a host without known activity since then, the longest idle first. */
  async idleSince(hostId: string, moment: Date): Promise<Sandbox[]> {
    return this.sandboxes.find({
      where: { hostId, status: 'RUNNING', lastActivityAt: LessThan(moment) },
      order: { lastActivityAt: 'ASC' },
      take: MAX_BATCH,
    });
  }

  async stoppedSince(hostId: string, moment: Date): Promise<Sandbox[]> {
    return this.sandboxes.find({
      where: { hostId, status: In(['PAUSED', 'ERROR', 'MISSING']), updatedAt: LessThan(moment) },
      order: { updatedAt: 'ASC' },
      take: MAX_BATCH,
    });
  }

  /** Sandboxes of other hosts whose start or stop is overdue since then, without a worker. */
  async abandonedSince(hostId: string, moment: Date): Promise<Sandbox[]> {
    return this.sandboxes.find({
      where: {
        hostId: Not(hostId),
        status: In(['STARTING', 'PAUSING']),
        deadlineAt: LessThan(moment),
        leaseUntil: Or(IsNull(), LessThan(moment)),
      },
      take: MAX_BATCH,
    });
  }

  /** RUNNING sandboxes of hosts not seen for `seconds`, by the database's clock as heartbeats are. */
  async runningOnLostHosts(hostId: string, moment: Date, seconds: number): Promise<Sandbox[]> {
    return this.sandboxes
      .createQueryBuilder('sandbox')
      .where({
        hostId: Not(hostId),
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
  async unremovedOnLostHosts(hostId: string, moment: Date, seconds: number): Promise<Sandbox[]> {
    return this.sandboxes
      .createQueryBuilder('sandbox')
      .where({
        hostId: Not(hostId),
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
