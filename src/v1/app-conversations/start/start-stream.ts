import { type BeforeApplicationShutdown, Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import type { Response } from 'express';
import { errorStack } from '@slipway/common/errors/error-message.js';
import { DatabaseNotifications } from '../../../database/notifications/database-notifications.js';
import { ConversationPresenter } from '../api/conversation.presenter.js';
import { isFinished, START_TASK_STATUSES, type StartTaskStatus } from '../start-task.entity.js';
import { StartTaskQueries, type StartTaskRow } from '../start-task.queries.js';
import { START_TASKS_CHANNEL } from '../start-task.repository.js';

/** Notifications may be lost, so the row is read this often. */
const POLL_MS = 1_000;

interface OpenStream {
  taskId: string;
  wakeup: Wakeup;
}

/** Streams start tasks as one JSON array that is sent element by element. */
@Injectable()
export class StartStream implements OnModuleInit, BeforeApplicationShutdown {
  private readonly logger = new Logger(StartStream.name);
  private readonly streams = new Set<OpenStream>();
  private isStopping = false;

  constructor(
    private readonly tasks: StartTaskQueries,
    private readonly presenter: ConversationPresenter,
    private readonly notifications: DatabaseNotifications,
  ) {}

  onModuleInit(): void {
    this.notifications.listen(
      START_TASKS_CHANNEL,
      (taskId) => this.wake((stream) => stream.taskId === taskId),
      () => this.wake(() => true),
    );
  }

  /** An open response would keep the HTTP server from stopping. */
  beforeApplicationShutdown(): void {
    this.isStopping = true;
    for (const { wakeup } of this.streams) {
      wakeup.end();
    }
  }

  /** Sends the task now and after each change, until it ends or either side stops. The start goes on regardless. */
  async send(first: StartTaskRow, response: Response): Promise<void> {
    const stream: OpenStream = { taskId: first.id, wakeup: new Wakeup() };
    this.streams.add(stream);
    response.once('close', () => stream.wakeup.end());
    if (this.isStopping || response.closed) {
      stream.wakeup.end();
    }
    response.status(200).set({
      'Content-Type': 'application/json; charset=utf-8',
      'X-Accel-Buffering': 'no',
    });
    try {
      await this.write(first, response, stream.wakeup);
    } catch (error) {
      // The array is closed anyway: the client keeps what it has, and requests the rest.
      this.logger.error('failed to stream a start', { task_id: first.id }, errorStack(error));
    } finally {
      this.streams.delete(stream);
      response.end('\n]');
    }
  }

  private async write(first: StartTaskRow, response: Response, wakeup: Wakeup): Promise<void> {
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
      if (isFinished(status) || !(await wakeup.wait(POLL_MS))) {
        return;
      }
      next = await this.tasks.find(task.user_id, task.id);
    }
  }

  private wake(matches: (stream: OpenStream) => boolean): void {
    for (const stream of this.streams) {
      if (matches(stream)) {
        stream.wakeup.wake();
      }
    }
  }
}

/** A step that has nothing to do may be over before it is read. */
function statusesBetween(from: StartTaskStatus, to: StartTaskStatus): readonly StartTaskStatus[] {
  const begin = START_TASK_STATUSES.indexOf(from) + 1;
  return to === 'ERROR' ? [] : START_TASK_STATUSES.slice(begin, START_TASK_STATUSES.indexOf(to));
}

/** A wait that others can end, also before it has begun. */
export class Wakeup {
  private isAwake = false;
  private isOver = false;
  private resolve: (() => void) | null = null;

  wake(): void {
    this.isAwake = true;
    this.resolve?.();
  }

  /** Ends this wait and all later ones. */
  end(): void {
    this.isOver = true;
    this.wake();
  }

  /** Waits until woken, or for the timeout; returns whether to go on. */
  async wait(timeoutMs: number): Promise<boolean> {
    if (!this.isAwake && !this.isOver) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeoutMs);
        this.resolve = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.resolve = null;
    this.isAwake = false;
    return !this.isOver;
  }
}
