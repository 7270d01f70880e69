import { SecretCipher } from '@slipway/common/secret-cipher.js';
import {
  providerTokenBinding,
  ProviderToken,
} from '../../src/git-providers/tokens/provider-token.repository.js';
import type { ProviderType } from '@slipway/git-providers/git-provider.js';
import type { TestApp, TestUser } from './create-test-app.js';

/** Stores a token without asking any provider about it. */
export async function storeProviderToken(
  app: TestApp,
  user: TestUser,
  provider: ProviderType,
  token: string,
): Promise<void> {
  const encrypted = app.app.get(SecretCipher).encrypt(token, providerTokenBinding(user.id, provider));
  await app.dataSource.getRepository(ProviderToken).save({ userId: user.id, provider, token: encrypted });
}
