import { Injectable } from '@nestjs/common';
import { InvalidInputError, requireNone } from '@slipway/api/errors/problem-error.js';
import { parseHexId } from '@slipway/common/identifiers.js';
import { AppConfig } from '../../../config/app-config.js';
import { parseReadable } from '@slipway/egress-rules/readable-repositories.js';
import { EgressRulebook } from '../../../config/egress-rulebook.js';
import { GitProviderError } from '@slipway/git-providers/git-provider.js';
import { GitProviderRegistry } from '@slipway/git-providers/git-provider.registry.js';
import { GIT_SERVERS, workPage } from '@slipway/git-providers/git-servers.js';
import { InstallationTokens } from '../../../git-providers/tokens/installation-tokens.js';
import type { SuggestedTaskDto } from '../../../suggested-tasks/suggested-tasks.dto.js';
import { ProviderTokenRepository } from '../../../git-providers/tokens/provider-token.repository.js';
import { MAX_MESSAGE_TEXT } from '../api/dto/conversation-actions.dto.js';
import type { StartConversationDto } from '../api/dto/start-conversation.dto.js';
import { toStartMessage } from '../message-parts.js';
import { type StartRequest, visibleSecrets } from '../start-task.entity.js';
import { suggestedTaskPrompt, type TaskGitServer } from '../suggested-task/suggested-task-prompt.js';

/** Makes a request of a body, and of the suggested task that it may name. */
@Injectable()
export class StartRequestReader {
  constructor(
    private readonly tokens: ProviderTokenRepository,
    private readonly registry: GitProviderRegistry,
    private readonly config: AppConfig,
    private readonly rulebook: EgressRulebook,
    private readonly installations: InstallationTokens,
  ) {}

  /**
   * @throws InvalidInputError for members that exclude each other, too much text, or a provider that is not configured
   */
  async read(userId: string, body: StartConversationDto): Promise<StartRequest> {
    const request = toStartRequest(body);
    if (textBytes(request) > MAX_MESSAGE_TEXT) {
      const msg = `Expected at most ${MAX_MESSAGE_TEXT / 1024} KiB of text in all; images of the message do not count.`;
      throw invalid([], msg, 'too_long');
    }
    this.checkRules(request);
    await this.checkReadable(userId, request);
    const task = body.suggested_task ?? null;
    if (task === null) {
      return request;
    }
    if (request.initial_message) {
      throw invalid(
        ['initial_message'],
        'Expected no message beside suggested_task, which makes the message.',
      );
    }
    const { url, ...server } = await this.gitServer(userId, task, request);
    return { ...withSuggestedTask(request, task, server), ...(url !== null && { task_url: url }) };
  }

  private checkRules({ egress, sandbox_id: sandbox, parent_conversation_id: parent }: StartRequest): void {
    if (!egress) {
      return;
    }
    if (sandbox !== null || parent !== null) {
      const msg = 'Expected none beside sandbox_id and parent_conversation_id: that sandbox has its rules.';
      throw invalid(['egress'], msg);
    }
    const { problems } = this.rulebook.read(egress);
    requireNone(
      problems.map(({ path, message: msg }) => ({
        loc: ['body', 'egress', ...path],
        msg,
        type: 'value_error',
      })),
    );
  }

  /** Without the operator's list, what the user's token may read is the host's to say; an installation's is ours. */
  private async checkReadable(userId: string, { repositories_read: list }: StartRequest): Promise<void> {
    if (!list) {
      return;
    }
    const problem = this.rulebook.readableProblem(list);
    if (problem !== null) {
      throw invalid(['repositories_read'], problem);
    }
    const stored = await this.tokens.list(userId);
    const isAllowed = await this.installations.policyFor(userId);
    for (const { provider, path, isWide } of list.flatMap((text) => parseReadable(text) ?? [])) {
      const own = stored.find((each) => each.provider === provider);
      if (own === undefined) {
        throw invalid(
          ['repositories_read'],
          `Expected repositories that a token of yours may read: store one for ${provider}.`,
        );
      }
      if (own.installation && !isAllowed(isWide ? `${path}/*` : path)) {
        const msg = `Expected repositories that the GitHub App stands in for you at (GITHUB_APP_FOR): ${path} is none.`;
        throw invalid(['repositories_read'], msg);
      }
    }
  }

  /** The git server of a suggested task as the agent will see it. */
  private async gitServer(
    userId: string,
    { git_provider: provider, repo: repository, issue_number: number, task_type: type }: SuggestedTaskDto,
    request: StartRequest,
  ): Promise<TaskGitServer & { url: string | null }> {
    const hosts = await this.tokens.hosts(userId);
    const host = hosts.get(provider) ?? null;
    try {
      const adapter = await this.registry.providerFor(provider, host);
      const { tokenVariable } = GIT_SERVERS[adapter.kind];
      const isGiven = this.config.agent.exposeGitTokens && visibleSecrets([request])(tokenVariable, true);
      return {
        guide: adapter.apiGuide(host, repository, number),
        url: workPage(adapter, {
          host,
          repository,
          number,
          item: type === 'OPEN_ISSUE' ? 'issue' : 'change',
        }),
        tokenVariable: hosts.has(provider) && isGiven ? tokenVariable : null,
      };
    } catch (error) {
      if (error instanceof GitProviderError && error.code === 'unsupported') {
        throw invalid(['suggested_task', 'git_provider'], 'Expected a provider that is configured here.');
      }
      throw error;
    }
  }
}

/** `withSuggestedTask` adds the suggested task. */
function toStartRequest(body: StartConversationDto): StartRequest {
  return {
    sandbox_id: body.sandbox_id ?? null,
    sandbox_spec_id: body.sandbox_spec_id ?? null,
    conversation_id: uuid(body.conversation_id),
    initial_message: body.initial_message ? toStartMessage(body.initial_message) : null,
    system_message_suffix: body.system_message_suffix ?? null,
    processors: body.processors?.map(({ kind }) => ({ kind })) ?? null,
    llm_model: blankAsNull(body.llm_model),
    ...(body.llm_profile && { llm_profile: body.llm_profile }),
    agent: blankAsNull(body.agent),
    agent_profile_id: body.agent_profile_id ?? null,
    selected_repository: body.selected_repository ?? null,
    selected_branch: body.selected_branch ?? null,
    clone_submodules: body.clone_submodules ?? false,
    fetch_lfs: body.fetch_lfs ?? false,
    git_provider: body.git_provider ?? null,
    suggested_task: null,
    title: blankAsNull(body.title),
    trigger: body.trigger ?? null,
    pr_number: body.pr_number ?? [],
    parent_conversation_id: uuid(body.parent_conversation_id),
    agent_type: body.agent_type ?? 'default',
    public: body.public ?? null,
    ...(body.visibility && { visibility: body.visibility }),
    observability_metadata: body.observability_metadata ?? null,
    observability_tags: body.observability_tags ?? null,
    observability_span_name: body.observability_span_name ?? null,
    plugins:
      body.plugins?.map(({ source, ref = null, repo_path: path = null }) => ({
        source,
        ref,
        repo_path: path,
      })) ?? null,
    secrets: body.secrets ? Object.fromEntries(body.secrets) : null,
    tags: body.tags ? Object.fromEntries(body.tags) : {},
    metadata: body.metadata ?? {},
    result_schema: body.result_schema ?? null,
    secret_names: body.secret_names ?? null,
    ...(body.git && { git: body.git }),
    ...(body.fork && { fork: body.fork }),
    ...(body.clone_depth !== undefined && { clone_depth: body.clone_depth }),
    ...(body.clone_filter !== undefined && { clone_filter: body.clone_filter }),
    ...(body.egress && { egress: body.egress }),
    ...(body.repositories_read && { repositories_read: body.repositories_read }),
    ...(body.follow && { follow: body.follow }),
  };
}

/** UTF-8 bytes without images, which the body's limit bounds. */
function textBytes({ initial_message: message, agent_type: _type, ...others }: StartRequest): number {
  const said = message?.content.map((part) => (part.type === 'text' ? part.text : '')) ?? [];
  return bytesOf([...said, ...Object.values(others)]);
}

function bytesOf(value: unknown): number {
  if (typeof value === 'string') {
    return Buffer.byteLength(value);
  }
  const texts = Array.isArray(value) ? value : Object.entries(Object(value)).flat();
  return texts.reduce<number>((sum, each) => sum + bytesOf(each), 0);
}

/** The task determines message, repository and pull request; a given trigger stays. */
function withSuggestedTask(
  request: StartRequest,
  task: Readonly<SuggestedTaskDto>,
  server: TaskGitServer,
): StartRequest {
  const isChangeRequest = !['OPEN_ISSUE', 'CREATE_MICROAGENT'].includes(task.task_type);
  return {
    ...request,
    suggested_task: { ...task },
    initial_message: {
      role: 'user',
      content: [{ type: 'text', text: suggestedTaskPrompt(task, server) }],
      run: true,
    },
    selected_repository: task.repo,
    git_provider: task.git_provider,
    trigger: request.trigger ?? 'suggested_task',
    pr_number:
      isChangeRequest && !request.pr_number.includes(task.issue_number)
        ? [...request.pr_number, task.issue_number]
        : request.pr_number,
  };
}

function uuid(id: string | null | undefined): string | null {
  return id === null || id === undefined ? null : parseHexId(id);
}

function blankAsNull(text: string | null | undefined): string | null {
  return text === undefined || text === null || text.trim() === '' ? null : text;
}

export function invalid(member: readonly string[], msg: string, type = 'value_error'): InvalidInputError {
  return new InvalidInputError({ loc: ['body', ...member], msg, type });
}
