import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import {
  Column,
  Entity,
  type EntityManager,
  In,
  Index,
  JoinColumn,
  ManyToOne,
  PrimaryColumn,
  Repository,
} from 'typeorm';
import { AuditRepository, type NewAuditEntry } from '../../audit/audit.repository.js';
import { toHexId } from '@slipway/common/identifiers.js';
import { ACCESS_CHANNEL } from '../events/accessed-conversation.repository.js';
import { EgressDenialRepository } from '../events/egress-denial.repository.js';
import { FollowedConversationRepository } from '../events/followed-conversation.repository.js';
import { Sandbox } from '../sandboxes/sandbox.entity.js';
import { SandboxRepository } from '../sandboxes/sandbox.repository.js';
import { FollowedPullRequestRepository } from './followed/followed-pull-request.repository.js';
import {
  AppConversation,
  type ConversationPullRequest,
  initialTitle,
  taskTitle,
} from './conversation.entity.js';
import { isStored } from './conversation.queries.js';
import { type StartTask, type WorkedRepository, workingBranch } from './start-task.entity.js';

/** A conversation from the list of its agent server. Untrusted, and cut to what a row can hold. */
export interface ListedConversation {
  id: string;
  title: string | null;
  model: string | null;
  /** `acp`: its agent speaks the Agent Client Protocol; null: an OpenHands agent. */
  agentKind: 'acp' | null;
  /** Empty: the model is called at its provider's own address. */
  baseUrl: string;
  workingDir: string;
  createdAt: Date;
}

/** Ids without a conversation, a start, or a deleted conversation whose sandbox still exists. */
const WITHOUT_KNOWN = `
  SELECT id FROM unnest($1::uuid[]) AS id
  WHERE NOT EXISTS (SELECT FROM app_conversations c WHERE c.id = id.id)
    AND NOT EXISTS (SELECT FROM app_conversation_start_tasks t WHERE t.app_conversation_id = id.id)
    AND NOT EXISTS (SELECT FROM removed_conversations r WHERE r.id = id.id)`;

/** The sandbox's clock is untrusted: creation must not be after the last change. */
const ADOPT = `
  INSERT INTO app_conversations
    (id, user_id, sandbox_id, title, llm_model, llm_base_url, working_dir, sandbox_generation, created_at, agent_kind,
     adopted)
  SELECT id, $2, $3, $4, $5, $6, $7, $8, least($9::timestamptz, now()), $10, true FROM (${WITHOUT_KNOWN}) AS unknown
  ON CONFLICT (id) DO NOTHING
  RETURNING id`;

const MODELS_IN_SANDBOX = `
  SELECT DISTINCT llm_model AS model, nullif(llm_base_url, '') AS "baseUrl"
  FROM app_conversations WHERE sandbox_id = $1 AND NOT adopted`;

const REPOSITORIES_IN_SANDBOX = `
  SELECT DISTINCT selected_repository AS repository, coalesce(git_provider, 'github') AS provider
  FROM app_conversations WHERE sandbox_id = $1 AND selected_repository IS NOT NULL`;

/** Those that are about to be, too. Reads no more rows than the number in question. */
const HAS_AS_MANY = `
  SELECT EXISTS (
    SELECT FROM app_conversations WHERE user_id = $1
    UNION ALL
    SELECT FROM app_conversation_start_tasks t
    WHERE t.user_id = $1 AND t.status NOT IN ('READY', 'ERROR') AND NOT ${isStored('t.app_conversation_id')}
    OFFSET $2::int - 1 LIMIT 1) AS found`;

const REMOVE_OF_USER = 'DELETE FROM app_conversations WHERE id = $1 AND user_id = $2 RETURNING sandbox_id';

const CLEAR_PARENT = `
  UPDATE app_conversations SET parent_conversation_id = NULL WHERE parent_conversation_id = $1 AND user_id = $2`;

const TOUCH = `
  UPDATE app_conversations SET updated_at = now() WHERE id = $1
  RETURNING sandbox_id AS "sandboxId", title, title_is_users AS "titleIsUsers"`;

/** Keeps a title that the user has chosen meanwhile. */
const SET_GENERATED_TITLE = `
  UPDATE app_conversations SET title = $2, updated_at = now()
  WHERE id = $1 AND NOT title_is_users AND title IS DISTINCT FROM $2`;

const SET_GENERATION =
  'UPDATE app_conversations SET sandbox_generation = $2 WHERE id = $1 AND sandbox_generation < $2';

/** Adds a number once: the second of two requests with the same number sees what the first has written. */
const ADD_PULL_REQUEST = `
  UPDATE app_conversations
  SET pr_number = CASE WHEN $2 = ANY (pr_number) THEN pr_number ELSE array_append(pr_number, $2) END,
    pull_requests = pull_requests || jsonb_build_array($3::jsonb), working_branch = $4, updated_at = now()
  WHERE id = $1 AND NOT pull_requests @> jsonb_build_array(jsonb_build_object('url', $3::jsonb -> 'url'))`;

/** A deleted conversation that its sandbox still has: it must not be adopted again. */
@Entity('removed_conversations')
@Index('removed_conversations_sandbox_id_idx', ['sandboxId'])
export class RemovedConversation {
  @PrimaryColumn('uuid') id: string;
  @Column('text') sandboxId: string;

  @ManyToOne(() => Sandbox, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'sandbox_id' })
  sandbox?: Sandbox;
}

const REMEMBER_REMOVED =
  'INSERT INTO removed_conversations (id, sandbox_id) VALUES ($1, $2) ON CONFLICT DO NOTHING';

type TouchedConversation = Pick<AppConversation, 'sandboxId' | 'title' | 'titleIsUsers'>;

export interface BegunConversation {
  model: string | null;
  baseUrl: string;
  workingDir: string;
  agent: string | null;
}

/** Who reads a conversation follows from these (see `auth/access.ts`). */
const DECIDES_ACCESS = ['visibility', 'selectedRepository', 'gitProvider'] as const;

type ConversationChange = Partial<Omit<AppConversation, 'user' | 'id' | 'userId'>>;

/** A conversation's log is opened and removed together with its row. */
@Injectable()
export class ConversationRepository {
  constructor(
    @InjectRepository(AppConversation) private readonly conversations: Repository<AppConversation>,
    @InjectRepository(RemovedConversation) private readonly removed: Repository<RemovedConversation>,
    private readonly sandboxes: SandboxRepository,
    private readonly logs: FollowedConversationRepository,
    private readonly followed: FollowedPullRequestRepository,
    private readonly audit: AuditRepository,
    private readonly denials: EgressDenialRepository,
  ) {}

  async transaction<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    return this.conversations.manager.transaction(work);
  }

  /** Inserts a start's conversation. Repeatable. */
  async insert(
    manager: EntityManager,
    task: StartTask,
    { model, baseUrl, workingDir, agent }: BegunConversation,
  ): Promise<void> {
    const { appConversationId: id, userId, sandboxId, request } = task;
    const title = request.title ?? taskTitle(request.suggested_task);
    const conversation = {
      id,
      userId,
      sandboxId,
      selectedRepository: request.selected_repository,
      selectedBranch: request.selected_branch,
      gitProvider: request.git_provider,
      workingBranch: workingBranch({ appConversationId: id, request }),
      workingDir,
      title: title ?? initialTitle(id),
      // What is said about a task would name all of its kind alike.
      titleIsUsers: title !== null,
      trigger: request.trigger,
      prNumber: request.pr_number,
      parentConversationId: request.parent_conversation_id,
      agent,
      llmModel: model,
      llmBaseUrl: baseUrl,
      llmProfile: request.llm_profile ?? null,
      public: request.public,
      visibility: request.visibility ?? 'private',
      tags: request.tags,
      metadata: request.metadata ?? {},
      resultSchema: request.result_schema ?? null,
    };
    await manager
      .createQueryBuilder()
      .insert()
      .into(AppConversation)
      .values(conversation)
      .orIgnore()
      .execute();
    await this.followed.open(manager, task);
    await this.logs.open(manager, { conversationId: id, userId, sandboxId });
    await this.denials.tellBegun(manager, id, sandboxId);
  }

  /** Gives an agent server's conversation to the owner of its sandbox; false when the id is or was in use. */
  async adopt(
    manager: EntityManager,
    { id, title, model, agentKind, baseUrl, workingDir, createdAt }: ListedConversation,
    owner: Pick<AppConversation, 'userId' | 'sandboxId' | 'sandboxGeneration'>,
  ): Promise<boolean> {
    const { userId, sandboxId, sandboxGeneration } = owner;
    const rows = await manager.query<unknown[]>(ADOPT, [
      [id],
      userId,
      sandboxId,
      title ?? initialTitle(id),
      model,
      baseUrl,
      workingDir,
      sandboxGeneration,
      createdAt,
      agentKind,
    ]);
    if (rows.length === 0) {
      return false;
    }
    await this.audit.append(manager, {
      action: 'conversation.adopt',
      resourceId: toHexId(id),
      ownerId: userId,
      by: 'service',
      details: { sandbox_id: sandboxId },
    });
    await this.sandboxes.closeSetup(manager, sandboxId);
    await this.logs.open(manager, { conversationId: id, userId, sandboxId });
    await this.denials.tellBegun(manager, id, sandboxId);
    return true;
  }

  /** Returns the ids that could be adopted. */
  async withoutKnown(ids: readonly string[]): Promise<string[]> {
    const rows = await this.conversations.query<{ id: string }[]>(WITHOUT_KNOWN, [ids]);
    return rows.map(({ id }) => id);
  }

  async hasAsMany(manager: EntityManager, userId: string, count: number): Promise<boolean> {
    const [row] = await manager.query<{ found: boolean }[]>(HAS_AS_MANY, [userId, count]);
    return row?.found === true;
  }

  async countInSandbox(manager: EntityManager, sandboxId: string): Promise<number> {
    return manager.countBy(AppConversation, { sandboxId });
  }

  /** Undoes `insert` when the start failed after it. */
  async remove(manager: EntityManager, id: string): Promise<void> {
    await manager.delete(AppConversation, { id });
    await this.logs.remove(manager, id);
  }

  /** Returns the id of the sandbox, or null for an unknown conversation. Sub-conversations lose their parent. */
  async removeOfUser(manager: EntityManager, userId: string, id: string): Promise<string | null> {
    const [[removed]] = await manager.query<[{ sandbox_id: string }[], number]>(REMOVE_OF_USER, [id, userId]);
    if (!removed) {
      return null;
    }
    await manager.query(CLEAR_PARENT, [id, userId]);
    await this.logs.remove(manager, id);
    return removed.sandbox_id;
  }

  /** Keeps a deleted conversation from being adopted again, while there is its sandbox. */
  async rememberRemoved(manager: EntityManager, id: string, sandboxId: string): Promise<void> {
    if (await this.sandboxes.keep(manager, sandboxId)) {
      await manager.query(REMEMBER_REMOVED, [id, sandboxId]);
    }
  }

  /**
   * Each model that conversations in a sandbox call, and where; null for the provider's own address. Of adopted ones only their sandbox
   * says that.
   */
  async modelsInSandbox(sandboxId: string): Promise<{ model: string | null; baseUrl: string | null }[]> {
    return await this.conversations.query(MODELS_IN_SANDBOX, [sandboxId]);
  }

  async repositoriesInSandbox(sandboxId: string): Promise<WorkedRepository[]> {
    return await this.conversations.query(REPOSITORIES_IN_SANDBOX, [sandboxId]);
  }

  async removedInSandbox(sandboxId: string): Promise<string[]> {
    return (await this.removed.findBy({ sandboxId })).map(({ id }) => id);
  }

  async forgetRemoved(ids: ReadonlySet<string>): Promise<void> {
    if (ids.size > 0) {
      await this.removed.delete({ id: In([...ids]) });
    }
  }

  async find(userId: string, id: string): Promise<AppConversation | null> {
    return this.conversations.findOneBy({ id, userId });
  }

  async byId(id: string): Promise<AppConversation | null> {
    return this.conversations.findOneBy({ id });
  }

  async inSandbox(sandboxId: string): Promise<AppConversation[]> {
    return this.conversations.findBy({ sandboxId });
  }

  async exists(manager: EntityManager, id: string): Promise<boolean> {
    return manager.existsBy(AppConversation, { id });
  }

  /** `members` names what the user asked to change; null when an earlier audit entry covers the change. */
  async update(
    userId: string,
    id: string,
    change: ConversationChange,
    members: readonly string[] | null = null,
  ): Promise<void> {
    await this.transaction(async (manager) => {
      const { affected } = await manager.update(AppConversation, { id, userId }, change);
      if (DECIDES_ACCESS.some((column) => column in change)) {
        await manager.query('SELECT pg_notify($1, $2)', [ACCESS_CHANNEL, id]);
      }
      if (affected === 1 && members !== null) {
        await this.audit.append(manager, {
          action: 'conversation.update',
          resourceId: toHexId(id),
          ownerId: userId,
          details: { members },
        });
      }
    });
  }

  /** Notes what is asked of an agent server, outside of any transaction. */
  async noteAction(entry: NewAuditEntry): Promise<void> {
    await this.transaction((manager) => this.audit.append(manager, entry));
  }

  /** Notes new activity; null for an unknown conversation. */
  async touch(id: string): Promise<TouchedConversation | null> {
    const [[row]] = await this.conversations.query<[TouchedConversation[], number]>(TOUCH, [id]);
    return row ?? null;
  }

  async setGeneratedTitle(id: string, title: string): Promise<void> {
    await this.conversations.query(SET_GENERATED_TITLE, [id, title]);
  }

  /** Notes that the conversation has its credentials in this generation of its sandbox. */
  async setGeneration(
    id: string,
    generation: number,
    manager: EntityManager = this.conversations.manager,
  ): Promise<void> {
    await manager.query(SET_GENERATION, [id, generation]);
  }

  /** False when the conversation has the pull request already, or is gone. */
  async addPullRequest(
    manager: EntityManager,
    id: string,
    pullRequest: ConversationPullRequest,
  ): Promise<boolean> {
    const { number, source_branch: branch } = pullRequest;
    const [, affected] = await manager.query<[unknown, number]>(ADD_PULL_REQUEST, [
      id,
      number,
      JSON.stringify(pullRequest),
      branch,
    ]);
    return affected === 1;
  }
}
