import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Column, Entity, PrimaryColumn, Repository } from 'typeorm';

/** A sandbox without a row that a replica is removing, or has just removed. */
@Entity('orphaned_sandboxes')
export class OrphanedSandbox {
  @PrimaryColumn('text')
  id: string;

  @Column('timestamptz', { name: 'claimed_until' })
  claimedUntil: Date;
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

/**
 * Who removes a sandbox that has no row. A lease needs a row, and several replicas find the same sandbox at the same time. A
 * claim outlasts the removal, because another replica may still have an older list.
 */
@Injectable()
export class OrphanedSandboxRepository {
  constructor(@InjectRepository(OrphanedSandbox) private readonly orphans: Repository<OrphanedSandbox>) {}

  /** @returns false when another replica removes it, or has done so a moment ago */
  async claim(id: string): Promise<boolean> {
    const rows = await this.orphans.query<unknown[]>(CLAIM_ONE, [id]);
    return rows.length === 1;
  }

  /** After a removal that failed: anybody may try again. */
  async release(id: string): Promise<void> {
    await this.orphans.delete({ id });
  }
}
