import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { Clock } from '../../common/clock.js';
import { EntityRows } from '../../database/entity-rows.js';
import { HostIdentity } from './host-identity.js';
import { type SandboxRowStatus, TRANSITIONAL_STATUSES } from './sandbox-status.js';
import { Sandbox } from './sandbox.entity.js';

/** A lease that is not renewed for this long may be taken over: its process is dead. */
const LEASE_MS = 15_000;

const TAKE_DUE = `
  UPDATE sandboxes SET lease_owner = $1, lease_until = $2
  FROM (
    SELECT id FROM sandboxes
    WHERE host_id = $3 AND status = ANY($4) AND (lease_until IS NULL OR lease_until < $5)
    ORDER BY updated_at
    LIMIT $6
    FOR UPDATE SKIP LOCKED
  ) due
  WHERE sandboxes.id = due.id
  RETURNING `;

const TAKE_ONE = `
  UPDATE sandboxes SET lease_owner = $1, lease_until = $2
  WHERE id = $3 AND status = ANY($4) AND (lease_until IS NULL OR lease_until < $5)
  RETURNING id`;

const RENEW = `
  UPDATE sandboxes SET lease_until = $3 WHERE id = $1 AND lease_owner = $2 RETURNING status`;

const RELEASE = `
  UPDATE sandboxes SET lease_owner = NULL, lease_until = $3 WHERE id = $1 AND lease_owner = $2`;

/** Added to an update of a row to take the lease, if that is free and the row is of this host. */
export interface LeaseClaim {
  assignments: (param: (value: unknown) => string) => string[];
  isTaken: (sandbox: Sandbox) => boolean;
}

/** Leases let at most one process work on a sandbox. */
@Injectable()
export class SandboxLeaseRepository {
  private readonly rows: EntityRows<Sandbox>;

  constructor(
    @InjectRepository(Sandbox) private readonly sandboxes: Repository<Sandbox>,
    private readonly host: HostIdentity,
    private readonly clock: Clock,
  ) {
    this.rows = new EntityRows(sandboxes, 'sandboxes');
  }

  /** Takes due sandboxes of this host in one of these statuses, the longest unchanged first. */
  async takeDue(
    limit: number,
    statuses: readonly SandboxRowStatus[] = TRANSITIONAL_STATUSES,
  ): Promise<Sandbox[]> {
    const now = this.clock.now();
    const [rows] = await this.sandboxes.query<[Record<string, unknown>[], number]>(
      TAKE_DUE + this.rows.columns,
      [this.host.processId, new Date(now + LEASE_MS), this.host.id, [...statuses], new Date(now), limit],
    );
    return rows.map((row) => this.rows.entity(row));
  }

  /** For an update that makes work which this process can begin at once. */
  claim(): LeaseClaim {
    const now = this.clock.now();
    const { processId, id: hostId } = this.host;
    const until = new Date(now + LEASE_MS);
    return {
      assignments: (param) => {
        const isFree = `host_id = ${param(hostId)} AND (lease_until IS NULL OR lease_until < ${param(new Date(now))})`;
        return [
          `lease_owner = CASE WHEN ${isFree} THEN ${param(processId)} ELSE lease_owner END`,
          `lease_until = CASE WHEN ${isFree} THEN ${param(until)} ELSE lease_until END`,
        ];
      },
      isTaken: ({ leaseOwner, leaseUntil }) =>
        leaseOwner === processId && leaseUntil?.getTime() === until.getTime(),
    };
  }

  /** False when the sandbox has none of these statuses, or another process has its lease. */
  async take(id: string, statuses: readonly SandboxRowStatus[]): Promise<boolean> {
    const now = this.clock.now();
    const [rows] = await this.sandboxes.query<[unknown[], number]>(TAKE_ONE, [
      this.host.processId,
      new Date(now + LEASE_MS),
      id,
      [...statuses],
      new Date(now),
    ]);
    return rows.length === 1;
  }

  /** The status of the row; null when the lease, or the row, is gone. */
  async renew(id: string): Promise<SandboxRowStatus | null> {
    const [rows] = await this.sandboxes.query<[{ status: SandboxRowStatus }[], number]>(RENEW, [
      id,
      this.host.processId,
      new Date(this.clock.now() + LEASE_MS),
    ]);
    return rows[0]?.status ?? null;
  }

  /** The lease cannot be taken again before `pauseMs` has passed. */
  async release(id: string, pauseMs = 0): Promise<void> {
    await this.sandboxes.query(RELEASE, [
      id,
      this.host.processId,
      pauseMs === 0 ? null : new Date(this.clock.now() + pauseMs),
    ]);
  }
}
