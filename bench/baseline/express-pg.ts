import { createCipheriv, randomBytes, timingSafeEqual } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import express, { type NextFunction, type Request, type Response } from 'express';
import pg from 'pg';
import { parseApiKey } from '../../src/auth/api-key-format.js';
import {
  isKeyColumn,
  SETTINGS_COLUMNS,
  settingsBinding,
  type SettingsRow,
} from '../../src/settings/settings-table.js';
import { LOAD_SETTINGS } from '../../src/settings/settings.repository.js';
import { toStoredSettingsDto } from '../../src/settings/flat/stored-settings.dto.js';

/**
 * What one would write by hand for the two settings routes: Express and pg with the same key check, named statements and
 * encryption, but no validation, framework or log. Needs DATABASE_URL, DATABASE_POOL_SIZE and ENCRYPTION_KEY (base64).
 * Prints the port that it listens on.
 */

/** As long as the service does. */
const KEY_CACHE_MS = 4_000;
const LAST_USED_MS = 60_000;
const FIND_KEY = `
  SELECT k.secret_hash, k.expires_at, k.revoked_at, k.last_used_at, u.id AS user_id, u.email, u.is_admin
  FROM api_keys k JOIN users u ON u.id = k.user_id
  WHERE k.id = $1`;
const TOUCH_KEY = 'UPDATE api_keys SET last_used_at = $2 WHERE id = $1';

interface KeyRow {
  secret_hash: Buffer;
  expires_at: Date | null;
  revoked_at: Date | null;
  last_used_at: Date | null;
  user_id: string;
}

const pool = new pg.Pool({
  connectionString: process.env['DATABASE_URL'],
  max: Number(process.env['DATABASE_POOL_SIZE']),
});
const encryptionKey = Buffer.from(process.env['ENCRYPTION_KEY'] ?? '', 'base64');
const verifiedKeys = new Map<string, { userId: string; at: number }>();

async function userOf(presented: string | undefined): Promise<string | null> {
  const parsed = parseApiKey(presented ?? '');
  if (!parsed) {
    return null;
  }
  const now = Date.now();
  const cacheKey = `${parsed.id}.${parsed.secretHash.toString('base64')}`;
  const known = verifiedKeys.get(cacheKey);
  if (known && now - known.at < KEY_CACHE_MS) {
    return known.userId;
  }
  const { rows } = await pool.query<KeyRow>(FIND_KEY, [parsed.id]);
  const [row] = rows;
  if (!row || row.revoked_at || !timingSafeEqual(row.secret_hash, parsed.secretHash)) {
    return null;
  }
  if ((row.expires_at?.getTime() ?? Infinity) <= now) {
    return null;
  }
  verifiedKeys.set(cacheKey, { userId: row.user_id, at: now });
  if (now - (row.last_used_at?.getTime() ?? 0) >= LAST_USED_MS) {
    await pool.query(TOUCH_KEY, [parsed.id, new Date(now)]);
  }
  return row.user_id;
}

async function checkKey(request: Request, response: Response, next: NextFunction): Promise<void> {
  const userId = await userOf(request.get('x-session-api-key'));
  if (userId === null) {
    response.status(401).json({ detail: 'Unauthorized' });
    return;
  }
  response.locals['userId'] = userId;
  next();
}

function encrypt(plaintext: string, binding: string): string {
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', encryptionKey, iv);
  cipher.setAAD(Buffer.from(binding));
  const body = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final()]);
  return `bench.${Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64url')}`;
}

/** Without an audit entry, which the service appends as well. */
function settingsUpsert(columns: readonly string[]): string {
  const values = columns.map((_column, index) => `$${index + 2}`);
  const updates = columns.map((column) => `${column} = excluded.${column}`);
  return `INSERT INTO settings (${['user_id', ...columns].join(', ')}) VALUES (${['$1', ...values].join(', ')})
    ON CONFLICT (user_id) DO UPDATE SET ${updates.join(', ')}, updated_at = now()`;
}

async function storeSettings(request: Request, response: Response): Promise<void> {
  const userId = String(response.locals['userId']);
  const body: Record<string, unknown> | undefined = request.body;
  if (!body) {
    // The client has disconnected.
    response.status(400).end();
    return;
  }
  const columns = SETTINGS_COLUMNS.filter((column) => body[column] !== undefined);
  const values = columns.map((column) => {
    const value = body[column];
    return isKeyColumn(column) && typeof value === 'string'
      ? encrypt(value, settingsBinding(column, userId))
      : value;
  });
  await pool.query({
    name: `upsert ${columns.length}`,
    text: settingsUpsert(columns),
    values: [userId, ...values],
  });
  response.json({ message: 'Settings stored' });
}

async function showSettings(_request: Request, response: Response): Promise<void> {
  const { rows } = await pool.query<SettingsRow>({
    name: 'load',
    text: LOAD_SETTINGS,
    values: [response.locals['userId']],
  });
  const [row] = rows;
  if (!row) {
    response.status(404).json({ detail: 'Settings not found' });
    return;
  }
  response.json(toStoredSettingsDto(row));
}

const app = express();
app.set('etag', false);
app.set('x-powered-by', false);
app.use(checkKey);
app.get('/api/settings', showSettings);
app.post('/api/settings', express.json(), storeSettings);
const server = app.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
process.once('SIGTERM', () => {
  server.closeAllConnections();
  server.close(() => {
    pool.end().catch((error: unknown) => {
      process.stderr.write(`${String(error)}\n`);
      process.exitCode = 1;
    });
  });
});
