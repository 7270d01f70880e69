import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, In, IsNull, LessThan, Not, Or, Repository } from 'typeorm';
import { Clock } from '../../common/clock.js';
import { EntityRows, NamedStatement } from '../../database/named-statement.js';
import { type LeaseClaim, SandboxWorkerSignal, SandboxLeases } from './sandbox-leases.js';
import {
  deadlineSeconds,
  isTransitional,
  Sandbox,
  type SandboxRowStatus,
  type SandboxTransition,
  transitionRule,
} from './sandbox.entity.js';
import { isSandboxId } from './session-key.js';

type Columns = Partial<Omit<Sandbox, 'user'>>;

interface SandboxUpdate {
  id: string;
  /** The row has one of these. */
  from: readonly SandboxRowStatus[];
  /** And these values. */
  where: Columns;
  set: Columns;
  /** The lease is taken too, if it is free; null: it is left alone. */
  claim: LeaseClaim | null;
}

/** Conditional updates of rows, as named statements: there are as many texts as there are kinds of callers. */
@Injectable()
export class SandboxUpdates {
  private readonly rows: EntityRows<Sandbox>;
  private readonly statements = new Map<string, NamedStatement<Record<string, unknown>>>();

  constructor(@InjectRepository(Sandbox) private readonly sandboxes: Repository<Sandbox>) {
    this.rows = new EntityRows(sandboxes, 'sandboxes');
  }

  /**
   * @param manager the transaction that it is part of; null: none
   * @returns the row as it is now; null when there is none like that
   */
  async run(update: SandboxUpdate, manager: EntityManager | null): Promise<Sandbox | null> {
    const { id, from, where, set, claim } = update;
    const values: unknown[] = [];
    const param = (value: unknown): string => `$${values.push(value)}`;
    const equals = ([property, value]: [string, unknown]): string => {
      if (value === undefined) {
        throw new Error(`an update of a sandbox without a value for ${property}`);
      }
      return `${this.rows.column(property)} = ${param(value)}`;
    };
    const assignments = [...Object.entries(set).map(equals), ...(claim?.assignments(param) ?? [])];
    const conditions = [
      `status = ANY(${param([...from])}::text[])`,
      ...Object.entries({ id, ...where }).map(equals),
    ];
    const statement = this.statement(
      `UPDATE sandboxes SET ${assignments.join(', ')} WHERE ${conditions.join(' AND ')} RETURNING ${this.rows.columns}`,
    );
    const [row] = manager
      ? await statement.within(manager, values)
      : await statement.run(this.sandboxes.manager.connection, values);
    return row ? this.rows.entity(row) : null;
  }

  private statement(text: string): NamedStatement<Record<string, unknown>> {
    let statement = this.statements.get(text);
    if (!statement) {
      statement = new NamedStatement(`sandboxes_update_${this.statements.size + 1}`, text);
      this.statements.set(text, statement);
    }
    return statement;
  }
}

/** In these the agent server may still answer; in all others an address would be one of the past. */
const ADDRESSED = ['RUNNING', 'PAUSING', 'DELETING'];
/** Of sandboxes that are looked through in turns. */
const MOST_AT_ONCE = 50;
/** Of a start whose caller knows no limit; the worker sets the specification's. */
const DEFAULT_START_SECONDS = 60;

/** What a transition may set besides the status. */
type SandboxChange = Partial<
  Pick<
    Sandbox,
    | 'statusDetail'
    | 'address'
    | 'portAddresses'
    | 'generation'
    | 'deadlineAt'
    | 'heldUntil'
    | 'lastActivityAt'
  >
>;

/** What must hold for a transition besides the status before. */
type SandboxCondition = {
  [
    Property in 'userId' | 'status' | 'generation' | 'leaseOwner' | 'lastActivityAt' | 'updatedAt'
  ]?: NonNullable<Sandbox[Property]>;
};

/** Reads rows of sandboxes, and changes them by conditional updates only. */
@Injectable()
export class SandboxRepository {
  constructor(
    @InjectRepository(Sandbox) private readonly sandboxes: Repository<Sandbox>,
    private readonly updates: SandboxUpdates,
    private readonly leases: SandboxLeases,
    private readonly clock: Clock,
    private readonly kicks: SandboxWorkerSignal,
  ) {}

  async transaction<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    return this.sandboxes.manager.transaction(work);
  }

  /** Null when there is none, and when it is being removed. */
  async find(id: string, userId: string | null = null): Promise<Sandbox | null> {
    if (!isSandboxId(id)) {
      return null;
    }
    return this.sandboxes.findOneBy({ id, status: Not('DELETING'), ...(userId !== null && { userId }) });
  }

  /** The row whatever its status is. */
  async read(id: string): Promise<Sandbox | null> {
    return this.sandboxes.findOneBy({ id });
  }

  /**
   * Lets a transition happen, unless the row's status (or a further condition) does not allow it. Address and deadline
   * follow from the new status where `change` does not give them.
   *
   * @param manager the transaction that it is part of; its owner calls `SandboxCreation.kick` after the end of it.
   *   Without one the worker is told here, and where nobody works on the sandbox it is this process's own from then on
   * @returns whether it happened
   */
  async move(
    id: string,
    transition: SandboxTransition,
    change: SandboxChange = {},
    condition: SandboxCondition = {},
    manager?: EntityManager,
  ): Promise<boolean> {
    if (!isSandboxId(id)) {
      return false;
    }
    const { from, to } = transitionRule(transition);
    const now = this.clock.now();
    const seconds = deadlineSeconds(to, DEFAULT_START_SECONDS);
    const set = {
      deadlineAt: seconds === null ? null : new Date(now + seconds * 1000),
      ...(!ADDRESSED.includes(to) && { address: null, portAddresses: null }),
      ...change,
      status: to,
      updatedAt: new Date(now),
    };
    const claim = manager === undefined && isTransitional(to) ? this.leases.claim() : null;
    const moved = await this.updates.run({ id, from, where: condition, set, claim }, manager ?? null);
    if (moved && claim) {
      this.kicks.wake(claim.isTaken(moved) ? moved : null);
    }
    return moved !== null;
  }

  /** Changes a row without a transition. */
  async change(id: string, change: SandboxChange, condition: SandboxCondition = {}): Promise<boolean> {
    const { affected } = await this.sandboxes.update(
      { ...condition, id },
      { ...change, updatedAt: new Date(this.clock.now()) },
    );
    return affected === 1;
  }

  /** RUNNING sandboxes of a host in which nothing is known to have happened since; the longest idle first. */
  async quietSince(hostId: string, moment: Date): Promise<Sandbox[]> {
    return this.sandboxes.find({
      where: { hostId, status: 'RUNNING', lastActivityAt: LessThan(moment) },
      order: { lastActivityAt: 'ASC' },
      take: MOST_AT_ONCE,
    });
  }

  /** Sandboxes of a host that have not run since. */
  async stoppedSince(hostId: string, moment: Date): Promise<Sandbox[]> {
    return this.sandboxes.find({
      where: { hostId, status: In(['PAUSED', 'ERROR', 'MISSING']), updatedAt: LessThan(moment) },
      order: { updatedAt: 'ASC' },
      take: MOST_AT_ONCE,
    });
  }

  /**
   * Sandboxes of other hosts that should have been started or stopped long ago, and that nobody works on: their hosts are
   * gone.
   */
  async abandoned(hostId: string, moment: Date): Promise<Sandbox[]> {
    return this.sandboxes.find({
      where: {
        hostId: Not(hostId),
        status: In(['STARTING', 'PAUSING']),
        deadlineAt: LessThan(moment),
        leaseUntil: Or(IsNull(), LessThan(moment)),
      },
      take: MOST_AT_ONCE,
    });
  }

  /**
   * RUNNING sandboxes that nothing was done with since, and whose hosts have said nothing for as long.
   *
   * @param seconds how long, by the database's clock as the hosts' own signs of life are
   */
  async withoutHost(hostId: string, moment: Date, seconds: number): Promise<Sandbox[]> {
    return this.sandboxes
      .createQueryBuilder('sandbox')
      .where({
        hostId: Not(hostId),
        status: 'RUNNING',
        updatedAt: LessThan(moment),
        lastActivityAt: LessThan(moment),
      })
      .andWhere(hostIsSilent('sandbox.host_id'), { seconds })
      .orderBy('sandbox.updated_at')
      .take(MOST_AT_ONCE)
      .getMany();
  }

  /**
   * Sandboxes that should have been removed since then, that nobody worked on, and whose hosts have said nothing for as
   * long.
   *
   * @param seconds as for `withoutHost`
   */
  async unremoved(hostId: string, moment: Date, seconds: number): Promise<Sandbox[]> {
    return this.sandboxes
      .createQueryBuilder('sandbox')
      .where({
        hostId: Not(hostId),
        status: 'DELETING',
        updatedAt: LessThan(moment),
        leaseUntil: Or(IsNull(), LessThan(moment)),
      })
      .andWhere(hostIsSilent('sandbox.host_id'), { seconds })
      .orderBy('sandbox.updated_at')
      .take(MOST_AT_ONCE)
      .getMany();
  }

  async delete(id: string, condition: SandboxCondition): Promise<boolean> {
    const { affected } = await this.sandboxes.delete({ ...condition, id });
    return affected === 1;
  }
}

/**
 * The condition of a query that a host has given no sign of life for `:seconds`, by the database's clock as the signs
 * are. One that was stopped has none from then on: whoever ends what it left behind must leave it time to come back.
 *
 * @param column names the host
 */
export function hostIsSilent(column: string): string {
  return `NOT EXISTS (SELECT 1 FROM sandbox_hosts host
    WHERE host.id = ${column} AND host.seen_at > now() - make_interval(secs => :seconds))`;
}
