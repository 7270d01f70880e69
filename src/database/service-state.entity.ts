import { Column, Entity, PrimaryColumn } from 'typeorm';

/** Facts about this installation; exactly one row. */
@Entity('service_state')
export class ServiceState {
  @PrimaryColumn('integer', { primaryKeyConstraintName: 'service_state_pkey' })
  id: number;

  /** Identifies this installation to what it creates elsewhere. */
  @Column('uuid', { name: 'instance_id' })
  instanceId: string;

  /** A known text encrypted with the current key: at boot it tells whether the configured keys fit the data. */
  @Column('text', { name: 'key_check', nullable: true })
  keyCheck: string | null;
}
