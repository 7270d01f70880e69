import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * A sandbox that is started before anybody asks for one. Whoever claims it takes the row away and makes one in `sandboxes`
 * under the same id, with an owner and a key.
 */
@Entity('warm_sandboxes')
@Index('warm_sandboxes_host_id_idx', ['hostId', 'fingerprint', 'status', 'createdAt'])
export class WarmSandbox {
  @PrimaryColumn('text', { primaryKeyConstraintName: 'warm_sandboxes_pkey' })
  id: string;

  @Column('text', { name: 'spec_id' })
  specId: string;

  /** What it was started with (`WarmStarts.fingerprint`). */
  @Column('text')
  fingerprint: string;

  /** READY: its agent server waits for its key. */
  @Column('text')
  status: 'STARTING' | 'READY';

  @Column('text')
  backend: string;

  /** The host that runs it. */
  @Column('text', { name: 'host_id' })
  hostId: string;

  @Column('timestamptz', { name: 'created_at' })
  createdAt: Date;
}
