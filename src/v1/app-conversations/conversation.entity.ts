import { Column, CreateDateColumn, Entity, Index, PrimaryColumn, UpdateDateColumn } from 'typeorm';
import type { Visibility } from '../../auth/access.js';
import { OwnedRow } from '../../auth/user.repository.js';
import { toHexId } from '@slipway/common/identifiers.js';
import type { ProviderType } from '@slipway/git-providers/git-provider.js';

/** Named as on the wire. */
export interface ConversationPullRequest {
  number: number;
  url: string;
  title: string;
  source_branch: string;
}

/** A conversation with an agent. It outlives its sandbox. */
@Entity('app_conversations')
@Index('app_conversations_user_id_created_at_idx', ['userId', 'createdAt', 'id'])
@Index('app_conversations_user_id_updated_at_idx', ['userId', 'updatedAt'])
@Index('app_conversations_updated_at_idx', ['updatedAt', 'createdAt', 'id'])
@Index('app_conversations_shared_idx', ['createdAt', 'id'], { where: `visibility = 'organization'` })
@Index('app_conversations_sandbox_id_idx', ['sandboxId'])
@Index('app_conversations_parent_conversation_id_idx', ['parentConversationId'])
// TypeORM cannot write these; migrations make them, the one of titles only where PostgreSQL has pg_trgm.
@Index('app_conversations_tags_idx', { synchronize: false })
@Index('app_conversations_title_idx', { synchronize: false })
@Index('app_conversations_repository_idx', { synchronize: false })
export class AppConversation extends OwnedRow {
  @PrimaryColumn('uuid') id: string;
  @Column('text') sandboxId: string;
  @Column('text', { nullable: true }) selectedRepository: string | null;
  @Column('text', { nullable: true }) selectedBranch: string | null;
  @Column('text', { nullable: true }) gitProvider: ProviderType | null;
  @Column('text', { nullable: true }) title: string | null;
  @Column('boolean', { default: false }) titleIsUsers: boolean;
  @Column('text', { nullable: true }) trigger: string | null;
  @Column('integer', { array: true, default: () => "'{}'" }) prNumber: number[];
  @Column('text', { nullable: true }) llmModel: string | null;

  /** Empty: at its provider's own address. Null for conversations of earlier versions. */
  @Column('text', { nullable: true }) llmBaseUrl: string | null;

  /** Null: model and key come from the settings. */
  @Column('text', { nullable: true }) llmProfile: string | null;

  /** `acp:` and a name of the operator's list; null: our own agent. */
  @Column('text', { nullable: true }) agent: string | null;

  /** `acp` for an adopted conversation with an ACP agent; else null, and `agent` says it. */
  @Column('text', { nullable: true }) agentKind: string | null;
  @Column('uuid', { nullable: true }) parentConversationId: string | null;
  @Column('boolean', { nullable: true }) public: boolean | null;
  @Column('text', { default: 'private' }) visibility: Visibility;
  @Column('jsonb', { default: () => "'{}'" }) tags: Record<string, string>;

  /** Stored for clients only; the service does not read it. */
  @Column('jsonb', { default: () => "'{}'" }) metadata: object;

  /** JSON Schema of the result that the agent has to finish with. */
  @Column('jsonb', { nullable: true }) resultSchema: object | null;

  /** Made for the conversation, or the branch of its last pull request. */
  @Column('text', { nullable: true }) workingBranch: string | null;

  /** The oldest first. */
  @Column('jsonb', { default: () => "'[]'" }) pullRequests: ConversationPullRequest[];

  /** Inside the sandbox. */
  @Column('text') workingDir: string;

  /** The sandbox generation whose agent server has the credentials. */
  @Column('integer', { default: 0 }) sandboxGeneration: number;

  /** Begun by a client at the agent server. */
  @Column('boolean', { default: false }) adopted: boolean;
  @CreateDateColumn({ type: 'timestamptz' }) createdAt: Date;
  @UpdateDateColumn({ type: 'timestamptz' }) updatedAt: Date;
}

/** Agent servers refuse longer titles. */
export const MAX_TITLE_LENGTH = 200;

export function initialTitle(conversationId: string): string {
  return `Conversation ${toHexId(conversationId).slice(0, 5)}`;
}

/** The title of the suggested task that a conversation begins with; null for any other. */
export function taskTitle(task: Record<string, unknown> | null): string | null {
  const title = typeof task?.['title'] === 'string' ? task['title'].replaceAll(/\s+/g, ' ').trim() : '';
  return title === '' ? null : Array.from(title).slice(0, MAX_TITLE_LENGTH).join('');
}

/** Returns null for a valid title. */
export function titleLengthProblem(title: string): string | null {
  return title.length > MAX_TITLE_LENGTH ? `Expected at most ${MAX_TITLE_LENGTH} characters.` : null;
}

export const CONVERSATION_TRIGGERS = [
  'resolver',
  'gui',
  'suggested_task',
  'openhands_api',
  'slack',
  'microagent_management',
  'jira',
  'jira_dc',
  'linear',
  'bitbucket',
  'automation',
] as const;

export type ConversationTrigger = (typeof CONVERSATION_TRIGGERS)[number];
