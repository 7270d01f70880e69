import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A sandbox without a row that a replica is removing, or has just removed. */
@Entity('orphaned_sandboxes')
export class OrphanedSandbox {
  @PrimaryColumn('text', { primaryKeyConstraintName: 'orphaned_sandboxes_pkey' })
  id: string;

  @Column('timestamptz', { name: 'claimed_until' })
  claimedUntil: Date;
}
