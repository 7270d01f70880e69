import { Injectable } from '@nestjs/common';
import { Column, DataSource, Entity, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { AuditRepository } from '../../audit/audit.repository.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { Sandbox } from '../sandboxes/sandbox.entity.js';
import { SandboxRepository } from '../sandboxes/sandbox.repository.js';

/** A host that the owner of a sandbox allowed for one request, until that is made. */
@Entity('egress_permits')
export class EgressPermit {
  @PrimaryColumn('text') sandboxId: string;

  /** `name`, or `name:port`. */
  @PrimaryColumn('text') host: string;
  @Column('timestamptz') expiresAt: Date;

  @ManyToOne(() => Sandbox, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'sandbox_id' })
  sandbox?: Sandbox;
}

const FOR_MINUTES = 10;
/** Of one sandbox. */
export const MAX_PERMITS = 50;

const FORGET = 'DELETE FROM egress_permits WHERE sandbox_id = $1 AND expires_at <= now()';

const ADD = `
  INSERT INTO egress_permits (sandbox_id, host, expires_at)
  SELECT $1, $2, now() + interval '${FOR_MINUTES} minutes'
  WHERE (SELECT count(*) FROM egress_permits WHERE sandbox_id = $1 AND host <> $2) < ${MAX_PERMITS}
  ON CONFLICT (sandbox_id, host) DO UPDATE SET expires_at = excluded.expires_at
  RETURNING expires_at AS "expiresAt"`;

const LIST = 'SELECT host FROM egress_permits WHERE sandbox_id = $1 AND expires_at > now()';

const TAKE =
  'DELETE FROM egress_permits WHERE sandbox_id = $1 AND host = $2 RETURNING expires_at > now() AS valid';

@Injectable()
export class EgressPermitRepository {
  constructor(
    private readonly dataSource: DataSource,
    private readonly sandboxes: SandboxRepository,
    private readonly audit: AuditRepository,
  ) {}

  /** Returns until when one request may be made. @throws DomainError conflict for too many */
  async add({ id: sandboxId, userId }: Pick<Sandbox, 'id' | 'userId'>, host: string): Promise<Date> {
    return await this.dataSource.transaction(async (manager) => {
      await this.sandboxes.lock(manager, sandboxId, userId);
      await manager.query(FORGET, [sandboxId]);
      const [added] = await manager.query<Pick<EgressPermit, 'expiresAt'>[]>(ADD, [sandboxId, host]);
      if (added === undefined) {
        throw new DomainError(
          'conflict',
          `${MAX_PERMITS} hosts are allowed once already, and none was asked for: wait, or add a rule.`,
        );
      }
      await this.audit.append(manager, {
        action: 'sandbox.egress_allow',
        resourceId: sandboxId,
        ownerId: userId,
        details: { host },
      });
      return added.expiresAt;
    });
  }

  async list(sandboxId: string): Promise<string[]> {
    return (await this.dataSource.query<{ host: string }[]>(LIST, [sandboxId])).map(({ host }) => host);
  }

  /** Uses one up; true for one caller alone, whichever proxies ask. */
  async take(sandboxId: string, host: string): Promise<boolean> {
    const [[taken]] = await this.dataSource.query<[{ valid: boolean }[], number]>(TAKE, [sandboxId, host]);
    return taken?.valid === true;
  }
}
