import { Injectable } from '@nestjs/common';
import { InvalidInputError } from '../../../common/errors/domain-error.js';
import { LlmProfileRepository } from '../../../settings/llm-profile.repository.js';
import { SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import { HostIdentity } from '../../sandboxes/host-identity.js';
import { SandboxRepository } from '../../sandboxes/sandbox.repository.js';
import { newSandboxId } from '../../sandboxes/session-key.js';
import { AcpAgents } from '../agent-request/acp-agents.js';
import { OWN_AGENT } from '../agent-request/agent-settings.js';
import type { AppConversation } from '../conversation.entity.js';
import { ConversationRepository } from '../conversation.repository.js';
import type { StartRequest } from '../start-task.entity.js';

/** The sandbox that a conversation is going to run in. */
interface StartTarget {
  sandboxId: string;
  /** The host that looks after the sandbox. */
  hostId: string;
  /** Otherwise the sandbox is to be created under its id. */
  sandboxExists: boolean;
  /** It needs quota to be resumed. */
  isPaused: boolean;
  /** Known only where parent and child share a folder. */
  workingDir: string | null;
  /** With what it inherits from the parent conversation. */
  request: StartRequest;
}

/** Finds the sandbox, and the parent conversation, that a request names; or chooses an id for a new sandbox. */
@Injectable()
export class StartTargetResolver {
  constructor(
    private readonly sandboxes: SandboxRepository,
    private readonly conversations: ConversationRepository,
    private readonly specs: SandboxSpecs,
    private readonly host: HostIdentity,
    private readonly agents: AcpAgents,
    private readonly profiles: LlmProfileRepository,
  ) {}

  /** @throws InvalidInputError for what does not exist, or is another user's */
  async resolve(userId: string, given: StartRequest): Promise<StartTarget> {
    if (given.sandbox_spec_id !== null && !this.specs.find(given.sandbox_spec_id)) {
      throw unknown('sandbox_spec_id', 'sandbox specification');
    }
    await this.checkChoices(userId, given);
    const parent = await this.findParent(userId, given.parent_conversation_id);
    const request = parent ? inherit(given, parent) : given;
    if (request.sandbox_id === null) {
      return {
        sandboxId: newSandboxId(),
        hostId: this.host.id,
        sandboxExists: false,
        isPaused: false,
        workingDir: null,
        request,
      };
    }
    const sandbox = await this.sandboxes.find(request.sandbox_id, userId);
    if (!sandbox) {
      throw given.sandbox_id === null
        ? invalid('parent_conversation_id', 'Expected a conversation whose sandbox is still there.')
        : unknown('sandbox_id', 'sandbox');
    }
    return {
      sandboxId: sandbox.id,
      hostId: sandbox.hostId,
      sandboxExists: true,
      isPaused: sandbox.status === 'PAUSED' || sandbox.status === 'PAUSING',
      // Parent and child work on the same files.
      workingDir: parent?.sandboxId === sandbox.id ? parent.workingDir : null,
      request,
    };
  }

  /** Before another sandbox is paused for a start that could not succeed. */
  private async checkChoices(userId: string, { agent, llm_profile: profile }: StartRequest): Promise<void> {
    if (agent && !this.agents.has(agent)) {
      throw invalid('agent', `Expected ${[OWN_AGENT, ...this.agents.names].join(' or ')}.`);
    }
    if (profile && (await this.profiles.findNamed(userId, profile)) === null) {
      throw invalid(
        'llm_profile',
        'Expected the name of a profile that exists: GET /api/v1/settings/profiles.',
      );
    }
  }

  private async findParent(userId: string, id: string | null): Promise<AppConversation | null> {
    if (id === null) {
      return null;
    }
    const parent = await this.conversations.find(userId, id);
    if (!parent) {
      throw unknown('parent_conversation_id', 'conversation');
    }
    return parent;
  }
}

function inherit(request: StartRequest, parent: AppConversation): StartRequest {
  const hasOwnRepository = request.selected_repository !== null;
  return {
    ...request,
    sandbox_id: request.sandbox_id ?? parent.sandboxId,
    selected_repository: request.selected_repository ?? parent.selectedRepository,
    selected_branch: request.selected_branch ?? (hasOwnRepository ? null : parent.selectedBranch),
    git_provider: request.git_provider ?? (hasOwnRepository ? null : parent.gitProvider),
    llm_model: request.llm_model ?? (request.llm_profile ? null : parent.llmModel),
    llm_profile: request.llm_profile ?? (request.llm_model === null ? parent.llmProfile : null),
    agent: request.agent ?? parent.agent,
  };
}

function unknown(member: string, what: string): InvalidInputError {
  return invalid(member, `Expected the id of a ${what} that exists.`);
}

function invalid(member: string, msg: string): InvalidInputError {
  return new InvalidInputError([{ loc: ['body', member], msg, type: 'value_error' }]);
}
