import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { SecretCipher } from '../../../common/crypto/secret-cipher.js';
import type { StartTask } from '../start-task.entity.js';
import { splitSecrets } from './request-secrets.js';
import { StartJobs } from './start-jobs.js';
import { StartPlaces } from './start-places.js';
import type { StartRequest } from './start-request.js';
import { type SandboxPlan, StartSandboxes } from './start-sandboxes.js';

/** A start that can be stored. */
export interface StartDraft {
  task: Pick<
    StartTask,
    | 'id'
    | 'userId'
    | 'status'
    | 'appConversationId'
    | 'sandboxId'
    | 'hostId'
    | 'request'
    | 'requestSecrets'
    | 'workingDir'
  >;
  /** The sandbox that has to be made; null: it is there. */
  sandbox: SandboxPlan | null;
  /** The sandbox that is there has to be resumed. */
  resumes: boolean;
}

/** Looks up what a start needs to know before it is stored; all ids are chosen here. */
@Injectable()
export class StartDrafts {
  constructor(
    private readonly cipher: SecretCipher,
    private readonly places: StartPlaces,
    private readonly sandboxes: StartSandboxes,
    private readonly jobs: StartJobs,
  ) {}

  /** @throws InvalidInputError for what the user does not have */
  async draft(userId: string, id: string, request: StartRequest): Promise<StartDraft> {
    const place = await this.places.find(userId, request);
    await this.jobs.prepare(place.hostId);
    return {
      task: {
        id,
        userId,
        status: 'WORKING',
        appConversationId: request.conversation_id ?? randomUUID(),
        sandboxId: place.sandboxId,
        hostId: place.hostId,
        workingDir: place.workingDir,
        ...splitSecrets(place.request, id, this.cipher),
      },
      sandbox: place.sandboxMade ? null : await this.sandboxes.plan(userId, request.sandbox_spec_id),
      resumes: place.paused,
    };
  }
}
