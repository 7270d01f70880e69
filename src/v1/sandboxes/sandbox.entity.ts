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
import type { SandboxOverrides } from './user-overrides.js';

/** Statuses of a row. Those of the wire are fewer: see `toWireStatus`. */
export const SANDBOX_ROW_STATUSES = [
  'STARTING',
  'RUNNING',
  'PAUSING',
  'PAUSED',
  'ERROR',
  'MISSING',
  'DELETING',
] as const;
export type SandboxRowStatus = (typeof SANDBOX_ROW_STATUSES)[number];

/** Statuses that clients see. */
export const SANDBOX_STATUSES = ['STARTING', 'RUNNING', 'PAUSED', 'ERROR', 'MISSING'] as const;
export type SandboxStatus = (typeof SANDBOX_STATUSES)[number];

const WIRE: Record<SandboxRowStatus, SandboxStatus> = {
  STARTING: 'STARTING',
  RUNNING: 'RUNNING',
  // Nothing more may be sent to it, and it comes to rest by itself.
  PAUSING: 'PAUSED',
  PAUSED: 'PAUSED',
  ERROR: 'ERROR',
  MISSING: 'MISSING',
  DELETING: 'MISSING',
};

/** What clients see of a row's status; no row is MISSING. */
export function toWireStatus(status: SandboxRowStatus | null): SandboxStatus {
  return status === null ? 'MISSING' : WIRE[status];
}

/** What can happen to a sandbox. */
export type SandboxTransition =
  /** Somebody wants it to run (again). */
  | 'resume'
  /** Somebody, idleness or the limit wants it to stop and to keep its files. */
  | 'pause'
  /** Somebody, or the retention time, wants it gone. */
  | 'remove'
  /** Its agent server answered after a start. */
  | 'started'
  /** It has been stopped as asked. */
  | 'paused'
  /** It could not be started or stopped, or ended by itself. */
  | 'fail'
  /** Its files are gone from where sandboxes are. */
  | 'vanish'
  /** Its files are there again. */
  | 'appear';

interface TransitionRule {
  from: readonly SandboxRowStatus[];
  to: SandboxRowStatus;
}

const RULES: Record<SandboxTransition, TransitionRule> = {
  // From MISSING too: the start finds out whether that is still so.
  resume: { from: ['PAUSING', 'PAUSED', 'ERROR', 'MISSING'], to: 'STARTING' },
  pause: { from: ['STARTING', 'RUNNING'], to: 'PAUSING' },
  remove: { from: SANDBOX_ROW_STATUSES.filter((status) => status !== 'DELETING'), to: 'DELETING' },
  started: { from: ['STARTING'], to: 'RUNNING' },
  paused: { from: ['PAUSING'], to: 'PAUSED' },
  fail: { from: ['STARTING', 'RUNNING', 'PAUSING'], to: 'ERROR' },
  vanish: { from: ['PAUSED', 'ERROR'], to: 'MISSING' },
  appear: { from: ['MISSING'], to: 'PAUSED' },
};

/** Statuses that a worker brings to an end; one at a time does, which the lease in the row sees to. */
export const TRANSITIONAL_STATUSES = ['STARTING', 'PAUSING', 'DELETING'] as const;
type TransitionalStatus = (typeof TRANSITIONAL_STATUSES)[number];

/** How long stopping may take, seconds; a start has its specification's limit. */
const PAUSE_SECONDS = 120;

/** The rule of a transition: a row with any other status is left as it is. */
export function transitionRule(transition: SandboxTransition): TransitionRule {
  return RULES[transition];
}

/** The status after a transition; null when it cannot happen. */
export function statusAfter(transition: SandboxTransition, from: SandboxRowStatus): SandboxRowStatus | null {
  const rule = RULES[transition];
  return rule.from.includes(from) ? rule.to : null;
}

export function isTransitional(status: SandboxRowStatus): status is TransitionalStatus {
  return TRANSITIONAL_STATUSES.some((transitional) => transitional === status);
}

/**
 * How long a status may last, in seconds, before it is an error; null where it may last: a removal is tried until it
 * succeeds, since nothing else can be done with the sandbox.
 */
export function deadlineSeconds(status: SandboxRowStatus, startTimeoutSeconds: number): number | null {
  switch (status) {
    case 'STARTING':
      return startTimeoutSeconds;
    case 'PAUSING':
      return PAUSE_SECONDS;
    default:
      return null;
  }
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

  @Column('jsonb', { name: 'wishes', nullable: true })
  overrides: SandboxOverrides | null;

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

/** Where the ports of what agents start were reached after one start of a sandbox. */
export interface PortAddresses {
  /** Counts the starts. A replica of an earlier version starts sandboxes without changing this. */
  generation: number;
  /** By name. */
  addresses: Record<string, string>;
}

/** Where they are reached now; empty where nobody knows. */
export function currentPorts(
  portAddresses: PortAddresses | null,
  generation: number,
): Readonly<Record<string, string>> {
  return portAddresses?.generation === generation ? portAddresses.addresses : {};
}
