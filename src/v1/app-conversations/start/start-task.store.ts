import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, In, Not, Repository } from 'typeorm';
import type { QueryDeepPartialEntity } from 'typeorm/query-builder/QueryPartialEntity.js';
import { DatabaseNotifications } from '../../../database/notifications/database-notifications.js';
import { hostIsSilent } from '../../sandboxes/host-is-silent.js';
import { StartTask } from '../start-task.entity.js';
import type { StartTaskStatus } from '../start-task-status.js';
import { START_TASKS_CHANNEL } from './start-channel.js';
import { StartEnded } from './start-ended.js';

/** What a worker may set beside the status. */
export type StartTaskChange = Partial<Pick<StartTask, 'detail' | 'notes' | 'sandboxMade' | 'workingDir'>>;

/** Of tasks that are looked through in turns. */
const MOST_AT_ONCE = 50;

const OVER = ['READY', 'ERROR'] as const satisfies readonly StartTaskStatus[];

/**
 * Rows of start tasks. A worker changes one only while it is the last that took it up and the status is the one it
 * knows: one that was given up for dead, or whose task was deleted, is told so by `StartEnded`.
 */
@Injectable()
export class StartTaskStore {
  constructor(
    @InjectRepository(StartTask) private readonly tasks: Repository<StartTask>,
    private readonly notifications: DatabaseNotifications,
  ) {}

  /** Takes a task away from whoever had it; null when it is over or gone. */
  async takeUp(id: string): Promise<StartTask | null> {
    const { affected } = await this.tasks.update(
      { id, status: Not(In([...OVER])) },
      { attempt: () => 'attempt + 1' },
    );
    return affected === 1 ? this.tasks.findOneBy({ id }) : null;
  }

  /**
   * Tasks of other hosts that are not over, that nothing happened to for so long, and whose hosts have said nothing for
   * as long; those longest unchanged first.
   *
   * @param seconds how long, by the database's clock
   */
  async withoutHost(hostId: string, seconds: number): Promise<StartTask[]> {
    return this.tasks
      .createQueryBuilder('task')
      .where({ hostId: Not(hostId), status: Not(In([...OVER])) })
      .andWhere('task.updated_at < now() - make_interval(secs => :seconds)', { seconds })
      .andWhere(hostIsSilent('task.host_id'))
      .orderBy('task.updated_at')
      .take(MOST_AT_ONCE)
      .getMany();
  }

  /**
   * Lets a task go on to the next status, without a detail unless one is given.
   *
   * @throws StartEnded
   */
  async advance(
    task: StartTask,
    status: StartTaskStatus,
    change: StartTaskChange = {},
    manager: EntityManager = this.tasks.manager,
  ): Promise<StartTask> {
    return this.update(manager, task, { detail: null, ...change, status });
  }

  /**
   * Changes a task within its status; nothing happens where it is like that already.
   *
   * @throws StartEnded
   */
  async note(
    task: StartTask,
    change: StartTaskChange,
    manager: EntityManager = this.tasks.manager,
  ): Promise<StartTask> {
    const isSame = Object.entries(change).every(
      ([member, value]) => JSON.stringify(task[member as keyof StartTaskChange]) === JSON.stringify(value),
    );
    return isSame ? task : this.update(manager, task, change);
  }

  /**
   * Like `note`, and holds the row until the caller's transaction ends, also where nothing changes.
   *
   * @throws StartEnded
   */
  async lock(task: StartTask, change: StartTaskChange, manager: EntityManager): Promise<StartTask> {
    return this.update(manager, task, change);
  }

  /** Runs changes of several tables as one. */
  async transaction<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    return this.tasks.manager.transaction(work);
  }

  private async update(
    manager: EntityManager,
    task: StartTask,
    change: StartTaskChange & { status?: StartTaskStatus },
  ): Promise<StartTask> {
    const { id, status, attempt } = task;
    const values: QueryDeepPartialEntity<StartTask> = change;
    const { affected } = await manager.getRepository(StartTask).update({ id, status, attempt }, values);
    if (affected !== 1) {
      throw new StartEnded();
    }
    await this.notifications.publish(manager, START_TASKS_CHANNEL, id);
    return Object.assign({}, task, change);
  }
}
