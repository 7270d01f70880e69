import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { Clock } from '../../common/clock.js';
import { EntityRows, NamedStatement } from '../../database/named-statement.js';
import { HostIdentity } from './host-identity.js';
import { Sandbox, type SandboxRowStatus, TRANSITIONAL_STATUSES } from './sandbox.entity.js';

/** Tells the worker of this process at once that there is work, instead of at its next sweep. */
@Injectable()
export class SandboxWorkerSignal {
  private listener: ((taken: Sandbox | null) => void) | null = null;

  /** There is one worker in a process. */
  onWake(listener: (taken: Sandbox | null) => void): void {
    this.listener = listener;
  }

  /**
   * To be called after the change of the row was committed.
   *
   * @param taken a row whose lease this process took with that change; null: the worker looks for what is to be done
   */
  wake(taken: Sandbox | null = null): void {
    this.listener?.(taken);
  }
}

/** How long a lease holds that is not renewed: after this another process takes over what a dead one left. */
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

/** What an update of a row sets so that the lease is taken with it, where it is free and the row is of this host. */
export interface LeaseClaim {
  /** @param param makes a parameter of a value, and returns its place in the statement */
  assignments: (param: (value: unknown) => string) => string[];
  /** Whether that happened, told by the row after the update. */
  isTaken: (sandbox: Sandbox) => boolean;
}

/** Which process works on which sandbox: at most one, told by the row. */
@Injectable()
export class SandboxLeases {
  private readonly rows: EntityRows<Sandbox>;
  /** Each process asks once a second. */
  private readonly takeDueRows: NamedStatement<Record<string, unknown>>;

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly host: HostIdentity,
    private readonly clock: Clock,
  ) {
    this.rows = new EntityRows(dataSource.getRepository(Sandbox), 'sandboxes');
    this.takeDueRows = new NamedStatement('sandboxes_take_due', TAKE_DUE + this.rows.columns);
  }

  /** Takes sandboxes of this host that wait for a worker in one of these statuses; those longest unchanged first. */
  async takeDue(
    most: number,
    statuses: readonly SandboxRowStatus[] = TRANSITIONAL_STATUSES,
  ): Promise<Sandbox[]> {
    const now = this.clock.now();
    const rows = await this.takeDueRows.run(this.dataSource, [
      this.host.processId,
      new Date(now + LEASE_MS),
      this.host.id,
      [...statuses],
      new Date(now),
      most,
    ]);
    return rows.map((row) => this.rows.entity(row));
  }

  /** For the process that changes a row so that there is work, and begins with that at once. */
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

  /** Takes one sandbox while it has one of these statuses; false when another process has it. */
  async take(id: string, statuses: readonly SandboxRowStatus[]): Promise<boolean> {
    const now = this.clock.now();
    const [rows] = await this.dataSource.query<[unknown[], number]>(TAKE_ONE, [
      this.host.processId,
      new Date(now + LEASE_MS),
      id,
      [...statuses],
      new Date(now),
    ]);
    return rows.length === 1;
  }

  /** Keeps a lease; the status of the row, or null when the lease (or the row) is gone. */
  async renew(id: string): Promise<SandboxRowStatus | null> {
    const [rows] = await this.dataSource.query<[{ status: SandboxRowStatus }[], number]>(RENEW, [
      id,
      this.host.processId,
      new Date(this.clock.now() + LEASE_MS),
    ]);
    return rows[0]?.status ?? null;
  }

  /** @param pauseMs nobody takes it again before this has passed */
  async release(id: string, pauseMs = 0): Promise<void> {
    await this.dataSource.query(RELEASE, [
      id,
      this.host.processId,
      pauseMs === 0 ? null : new Date(this.clock.now() + pauseMs),
    ]);
  }
}
