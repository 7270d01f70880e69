import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager, Repository } from 'typeorm';
import { type EncryptedColumn, SecretCipher } from '../common/crypto/secret-cipher.js';
import type { JsonObject } from '../common/json-merge.js';
import { LlmProfile } from './llm-profile.entity.js';

/** The encrypted column of this table. */
export const LLM_PROFILE_ENCRYPTED_COLUMNS: EncryptedColumn[] = [
  {
    table: 'llm_profiles',
    column: 'config',
    keyColumns: ['id'],
    binding: ({ id = '' }) => profileBinding(id),
  },
];

function profileBinding(id: string): string {
  return `llm_profiles.config:${id}`;
}

/** A profile in clear: its key is never for a log or a response. */
export interface ClearLlmProfile {
  id: string;
  name: string;
  /** Members as on the wire: `model`, `api_key`, `base_url`, … */
  config: JsonObject;
  /** The settings were set to it last. */
  active: boolean;
}

/** The `llm_profiles` table: encrypts what goes in and decrypts what comes out. Writers lock the user first. */
@Injectable()
export class LlmProfileRepository extends Repository<LlmProfile> {
  constructor(
    @InjectDataSource() dataSource: DataSource,
    private readonly cipher: SecretCipher,
  ) {
    super(LlmProfile, dataSource.manager);
  }

  /**
   * All of a user's profiles, oldest first.
   *
   * @throws SecretDecryptionError when one is not readable with the configured keys
   */
  async list(userId: string, manager: EntityManager = this.manager): Promise<ClearLlmProfile[]> {
    const rows = await manager.find(LlmProfile, {
      where: { userId },
      order: { createdAt: 'ASC', id: 'ASC' },
    });
    return rows.map((row) => this.inClear(row));
  }

  /** Throws like {@link list}. */
  async findNamed(
    userId: string,
    name: string,
    manager: EntityManager = this.manager,
  ): Promise<ClearLlmProfile | null> {
    const row = await manager.findOneBy(LlmProfile, { userId, name });
    return row && this.inClear(row);
  }

  async countOf(userId: string, manager: EntityManager): Promise<number> {
    return manager.countBy(LlmProfile, { userId });
  }

  async add(manager: EntityManager, userId: string, name: string, config: JsonObject): Promise<void> {
    const id = randomUUID();
    await manager.insert(LlmProfile, { id, userId, name, config: this.encrypt(id, config) });
  }

  async replace(manager: EntityManager, { id }: ClearLlmProfile, config: JsonObject): Promise<void> {
    await manager.update(LlmProfile, { id }, { config: this.encrypt(id, config) });
  }

  async renameTo(manager: EntityManager, { id }: ClearLlmProfile, name: string): Promise<void> {
    await manager.update(LlmProfile, { id }, { name });
  }

  /** Marks one of the user's profiles as the one that the settings were set to, and no other. */
  async markActive(manager: EntityManager, userId: string, { id }: ClearLlmProfile): Promise<void> {
    await manager.update(LlmProfile, { userId, active: true }, { active: false });
    await manager.update(LlmProfile, { id }, { active: true });
  }

  async removeOne(manager: EntityManager, { id }: ClearLlmProfile): Promise<void> {
    await manager.delete(LlmProfile, { id });
  }

  private inClear({ id, name, config, active }: LlmProfile): ClearLlmProfile {
    return { id, name, config: JSON.parse(this.cipher.decrypt(config, profileBinding(id))), active };
  }

  private encrypt(id: string, config: JsonObject): string {
    return this.cipher.encrypt(JSON.stringify(config), profileBinding(id));
  }
}
