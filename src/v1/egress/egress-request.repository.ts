import { Injectable } from '@nestjs/common';
import { Column, DataSource, Entity, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { EgressDenialRepository } from '../events/egress-denial.repository.js';
import { Sandbox } from '../sandboxes/sandbox.entity.js';
import { SandboxRepository } from '../sandboxes/sandbox.repository.js';
import type { ReportedRequest } from '@slipway/egress-proxy/protocol.js';

/** Of one sandbox; older ones are removed. */
export const MAX_KEPT = 1_000;

/** What programs in a sandbox with rules asked for. Has no values of credentials. */
@Entity('egress_requests')
export class EgressRequest {
  @PrimaryColumn('text') sandboxId: string;
  @PrimaryColumn('bigint', { generated: 'identity', generatedIdentity: 'ALWAYS' }) id: string;
  @Column('timestamptz') at: Date;
  @Column('jsonb') entry: Omit<ReportedRequest, 'at'>;

  @ManyToOne(() => Sandbox, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'sandbox_id' })
  sandbox?: Sandbox;
}

const APPEND = `
  INSERT INTO egress_requests (sandbox_id, at, entry)
  SELECT $1, (request->>'at')::timestamptz, request - 'at' FROM jsonb_array_elements($2::jsonb) request`;

const TRIM = `
  DELETE FROM egress_requests WHERE sandbox_id = $1 AND id <= (
    SELECT id FROM egress_requests WHERE sandbox_id = $1 ORDER BY id DESC OFFSET $2 LIMIT 1)`;

@Injectable()
export class EgressRequestRepository {
  constructor(
    private readonly dataSource: DataSource,
    private readonly sandboxes: SandboxRepository,
    private readonly denials: EgressDenialRepository,
  ) {}

  /** Keeps what a sandbox asked for, and tells its conversations what was refused; nothing for one that was removed meanwhile. */
  async append(sandboxId: string, requests: readonly ReportedRequest[]): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      if (await this.sandboxes.keep(manager, sandboxId)) {
        await manager.query(APPEND, [sandboxId, JSON.stringify(requests)]);
        await manager.query(TRIM, [sandboxId, MAX_KEPT]);
        await this.denials.tell(manager, sandboxId, requests);
      }
    });
  }

  /** Newest first. */
  async list(sandboxId: string): Promise<ReportedRequest[]> {
    const rows = await this.dataSource.manager.find(EgressRequest, {
      where: { sandboxId },
      order: { id: 'DESC' },
      take: MAX_KEPT,
    });
    return rows.map(({ at, entry }) => ({ ...entry, at: at.toISOString() }));
  }
}
