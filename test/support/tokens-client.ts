import request from 'supertest';
import {
  ProviderTokenRepository,
  type StoredCredential,
} from '../../src/git-providers/tokens/provider-token.repository.js';
import type { TestApp, TestUser } from './create-test-app.js';

/** Posts one user's git-provider tokens and looks at what is stored of them. */
export class TokensClient {
  constructor(
    private readonly app: TestApp,
    readonly user: TestUser,
  ) {}

  async post(body: object): Promise<request.Response> {
    return request(this.app.url).post('/api/add-git-providers').set(this.user.headers).send(body);
  }

  /** @param tokens the member `provider_tokens` */
  async postTokens(tokens: object): Promise<request.Response> {
    return this.post({ provider_tokens: tokens });
  }

  /** Decrypted. */
  async stored(): Promise<StoredCredential[]> {
    return this.app.app.get(ProviderTokenRepository).list(this.user.id);
  }

  async storedProviders(): Promise<string[]> {
    return (await this.stored()).map(({ provider }) => provider);
  }

  /** The rows as they are in the database. */
  async rows(): Promise<{ provider: string; token: string; account_id: string | null }[]> {
    return this.app.dataSource.query(
      'SELECT provider, token, account_id FROM provider_tokens WHERE user_id = $1 ORDER BY provider',
      [this.user.id],
    );
  }
}
