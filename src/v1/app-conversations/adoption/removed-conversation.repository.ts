import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import {
  Column,
  DataSource,
  Entity,
  type EntityManager,
  Index,
  JoinColumn,
  ManyToOne,
  PrimaryColumn,
} from 'typeorm';
import { Sandbox } from '../../sandboxes/sandbox.entity.js';

/** A conversation that was deleted while its sandbox still has it: it must not be adopted again. Goes with the sandbox. */
@Entity('removed_conversations')
@Index('removed_conversations_sandbox_id_idx', ['sandboxId'])
export class RemovedConversation {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'removed_conversations_pkey' })
  id: string;

  @Column('text', { name: 'sandbox_id' })
  sandboxId: string;

  @ManyToOne(() => Sandbox, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'sandbox_id', foreignKeyConstraintName: 'removed_conversations_sandbox_id_fkey' })
  sandbox?: Sandbox;
}

/** Locks the sandbox against its removal; there is nothing to remember of one that is gone. */
const REMEMBER = `
  INSERT INTO removed_conversations (id, sandbox_id)
  SELECT $1, id FROM sandboxes WHERE id = $2 FOR KEY SHARE
  ON CONFLICT (id) DO NOTHING`;

const IN_SANDBOX = 'SELECT id FROM removed_conversations WHERE sandbox_id = $1';

const FORGET = 'DELETE FROM removed_conversations WHERE id = ANY ($1::uuid[])';

/** Ids of conversations that were deleted, for as long as the agent server of their sandbox may still have them. */
@Injectable()
export class RemovedConversationRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  async remember(manager: EntityManager, id: string, sandboxId: string): Promise<void> {
    await manager.query(REMEMBER, [id, sandboxId]);
  }

  async inSandbox(sandboxId: string): Promise<string[]> {
    const rows = await this.dataSource.query<{ id: string }[]>(IN_SANDBOX, [sandboxId]);
    return rows.map(({ id }) => id);
  }

  async forget(ids: readonly string[]): Promise<void> {
    if (ids.length > 0) {
      await this.dataSource.query(FORGET, [ids]);
    }
  }
}
