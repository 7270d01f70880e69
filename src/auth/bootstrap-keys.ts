import { randomUUID } from 'node:crypto';
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, Not, type EntityManager } from 'typeorm';
import { AppConfig } from '../config/app-config.js';
import { generateApiKey, parseApiKey, type ParsedApiKey } from './api-key-format.js';
import { ApiKey } from './api-key.entity.js';
import { User } from './user.entity.js';

const BOOTSTRAP_NAME = 'bootstrap';
/** The first administrator. */
const ADMIN_EMAIL = 'admin@localhost';
/** Any constant: replicas that start together take turns on it. */
const BOOTSTRAP_LOCK = 7_240_815_554;

/** Makes sure that somebody can get in after the first start. */
@Injectable()
export class BootstrapKeys implements OnModuleInit {
  private readonly logger = new Logger(BootstrapKeys.name);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly config: AppConfig,
  ) {}

  async onModuleInit(): Promise<void> {
    const chosen = this.config.trust.bootstrapApiKey;
    if (chosen !== null) {
      await this.underLock((manager) => this.storeChosenKey(manager, chosen));
    } else if (this.config.database.url === null) {
      await this.underLock((manager) => this.generateFirstKey(manager));
    } else if ((await this.dataSource.getRepository(ApiKey).count()) === 0) {
      this.logger.warn('there is no API key yet; create one with: npm run keys -- create --admin');
    }
  }

  /** `BOOTSTRAP_API_KEY` is the administrator's one key of that name: a changed value ends the old one. */
  private async storeChosenKey(manager: EntityManager, chosen: string): Promise<void> {
    const parsed = requireParsed(chosen);
    const keys = manager.getRepository(ApiKey);
    const userId = await ensureAdministrator(manager);
    await keys.delete({ userId, name: BOOTSTRAP_NAME, id: Not(parsed.id) });
    await keys.upsert(
      {
        id: parsed.id,
        userId,
        name: BOOTSTRAP_NAME,
        secretHash: parsed.secretHash,
        expiresAt: null,
        revokedAt: null,
      },
      { conflictPaths: ['id'], skipUpdateIfNoValuesChanged: true },
    );
  }

  /** Written to the file first: a crash before the insert leaves a key that the next start takes over. */
  private async generateFirstKey(manager: EntityManager): Promise<void> {
    const keys = manager.getRepository(ApiKey);
    if (await keys.exists()) {
      return;
    }
    const file = path.join(this.config.dataDir, 'api-key');
    const key = (await readKey(file)) ?? (await writeKey(file, generateApiKey()));
    const parsed = requireParsed(key);
    await keys.insert({
      id: parsed.id,
      userId: await ensureAdministrator(manager),
      name: 'first key',
      secretHash: parsed.secretHash,
    });
    this.logger.log(`first API key written to ${file}`);
  }

  private async underLock(work: (manager: EntityManager) => Promise<void>): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      await manager.query('SELECT pg_advisory_xact_lock($1)', [BOOTSTRAP_LOCK]);
      await work(manager);
    });
  }
}

function requireParsed(key: string): ParsedApiKey {
  const parsed = parseApiKey(key);
  if (!parsed) {
    throw new Error('the bootstrap key has a form that no request could present');
  }
  return parsed;
}

async function ensureAdministrator(manager: EntityManager): Promise<string> {
  const users = manager.getRepository(User);
  const known = await users.findOneBy({ email: ADMIN_EMAIL });
  if (known) {
    return known.id;
  }
  const id = randomUUID();
  await users.insert({ id, email: ADMIN_EMAIL, name: 'admin', isAdmin: true });
  return id;
}

async function readKey(file: string): Promise<string | null> {
  try {
    const key = (await readFile(file, 'utf8')).trim();
    return parseApiKey(key) ? key : null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
      return null;
    }
    throw error;
  }
}

async function writeKey(file: string, key: string): Promise<string> {
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.new`;
  await writeFile(draft, `${key}\n`, { mode: 0o600 });
  await chmod(draft, 0o600);
  await rename(draft, file);
  return key;
}
