import {
  Column,
  CreateDateColumn,
  Entity,
  Index,
  JoinColumn,
  ManyToOne,
  PrimaryColumn,
  UpdateDateColumn,
} from 'typeorm';
import { User } from '../../auth/user.entity.js';
import type { StartRequest } from './start/start-request.js';
import type { StartTaskStatus } from './start-task-status.js';

/** A conversation on its way: this row is the truth, the job that walks it only carries the id. */
@Entity('app_conversation_start_tasks')
@Index('app_conversation_start_tasks_user_id_created_at_idx', ['userId', 'createdAt', 'id'])
@Index('app_conversation_start_tasks_unfinished_idx', ['userId'], {
  where: `status <> ALL (ARRAY['READY'::text, 'ERROR'::text])`,
})
@Index('app_conversation_start_tasks_app_conversation_id_key', ['appConversationId'], { unique: true })
export class StartTask {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'app_conversation_start_tasks_pkey' })
  id: string;

  @Column('uuid', { name: 'user_id' })
  userId: string;

  @ManyToOne(() => User, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'user_id', foreignKeyConstraintName: 'app_conversation_start_tasks_user_id_fkey' })
  user?: User;

  /** Changed by compare-and-set only. */
  @Column('text')
  status: StartTaskStatus;

  @Column('text', { nullable: true })
  detail: string | null;

  /** Chosen with the task; clients see it from READY on. */
  @Column('uuid', { name: 'app_conversation_id' })
  appConversationId: string;

  /** Chosen with the task as well, unless the request names one. */
  @Column('text', { name: 'sandbox_id' })
  sandboxId: string;

  /** Whose queue its job is in. */
  @Column('text', { name: 'host_id' })
  hostId: string;

  /** The request as it is echoed and worked on; secrets in it are masked. */
  @Column('jsonb')
  request: StartRequest;

  /** Encrypted JSON of the request's `secrets`; null when it had none. */
  @Column('text', { name: 'request_secrets', nullable: true })
  requestSecrets: string | null;

  /** What could not be done as asked, or was done for it to others, for people; `detail` ends with it. */
  @Column('text', { array: true, default: () => "'{}'" })
  notes: string[];

  /** Its sandbox has been made, or was there before; one without a row is gone then. */
  @Column('boolean', { name: 'sandbox_made', default: false })
  sandboxMade: boolean;

  /** Where the agent works inside the sandbox; null until that is known. */
  @Column('text', { name: 'working_dir', nullable: true })
  workingDir: string | null;

  /** Counts the workers that took it up: one that was given up for dead changes nothing any more. */
  @Column('integer', { default: 0 })
  attempt: number;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;

  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' })
  updatedAt: Date;
}
