import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { Clock } from '../../../common/clock.js';
import { AppConfig } from '../../../config/app-config.js';
import { SandboxBackend, type SandboxFacts } from '../backends/sandbox-backend.js';
import { HostIdentity } from '../host-identity.js';
import { currentPorts, type PortAddresses, type SandboxRowStatus } from '../sandbox.entity.js';

/** What rests and is there is not asked for: those may be many, and nothing is to be done about them. */
const KNOWN = `
  SELECT id, status, address, port_addresses, generation, host_id = $1 AND backend = $2 AS ours
  FROM sandboxes
  WHERE (host_id = $1 AND status = 'RUNNING')
    OR (host_id = $1 AND backend = $2 AND status IN ('PAUSED', 'ERROR') AND generation > 0 AND id <> ALL($3))
    OR id = ANY($3)`;

const RUNNING = `SELECT id FROM sandboxes WHERE host_id = $1 AND status = 'RUNNING'`;

interface KnownRow {
  id: string;
  status: SandboxRowStatus;
  address: string | null;
  port_addresses: PortAddresses | null;
  generation: number;
  ours: boolean;
}

/** Counts what there is: by the rows, and by the backend of this host. */
@Injectable()
export class DriftDetector {
  private readonly firstSeen = new Map<string, number>();

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly backend: SandboxBackend,
    private readonly host: HostIdentity,
    private readonly config: AppConfig,
    private readonly clock: Clock,
  ) {}

  /** Sandboxes of this host that should run. */
  async running(): Promise<string[]> {
    const rows = await this.dataSource.query<{ id: string }[]>(RUNNING, [this.host.id]);
    return rows.map(({ id }) => id);
  }

  /** Where rows and backend do not agree. */
  async differences(): Promise<Difference[]> {
    // In this order: what is started between the two has its row already.
    const facts = await this.backend.list();
    const ids = facts.map(({ id }) => id);
    const known = await this.known(ids);
    this.remember(ids);
    return reconcile(known, facts, {
      now: this.clock.now(),
      graceMs: this.config.sandboxes.orphanGraceSeconds * 1000,
      firstSeen: this.firstSeen,
    });
  }

  private async known(ids: readonly string[]): Promise<KnownSandbox[]> {
    const rows = await this.dataSource.query<KnownRow[]>(KNOWN, [this.host.id, this.backend.kind, [...ids]]);
    return rows.map((row) => ({ ...row, ports: currentPorts(row.port_addresses, row.generation) }));
  }

  private remember(ids: readonly string[]): void {
    const now = this.clock.now();
    const present = new Set(ids);
    for (const id of this.firstSeen.keys()) {
      if (!present.has(id)) {
        this.firstSeen.delete(id);
      }
    }
    for (const id of ids) {
      this.firstSeen.set(id, this.firstSeen.get(id) ?? now);
    }
  }
}

/** What a row says. */
export interface KnownSandbox {
  id: string;
  status: SandboxRowStatus;
  address: string | null;
  ports: SandboxFacts['ports'];
  /** Of this host and of the backend that the service runs with. */
  ours: boolean;
}

/** What is to be done about a difference between a row and the backend. */
export type Difference =
  /** It should run, and does not: look again, then say so. */
  | { kind: 'ended'; id: string }
  /** It runs somewhere else than the row says. */
  | { kind: 'moved'; id: string }
  /** It runs, and should not. */
  | { kind: 'left-over'; id: string }
  /** It has run once, rests, and is not there any more: look again, then say so. */
  | { kind: 'gone'; id: string }
  /** It is there although it was said to be gone. */
  | { kind: 'back'; id: string }
  /** Nobody knows it any more. */
  | { kind: 'orphan'; id: string };

interface ReconcileOptions {
  /** Epoch milliseconds. */
  now: number;
  /** Age from which what has no row is an orphan, milliseconds. */
  graceMs: number;
  /** When something without a row was first seen, for backends that do not know its age. */
  firstSeen: ReadonlyMap<string, number>;
}

/**
 * Compares rows with what the backend has. Transitional rows are left to their workers.
 *
 * @param known the RUNNING rows of this host, those that rest and should be there, and the rows of everything that the
 *   backend has
 * @param facts what the backend had before the rows were read: what got its row later is no orphan then
 */
export function reconcile(
  known: readonly KnownSandbox[],
  facts: readonly SandboxFacts[],
  { now, graceMs, firstSeen }: ReconcileOptions,
): Difference[] {
  const rows = new Map(known.map((row) => [row.id, row]));
  const had = new Map(facts.map((fact) => [fact.id, fact]));
  return [
    ...known.flatMap((row) => knownDifference(row, had.get(row.id))),
    ...facts.flatMap((fact): Difference[] => {
      const row = rows.get(fact.id);
      if (row) {
        return row.ours && rests(row) && fact.state === 'running' ? [{ kind: 'left-over', id: fact.id }] : [];
      }
      const since = fact.createdAt ?? firstSeen.get(fact.id) ?? now;
      return now - since >= graceMs ? [{ kind: 'orphan', id: fact.id }] : [];
    }),
  ];
}

function rests({ status }: KnownSandbox): boolean {
  return status === 'PAUSED' || status === 'ERROR';
}

function knownDifference(row: KnownSandbox, fact: SandboxFacts | undefined): Difference[] {
  if (row.ours && rests(row) && fact === undefined) {
    return [{ kind: 'gone', id: row.id }];
  }
  if (row.ours && row.status === 'MISSING' && fact !== undefined) {
    return [{ kind: 'back', id: row.id }];
  }
  if (row.status !== 'RUNNING') {
    return [];
  }
  if (!row.ours || fact?.state !== 'running') {
    return [{ kind: 'ended', id: row.id }];
  }
  return fact.address !== null && !isDeepStrictEqual([fact.address, fact.ports], [row.address, row.ports])
    ? [{ kind: 'moved', id: row.id }]
    : [];
}
