import {
  Column,
  CreateDateColumn,
  Entity,
  Index,
  JoinColumn,
  ManyToOne,
  PrimaryColumn,
  UpdateDateColumn,
} from 'typeorm';
import { User } from '../../auth/user.entity.js';
import type { PortAddresses } from './port-addresses.js';
import type { SandboxRowStatus } from './sandbox-status.js';

/** What the user's settings ask of a sandbox, kept so that each resume has the same. */
export interface SandboxWishes {
  /** `remote_runtime_resource_factor`: multiplies the specification's processor and memory. */
  resourceFactor: number | null;
  /** `sandbox_runtime_container_image`, else `sandbox_base_container_image`. */
  image: string | null;
  /** `sandbox_base_container_image`, where the other one is set too. */
  unusedImage?: string;
}

/** A sandbox: this row is the truth about what should be; the backend tells what is. */
@Entity('sandboxes')
@Index('sandboxes_user_id_created_at_idx', ['userId', 'createdAt', 'id'])
@Index('sandboxes_host_id_status_idx', ['hostId', 'status'])
@Index('sandboxes_session_key_hash_key', ['sessionKeyHash'], { unique: true })
export class Sandbox {
  /** 22 characters of base62, chosen before the backend is asked. */
  @PrimaryColumn('text', { primaryKeyConstraintName: 'sandboxes_pkey' })
  id: string;

  @Column('uuid', { name: 'user_id' })
  userId: string;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'user_id', foreignKeyConstraintName: 'sandboxes_user_id_fkey' })
  user?: User;

  @Column('text', { name: 'spec_id' })
  specId: string;

  /** Changed by conditional updates only. */
  @Column('text')
  status: SandboxRowStatus;

  /** Cause, exit code, last log lines, progress: for people. */
  @Column('text', { name: 'status_detail', nullable: true })
  statusDetail: string | null;

  @Column('text')
  backend: 'process' | 'docker';

  /** The host that looks after it. */
  @Column('text', { name: 'host_id' })
  hostId: string;

  /** Encrypted. */
  @Column('text', { name: 'session_key' })
  sessionKey: string;

  /** SHA-256, to find the sandbox of a presented key. */
  @Column('bytea', { name: 'session_key_hash' })
  sessionKeyHash: Buffer;

  /** Where the agent server answers; null whenever it is not RUNNING. */
  @Column('text', { nullable: true })
  address: string | null;

  /** Where the ports of what agents start are reached; null whenever it is not RUNNING. */
  @Column('jsonb', { name: 'port_addresses', nullable: true })
  portAddresses: PortAddresses | null;

  /** Counts starts and resumes. */
  @Column('integer', { default: 0 })
  generation: number;

  @Column('jsonb', { nullable: true })
  wishes: SandboxWishes | null;

  /** Who works on a transitional status right now, and until when that holds. */
  @Column('text', { name: 'lease_owner', nullable: true })
  leaseOwner: string | null;

  @Column('timestamptz', { name: 'lease_until', nullable: true })
  leaseUntil: Date | null;

  /** When a transitional status becomes ERROR. */
  @Column('timestamptz', { name: 'deadline_at', nullable: true })
  deadlineAt: Date | null;

  /** A conversation is being started in it: not idle before this moment. */
  @Column('timestamptz', { name: 'held_until', nullable: true })
  heldUntil: Date | null;

  /** A request of its user last went to its agent server; null before the first one. */
  @Column('timestamptz', { name: 'traffic_at', nullable: true })
  trafficAt: Date | null;

  /** Something last happened in it or to it: from here on idle time is counted. */
  @Column('timestamptz', { name: 'last_activity_at' })
  lastActivityAt: Date;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;

  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' })
  updatedAt: Date;
}
