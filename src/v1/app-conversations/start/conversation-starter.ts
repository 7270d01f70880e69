import { Injectable } from '@nestjs/common';
import { DomainError } from '../../../common/errors/domain-error.js';
import type { StartTask } from '../start-task.entity.js';
import type { StartRequest } from './start-request.js';

/** Begins conversations. */
@Injectable()
export class ConversationStarter {
  /**
   * Stores a start task, its sandbox if none is named, and the job that walks it, all or nothing, and answers at once.
   *
   * @param idempotencyKey `Idempotency-Key` of the request, if it had one: a repetition answers the task it made
   * @throws InvalidInputError for a sandbox, parent or specification that the user does not have, a conversation id in
   * use, and another request under the same key
   */
  async start(_userId: string, _request: StartRequest, _idempotencyKey: string | null): Promise<StartTask> {
    throw new DomainError('unavailable', 'unavailable', 'Conversations cannot be started yet.');
  }
}
