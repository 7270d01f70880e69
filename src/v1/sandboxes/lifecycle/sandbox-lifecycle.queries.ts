import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, IsNull, LessThan, Not, Or, Repository } from 'typeorm';
import type { SandboxFacts } from '../backends/sandbox-backend.js';
import { hostIsLost } from '../sandbox-host.repository.js';
import type { SandboxRowStatus } from '../sandbox-status.js';
import { currentPorts, type PortAddresses, Sandbox } from '../sandbox.entity.js';

/** The next run finds the rest. */
const MAX_BATCH = 50;

/** Rows of stopped sandboxes that one comparison reads: there may be many thousands, and it runs every two seconds. */
const STOPPED_ROWS = 1_000;
/** The cursor before all stopped rows. */
export const FIRST_ROW = '-infinity ';

/**
 * One statement, so that a warm sandbox that is claimed meanwhile is in either table. The next stopped rows are found in the
 * order of an index; a row that changes moves to its end, and is seen there.
 */
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
  /** Cursor of the last stopped row; null when there are no more. */
  cursor: string | null;
}

/** What a row says that the backend should have. */
export interface ExpectedSandbox {
  id: string;
  /** WARM: it waits for somebody to claim it, and its keeper looks after it. */
  status: SandboxRowStatus | 'WARM';
  address: string | null;
  ports: SandboxFacts['ports'];
  /** It belongs to this host and to the backend that the service runs with. */
  ours: boolean;
  /** One that was never started never had files. */
  everStarted: boolean;
}

/** Which sandboxes need something of the reconciler or of the reapers. */
@Injectable()
export class SandboxLifecycleQueries {
  constructor(@InjectRepository(Sandbox) private readonly sandboxes: Repository<Sandbox>) {}

  /** Ids of the RUNNING sandboxes of a host. */
  async runningIds(hostId: string): Promise<string[]> {
    const rows = await this.sandboxes.find({ select: { id: true }, where: { hostId, status: 'RUNNING' } });
    return rows.map(({ id }) => id);
  }

  /**
   * Rows to compare with the backend of a host: those that are RUNNING, the next part of those that are stopped, and those
   * of what the backend has.
   *
   * @param ids what the backend has, and is compared
   * @param after where the part of the stopped ones begins
   * @returns the rows, and where the next part begins
   */
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

  /** Sandboxes of a host that have not run since then. */
  async stoppedSince(hostId: string, moment: Date): Promise<Sandbox[]> {
    return this.sandboxes.find({
      where: { hostId, status: In(['PAUSED', 'ERROR', 'MISSING']), updatedAt: LessThan(moment) },
      order: { updatedAt: 'ASC' },
      take: MAX_BATCH,
    });
  }

  /** Sandboxes of other hosts whose start or stop was due then, and that no process works on. */
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

  /**
   * RUNNING sandboxes of other hosts that were not changed since then, and whose hosts are lost.
   *
   * @param seconds how long the hosts were not seen, by the clock of the database as their heartbeats are
   */
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

  /**
   * Sandboxes of other hosts whose removal was requested before then, that no process works on, and whose hosts are
   * lost.
   *
   * @param seconds as for `runningOnLostHosts`
   */
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
