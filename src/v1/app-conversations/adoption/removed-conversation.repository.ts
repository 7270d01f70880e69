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
import { Sandbox } from '../../sandboxes/sandbox.entity.js';
import { SandboxRepository } from '../../sandboxes/sandbox.repository.js';

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

const REMEMBER = 'INSERT INTO removed_conversations (id, sandbox_id) VALUES ($1, $2) ON CONFLICT DO NOTHING';

@Injectable()
export class RemovedConversationRepository {
  constructor(
    @InjectRepository(RemovedConversation) private readonly removed: Repository<RemovedConversation>,
    private readonly sandboxes: SandboxRepository,
  ) {}

  async remember(manager: EntityManager, id: string, sandboxId: string): Promise<void> {
    if (await this.sandboxes.keep(manager, sandboxId)) {
      await manager.query(REMEMBER, [id, sandboxId]);
    }
  }

  async inSandbox(sandboxId: string): Promise<string[]> {
    return (await this.removed.findBy({ sandboxId })).map(({ id }) => id);
  }

  async forget(ids: readonly string[]): Promise<void> {
    if (ids.length > 0) {
      await this.removed.delete({ id: In([...ids]) });
    }
  }
}
