import { setTimeout as wait } from 'node:timers/promises';
import { type BeforeApplicationShutdown, Injectable, Logger } from '@nestjs/common';
import type { Response } from 'express';
import { ConversationAnswers } from './conversation-answers.js';
import type { StartTaskRow } from './start-task-row.js';
import { StartTasksReader } from './start-tasks.reader.js';

const POLL_MS = 100;

/** Tells clients of start tasks as they go on, as one JSON array that is sent bit by bit. */
@Injectable()
export class StartStream implements BeforeApplicationShutdown {
  private readonly logger = new Logger(StartStream.name);
  private readonly open = new Set<AbortController>();
  private stopping = false;

  constructor(
    private readonly reader: StartTasksReader,
    private readonly answers: ConversationAnswers,
  ) {}

  /** An open answer would hold the stop of the HTTP server. */
  beforeApplicationShutdown(): void {
    this.stopping = true;
    for (const stream of this.open) {
      stream.abort();
    }
  }

  /**
   * Sends the task now and at each change, until it is READY, ERROR or gone, the client hangs up or the service stops.
   * The start itself goes on whatever becomes of the client.
   */
  async send(first: StartTaskRow, response: Response): Promise<void> {
    const stream = new AbortController();
    response.once('close', () => stream.abort());
    this.open.add(stream);
    if (this.stopping) {
      stream.abort();
    }
    response.status(200).set({
      'Content-Type': 'application/json; charset=utf-8',
      'Cache-Control': 'no-store',
      'X-Accel-Buffering': 'no',
    });
    try {
      await this.write(first, response, stream.signal);
    } catch (error) {
      // The array that was begun is ended: the client has what is known, and asks for the rest.
      this.logger.error('a stream of a start broke', error instanceof Error ? error.stack : String(error));
    } finally {
      this.open.delete(stream);
      response.end('\n]');
    }
  }

  private async write(first: StartTaskRow, response: Response, signal: AbortSignal): Promise<void> {
    let task: StartTaskRow | undefined = first;
    let separator = '[\n';
    let told = '';
    while (task) {
      const { status, detail } = task;
      // `updated_at` changes without anything to tell, for example when another worker takes the task up.
      const state = JSON.stringify([status, detail]);
      if (state !== told) {
        response.write(`${separator}${JSON.stringify(this.answers.startTask(task))}`);
        separator = ',\n';
        told = state;
      }
      if (status === 'READY' || status === 'ERROR' || !(await pause(signal))) {
        return;
      }
      task = (await this.reader.findAll(task.user_id, [task.id])).get(task.id);
    }
  }
}

/** Whether the stream goes on after a moment. */
async function pause(signal: AbortSignal): Promise<boolean> {
  try {
    await wait(POLL_MS, undefined, { signal });
    return true;
  } catch (error) {
    if (signal.aborted) {
      return false;
    }
    throw error;
  }
}
