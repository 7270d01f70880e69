import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, IsNull, LessThan, Not, Or, Repository } from 'typeorm';
import type { SandboxFacts } from '../backends/sandbox-backend.js';
import { hostIsLost } from '../sandbox-host.repository.js';
import type { SandboxRowStatus } from '../sandbox-status.js';
import { currentPorts, type PortAddresses, Sandbox } from '../sandbox.entity.js';

/** The next run finds the rest. */
const MAX_BATCH = 50;

/**
 * Stopped sandboxes that the backend has are left out: they may be many, and need nothing. One statement, so that a warm
 * sandbox that is claimed meanwhile is in either table.
 */
const EXPECTED = `
  SELECT id, 'WARM' AS status, NULL AS address, NULL::jsonb AS port_addresses, 0 AS generation, host_id = $1 AS ours
  FROM warm_sandboxes
  WHERE id = ANY($3)
  UNION ALL
  SELECT id, status, address, port_addresses, generation, host_id = $1 AND backend = $2 AS ours
  FROM sandboxes
  WHERE (host_id = $1 AND status = 'RUNNING')
    OR (host_id = $1 AND backend = $2 AND status IN ('PAUSED', 'ERROR') AND generation > 0 AND id <> ALL($3))
    OR id = ANY($3)`;

interface ExpectedRow {
  id: string;
  status: SandboxRowStatus | 'WARM';
  address: string | null;
  port_addresses: PortAddresses | null;
  generation: number;
  ours: boolean;
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
   * Rows to compare with the backend of a host: those that are RUNNING, those that are stopped and missing there, and
   * the rows of everything it has.
   *
   * @param ids what the backend has
   */
  async expected(
    hostId: string,
    backend: Sandbox['backend'],
    ids: readonly string[],
  ): Promise<ExpectedSandbox[]> {
    const rows = await this.sandboxes.query<ExpectedRow[]>(EXPECTED, [hostId, backend, [...ids]]);
    return rows.map(({ port_addresses: portAddresses, generation, ...row }) => ({
      ...row,
      ports: currentPorts(portAddresses, generation),
    }));
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
