import { Column, CreateDateColumn, Entity, Index, PrimaryColumn, UpdateDateColumn } from 'typeorm';
import type { GitMode } from '@slipway/agent-protocol/git.js';
import { OwnedRow } from '../../auth/user.repository.js';
import type { EgressRuleSet } from '@slipway/egress-rules/egress-rules.js';
import type { SandboxBackendKind } from '@slipway/sandboxes/sandbox-backend.js';
import type { SandboxRowStatus } from './sandbox-status.js';

/** Rules say what it may reach, credentials are put in outside of it, or both. */
export type EgressMode = 'rules' | 'credentials' | 'both';

/** Rules that it is made with, besides those of the operator. */
export interface OwnRules {
  /** Those of settings follow what these say, as long as they say anything. */
  from: 'organization' | 'settings' | 'start';
  rules: EgressRuleSet;
}

/** Whether it is given placeholders for credentials. */
export function isOutside(mode: EgressMode | null): boolean {
  return mode === 'credentials' || mode === 'both';
}

/** Whether rules say what it may reach. */
export function isRestricted(mode: EgressMode | null): boolean {
  return mode === 'rules' || mode === 'both';
}

/** A sandbox: this row says what should be; the backend says what is. */
export type SandboxLimits = {
  secret_names?: string[] | null;
  git?: GitMode;
  own_repository?: boolean;
  repositories_read?: string[] | null;
};

@Entity('sandboxes')
@Index('sandboxes_user_id_created_at_idx', ['userId', 'createdAt', 'id'])
@Index('sandboxes_host_id_status_idx', ['hostId', 'status'])
@Index('sandboxes_status_backend_idx', ['status', 'backend'])
@Index('sandboxes_stopped_idx', ['hostId', 'updatedAt'], {
  where: `status = ANY (ARRAY['PAUSED'::text, 'ERROR'::text, 'MISSING'::text])`,
})
@Index('sandboxes_session_key_hash_key', ['sessionKeyHash'], { unique: true })
@Index('sandboxes_host_id_expose_port_key', ['hostId', 'exposePort'], {
  unique: true,
  where: 'expose_port IS NOT NULL',
})
export class Sandbox extends OwnedRow {
  /** 22 characters of base62, chosen before the backend is called. */
  @PrimaryColumn('text') id: string;
  @Column('text') specId: string;

  /** Changed by `SandboxRepository.transition` only. */
  @Column('text') status: SandboxRowStatus;

  /** The cause, exit code, last log lines or progress, for people to read. */
  @Column('text', { nullable: true }) statusDetail: string | null;
  @Column('text') backend: SandboxBackendKind;
  @Column('text') hostId: string;
  @Column('text') sessionKey: string;

  /** SHA-256: finds the sandbox of a presented key. */
  @Column('bytea') sessionKeyHash: Buffer;

  /** The agent server's address; null unless it may still answer. */
  @Column('text', { nullable: true }) address: string | null;

  /** Addresses of the other ports; null when `address` is. */
  @Column('jsonb', { nullable: true }) portAddresses: PortAddresses | null;

  /** The host's loopback port that forwards to its agent server, kept until its removal. */
  @Column('integer', { nullable: true }) exposePort: number | null;

  /** Counts starts and resumes. */
  @Column('integer', { default: 0 }) generation: number;

  /** The generation in which its user last stopped it. */
  @Column('integer', { nullable: true }) stoppedGeneration: number | null;
  @Column('jsonb', { nullable: true }) overrides: SandboxOverrides | null;

  /** What each of the deleted conversations could: all that its key may while nothing that was started in it is left. */
  @Column('jsonb', { nullable: true }) limits: SandboxLimits | null;

  /** The certificate authority that it trusts, with its key, encrypted; null until it is started with rules. */
  @Column('text', { nullable: true }) egressAuthority: string | null;

  /** What the proxy is there for; null: it starts without. */
  @Column('text', { nullable: true }) egressMode: EgressMode | null;

  /** Null: none. */
  @Column('jsonb', { nullable: true }) egressRules: OwnRules[] | null;

  /** `open`: the rules of its setup hold; `closing`: proxies may go on by them; null: its agent has begun, or need not wait. */
  @Column('text', { nullable: true }) egressSetup: 'open' | 'closing' | null;

  /** The time from which a process may work on a transitional status. */
  @Column('timestamptz', { default: () => 'now()' }) dueAt: Date;

  /** What entries in the audit name of the automation's run that it was made for. */
  @Column('jsonb', { nullable: true }) cause: Record<string, string> | null;

  /** The process that works on a transitional status, and how long its lease lasts. */
  @Column('text', { nullable: true }) leaseOwner: string | null;
  @Column('timestamptz', { nullable: true }) leaseUntil: Date | null;
  @Column('integer', { default: 0 }) attempts: number;
  @Column('timestamptz', { nullable: true }) deadlineAt: Date | null;

  /** It does not count as idle before this moment. */
  @Column('timestamptz', { nullable: true }) keepAliveUntil: Date | null;
  @Column('timestamptz', { nullable: true }) trafficAt: Date | null;

  /** Idle time counts from here. */
  @Column('timestamptz') lastActivityAt: Date;

  /** The W3C trace context of the request for its transitional status. */
  @Column('text', { nullable: true }) traceparent: string | null;
  @CreateDateColumn({ type: 'timestamptz' }) createdAt: Date;
  @UpdateDateColumn({ type: 'timestamptz' }) updatedAt: Date;
}

/** Kept with the sandbox, so that every resume gets the same. */
export interface SandboxOverrides {
  /** `remote_runtime_resource_factor`: multiplies the processors and the memory of the specification. */
  resourceFactor: number | null;
  /** `sandbox_runtime_container_image`, or else `sandbox_base_container_image`. */
  image: string | null;
  /** `sandbox_base_container_image`, when the other one is set too. */
  unusedImage?: string;
}

export interface PortAddresses {
  /** A replica of an earlier version starts sandboxes without updating the addresses. */
  generation: number;
  addresses: Record<string, string>;
}

/** The addresses by name; empty when they are those of an earlier start. */
export function currentPorts(
  portAddresses: PortAddresses | null,
  generation: number,
): Readonly<Record<string, string>> {
  return portAddresses?.generation === generation ? portAddresses.addresses : {};
}
