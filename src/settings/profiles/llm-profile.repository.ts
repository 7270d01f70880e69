import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import {
  Column,
  CreateDateColumn,
  DataSource,
  Entity,
  type EntityManager,
  In,
  Index,
  PrimaryColumn,
  Repository,
  UpdateDateColumn,
} from 'typeorm';
import type { JsonObject } from '@slipway/common/json-access.js';
import { AuditRepository } from '../../audit/audit.repository.js';
import { OwnedRow } from '../../auth/user.repository.js';
import { INSTALLATION_ORGANIZATION_ID } from '../../organizations/installation-organization.js';
import { columnById, SecretCipher } from '@slipway/common/secret-cipher.js';

/** A model with its address, key and parameters, stored under a name. */
@Entity('llm_profiles')
@Index('llm_profiles_user_id_name_key', ['userId', 'name'], { unique: true })
export class LlmProfile extends OwnedRow {
  @PrimaryColumn('uuid') id: string;
  @Column('text') name: string;

  /** Encrypted JSON of all its members, keys included. */
  @Column('text') config: string;

  /** The profile that was last applied to the settings. They may have changed since. */
  @Column('boolean', { default: false }) active: boolean;
  @CreateDateColumn({ type: 'timestamptz' }) createdAt: Date;
  @UpdateDateColumn({ type: 'timestamptz' }) updatedAt: Date;
}

const CONFIG = columnById('llm_profiles', 'config');

export const LLM_PROFILE_ENCRYPTED_COLUMNS = [CONFIG];

/** A profile in clear: its key is never for a log or a response. */
export interface ClearLlmProfile {
  id: string;
  name: string;
  /** Members as on the wire: `model`, `api_key`, `base_url`, … */
  config: JsonObject;
  active: boolean;
}

/** The `llm_profiles` table: encrypts what goes in and decrypts what comes out. Writers lock the user first. */
@Injectable()
export class LlmProfileRepository extends Repository<LlmProfile> {
  constructor(
    dataSource: DataSource,
    private readonly cipher: SecretCipher,
    private readonly audit: AuditRepository,
  ) {
    super(LlmProfile, dataSource.manager);
  }

  /**
   * All of a user's profiles, oldest first.
   * @throws SecretDecryptionError when one is not readable with the configured keys
   */
  async list(userId: string, manager: EntityManager = this.manager): Promise<ClearLlmProfile[]> {
    const rows = await manager.find(LlmProfile, {
      where: { userId },
      order: { createdAt: 'ASC', id: 'ASC' },
    });
    return rows.map((row) => this.inClear(row));
  }

  async findNamed(
    userId: string,
    name: string,
    manager: EntityManager = this.manager,
  ): Promise<ClearLlmProfile | null> {
    const row = await manager.findOneBy(LlmProfile, { userId, name });
    return row && this.inClear(row);
  }

  /** Whether the user or the organization has one of that name. */
  async isUsable(userId: string, name: string): Promise<boolean> {
    return this.existsBy({ userId: In([userId, INSTALLATION_ORGANIZATION_ID]), name });
  }

  async countOf(userId: string, manager: EntityManager): Promise<number> {
    return manager.countBy(LlmProfile, { userId });
  }

  async add(manager: EntityManager, userId: string, name: string, config: JsonObject): Promise<void> {
    const id = randomUUID();
    await manager.insert(LlmProfile, { id, userId, name, config: this.encrypt(id, config) });
    await this.audit.append(manager, { action: 'llm_profile.create', resourceId: name, ownerId: userId });
  }

  async replace(
    manager: EntityManager,
    userId: string,
    { id, name, config: before }: ClearLlmProfile,
    config: JsonObject,
  ): Promise<void> {
    await manager.update(LlmProfile, { id }, { config: this.encrypt(id, config) });
    const members = Object.keys({ ...before, ...config }).filter(
      (member) => !isDeepStrictEqual(before[member], config[member]),
    );
    await this.audit.append(manager, {
      action: 'llm_profile.update',
      resourceId: name,
      ownerId: userId,
      details: { members },
    });
  }

  async renameTo(
    manager: EntityManager,
    userId: string,
    { id, name }: ClearLlmProfile,
    newName: string,
  ): Promise<void> {
    await manager.update(LlmProfile, { id }, { name: newName });
    await this.audit.append(manager, {
      action: 'llm_profile.rename',
      resourceId: name,
      ownerId: userId,
      details: { new_name: newName },
    });
  }

  async markActive(manager: EntityManager, userId: string, { id, name }: ClearLlmProfile): Promise<void> {
    await manager.update(LlmProfile, { userId, active: true }, { active: false });
    await manager.update(LlmProfile, { id }, { active: true });
    await this.audit.append(manager, { action: 'llm_profile.activate', resourceId: name, ownerId: userId });
  }

  async removeOne(manager: EntityManager, userId: string, { id, name }: ClearLlmProfile): Promise<void> {
    await manager.delete(LlmProfile, { id });
    await this.audit.append(manager, { action: 'llm_profile.delete', resourceId: name, ownerId: userId });
  }

  private inClear({ id, name, config, active }: LlmProfile): ClearLlmProfile {
    return { id, name, config: JSON.parse(this.cipher.decrypt(config, CONFIG.binding({ id }))), active };
  }

  private encrypt(id: string, config: JsonObject): string {
    return this.cipher.encrypt(JSON.stringify(config), CONFIG.binding({ id }));
  }
}
