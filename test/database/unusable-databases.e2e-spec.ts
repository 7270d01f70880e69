import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ConfigError } from '@slipway/common/errors/config.error.js';
import { findDatabase } from '@slipway/database/database-addresses.js';
import { runMigrations } from '../../src/database/data-source-options.js';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../support/test-database.js';

/** An address whose sessions begin with a setting, as a role or a database may give it. */
function withSetting({ url }: TestDatabase, setting: string): string {
  const address = new URL(url);
  address.searchParams.set('options', `-c ${setting.replaceAll(' ', '\\ ')}`);
  return address.href;
}

describe('a database that the service cannot work with', () => {
  let migrated: TestDatabase;
  let empty: TestDatabase;

  beforeAll(async () => {
    [migrated, empty] = await Promise.all([createTestDatabase(), createEmptyDatabase()]);
  });

  afterAll(async () => {
    await Promise.all([migrated.drop(), empty.drop()]);
  });

  it.each([
    ['DateStyle=SQL, DMY', '"ISO"'],
    ['DateStyle=German', '"ISO"'],
    ['default_transaction_isolation=serializable', '"read committed"'],
    ['standard_conforming_strings=off', '"on"'],
    ['default_transaction_read_only=on', '"off": name the primary'],
  ])('keeps it from starting, with one line that says what to do: %s', async (setting, advice) => {
    const refusal: unknown = await findDatabase(withSetting(migrated, setting), null).catch(
      (error: unknown) => error,
    );

    expect(refusal).toBeInstanceOf(ConfigError);
    expect(String(refusal)).toMatch(/^ConfigError: DATABASE_URL: [^\n]*$/);
    expect(String(refusal)).toContain(advice);
  });

  it.each(['DateStyle=ISO, DMY', 'TimeZone=Asia/Kolkata', 'bytea_output=escape', 'search_path=public'])(
    'is none because of %s',
    async (setting) => {
      const { addresses } = await findDatabase(withSetting(migrated, setting), null);

      expect(addresses.main.pooled).toBe(false);
    },
  );

  it('is one whose tables its role may not create, or may not read', async () => {
    for (const database of [empty, migrated]) {
      const refusal: unknown = await runMigrations(withSetting(database, 'role=pg_monitor')).catch(
        (error: unknown) => error,
      );

      expect(refusal).toBeInstanceOf(ConfigError);
      expect(String(refusal)).toMatch(
        /DATABASE_URL: permission denied for [^\n]*ALTER DATABASE … OWNER TO …/,
      );
    }
  });
});
