import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { SecretCipher } from '../common/crypto/secret-cipher.js';
import { settingsBinding } from './settings-binding.js';
import type { SettingsKeyColumn } from './settings-columns.js';
import { Settings } from './settings.entity.js';

/** The keys among a user's settings, in clear: for agents and their sandboxes, never for a log or another answer. */
export type SettingsKeys = Record<SettingsKeyColumn, string | null>;

/** Hands the keys of settings to the code that works with them. */
@Injectable()
export class SettingsKeysReader {
  constructor(
    @InjectRepository(Settings) private readonly settings: Repository<Settings>,
    private readonly cipher: SecretCipher,
  ) {}

  /**
   * Null for each key that is not set.
   *
   * @throws SecretDecryptionError when a stored key is not readable with the configured keys
   */
  async forUser(userId: string): Promise<SettingsKeys> {
    const row = await this.settings.findOne({
      select: { userId: true, llm_api_key: true, search_api_key: true, sandbox_api_key: true },
      where: { userId },
    });
    const inClear = (column: SettingsKeyColumn): string | null => {
      const stored = row?.[column] ?? null;
      return stored === null ? null : this.cipher.decrypt(stored, settingsBinding(column, userId));
    };
    return {
      llm_api_key: inClear('llm_api_key'),
      search_api_key: inClear('search_api_key'),
      sandbox_api_key: inClear('sandbox_api_key'),
    };
  }
}
