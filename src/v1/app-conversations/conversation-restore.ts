import {
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { ConversationStatus } from '../../agent-protocol/conversation.js';
import { NamedStatement } from '../../database/named-statement.js';
import { AgentServerClient } from '../agent-servers/agent-server.client.js';
import { AgentServerError, type AgentServerTarget } from '../agent-servers/agent-server.http.js';
import { SandboxSpecs } from '../sandbox-specs/sandbox-specs.js';
import { HostIdentity } from '../sandboxes/host-identity.js';
import { SandboxEvents } from '../sandboxes/sandbox-events.js';
import { RunningSandboxes } from '../sandboxes/sandbox.queries.js';
import { AgentCredentials } from './agent-request/agent-credentials.js';
import { agentDialect } from './agent-request/agent-settings.js';

/** A start gives its conversation what it needs itself. */
const WAITING = `
  s.status = 'RUNNING' AND c.sandbox_generation < s.generation AND NOT EXISTS (
    SELECT FROM app_conversation_start_tasks t
    WHERE t.app_conversation_id = c.id AND t.status NOT IN ('READY', 'ERROR')
  )`;

const SANDBOXES = `
  SELECT DISTINCT s.id FROM sandboxes s JOIN app_conversations c ON c.sandbox_id = s.id
  WHERE s.host_id = $1 AND ${WAITING}`;

const CONVERSATIONS = `
  SELECT c.id, c.user_id, c.sandbox_id, f.execution_status
  FROM app_conversations c
  JOIN sandboxes s ON s.id = c.sandbox_id
  LEFT JOIN followed_conversations f ON f.id = c.id
  WHERE s.id = $1 AND ${WAITING}
  ORDER BY c.updated_at DESC`;

/** A conversation whose agent server was started anew since it was last given anything. */
interface RestorableConversation {
  id: string;
  userId: string;
  sandboxId: string;
  /** As it was seen last; soon after the start that is what the agent server makes of it while it loads. */
  executionStatus: ConversationStatus | null;
}

interface Row {
  id: string;
  user_id: string;
  sandbox_id: string;
  execution_status: ConversationStatus | null;
}

/** Finds conversations that have to be restored. */
@Injectable()
export class RestorableConversations {
  private readonly findSandboxes = new NamedStatement<{ id: string }>('restorable_sandboxes', SANDBOXES);

  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** Ids of a host's sandboxes that have some. */
  async sandboxes(hostId: string): Promise<string[]> {
    return (await this.findSandboxes.run(this.dataSource, [hostId])).map(({ id }) => id);
  }

  /** Those of a sandbox, the last used first. */
  async of(sandboxId: string): Promise<RestorableConversation[]> {
    const rows = await this.dataSource.query<Row[]>(CONVERSATIONS, [sandboxId]);
    return rows.map((row) => ({
      id: row.id,
      userId: row.user_id,
      sandboxId: row.sandbox_id,
      executionStatus: row.execution_status,
    }));
  }

  /** Notes that the conversation has what it needs from this start of its sandbox on. */
  async done({ id }: RestorableConversation, generation: number): Promise<void> {
    await this.dataSource.query(
      'UPDATE app_conversations SET sandbox_generation = $2 WHERE id = $1 AND sandbox_generation < $2',
      [id, generation],
    );
  }
}

/** Nothing goes on there by itself, whatever was seen last. */
const AT_REST: ReadonlySet<ConversationStatus> = new Set(['finished', 'waiting_for_confirmation']);

/** Restores single conversations. */
@Injectable()
export class ConversationResume {
  private readonly logger = new Logger(ConversationResume.name);
  /** Conversations of stock servers that have to go on, until they were told to. */
  private readonly interrupted = new Set<string>();

  constructor(
    private readonly running: RunningSandboxes,
    private readonly specs: SandboxSpecs,
    private readonly agentServers: AgentServerClient,
    private readonly credentials: AgentCredentials,
    private readonly conversations: RestorableConversations,
  ) {}

  /**
   * Gives the conversation its credentials, and has it go on if it was running when its server ended. Repeatable.
   *
   * @throws AgentServerError, SecretDecryptionError; it may be tried again
   */
  async resume(conversation: RestorableConversation): Promise<void> {
    const target = await this.running.target(conversation.sandboxId);
    if (!target) {
      this.interrupted.delete(conversation.id);
      return;
    }
    if (agentDialect(this.specs.find(target.specId)) === 'slipway') {
      await this.reviveRemotely(target, conversation);
    } else {
      await this.goOn(target, conversation);
    }
    await this.conversations.done(conversation, target.generation);
  }

  private async reviveRemotely(
    target: AgentServerTarget,
    conversation: RestorableConversation,
  ): Promise<void> {
    const { id } = conversation;
    const remote = await this.agentServers.findConversation(target, id);
    if (!remote) {
      this.logger.warn('the agent server does not have a conversation any more', { conversation_id: id });
      return;
    }
    await this.agentServers.giveCredentials(
      target,
      id,
      await this.credentials.build(conversation, remote.model),
    );
    if (remote.wasRunning) {
      await this.goOnRemotely(target, id);
    }
  }

  /** One that still lacks its key does not go on, and has told its user why; there is nothing to be tried again. */
  private async goOnRemotely(target: AgentServerTarget, id: string): Promise<void> {
    try {
      await this.run(target, id);
    } catch (error) {
      if (!(error instanceof AgentServerError && error.status === 400)) {
        throw error;
      }
      this.logger.warn('a conversation does not go on by itself', {
        conversation_id: id,
        reason: error.detail,
      });
    }
  }

  /**
   * The stock server keeps what it was given, and has no route to be given it again. That a conversation was running it
   * does not tell: while it loads it makes of that another status, which is soon the one that is known here.
   */
  private async goOn(
    target: AgentServerTarget,
    { id, executionStatus }: RestorableConversation,
  ): Promise<void> {
    if (executionStatus === 'running') {
      this.interrupted.add(id);
    }
    if (!this.interrupted.has(id)) {
      return;
    }
    const remote = await this.agentServers.findConversation(target, id);
    if (remote && !AT_REST.has(remote.status)) {
      await this.run(target, id);
    }
    this.interrupted.delete(id);
  }

  private async run(target: AgentServerTarget, id: string): Promise<void> {
    try {
      await this.agentServers.run(target, id);
    } catch (error) {
      // It runs already: its user was faster.
      if (!(error instanceof AgentServerError && error.status === 409)) {
        throw error;
      }
    }
  }
}

/** For what was missed: another process started the sandbox and died, or the agent server was not ready. */
const SWEEP_MS = 5_000;

/**
 * Gives conversations back what they lost when their agent servers were started anew, and has those go on that were
 * running: at once for sandboxes that this process started, and by a sweep for all of this host.
 */
@Injectable()
export class ConversationRestore implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger(ConversationRestore.name);
  private readonly working = new Map<string, Promise<void>>();
  private timer: NodeJS.Timeout | null = null;
  private stopping = false;

  constructor(
    private readonly listeners: SandboxEvents,
    private readonly host: HostIdentity,
    private readonly conversations: RestorableConversations,
    private readonly revival: ConversationResume,
  ) {}

  onModuleInit(): void {
    // Not waited for: the service begins to listen, and other sandboxes to run, while an agent server hangs.
    this.listeners.onRunning((sandboxId) => void this.restore(sandboxId));
  }

  onApplicationBootstrap(): void {
    this.schedule();
  }

  async onModuleDestroy(): Promise<void> {
    this.stopping = true;
    if (this.timer) {
      clearTimeout(this.timer);
    }
    await Promise.all(this.working.values());
  }

  /** Restores what waits for it in one sandbox. Whoever asks meanwhile waits for the same work. */
  restore(sandboxId: string): Promise<void> {
    const known = this.working.get(sandboxId);
    if (known || this.stopping) {
      return known ?? Promise.resolve();
    }
    const work = this.restoreAll(sandboxId).finally(() => this.working.delete(sandboxId));
    this.working.set(sandboxId, work);
    return work;
  }

  /** Restores what waits for it in the sandboxes of this host. */
  async sweep(): Promise<void> {
    const sandboxIds = await this.conversations.sandboxes(this.host.id);
    await Promise.all(sandboxIds.map((id) => this.restore(id)));
  }

  private schedule(): void {
    this.timer = setTimeout(() => {
      this.sweep()
        .catch((error: unknown) => {
          this.logger.warn('conversations were not looked for', { error: String(error) });
        })
        .finally(() => {
          if (!this.stopping) {
            this.schedule();
          }
        });
    }, SWEEP_MS).unref();
  }

  private async restoreAll(sandboxId: string): Promise<void> {
    try {
      for (const conversation of await this.conversations.of(sandboxId)) {
        if (this.stopping) {
          return;
        }
        await this.reviveOne(conversation);
      }
    } catch (error) {
      this.logger.warn('conversations were not restored', {
        sandbox_id: sandboxId,
        error: error instanceof Error ? error.message : String(error),
      });
    }
  }

  /** One that cannot be restored keeps none of the others waiting. */
  private async reviveOne(conversation: RestorableConversation): Promise<void> {
    try {
      await this.revival.resume(conversation);
    } catch (error) {
      // The next sweep tries again, as long as the sandbox runs.
      this.logger.warn('a conversation was not restored', {
        conversation_id: conversation.id,
        error: error instanceof Error ? error.message : String(error),
      });
    }
  }
}
