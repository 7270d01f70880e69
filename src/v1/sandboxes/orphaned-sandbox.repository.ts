import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Column, Entity, PrimaryColumn, Repository } from 'typeorm';

@Entity('orphaned_sandboxes')
export class OrphanedSandbox {
  @PrimaryColumn('text') id: string;
  @Column('timestamptz', { name: 'claimed_until' }) claimedUntil: Date;
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
