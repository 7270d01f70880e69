import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  PROVIDER_TOKEN_ENCRYPTED_COLUMNS,
  ProviderTokenRepository,
} from '../../src/git-providers/tokens/provider-token.repository.js';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { untilBlocked } from '../support/until-blocked.js';
import { useGitHosts } from '../support/use-git-hosts.js';
import { TokensClient } from '../support/tokens-client.js';

describe('ProviderTokenRepository', () => {
  const { hosts, app } = useGitHosts();
  let repository: ProviderTokenRepository;
  let client: TokensClient;

  beforeAll(async () => {
    repository = app.app.get(ProviderTokenRepository);
  });

  beforeEach(async () => {
    client = new TokensClient(app, await app.createUser());
    await client.post(hosts.tokens);
  });

  const storedToken = async (provider: string): Promise<string | undefined> =>
    (await client.stored()).find((credential) => credential.provider === provider)?.token;

  it('lists the hosts', async () => {
    expect([...(await repository.hosts(client.user.id))]).toEqual([
      ['github', null],
      ['gitlab', null],
      ['bitbucket', null],
    ]);
  });

  it('puts the successor in the place of a token', async () => {
    const { token } = hosts.worlds.gitlab;

    expect(await repository.replaceToken(client.user.id, 'gitlab', token, 'successor')).toBe(true);

    expect(await storedToken('gitlab')).toBe('successor');
    expect(await storedToken('github')).toBe(hosts.worlds.github.token);
  });

  it('does not bring back a token that was replaced or removed', async () => {
    const { token } = hosts.worlds.gitlab;
    expect(await repository.replaceToken(client.user.id, 'gitlab', 'an older one', 'successor')).toBe(false);
    expect(await storedToken('gitlab')).toBe(token);

    await client.postTokens({ gitlab: null });
    expect(await repository.replaceToken(client.user.id, 'gitlab', token, 'successor')).toBe(false);
    expect(await client.storedProviders()).toEqual(['github', 'bitbucket']);
  });

  it('lets one of several successors of the same token win', async () => {
    const { token } = hosts.worlds.gitlab;
    const successors = ['a', 'b', 'c'];
    let replacing: Promise<boolean[]> = Promise.resolve([]);
    await app.dataSource.transaction(async (manager) => {
      // With the row locked all of them are under way before the first can write.
      await manager.query('SELECT 1 FROM provider_tokens WHERE user_id = $1 FOR UPDATE', [client.user.id]);
      replacing = Promise.all(
        successors.map((successor) => repository.replaceToken(client.user.id, 'gitlab', token, successor)),
      );
      await untilBlocked(app.dataSource, successors.length);
    });

    const won = await replacing;

    expect(won.filter(Boolean)).toHaveLength(1);
    expect(await storedToken('gitlab')).toBe(successors[won.indexOf(true)]);
  });

  it('names the columns that a new key must be applied to', async () => {
    const cipher = app.app.get(SecretCipher);
    const [column] = PROVIDER_TOKEN_ENCRYPTED_COLUMNS;
    const [row] = await app.dataSource.query<Record<string, string>[]>(
      `SELECT ${column?.keyColumns.join(', ')}, ${column?.column} AS record FROM ${column?.table} WHERE user_id = $1 AND provider = 'github'`,
      [client.user.id],
    );

    expect(cipher.decrypt(row?.['record'] ?? '', column?.binding(row ?? {}) ?? '')).toBe(
      hosts.worlds.github.token,
    );
  });
});
