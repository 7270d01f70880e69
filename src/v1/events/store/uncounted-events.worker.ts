import { Injectable, Logger } from '@nestjs/common';
import { BackgroundLoop } from '../../../common/background-loop.js';
import { EventRepository } from './event.repository.js';

const EVERY_MS = 60_000;

/** Counts the bytes of what was stored before bytes were counted, so that old logs do not pass for empty. */
@Injectable()
export class UncountedEventsWorker extends BackgroundLoop {
  constructor(private readonly events: EventRepository) {
    super(EVERY_MS, new Logger('Events'), 'failed to count stored events');
  }

  async work(): Promise<void> {
    let isDone = false;
    while (!isDone && !this.stopping) {
      isDone = !(await this.events.countSome());
    }
  }
}
