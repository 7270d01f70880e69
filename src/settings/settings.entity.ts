import { Column, CreateDateColumn, Entity, UpdateDateColumn } from 'typeorm';
import { UserKeyedRow } from '../auth/user.repository.js';
import { SETTINGS } from './settings-table.js';

/**
 * A user's settings, one typed column each. Members are named as on the wire: one vocabulary from the request to the
 * column. The three keys are encrypted; the MCP configuration and the secrets have tables of their own.
 */
@Entity('settings')
export class Settings extends UserKeyedRow {
  @Column('text', { nullable: true }) language: string | null;
  @Column('text', { nullable: true }) agent: string | null;
  @Column('integer', { nullable: true }) max_iterations: number | null;
  @Column('text', { nullable: true }) security_analyzer: string | null;
  @Column('boolean', { nullable: true }) confirmation_mode: boolean | null;
  @Column('text', { nullable: true }) llm_model: string | null;

  /** Encrypted. */
  @Column('text', { nullable: true }) llm_api_key: string | null;
  @Column('text', { nullable: true }) llm_base_url: string | null;
  @Column('integer', { nullable: true }) remote_runtime_resource_factor: number | null;

  @Column('boolean', { default: SETTINGS.enable_default_condenser.default })
  enable_default_condenser: boolean;

  @Column('boolean', { default: SETTINGS.enable_sound_notifications.default })
  enable_sound_notifications: boolean;

  @Column('boolean', { default: SETTINGS.enable_proactive_conversation_starters.default })
  enable_proactive_conversation_starters: boolean;

  @Column('boolean', { default: SETTINGS.enable_solvability_analysis.default })
  enable_solvability_analysis: boolean;

  @Column('boolean', { nullable: true }) user_consents_to_analytics: boolean | null;
  @Column('text', { nullable: true }) sandbox_base_container_image: string | null;
  @Column('text', { nullable: true }) sandbox_runtime_container_image: string | null;

  /** Encrypted. */
  @Column('text', { nullable: true }) search_api_key: string | null;

  /** Encrypted. */
  @Column('text', { nullable: true }) sandbox_api_key: string | null;
  @Column('double precision', { nullable: true }) max_budget_per_task: number | null;
  @Column('text', { nullable: true }) email: string | null;
  @Column('boolean', { nullable: true }) email_verified: boolean | null;
  @Column('text', { nullable: true }) git_user_name: string | null;
  @Column('text', { nullable: true }) git_user_email: string | null;

  /** Encrypted JSON of what the nested settings have beyond these columns, see `SettingsDetails`. */
  @Column('text', { nullable: true }) details: string | null;
  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' }) createdAt: Date;
  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' }) updatedAt: Date;
}
