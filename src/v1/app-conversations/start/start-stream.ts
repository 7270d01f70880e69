import { type BeforeApplicationShutdown, Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import type { Response } from 'express';
import { errorStack } from '../../../common/errors/error-message.js';
import { DatabaseNotifications } from '../../../database/notifications/database-notifications.js';
import { ConversationPresenter } from '../api/conversation.presenter.js';
import { START_TASKS_CHANNEL, type StartTaskRow, StartTaskQueries } from '../start-task.repository.js';

/** A sleep that somebody else can end, also before it has begun. */
export class Wakeup {
  private isAwake = false;
  private isOver = false;
  private resolve: (() => void) | null = null;

  /** The next (or current) wait is over at once. */
  wake(): void {
    this.isAwake = true;
    this.resolve?.();
  }

  /** Every wait is over, and there is nothing more to wait for. */
  end(): void {
    this.isOver = true;
    this.wake();
  }

  /**
   * Waits until woken, at most for so long.
   *
   * @returns whether to go on
   */
  async wait(mostMs: number): Promise<boolean> {
    if (!this.isAwake && !this.isOver) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, mostMs);
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

/** Notifications are hints: without one the row is looked at this often. */
const LOOK_EVERY_MS = 1_000;

interface OpenStream {
  taskId: string;
  wakeup: Wakeup;
}

/** Tells clients of start tasks as they go on, as one JSON array that is sent bit by bit. */
@Injectable()
export class StartStream implements OnModuleInit, BeforeApplicationShutdown {
  private readonly logger = new Logger(StartStream.name);
  private readonly streams = new Set<OpenStream>();
  private isStopping = false;

  constructor(
    private readonly reader: StartTaskQueries,
    private readonly answers: ConversationPresenter,
    private readonly notifications: DatabaseNotifications,
  ) {}

  onModuleInit(): void {
    this.notifications.listen(
      START_TASKS_CHANNEL,
      (taskId) => this.wake((stream) => stream.taskId === taskId),
      () => this.wake(() => true),
    );
  }

  /** An open answer would hold the stop of the HTTP server. */
  beforeApplicationShutdown(): void {
    this.isStopping = true;
    for (const { wakeup } of this.streams) {
      wakeup.end();
    }
  }

  /**
   * Sends the task now and at each change, until it is READY, ERROR or gone, the client hangs up or the service stops.
   * The start itself goes on whatever becomes of the client.
   */
  async send(first: StartTaskRow, response: Response): Promise<void> {
    const stream: OpenStream = { taskId: first.id, wakeup: new Wakeup() };
    this.streams.add(stream);
    response.once('close', () => stream.wakeup.end());
    if (this.isStopping) {
      stream.wakeup.end();
    }
    response.status(200).set({
      'Content-Type': 'application/json; charset=utf-8',
      'Cache-Control': 'no-store',
      'X-Accel-Buffering': 'no',
    });
    try {
      await this.write(first, response, stream.wakeup);
    } catch (error) {
      // The array that was begun is ended: the client has what is known, and asks for the rest.
      this.logger.error('a stream of a start broke', errorStack(error));
    } finally {
      this.streams.delete(stream);
      response.end('\n]');
    }
  }

  private async write(first: StartTaskRow, response: Response, wakeup: Wakeup): Promise<void> {
    let next: StartTaskRow | undefined = first;
    let separator = '[\n';
    let told = '';
    while (next) {
      const task: StartTaskRow = next;
      const { status, detail } = task;
      // `updated_at` changes without anything to tell, for example when another worker takes the task up.
      const state = JSON.stringify([status, detail]);
      if (state !== told) {
        response.write(`${separator}${JSON.stringify(this.answers.startTask(task))}`);
        separator = ',\n';
        told = state;
      }
      if (status === 'READY' || status === 'ERROR' || !(await wakeup.wait(LOOK_EVERY_MS))) {
        return;
      }
      next = (await this.reader.findAll(task.user_id, [task.id])).get(task.id);
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
