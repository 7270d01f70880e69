import { Injectable, Logger } from '@nestjs/common';
import { jsonText } from '@slipway/common/json-access.js';
import { Clock, toInstant } from '@slipway/common/clock.js';
import { parseHexId } from '@slipway/common/identifiers.js';
import { AppConfig } from '../../../config/app-config.js';
import { AgentServerClient, type ConversationPage } from '@slipway/agent-client/agent-server.client.js';
import { AgentServerError, readShrinking } from '@slipway/agent-client/agent-server.http.js';
import { storableText } from '../../events/store/storable-event.js';
import type { RunningSandbox } from '../../sandboxes/sandbox.queries.js';
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

/** `news` ends with the first page that has nothing new. */
export type Extent = 'news' | 'all';

/**
 * Adopts conversations that clients, such as the SDK, begin at an agent server themselves. The data always comes from the
 * agent server's list, and ids in use are left alone.
 */
@Injectable()
export class ConversationAdopter {
  private readonly logger = new Logger(ConversationAdopter.name);

  constructor(
    private readonly conversations: ConversationRepository,
    private readonly agentServers: AgentServerClient,
    private readonly sandboxes: SandboxRepository,
    private readonly config: AppConfig,
    private readonly clock: Clock,
  ) {}

  /** Returns how many. @throws AgentServerError */
  async adopt(target: RunningSandbox, extent: Extent, signal?: AbortSignal): Promise<number> {
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
