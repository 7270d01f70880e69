import { Injectable } from '@nestjs/common';
import type { StartConversationRequest } from '@slipway/agent-protocol/conversation-api.js';
import { lockUserShared } from '../../../auth/user.repository.js';
import { AgentServerClient, type RemoteConversation } from '@slipway/agent-client/agent-server.client.js';
import { AgentServerError } from '@slipway/agent-client/agent-server.http.js';
import { SandboxEgress } from '../../sandboxes/lifecycle/egress-access.js';
import { SandboxUrls } from '../../sandboxes/sandbox-urls.js';
import { acpLimitations } from '../agent-request/acp-agents.js';
import type { AgentConfiguration } from '../agent-request/agent-inputs.reader.js';
import { AgentRequestBuilder } from '../agent-request/agent-request.builder.js';
import { type BegunConversation, ConversationRepository } from '../conversation.repository.js';
import { OutsideCredentials } from '../outside-credentials/outside-credentials.js';
import type { StartTask } from '../start-task.entity.js';
import { StartTaskRepository } from '../start-task.repository.js';
import { Delegation } from './delegation.js';
import { StartFailure } from './start-failure.js';
import { keyUse, type StartContext } from './prepare-repository.step.js';

/** STARTING_CONVERSATION: stores our rows, then the agent server finds or creates its part by the same id. */
@Injectable()
export class BeginConversationStep {
  constructor(
    private readonly tasks: StartTaskRepository,
    private readonly conversations: ConversationRepository,
    private readonly requests: AgentRequestBuilder,
    private readonly agentServers: AgentServerClient,
    private readonly urls: SandboxUrls,
    private readonly delegation: Delegation,
    private readonly outside: OutsideCredentials,
    private readonly egress: SandboxEgress,
  ) {}

  /** Returns the task in the same status. Throws StartFailure, StartSuperseded; AgentServerError, which may pass. */
  async run(context: StartContext, configuration: AgentConfiguration): Promise<StartTask> {
    const { task, sandbox, dialect } = context;
    const use = keyUse(context, configuration.settings.agent);
    const workingDir = task.workingDir ?? '.';
    const reads = this.outside.reads(sandbox, { profile: use.profile, configuration });
    const [granted, credentials] = await Promise.all([
      task.request.started_by_agent === true
        ? this.delegation.reserve(sandbox, task.userId, task.appConversationId)
        : null,
      reads.tokens(),
      sandbox.hasCredentialsOutside ? reads.kept() : null,
    ]);
    const request = await this.requests.build({
      userId: task.userId,
      startId: task.id,
      conversationId: task.appConversationId,
      workingDir,
      ports: this.urls.ports(sandbox.sandboxId, sandbox.ports),
      request: granted === null ? task.request : { ...task.request, max_budget: granted },
      configuration,
      secrets: this.tasks.secretsOf(task),
      shown: this.outside.shownSecrets(sandbox, use.agent, reads),
      credentials,
      dialect,
      hasOwnImage: sandbox.hasOwnImage,
    });
    if (request.problem !== null) {
      throw new StartFailure('settings', request.problem);
    }
    const { body, model, baseUrl, acp } = request;
    const agent = acp === null ? null : `acp:${acp.agent.name}`;
    const clear = await this.outside.clearNotes(sandbox, use, reads);
    const notes = [...new Set([...task.notes, ...request.notes, ...clear])];
    const stored = await this.store(task, notes, { model, baseUrl, workingDir, agent });
    await Promise.all([
      sandbox.isInSetup ? this.egress.endSetup(sandbox.sandboxId) : null,
      this.outside.endSetup(sandbox, reads),
    ]);
    const concealer = await this.outside.concealer(sandbox, use, reads);
    const begun = await this.startRemotely(
      { sandbox },
      await concealer.start(body),
      acp?.agent.install ?? null,
    );
    if (acp === null || begun.abilities === null) {
      return stored;
    }
    const remoteServers = Object.values(body.agent.mcp_config ?? {}).flatMap(({ url, transport }) =>
      url === undefined ? [] : [transport === 'sse' ? ('sse' as const) : ('http' as const)],
    );
    const limitations = acpLimitations(begun.abilities, { hasBudget: acp.hasBudget, remoteServers });
    return await this.tasks.transaction((manager) =>
      this.tasks.lock(task, { notes: [...new Set([...notes, ...limitations])] }, manager),
    );
  }

  private async store(task: StartTask, notes: string[], begun: BegunConversation): Promise<StartTask> {
    return this.tasks.transaction(async (manager) => {
      await lockUserShared(manager, task.userId);
      // A deletion of the task waits for the lock, and then deletes the conversation too.
      const locked = await this.tasks.lock(task, { notes }, manager);
      await this.conversations.insert(manager, locked, begun);
      return locked;
    });
  }

  private async startRemotely(
    { sandbox }: Pick<StartContext, 'sandbox'>,
    body: StartConversationRequest,
    install: string | null,
  ): Promise<RemoteConversation> {
    try {
      return await this.agentServers.startConversation(sandbox, body);
    } catch (error) {
      const isRefusal =
        error instanceof AgentServerError &&
        error.status !== null &&
        error.status >= 400 &&
        error.status < 500;
      throw isRefusal
        ? new StartFailure('agent_server', refusal(error.detail, install), { cause: error })
        : error;
    }
  }
}

/** `install` is the operator's text about installing the agent. */
function refusal(detail: string, install: string | null): string {
  const hint =
    install !== null && detail.includes('not installed')
      ? ` Whoever makes the images or machines of sandboxes installs it with: ${install}`
      : '';
  return `The agent server refused the conversation: ${detail}${hint}`;
}
