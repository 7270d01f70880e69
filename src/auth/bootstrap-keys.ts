import { chmod, readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { unlessCode } from '@slipway/common/errors/error-message.js';
import { AppConfig } from '../config/app-config.js';
import { makeDataDir } from '../config/data-dir.js';
import { generateApiKey, parseApiKey, parsedApiKey } from './api-key-format.js';
import { ApiKey, ApiKeyRepository, BOOTSTRAP_KEY_NAME } from './api-key.repository.js';
import { UserRepository } from './user.repository.js';

/** Makes sure that an administrator has a key after the first start. */
@Injectable()
export class BootstrapKeys implements OnModuleInit {
  private readonly logger = new Logger(BootstrapKeys.name);

  constructor(
    private readonly keys: ApiKeyRepository,
    private readonly users: UserRepository,
    private readonly config: AppConfig,
  ) {}

  async onModuleInit(): Promise<void> {
    const chosen = this.config.trust.bootstrapApiKey;
    if (chosen !== null) {
      await this.keys.bootstrapTransaction((manager) => this.storeChosenKey(manager, chosen));
    } else if (this.config.database.url === null) {
      await this.keys.bootstrapTransaction((manager) => this.generateFirstKey(manager));
    } else if (!(await this.keys.exists())) {
      this.logger.warn(
        'there is no API key yet; create one with: slipway keys create --admin (in a clone: npm run keys -- create --admin)',
      );
    }
  }

  /** `BOOTSTRAP_API_KEY` is the administrator's one key of that name: a changed value ends the old key. */
  private async storeChosenKey(manager: EntityManager, chosen: string): Promise<void> {
    const userId = await this.users.ensureAdministrator(manager);
    await this.keys.putOnly(manager, parsedApiKey(chosen), { userId, name: BOOTSTRAP_KEY_NAME });
  }

  /** The file is written first: after a crash before the insert, the next start takes the key from it. */
  private async generateFirstKey(manager: EntityManager): Promise<void> {
    if (await manager.exists(ApiKey)) {
      return;
    }
    const file = path.join(this.config.dataDir, 'api-key');
    const key = (await readKeyFile(file)) ?? (await writeKeyFile(file, generateApiKey()));
    const userId = await this.users.ensureAdministrator(manager);
    await this.keys.putOnly(manager, parsedApiKey(key), { userId, name: 'first key' });
    this.logger.log(`first API key written to ${file}`);
  }
}

async function readKeyFile(file: string): Promise<string | null> {
  const key = (await unlessCode('ENOENT', readFile(file, 'utf8')))?.trim() ?? '';
  return parseApiKey(key) ? key : null;
}

/** Renamed into place, so that the file is complete or missing. */
async function writeKeyFile(file: string, key: string): Promise<string> {
  await makeDataDir(path.dirname(file));
  const draft = `${file}.new`;
  await writeFile(draft, `${key}\n`, { mode: 0o600 });
  await chmod(draft, 0o600);
  await rename(draft, file);
  return key;
}
