import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A machine whose replicas run process or docker sandboxes. */
@Entity('sandbox_hosts')
export class SandboxHost {
  @PrimaryColumn('text', { primaryKeyConstraintName: 'sandbox_hosts_pkey' })
  id: string;

  /** `SANDBOX_ADDRESS`: how other hosts reach its sandboxes; null when they cannot. */
  @Column('text', { nullable: true })
  address: string | null;

  @Column('timestamptz', { name: 'seen_at' })
  seenAt: Date;
}
