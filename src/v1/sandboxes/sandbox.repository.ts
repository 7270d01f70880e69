import { Injectable, Logger } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { BoundedCache } from '@slipway/common/bounded-cache.js';
import { type EntityManager, IsNull, Not, Repository } from 'typeorm';
import { unlessCode } from '@slipway/common/errors/error-message.js';
import type { AuditAction } from '../../audit/audit-action.js';
import { AuditRepository, auditInsert } from '../../audit/audit.repository.js';
import { Clock } from '@slipway/common/clock.js';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { currentTraceparent } from '@slipway/common/spans.js';
import { EntityRows } from '@slipway/database/entity-rows.js';
import { NamedStatement } from '@slipway/database/named-statement.js';
import { HostIdentity } from './host-identity.js';
import { SANDBOXES_CHANNEL, SandboxWorkerSignal } from './sandbox-events.js';
import {
  deadlineAt,
  isTransitional,
  type SandboxRowStatus,
  type SandboxTransition,
  TRANSITION_RULES,
} from './sandbox-status.js';
import { Sandbox, type SandboxLimits } from './sandbox.entity.js';
import { isSandboxId, newSessionKey, sessionKeyBinding, sessionKeyHash } from './session-key.js';

/** Statuses in which the agent server may still answer. In the others an address would be outdated. */
const ADDRESSED: readonly SandboxRowStatus[] = ['RUNNING', 'PAUSING', 'DELETING'];
/** Used by callers that know no limit; the worker sets that of the specification. */
const DEFAULT_START_TIMEOUT_SECONDS = 60;

const INSERT = new NamedStatement(
  'sandbox_insert',
  `INSERT INTO sandboxes
     (id, user_id, spec_id, status, status_detail, backend, host_id, session_key, session_key_hash, overrides, deadline_at,
      keep_alive_until, last_activity_at, updated_at, due_at, traceparent, cause, egress_rules, egress_setup,
      egress_authority, egress_mode)
   VALUES ($1, $2, $3, 'STARTING', $4, $5, $6, $7, $8, $9, $10, $11, $12, $12, $12, $13, $14, $15, $16,
           $17, $18)`,
);

const LOCK = 'SELECT id FROM sandboxes WHERE id = $1 AND user_id = $2 FOR UPDATE';

/** However many requests a user sends to a sandbox, they cost one write in this time. */
const TOUCH_EVERY_MS = 5_000;
const MAX_TOUCHES = 10_000;

const TOUCH = `
  UPDATE sandboxes
  SET traffic_at = $2, last_activity_at = greatest(last_activity_at, $2::timestamptz)
  WHERE id = $1 AND status = 'RUNNING' AND (traffic_at IS NULL OR traffic_at < $3)`;

const KEEP_ALIVE = `
  UPDATE sandboxes
  SET keep_alive_until = greatest(keep_alive_until, $2::timestamptz),
    last_activity_at = greatest(last_activity_at, $3::timestamptz)
  WHERE id = $1`;

const END_KEEP_ALIVE = `
  UPDATE sandboxes SET keep_alive_until = NULL WHERE id = $1 AND keep_alive_until IS NOT NULL`;

type StartingSandbox = Pick<
  Sandbox,
  | 'id'
  | 'userId'
  | 'specId'
  | 'statusDetail'
  | 'backend'
  | 'overrides'
  | 'cause'
  | 'egressAuthority'
  | 'egressMode'
  | 'egressRules'
  | 'egressSetup'
> & {
  /** By default this one. */
  hostId: string | undefined;
  startTimeoutSeconds: number;
  keepAliveSeconds: number;
};

type SandboxChange = Partial<Omit<Sandbox, 'user' | 'id' | 'userId' | 'status'>>;

type SandboxCondition = {
  [
    Property in 'userId' | 'status' | 'generation' | 'leaseOwner' | 'lastActivityAt' | 'updatedAt'
  ]?: NonNullable<Sandbox[Property]>;
};

/** A sandbox keeps its loopback port for as long as it exists. */
export interface ExposedSandbox {
  id: string;
  port: number | null;
}

const UNIQUE_VIOLATION = '23505';

export type ServiceCause =
  | 'follow_round'
  | 'idle'
  | 'rules'
  | 'quota'
  | 'retention'
  | 'start_failed'
  | 'broke_a_rule'
  | 'does_not_answer';

interface TransitionOptions {
  /** Address and deadline follow from the new status unless they are given here. */
  change?: SandboxChange;
  condition?: SandboxCondition;
  /** The caller wakes the worker (`SandboxWorkerSignal.wake`) after the commit; without it, that happens here. */
  manager?: EntityManager;
  /** Set when the service decides by itself rather than for a request. */
  cause?: ServiceCause | undefined;
}

const AUDITED: Partial<Record<SandboxTransition, AuditAction>> = {
  pause: 'sandbox.pause',
  resume: 'sandbox.resume',
  remove: 'sandbox.delete',
};

interface ConditionalUpdate {
  id: string;
  from: readonly SandboxRowStatus[];
  condition: SandboxCondition;
  set: Partial<Omit<Sandbox, 'user'>>;
  /** From `AuditRepository.record`; null leaves no entry. */
  entry: string | null;
}

/** Single rows of sandboxes. They are changed by conditional updates only. */
@Injectable()
export class SandboxRepository {
  private readonly logger = new Logger(SandboxRepository.name);
  private readonly touches = new BoundedCache<string, number>(MAX_TOUCHES);
  private readonly rows: EntityRows<Sandbox>;

  constructor(
    @InjectRepository(Sandbox) private readonly sandboxes: Repository<Sandbox>,
    private readonly host: HostIdentity,
    private readonly cipher: SecretCipher,
    private readonly clock: Clock,
    private readonly worker: SandboxWorkerSignal,
    private readonly audit: AuditRepository,
  ) {
    this.rows = new EntityRows(sandboxes, 'sandboxes');
  }

  async transaction<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    return this.sandboxes.manager.transaction(work);
  }

  /** Returns null when there is no such sandbox, or it is being removed. */
  async find(id: string, userId: string | null = null): Promise<Sandbox | null> {
    if (!isSandboxId(id)) {
      return null;
    }
    return this.sandboxes.findOneBy({ id, status: Not('DELETING'), ...(userId !== null && { userId }) });
  }

  async read(id: string): Promise<Sandbox | null> {
    return this.sandboxes.findOneBy({ id });
  }

  /** Locks the row until the transaction ends; false when the user has no such sandbox. */
  async lock(manager: EntityManager, id: string, userId: string): Promise<boolean> {
    const rows = await manager.query<unknown[]>(LOCK, [id, userId]);
    return rows.length > 0;
  }

  /** Sets the limits to what follows from those so far. */
  async limit(manager: EntityManager, id: string, to: (of: SandboxLimits) => SandboxLimits): Promise<void> {
    const sandbox = await manager.findOne(Sandbox, { where: { id }, lock: { mode: 'pessimistic_write' } });
    const {
      secret_names = null,
      git = 'write',
      own_repository,
      repositories_read,
    } = to(sandbox?.limits ?? {});
    const limits = {
      secret_names,
      git,
      ...(own_repository && { own_repository }),
      ...(repositories_read && { repositories_read }),
    };
    await manager.update(Sandbox, { id }, { limits });
  }

  /** An agent has begun in it, so the rules of its setup hold no longer. */
  async closeSetup(manager: EntityManager, id: string): Promise<void> {
    await manager.update(Sandbox, { id, egressSetup: 'open' }, { egressSetup: 'closing' });
  }

  /** Keeps the row from being deleted until the transaction ends; false when there is none. */
  async keep(manager: EntityManager, id: string): Promise<boolean> {
    const lock = { mode: 'for_key_share' } as const;
    return (await manager.findOne(Sandbox, { select: { id: true }, where: { id }, lock })) !== null;
  }

  /** Under a session key of its own, which its first start gives to its program. */
  async insert(
    manager: EntityManager,
    { startTimeoutSeconds, keepAliveSeconds, hostId = this.host.id, ...sandbox }: StartingSandbox,
  ): Promise<void> {
    const now = this.clock.now();
    const sessionKey = newSessionKey();
    await INSERT.within(manager, [
      sandbox.id,
      sandbox.userId,
      sandbox.specId,
      sandbox.statusDetail,
      sandbox.backend,
      hostId,
      this.cipher.encrypt(sessionKey, sessionKeyBinding(sandbox.id)),
      sessionKeyHash(sessionKey),
      sandbox.overrides === null ? null : JSON.stringify(sandbox.overrides),
      deadlineAt('STARTING', now, startTimeoutSeconds),
      keepAliveSeconds > 0 ? new Date(now + keepAliveSeconds * 1000) : null,
      new Date(now),
      currentTraceparent(),
      sandbox.cause,
      sandbox.egressRules === null ? null : JSON.stringify(sandbox.egressRules),
      sandbox.egressSetup,
      sandbox.egressAuthority,
      sandbox.egressMode,
    ]);
    await this.audit.append(manager, {
      action: 'sandbox.create',
      outcome: 'requested',
      resourceId: sandbox.id,
      ownerId: sandbox.userId,
      details: { spec_id: sandbox.specId, ...sandbox.cause },
    });
  }

  /** Makes a transition if the row's status and the condition allow it; returns whether it did. */
  async transition(
    id: string,
    transition: SandboxTransition,
    { change = {}, condition = {}, manager, cause }: TransitionOptions = {},
  ): Promise<boolean> {
    if (!isSandboxId(id)) {
      return false;
    }
    const { from, to } = TRANSITION_RULES[transition];
    const now = this.clock.now();
    const set = {
      deadlineAt: deadlineAt(to, now, DEFAULT_START_TIMEOUT_SECONDS),
      // Whichever process takes it out of that status continues the trace.
      ...(isTransitional(to) && { traceparent: currentTraceparent(), dueAt: new Date(now) }),
      ...(!ADDRESSED.includes(to) && { address: null, portAddresses: null }),
      ...change,
      status: to,
      updatedAt: new Date(now),
    };
    const entry = this.entryOf(id, transition, cause);
    const isChanged = await this.updateRow({ id, from, condition, set, entry }, manager);
    if (isChanged && manager === undefined && isTransitional(to)) {
      this.worker.wake();
    }
    return isChanged;
  }

  async update(id: string, change: SandboxChange, condition: SandboxCondition = {}): Promise<boolean> {
    const { affected } = await this.sandboxes.update(
      { ...condition, id },
      { ...change, updatedAt: new Date(this.clock.now()) },
    );
    return affected === 1;
  }

  /** Notes that the user did something in it (a status request does not count). Returns at once: no request waits for it. */
  touch(id: string): void {
    const now = this.clock.now();
    if (now - (this.touches.get(id) ?? 0) < TOUCH_EVERY_MS) {
      return;
    }
    this.touches.set(id, now);
    this.sandboxes
      .query(TOUCH, [id, new Date(now), new Date(now - TOUCH_EVERY_MS / 2)])
      .catch((error: unknown) => {
        this.touches.delete(id);
        this.logger.warn('failed to record sandbox activity', { sandbox_id: id, error: String(error) });
      });
  }

  /** Defers idleness by so many seconds; an earlier keep-alive that lasts longer stays. */
  async keepAlive(id: string, seconds: number): Promise<void> {
    const now = this.clock.now();
    await this.sandboxes.query(KEEP_ALIVE, [id, new Date(now + seconds * 1000), new Date(now)]);
  }

  async endKeepAlive(manager: EntityManager, id: string): Promise<void> {
    await manager.query(END_KEEP_ALIVE, [id]);
  }

  async delete(id: string, condition: SandboxCondition): Promise<boolean> {
    const { affected } = await this.sandboxes.delete({ ...condition, id });
    return affected === 1;
  }

  /** Lists this host's sandboxes that have a port or should get one. A stopped one without a port gets it at its next start. */
  async listExposed(): Promise<ExposedSandbox[]> {
    const hostId = this.host.id;
    const found = await this.sandboxes.find({
      select: { id: true, exposePort: true },
      where: [
        { hostId, status: Not('DELETING'), exposePort: Not(IsNull()) },
        { hostId, status: 'RUNNING' },
      ],
    });
    return found.map(({ id, exposePort: port }) => ({ id, port }));
  }

  /** Returns null when this host has no such sandbox. */
  async findExposed(id: string): Promise<(ExposedSandbox & { sessionKey: string }) | null> {
    const found = await this.find(id);
    return found?.hostId === this.host.id
      ? {
          id,
          port: found.exposePort,
          sessionKey: this.cipher.decrypt(found.sessionKey, sessionKeyBinding(id)),
        }
      : null;
  }

  /** Replaces the port `previous`; false if that has changed, or another sandbox has the new port. */
  async assignPort(id: string, port: number | null, previous: number | null): Promise<boolean> {
    const update = this.sandboxes.update(
      { id, hostId: this.host.id, status: Not('DELETING'), exposePort: previous ?? IsNull() },
      // A port is no activity.
      { exposePort: port, updatedAt: () => 'updated_at' },
    );
    // Sandboxes that are being removed keep their port too: their clients may not know yet.
    return (await unlessCode(UNIQUE_VIOLATION, update))?.affected === 1;
  }

  private entryOf(id: string, transition: SandboxTransition, cause: ServiceCause | undefined): string | null {
    const isEnd = transition === 'fail' && cause !== undefined;
    const action = isEnd ? 'sandbox.stop' : AUDITED[transition];
    return action === undefined
      ? null
      : this.audit.record({
          action,
          outcome: 'requested',
          resourceId: id,
          ownerId: null,
          ...(cause !== undefined && { by: 'service', details: { cause } }),
        });
  }

  private async updateRow(
    { id, from, condition, set, entry }: ConditionalUpdate,
    manager: EntityManager = this.sandboxes.manager,
  ): Promise<boolean> {
    const values: unknown[] = [];
    const param = (value: unknown): string => `$${values.push(value)}`;
    const equals = ([property, value]: [string, unknown]): string => {
      if (value === undefined) {
        throw new Error(`an update of a sandbox without a value for ${property}`);
      }
      return `${this.rows.column(property)} = ${param(value)}`;
    };
    const assignments = Object.entries(set).map(equals);
    const conditions = [
      `status = ANY(${param([...from])}::text[])`,
      ...Object.entries({ id, ...condition }).map(equals),
    ];
    const update = `UPDATE sandboxes SET ${assignments.join(', ')} WHERE ${conditions.join(' AND ')} RETURNING user_id, cause, host_id`;
    const audited =
      entry === null
        ? ''
        : `, audited AS (${auditInsert({ entries: param(entry), from: 'changed', owner: 'changed.user_id', details: 'changed.cause' })})`;
    const changed = await manager.query<unknown[]>(
      `WITH changed AS (${update})${audited}
       SELECT CASE WHEN host_id <> ${param(this.host.id)} THEN pg_notify('${SANDBOXES_CHANNEL}', host_id) END FROM changed`,
      values,
    );
    return changed.length === 1;
  }
}
