import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, type FindOptionsWhere, In, Not, Repository } from 'typeorm';
import { Clock } from '../../common/clock.js';
import { Sandbox } from './sandbox.entity.js';
import { type SandboxTransition, transitionRule } from './sandbox-transitions.js';

/** What a transition may set besides the status. */
export type SandboxChange = Partial<
  Pick<
    Sandbox,
    | 'statusDetail'
    | 'address'
    | 'generation'
    | 'leaseOwner'
    | 'leaseUntil'
    | 'deadlineAt'
    | 'heldUntil'
    | 'lastActivityAt'
  >
>;

/** What must hold for a transition besides the status before. */
export type SandboxCondition = Pick<
  FindOptionsWhere<Sandbox>,
  'userId' | 'status' | 'generation' | 'leaseOwner' | 'lastActivityAt' | 'updatedAt' | 'address'
>;

/** Reads rows of sandboxes, and changes them by conditional updates only. */
@Injectable()
export class SandboxStore {
  constructor(
    @InjectRepository(Sandbox) private readonly sandboxes: Repository<Sandbox>,
    private readonly clock: Clock,
  ) {}

  async transaction<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    return this.sandboxes.manager.transaction(work);
  }

  /** Null when there is none, and when it is being removed. */
  async find(id: string, userId: string | null = null): Promise<Sandbox | null> {
    // An id of a client can be anything; PostgreSQL takes no NUL.
    if (!/^[0-9A-Za-z]{1,64}$/.test(id)) {
      return null;
    }
    return this.sandboxes.findOneBy({ id, status: Not('DELETING'), ...(userId !== null && { userId }) });
  }

  /** The row whatever its status is. */
  async read(id: string): Promise<Sandbox | null> {
    return this.sandboxes.findOneBy({ id });
  }

  /**
   * Lets a transition happen, unless the row's status (or a further condition) does not allow it.
   *
   * @param manager the transaction that it is part of
   * @returns whether it happened
   */
  async move(
    id: string,
    transition: SandboxTransition,
    change: SandboxChange = {},
    condition: SandboxCondition = {},
    manager: EntityManager = this.sandboxes.manager,
  ): Promise<boolean> {
    const { from, to } = transitionRule(transition);
    const { affected } = await manager
      .getRepository(Sandbox)
      .update(
        { status: In([...from]), ...condition, id },
        { ...change, status: to, updatedAt: new Date(this.clock.now()) },
      );
    return affected === 1;
  }

  /** Changes a row without a transition. */
  async change(id: string, change: SandboxChange, condition: SandboxCondition = {}): Promise<boolean> {
    const { affected } = await this.sandboxes.update(
      { ...condition, id },
      { ...change, updatedAt: new Date(this.clock.now()) },
    );
    return affected === 1;
  }

  async delete(id: string, condition: SandboxCondition): Promise<boolean> {
    const { affected } = await this.sandboxes.delete({ ...condition, id });
    return affected === 1;
  }
}
