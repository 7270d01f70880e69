import { Injectable } from '@nestjs/common';
import { DomainError } from '../../common/errors/domain-error.js';
import type { Page } from '../../common/pagination/page.js';
import { SandboxSpecs } from '../sandbox-specs/sandbox-specs.js';
import { SandboxOrders } from './sandbox-orders.js';
import { unknownSandbox } from './sandbox-problems.js';
import { SandboxResume } from './sandbox-resume.js';
import type { SandboxView } from './sandbox-view.js';
import { SandboxStore } from './sandbox.store.js';
import { SandboxesReader } from './sandboxes.reader.js';

/** What users do with their own sandboxes. Another user's are as unknown as those that never were. */
@Injectable()
export class SandboxesService {
  constructor(
    private readonly reader: SandboxesReader,
    private readonly store: SandboxStore,
    private readonly orders: SandboxOrders,
    private readonly resumption: SandboxResume,
    private readonly specs: SandboxSpecs,
  ) {}

  async search(userId: string, limit: number, pageId: string | undefined): Promise<Page<SandboxView>> {
    return this.reader.search(userId, limit, pageId);
  }

  async batch(userId: string, ids: readonly string[]): Promise<(SandboxView | null)[]> {
    return this.reader.batch(userId, ids);
  }

  async find(userId: string, id: string): Promise<SandboxView | null> {
    return this.reader.find(userId, id);
  }

  /**
   * Orders a sandbox; it is STARTING when this returns.
   *
   * @param specId null: the default specification
   * @param idempotencyKey a repetition under it answers the same sandbox
   * @throws DomainError not_found for an unknown specification, rate_limited (`sandbox_limit`) when no place is free,
   *   forbidden when nothing would separate it from other users' sandboxes, gone when the repeated one was deleted
   */
  async create(userId: string, specId: string | null, idempotencyKey: string | null): Promise<SandboxView> {
    const spec = specId === null ? this.specs.default : this.specs.find(specId);
    if (!spec) {
      throw new DomainError(
        'not_found',
        'not_found',
        'There is no sandbox specification with this id; see GET /api/v1/sandbox-specs/search.',
      );
    }
    const id = await this.orders.order(userId, spec, idempotencyKey);
    const view = await this.reader.find(userId, id);
    if (!view) {
      throw new DomainError('gone', 'not_found', 'The sandbox that this Idempotency-Key made was deleted.');
    }
    return view;
  }

  /**
   * Has it stopped, with its files kept; nothing happens where nothing runs.
   *
   * @throws DomainError not_found
   */
  async pause(userId: string, id: string): Promise<void> {
    const paused = await this.store.move(id, 'pause', { statusDetail: null }, { userId });
    if (!paused && !(await this.store.find(id, userId))) {
      throw unknownSandbox();
    }
  }

  /** @throws DomainError not_found, rate_limited (`sandbox_limit`) when no place is free */
  async resume(userId: string, id: string): Promise<void> {
    await this.resumption.request(userId, id);
  }

  /**
   * Has it removed with its files, whatever it is doing; it is unknown from now on. Its conversations stay readable.
   *
   * @throws DomainError not_found
   */
  async remove(userId: string, id: string): Promise<void> {
    if (!(await this.store.move(id, 'remove', { statusDetail: null }, { userId }))) {
      throw unknownSandbox();
    }
  }
}
