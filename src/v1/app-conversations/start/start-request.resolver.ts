import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import type { AuthUser } from '../../../auth/auth.decorators.js';
import { isWithin, requireWithin } from '../../../auth/key-repositories.js';
import type { InvalidInputError } from '@slipway/api/errors/problem-error.js';
import { LlmProfileRepository } from '../../../settings/profiles/llm-profile.repository.js';
import { SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import { HostIdentity } from '../../sandboxes/host-identity.js';
import type { OwnRules, Sandbox } from '../../sandboxes/sandbox.entity.js';
import { SandboxRepository } from '../../sandboxes/sandbox.repository.js';
import { newSandboxId } from '../../sandboxes/session-key.js';
import { AcpAgents } from '../agent-request/acp-agents.js';
import { AgentRequestBuilder, type CheckedConfiguration } from '../agent-request/agent-request.builder.js';
import { agentDialect } from '../agent-request/agent-dialects.js';
import { OWN_AGENT } from '@slipway/settings/agent-settings.js';
import type { AppConversation } from '../conversation.entity.js';
import { ConversationRepository } from '../conversation.repository.js';
import { type ConversationLimits, hasTokens, type StartRequest, withinLimits } from '../start-task.entity.js';
import { StartTaskRepository } from '../start-task.repository.js';
import { invalid } from './start-request.reader.js';

interface StartTarget {
  sandboxId: string;
  hostId: string;
  /** False: it is to be created under its id. */
  sandboxExists: boolean;
  /** It needs quota to be resumed. */
  isStopped: boolean;
  /** The parent's folder; null unless parent and child share it. */
  workingDir: string | null;
  /** The request, with what the parent conversation passes on. */
  request: StartRequest;
}

/** Whose start it is, and for which repositories the key is. */
export type Starter = Pick<AuthUser, 'id' | 'repositories'>;

/** Finds what a request names, and checks what it chooses. */
@Injectable()
export class StartRequestResolver {
  constructor(
    private readonly sandboxes: SandboxRepository,
    private readonly conversations: ConversationRepository,
    private readonly specs: SandboxSpecs,
    private readonly host: HostIdentity,
    private readonly agents: AcpAgents,
    private readonly profiles: LlmProfileRepository,
    private readonly requests: AgentRequestBuilder,
    private readonly tasks: StartTaskRepository,
  ) {}

  async checkSettings(userId: string, request: StartRequest): Promise<CheckedConfiguration> {
    // The specification of an existing sandbox is checked later.
    const spec =
      request.sandbox_id === null ? this.specs.find(request.sandbox_spec_id ?? this.specs.default.id) : null;
    return await this.requests.check(userId, request, agentDialect(spec));
  }

  /**
   * Finds the sandbox and parent that a request names, or chooses a sandbox id.
   * @throws InvalidInputError; DomainError outside_repositories
   */
  async target(starter: Starter, given: StartRequest): Promise<StartTarget> {
    const { id: userId, repositories } = starter;
    if (given.sandbox_spec_id !== null && !this.specs.find(given.sandbox_spec_id)) {
      throw unknown('sandbox_spec_id', 'sandbox specification');
    }
    if (given.sandbox_spec_id !== null && given.sandbox_id !== null) {
      throw invalid(
        ['sandbox_spec_id'],
        'Expected none beside sandbox_id: a sandbox that exists has its specification.',
      );
    }
    await this.checkChoices(userId, given);
    const parent = await this.findParent(starter, given.parent_conversation_id);
    const request = parent ? await this.inherit(given, parent) : given;
    requireWithin(repositories, {
      gitProvider: request.git_provider,
      selectedRepository: request.selected_repository,
    });
    if (request.sandbox_id === null) {
      return {
        sandboxId: newSandboxId(),
        hostId: this.host.id,
        sandboxExists: false,
        isStopped: false,
        workingDir: null,
        request,
      };
    }
    const sandbox = await this.findSandbox(starter, request.sandbox_id);
    if (!sandbox) {
      throw given.sandbox_id === null
        ? invalid(['parent_conversation_id'], 'Expected a conversation whose sandbox is still there.')
        : unknown('sandbox_id', 'sandbox');
    }
    if (parent && parent.sandboxId !== sandbox.id) {
      await this.requireRulesOf(parent, sandbox);
    }
    return {
      sandboxId: sandbox.id,
      hostId: sandbox.hostId,
      sandboxExists: true,
      isStopped: ['PAUSED', 'PAUSING', 'ERROR'].includes(sandbox.status),
      // Parent and child work on the same files.
      workingDir: parent?.sandboxId === sandbox.id ? parent.workingDir : null,
      request,
    };
  }

  /** Runs before another sandbox is paused for a start that could not succeed. */
  private async checkChoices(userId: string, { agent, llm_profile: profile }: StartRequest): Promise<void> {
    if (agent && !this.agents.has(agent)) {
      throw invalid(['agent'], `Expected ${[OWN_AGENT, ...this.agents.names].join(' or ')}.`);
    }
    if (profile && !(await this.profiles.isUsable(userId, profile))) {
      throw invalid(
        ['llm_profile'],
        'Expected the name of a profile that exists: GET /api/v1/settings/profiles.',
      );
    }
  }

  /** A restriction of the parent's network holds for its children. @throws InvalidInputError */
  private async requireRulesOf({ sandboxId, userId }: AppConversation, sandbox: Sandbox): Promise<void> {
    const of = await this.sandboxes.find(sandboxId, userId);
    const kept = sandbox.egressRules ?? [];
    const isKept = ({ from, rules }: OwnRules): boolean =>
      kept.some((each) => each.from === from && (from !== 'start' || isDeepStrictEqual(each.rules, rules)));
    if (of?.egressRules?.every(isKept) === false) {
      throw invalid(
        ['sandbox_id'],
        "Expected a sandbox with the rules of the parent's about what it may reach.",
      );
    }
  }

  /** @throws InvalidInputError for a repository that the parent has no access to */
  private async inherit(given: StartRequest, parent: AppConversation): Promise<StartRequest> {
    const start = await this.tasks.ofConversation(parent.userId, parent.id);
    const limits: ConversationLimits = start?.request ?? {};
    const request = inherited(given, parent);
    const isOwn =
      request.selected_repository === parent.selectedRepository &&
      (given.git_provider ?? parent.gitProvider) === parent.gitProvider;
    // Cloning another one would bring it into the sandbox with a token that the parent does not have.
    if (!hasTokens(limits) && !isOwn) {
      throw invalid(['selected_repository'], 'Expected that of the parent, which has access to no other.');
    }
    const { work_place = null } = limits;
    const own = { ...request, git_provider: parent.gitProvider, ...(work_place && { work_place }) };
    return withinLimits(isOwn ? own : request, limits);
  }

  /** A key for some repositories reaches no sandbox that is bare, or that another conversation uses, too. */
  private async findSandbox({ id: userId, repositories }: Starter, id: string): Promise<Sandbox | null> {
    const sandbox = await this.sandboxes.find(id, userId);
    if (sandbox === null || repositories === null) {
      return sandbox;
    }
    const inside = await this.conversations.inSandbox(id);
    return inside.length > 0 && inside.every((each) => isWithin(repositories, each)) ? sandbox : null;
  }

  private async findParent(
    { id: userId, repositories }: Starter,
    id: string | null,
  ): Promise<AppConversation | null> {
    if (id === null) {
      return null;
    }
    const parent = await this.conversations.find(userId, id);
    if (!parent || !isWithin(repositories, parent)) {
      throw unknown('parent_conversation_id', 'conversation');
    }
    return parent;
  }
}

function inherited(request: StartRequest, parent: AppConversation): StartRequest {
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
  return invalid([member], `Expected the id of a ${what} that exists.`);
}
