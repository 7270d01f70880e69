import request from 'supertest';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { customSecretBinding } from '../../src/settings/secrets/custom-secret.repository.js';
import type { TestApp, TestUser } from './create-test-app.js';

interface CustomSecretRow {
  name: string;
  value: string;
  description: string | null;
}

const TABLES = ['settings', 'mcp_configs', 'custom_secrets', 'provider_tokens'];

/** Posts one user's settings and looks at what is stored of them. */
export class SettingsClient {
  constructor(
    private readonly app: TestApp,
    readonly user: TestUser,
  ) {}

  async post(body: object): Promise<request.Response> {
    return request(this.app.url).post('/api/settings').set(this.user.headers).send(body);
  }

  async get(): Promise<request.Response> {
    return request(this.app.url).get('/api/settings').set(this.user.headers);
  }

  /** Posts what must be accepted. */
  async store(body: object): Promise<void> {
    await request(this.app.url).post('/api/settings').set(this.user.headers).send(body).expect(200);
  }

  /** What `GET` shows; it must be there. */
  async stored(): Promise<Record<string, unknown>> {
    const response = await request(this.app.url).get('/api/settings').set(this.user.headers).expect(200);
    return response.body;
  }

  /** Decrypted, by name. */
  async customSecrets(): Promise<CustomSecretRow[]> {
    const rows = await this.app.dataSource.query<CustomSecretRow[]>(
      'SELECT name, value, description FROM custom_secrets WHERE user_id = $1 ORDER BY name',
      [this.user.id],
    );
    const cipher = this.app.app.get(SecretCipher);
    return rows.map((row) => ({
      ...row,
      value: cipher.decrypt(row.value, customSecretBinding(this.user.id, row.name)),
    }));
  }

  /** Every column of every row that this user has, as text. */
  async dump(): Promise<string> {
    const rows = await Promise.all(
      TABLES.map((table) =>
        this.app.dataSource.query<unknown[]>(`SELECT * FROM ${table} WHERE user_id = $1`, [this.user.id]),
      ),
    );
    return JSON.stringify(rows);
  }
}
