import { Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
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
