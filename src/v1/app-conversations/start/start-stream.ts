import { EventEmitter, once } from 'node:events';
import { type BeforeApplicationShutdown, Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import type { Response } from 'express';
import { errorStack } from '@slipway/common/errors/error-message.js';
import { DatabaseNotifications } from '@slipway/database/database-notifications.js';
import { ConversationPresenter } from '../api/conversation.presenter.js';
import { isFinished, START_TASK_STATUSES, type StartTaskStatus } from '../start-task.entity.js';
import { StartTaskQueries, type StartTaskRow } from '../start-task.queries.js';
import { START_TASKS_CHANNEL } from '../start-task.repository.js';

/** Notifications may be lost, so the row is read this often. */
const POLL_MS = 1_000;

/** Streams start tasks as one JSON array that is sent element by element. */
@Injectable()
export class StartStream implements OnModuleInit, BeforeApplicationShutdown {
  private readonly logger = new Logger(StartStream.name);
  /** Emits ids of tasks that may have changed. */
  private readonly changes = new EventEmitter().setMaxListeners(0);
  private readonly stopped = new AbortController();

  constructor(
    private readonly tasks: StartTaskQueries,
    private readonly presenter: ConversationPresenter,
    private readonly notifications: DatabaseNotifications,
  ) {}

  onModuleInit(): void {
    this.notifications.listen(
      START_TASKS_CHANNEL,
      (taskId) => this.changes.emit(taskId),
      () => this.changes.eventNames().forEach((taskId) => this.changes.emit(taskId)),
    );
  }

  /** An open response would keep the HTTP server from stopping. */
  beforeApplicationShutdown(): void {
    this.stopped.abort();
  }

  /** Sends the task now and after each change, until it ends or either side stops. The start goes on regardless. */
  async send(first: StartTaskRow, response: Response): Promise<void> {
    const left = new AbortController();
    response.once('close', () => left.abort());
    if (response.closed) {
      left.abort();
    }
    response.status(200).set({
      'Content-Type': 'application/json; charset=utf-8',
      'X-Accel-Buffering': 'no',
    });
    try {
      await this.write(first, response, AbortSignal.any([left.signal, this.stopped.signal]));
    } catch (error) {
      // The array is closed anyway: the client keeps what it has, and requests the rest.
      this.logger.error('failed to stream a start', { task_id: first.id }, errorStack(error));
    } finally {
      response.end('\n]');
    }
  }

  private async write(first: StartTaskRow, response: Response, ended: AbortSignal): Promise<void> {
    let changed = this.nextChange(first.id, ended);
    let next: StartTaskRow | null = first;
    let sent: StartTaskRow | null = null;
    while (next) {
      const task: StartTaskRow = next;
      const { status, detail } = task;
      // `updated_at` also changes without news for the client, such as a takeover.
      if (sent === null || status !== sent.status || detail !== sent.detail) {
        for (const passed of sent === null ? [] : statusesBetween(sent.status, status)) {
          const skipped = { ...task, status: passed, detail: null };
          response.write(`,\n${JSON.stringify(this.presenter.startTask(skipped))}`);
        }
        response.write(`${sent === null ? '[' : ','}\n${JSON.stringify(this.presenter.startTask(task))}`);
        sent = task;
      }
      if (isFinished(status)) {
        return;
      }
      await changed;
      if (ended.aborted) {
        return;
      }
      // Before the row is read: a change during the read counts for the next one.
      changed = this.nextChange(task.id, ended);
      next = await this.tasks.find(task.user_id, task.id);
    }
  }

  private async nextChange(taskId: string, ended: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([ended, AbortSignal.timeout(POLL_MS)]);
    await once(this.changes, taskId, { signal }).catch(() => undefined);
  }
}

/** A step that has nothing to do may be over before it is read. */
function statusesBetween(from: StartTaskStatus, to: StartTaskStatus): readonly StartTaskStatus[] {
  const begin = START_TASK_STATUSES.indexOf(from) + 1;
  return to === 'ERROR' ? [] : START_TASK_STATUSES.slice(begin, START_TASK_STATUSES.indexOf(to));
}
