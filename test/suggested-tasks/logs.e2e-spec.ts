import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import request from 'supertest';
import { AppLogger } from '../../src/common/logging/app-logger.js';
import { SecretCipher } from '../../src/common/crypto/secret-cipher.js';
import { providerTokenBinding } from '../../src/git-providers/tokens/provider-token.repository.js';
import { createTestApp, type TestApp, type TestUser } from '../support/create-test-app.js';
import { startGitHosts, type GitHosts } from '../support/git-hosts.js';

const TASKS = '/api/user/suggested-tasks';

interface LogLine {
  level?: string;
  message?: string;
  provider?: string;
  code?: string;
  request_id?: string;
}

describe('Log lines about git providers that fail', () => {
  let hosts: GitHosts;
  let app: TestApp;
  let user: TestUser;
  let written: string[];

  beforeAll(async () => {
    hosts = await startGitHosts();
    app = await createTestApp(hosts.environment);
  });

  beforeEach(async () => {
    hosts.clearFaults();
    user = await app.createUser();
    await request(app.url).post('/api/add-git-providers').set(user.headers).send(hosts.tokens).expect(200);
    written = [];
    const capture = (chunk: unknown): boolean => {
      written.push(String(chunk));
      return true;
    };
    jest.spyOn(process.stdout, 'write').mockImplementation(capture);
    jest.spyOn(process.stderr, 'write').mockImplementation(capture);
    Logger.overrideLogger(new AppLogger({ level: 'info', format: 'json' }));
  });

  afterEach(() => {
    Logger.overrideLogger(false);
    jest.restoreAllMocks();
  });

  afterAll(async () => {
    await app.close();
    await hosts.close();
  });

  const lines = (): LogLine[] => written.map((line) => JSON.parse(line) as LogLine);

  it('name provider, code and request, once each, and no token', async () => {
    hosts.github.injectFault({ kind: 'status', status: 401 });
    hosts.bitbucket.injectFault({ kind: 'status', status: 429 });
    hosts.gitlab.injectFault(
      { kind: 'status', status: 403 },
      { match: ({ path }) => path.includes('/v4/issues') },
    );

    const { headers } = await request(app.url).get(TASKS).set(user.headers);

    const request_id = headers['x-request-id'];
    expect(lines().toSorted((a, b) => String(a.provider).localeCompare(String(b.provider)))).toEqual([
      expect.objectContaining({ level: 'warn', provider: 'bitbucket', code: 'rate_limited', request_id }),
      expect.objectContaining({ level: 'warn', provider: 'github', code: 'unauthorized', request_id }),
      expect.objectContaining({ level: 'warn', provider: 'gitlab', code: 'insufficient_scope', request_id }),
    ]);
    for (const { token } of Object.values(hosts.tokens.provider_tokens)) {
      expect(written.join('')).not.toContain(token);
    }
  });

  it('are written where the operator no longer runs enterprise_sso', async () => {
    await app.dataSource.query(
      `UPDATE provider_tokens SET provider = 'enterprise_sso', token = $2 WHERE user_id = $1 AND provider = 'github'`,
      [user.id, app.app.get(SecretCipher).encrypt('secret', providerTokenBinding(user.id, 'enterprise_sso'))],
    );

    const { headers } = await request(app.url).get(TASKS).set(user.headers).expect(200);

    expect(headers['x-provider-status']).toContain('enterprise_sso;status=error;code=unsupported');
    const request_id = headers['x-request-id'];
    expect(lines()).toEqual([
      expect.objectContaining({ level: 'warn', provider: 'enterprise_sso', code: 'unsupported', request_id }),
    ]);
  });

  it('are written for the account too', async () => {
    hosts.github.injectFault({ kind: 'status', status: 503 });

    const { headers } = await request(app.url).get('/api/user/info').set(user.headers).expect(502);

    const request_id = headers['x-request-id'];
    expect(lines()).toEqual([
      expect.objectContaining({ level: 'warn', provider: 'github', code: 'unavailable', request_id }),
    ]);
  });
});
