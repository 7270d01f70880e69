import { Injectable } from '@nestjs/common';
import { SecretCipher } from '../common/crypto/secret-cipher.js';
import { NO_DETAILS, type SettingsDetails } from './nested/nested-settings.js';
import {
  isKeyColumn,
  settingsBinding,
  type SettingsColumn,
  type SettingsKeyColumn,
  type SettingsKeys,
} from './settings-table.js';
import type { Settings } from './settings.entity.js';

type EncryptedColumn = SettingsKeyColumn | 'details';

/** A row as it is stored. */
export type StoredColumns = Pick<Settings, SettingsColumn | 'details'>;

/** What is encrypted in a row of the settings; a column that is absent counts as empty. */
export type EncryptedColumns = Partial<Record<EncryptedColumn, string | null>>;

/** Reads and writes the encrypted columns. What it reads is never for a log. @throws SecretDecryptionError */
@Injectable()
export class SettingsCipher {
  constructor(private readonly cipher: SecretCipher) {}

  /** New values as the columns take them. */
  encrypted(
    userId: string,
    values: readonly (readonly [SettingsColumn | 'details', unknown])[],
  ): Partial<StoredColumns> {
    return Object.fromEntries(
      values.map(([column, value]) =>
        typeof value === 'string' && (column === 'details' || isKeyColumn(column))
          ? [column, this.cipher.encrypt(value, settingsBinding(column, userId))]
          : [column, value],
      ),
    );
  }

  keysOf(userId: string, row: EncryptedColumns | null): SettingsKeys {
    return {
      llm_api_key: this.read(userId, 'llm_api_key', row),
      search_api_key: this.read(userId, 'search_api_key', row),
      sandbox_api_key: this.read(userId, 'sandbox_api_key', row),
    };
  }

  detailsOf(userId: string, row: EncryptedColumns | null): SettingsDetails {
    return { ...NO_DETAILS, ...JSON.parse(this.read(userId, 'details', row) ?? '{}') };
  }

  private read(userId: string, column: EncryptedColumn, row: EncryptedColumns | null): string | null {
    const record = row?.[column] ?? null;
    return record === null ? null : this.cipher.decrypt(record, settingsBinding(column, userId));
  }
}
