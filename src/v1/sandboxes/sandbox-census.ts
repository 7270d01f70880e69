import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { Clock } from '../../common/clock.js';
import { AppConfig } from '../../config/app-config.js';
import { SandboxBackend } from './backends/sandbox-backend.js';
import { HostIdentity } from './host-identity.js';
import { currentPorts, type PortAddresses } from './port-addresses.js';
import { type Difference, type KnownSandbox, reconcile } from './reconcile.js';
import type { SandboxRowStatus } from './sandbox-status.js';

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
export class SandboxCensus {
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
