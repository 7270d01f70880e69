import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import pLimit from 'p-limit';
import { KeyedLimit } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { jsonText } from '@slipway/common/json-access.js';
import { BackgroundLoop } from '../../../common/background-loop.js';
import { Clock, toInstant } from '@slipway/common/clock.js';
import { parseHexId } from '@slipway/common/identifiers.js';
import { AppConfig } from '../../../config/app-config.js';
import { AgentServerClient, type ConversationPage } from '@slipway/agent-client/agent-server.client.js';
import { AgentServerError, readShrinking } from '@slipway/agent-client/agent-server.http.js';
import { LogSync } from '../../events/log-sync/log-sync.js';
import { storableText } from '../../events/store/storable-event.js';
import { SandboxLifecycleRepository } from '../../sandboxes/sandbox-lifecycle.repository.js';
import { type RunningSandbox, RunningSandboxQueries } from '../../sandboxes/sandbox.queries.js';
import { SandboxEvents } from '../../sandboxes/sandbox-events.js';
import { SandboxRepository } from '../../sandboxes/sandbox.repository.js';
import { MAX_TITLE_LENGTH } from '../conversation.entity.js';
import { ConversationRepository, type ListedConversation } from '../conversation.repository.js';

const MAX_MODEL_LENGTH = 500;
const MAX_ADDRESS_LENGTH = 2_000;
const MAX_PATH_LENGTH = 4_096;

/** Returns null when the entry is invalid or about to be removed. `now` replaces a time that is missing or in the future. */
export function toListedConversation(value: unknown, now: Date): ListedConversation | null {
  const id = parseHexId(jsonText(value, 'id') ?? '');
  if (id === null || jsonText(value, 'execution_status') === 'deleting') {
    return null;
  }
  const text = (limit: number, ...path: string[]): string | null => {
    const found = jsonText(value, ...path)?.trim() ?? '';
    return found === '' || found.length > limit ? null : storableText(found);
  };
  const isAcp = jsonText(value, 'agent', 'kind') === 'ACPAgent';
  const created = toInstant(jsonText(value, 'created_at') ?? '');
  const createdAt = created === null ? now : new Date(created);
  return {
    id,
    title: text(MAX_TITLE_LENGTH, 'title'),
    // An ACP agent chooses its model itself; the LLM in its settings is a placeholder.
    model: isAcp
      ? text(MAX_MODEL_LENGTH, 'agent', 'acp_model')
      : text(MAX_MODEL_LENGTH, 'agent', 'llm', 'model'),
    agentKind: isAcp ? 'acp' : null,
    baseUrl: (isAcp ? null : text(MAX_ADDRESS_LENGTH, 'agent', 'llm', 'base_url')) ?? '',
    workingDir: text(MAX_PATH_LENGTH, 'workspace', 'working_dir') ?? '.',
    createdAt: createdAt < now ? createdAt : now,
  };
}

/** Each adopted conversation is followed over a socket of its own. */
export const MAX_IN_SANDBOX = 200;
const PAGE_SIZES = [20, 1];
/** Above `MAX_IN_SANDBOX`, because deleted conversations may still be listed. */
const MAX_LISTED = 300;
/** Before the sandbox stops; what is missed is read after its next start. */
const LAST_READ_MS = 2_000;
const SWEEP_MS = 60_000;
const MAX_SANDBOXES_AT_ONCE = 4;

/** `news` ends with the first page that has nothing new. */
type Extent = 'news' | 'all';

/**
 * Adopts conversations that clients, such as the SDK, begin at an agent server themselves. Webhooks about unknown
 * conversations trigger it; start and end of the sandbox and a sweep find what was missed. The data always comes from
 * the agent server's list, and ids in use are left alone.
 */
@Injectable()
export class ConversationAdoptionService extends BackgroundLoop implements OnModuleInit {
  private readonly turns = new KeyedLimit(1);
  private readonly sweepLimit = pLimit(MAX_SANDBOXES_AT_ONCE);

  constructor(
    private readonly conversations: ConversationRepository,
    private readonly agentServers: AgentServerClient,
    private readonly running: RunningSandboxQueries,
    private readonly lifecycle: SandboxLifecycleRepository,
    private readonly sandboxes: SandboxRepository,
    private readonly sandboxEvents: SandboxEvents,
    private readonly logs: LogSync,
    private readonly config: AppConfig,
    private readonly clock: Clock,
  ) {
    const logger = new Logger(ConversationAdoptionService.name);
    super(SWEEP_MS, logger, 'failed to find conversations to adopt', 'warn');
  }

  onModuleInit(): void {
    this.sandboxEvents.on('running', (sandboxId) => this.inBackground(sandboxId, 'all'));
    this.sandboxEvents.on('stopping', (sandboxId) => this.adoptLast(sandboxId));
  }

  /** Returns at once; requests during the work cause one more look. */
  request(sandboxId: string): void {
    if (this.turns.waiting(sandboxId) === 0) {
      this.inBackground(sandboxId, 'news');
    }
  }

  protected async work(): Promise<void> {
    const ids = await this.lifecycle.runningIds();
    await Promise.all(ids.map((id) => this.sweepLimit(() => this.tryAdopt(id, 'news'))));
  }

  private inBackground(sandboxId: string, extent: Extent): void {
    if (!this.stopping) {
      this.beside(this.tryAdopt(sandboxId, extent));
    }
  }

  private async tryAdopt(sandboxId: string, extent: Extent): Promise<void> {
    try {
      await this.turns.run(sandboxId, async () => {
        const target = this.stopping ? null : await this.running.target(sandboxId);
        await (target && this.adopt(target, extent));
      });
    } catch (error) {
      this.logFailure(sandboxId, error);
    }
  }

  private logFailure(sandboxId: string, error: unknown): void {
    this.logger.warn('failed to adopt conversations', { sandbox_id: sandboxId, error: errorMessage(error) });
  }

  /** Runs before the agent server ends; conversations adopted now are read at once. */
  private async adoptLast(sandboxId: string): Promise<void> {
    const target = await this.running.lastTarget(sandboxId);
    if (target === null) {
      return;
    }
    try {
      if ((await this.adopt(target, 'news', AbortSignal.timeout(LAST_READ_MS))) > 0) {
        await this.logs.drain(sandboxId);
      }
    } catch (error) {
      this.logFailure(sandboxId, error);
    }
  }

  private async adopt(target: RunningSandbox, extent: Extent, signal?: AbortSignal): Promise<number> {
    const removed = new Set(await this.conversations.removedInSandbox(target.sandboxId));
    let adopted = 0;
    for await (const { listed, isLast } of this.pages(target, signal)) {
      const count = await this.adoptPage(target, listed, signal);
      adopted += count;
      await this.removeAgain(target, listed, removed);
      if (isLast && extent === 'all') {
        // Ids left in the set are no longer in the complete list.
        await this.conversations.forgetRemoved(removed);
      }
      if (extent === 'news' && count === 0) {
        break;
      }
    }
    return adopted;
  }

  /** The agent server's list, newest first, as far as it is read. */
  private async *pages(
    target: RunningSandbox,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<{ listed: ListedConversation[]; isLast: boolean }> {
    let pageId: string | null = null;
    for (let count = 0; count < MAX_LISTED;) {
      const from: string | null = pageId;
      const page: ConversationPage = await readShrinking(PAGE_SIZES, (limit) =>
        this.agentServers.listConversations(target, { limit, pageId: from, signal }),
      );
      const now = new Date(this.clock.now());
      const listed = page.items
        .map((item) => toListedConversation(item, now))
        .filter((each) => each !== null);
      yield { listed, isLast: page.nextPageId === null };
      if (page.nextPageId === null) {
        return;
      }
      pageId = page.nextPageId;
      count += Math.max(1, page.items.length);
    }
  }

  private async adoptPage(
    target: RunningSandbox,
    listed: readonly ListedConversation[],
    signal: AbortSignal | undefined,
  ): Promise<number> {
    const { sandboxId, userId, generation } = target;
    const fresh = new Set(await this.conversations.withoutKnown(listed.map(({ id }) => id)));
    if (fresh.size === 0) {
      return 0;
    }
    const startedAt = this.clock.now() - (await this.agentServers.uptimeSeconds(target, signal)) * 1000;
    return this.conversations.transaction(async (manager) => {
      if (!(await this.sandboxes.lock(manager, sandboxId, userId))) {
        return 0;
      }
      const { maxConversations } = this.config.agent;
      if (await this.conversations.hasAsMany(manager, userId, maxConversations)) {
        this.logger.warn('failed to adopt conversations: their user has as many as are kept', {
          sandbox_id: sandboxId,
          limit: maxConversations,
        });
        return 0;
      }
      const places = MAX_IN_SANDBOX - (await this.conversations.countInSandbox(manager, sandboxId));
      let adopted = 0;
      for (const each of listed.filter(({ id }) => fresh.has(id))) {
        if (adopted >= places) {
          this.logger.warn('failed to adopt conversation: its sandbox has as many as may be followed', {
            sandbox_id: sandboxId,
            limit: MAX_IN_SANDBOX,
          });
          break;
        }
        // A conversation older than its agent server's start has lost its key; the next resume restores it.
        const sandboxGeneration = each.createdAt.getTime() < startedAt ? generation - 1 : generation;
        if (await this.conversations.adopt(manager, each, { userId, sandboxId, sandboxGeneration })) {
          adopted += 1;
          this.logger.log('conversation adopted', { conversation_id: each.id, sandbox_id: sandboxId });
        }
      }
      return adopted;
    });
  }

  /** Removes conversations that were deleted while their agent server did not respond. */
  private async removeAgain(
    target: RunningSandbox,
    listed: readonly ListedConversation[],
    removed: Set<string>,
  ): Promise<void> {
    for (const { id } of listed) {
      if (removed.delete(id)) {
        try {
          await this.agentServers.deleteConversation(target, id);
        } catch (error) {
          if (!(error instanceof AgentServerError)) {
            throw error;
          }
          this.logger.warn('failed to remove conversation from its agent server', {
            conversation_id: id,
            error: error.message,
          });
        }
      }
    }
  }
}
