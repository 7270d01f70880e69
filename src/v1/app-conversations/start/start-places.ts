import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Not, Repository } from 'typeorm';
import { InvalidInputError } from '../../../common/errors/invalid-input.error.js';
import { SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import { HostIdentity } from '../../sandboxes/host-identity.js';
import { newSandboxId } from '../../sandboxes/sandbox-session-key.js';
import { Sandbox } from '../../sandboxes/sandbox.entity.js';
import { AppConversation } from '../app-conversation.entity.js';
import type { StartRequest } from './start-request.js';

/** Where a conversation is going to be. */
export interface StartPlace {
  sandboxId: string;
  /** Who looks after the sandbox. */
  hostId: string;
  /** The sandbox exists; otherwise it is to be made under its id. */
  sandboxMade: boolean;
  /** It exists and is paused: it takes a place when it is resumed. */
  paused: boolean;
  /** Known when it is somebody else's folder. */
  workingDir: string | null;
  /** With what it takes over from its parent. */
  request: StartRequest;
}

/** Finds the sandbox, and the parent, that a request names. */
@Injectable()
export class StartPlaces {
  constructor(
    @InjectRepository(Sandbox) private readonly sandboxes: Repository<Sandbox>,
    @InjectRepository(AppConversation) private readonly conversations: Repository<AppConversation>,
    private readonly specs: SandboxSpecs,
    private readonly host: HostIdentity,
  ) {}

  /** @throws InvalidInputError for what is not there, or is somebody else's */
  async find(userId: string, request: StartRequest): Promise<StartPlace> {
    if (request.sandbox_spec_id !== null && !this.specs.find(request.sandbox_spec_id)) {
      throw unknown('sandbox_spec_id', 'sandbox specification');
    }
    const parent = await this.findParent(userId, request);
    const merged = parent ? inherit(request, parent) : request;
    if (merged.sandbox_id === null) {
      return {
        sandboxId: newSandboxId(),
        hostId: this.host.id,
        sandboxMade: false,
        paused: false,
        workingDir: null,
        request: merged,
      };
    }
    const sandbox = await this.findSandbox(userId, merged.sandbox_id);
    if (!sandbox) {
      throw request.sandbox_id === null
        ? invalid('parent_conversation_id', 'Expected a conversation whose sandbox is still there.')
        : unknown('sandbox_id', 'sandbox');
    }
    return {
      sandboxId: sandbox.id,
      hostId: sandbox.hostId,
      sandboxMade: true,
      paused: sandbox.status === 'PAUSED' || sandbox.status === 'PAUSING',
      // Parent and child work on the same files.
      workingDir: parent?.sandboxId === sandbox.id ? parent.workingDir : null,
      request: merged,
    };
  }

  private async findParent(
    userId: string,
    { parent_conversation_id: id }: StartRequest,
  ): Promise<AppConversation | null> {
    const parent = id === null ? null : await this.conversations.findOneBy({ id, userId });
    if (id !== null && !parent) {
      throw unknown('parent_conversation_id', 'conversation');
    }
    return parent;
  }

  private async findSandbox(userId: string, id: string): Promise<Sandbox | null> {
    // An id of a client can be anything; PostgreSQL takes no NUL.
    return /^[0-9A-Za-z]{1,64}$/.test(id)
      ? this.sandboxes.findOneBy({ id, userId, status: Not('DELETING') })
      : null;
  }
}

function inherit(request: StartRequest, parent: AppConversation): StartRequest {
  const ownRepository = request.selected_repository !== null;
  return {
    ...request,
    sandbox_id: request.sandbox_id ?? parent.sandboxId,
    selected_repository: request.selected_repository ?? parent.selectedRepository,
    selected_branch: request.selected_branch ?? (ownRepository ? null : parent.selectedBranch),
    git_provider: request.git_provider ?? (ownRepository ? null : parent.gitProvider),
    llm_model: request.llm_model ?? parent.llmModel,
  };
}

function unknown(member: string, what: string): InvalidInputError {
  return invalid(member, `Expected the id of a ${what} that exists.`);
}

function invalid(member: string, msg: string): InvalidInputError {
  return new InvalidInputError([{ loc: ['body', member], msg, type: 'value_error' }]);
}
