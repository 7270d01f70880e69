import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { SecretCipher } from '../../../common/crypto/secret-cipher.js';
import { AgentServerClient } from '../../agent-servers/agent-server.client.js';
import { AgentServerError } from '../../agent-servers/agent-server.http.js';
import { SandboxUrls } from '../../sandboxes/sandbox-urls.js';
import { AgentRequests } from '../agent-request/agent-request.js';
import type { StartTask } from '../start-task.entity.js';
import { ConversationRepository } from '../conversation.repository.js';
import { requestSecrets, StartTaskRepository } from '../start-task.repository.js';
import { StartFailure } from './start-errors.js';
import type { StartTarget } from './await-sandbox.js';

/** STARTING_CONVERSATION: our rows first, then the agent server's half, which is got or made by the same id. */
@Injectable()
export class BeginConversationStep {
  constructor(
    private readonly tasks: StartTaskRepository,
    private readonly requests: AgentRequests,
    private readonly rows: ConversationRepository,
    private readonly agentServers: AgentServerClient,
    private readonly cipher: SecretCipher,
    private readonly addresses: SandboxUrls,
  ) {}

  /** @throws StartFailure, StartSuperseded, AgentServerError when trying again may help */
  async run({ task: given, target, dialect }: StartTarget): Promise<StartTask> {
    const workingDir = given.workingDir ?? '.';
    const request = await this.requests.build({
      userId: given.userId,
      conversationId: given.appConversationId,
      workingDir,
      ports: this.addresses.ports(target.sandboxId, target.ports),
      request: given.request,
      secrets: requestSecrets(given, this.cipher),
      dialect,
    });
    if (request.problem !== null) {
      throw new StartFailure(request.problem);
    }
    const { body, model } = request;
    const notes = [...new Set([...given.notes, ...request.notes])];
    const task = await this.tasks.transaction(async (manager) => {
      // Also holds a deletion of the task until its conversation is there to be deleted.
      const noted = await this.tasks.lock(given, { notes }, manager);
      await this.rows.insert(manager, noted, { model, workingDir });
      return noted;
    });
    await this.create(() => this.agentServers.startConversation(target, body));
    return this.tasks.transaction(async (manager: EntityManager) => {
      await this.rows.setGeneration(manager, task.appConversationId, target.generation);
      return this.tasks.advance(task, 'READY', {}, manager);
    });
  }

  private async create(start: () => Promise<unknown>): Promise<void> {
    try {
      await start();
    } catch (error) {
      if (
        error instanceof AgentServerError &&
        error.status !== null &&
        error.status >= 400 &&
        error.status < 500
      ) {
        throw new StartFailure(`The agent server refused the conversation: ${error.detail}`, {
          cause: error,
        });
      }
      throw error;
    }
  }
}
