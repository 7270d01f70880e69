import { describe, expect, it } from '@jest/globals';
import { decideEgress } from '@slipway/egress-proxy/decision.js';
import type { EgressPolicy } from '@slipway/egress-proxy/protocol.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import { ConversationRows } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { egressPolicy } from '../support/egress-policy.js';
import { StartsClient } from '../support/starts-client.js';
import { storeProviderToken } from '../support/store-provider-token.js';
import { useGitHosts } from '../support/use-git-hosts.js';

const TOKEN = 'ghp_abcdefghijklmnopqrstuvwxyz0123456789';
const RULES = { allow: ['npm'] };

/** Requests, and how a policy decides: `own`, where only credentials of the sandbox may go. */
function decided(policy: EgressPolicy, asked: string): string {
  const [method = '', address = ''] = asked.split(' ');
  const { hostname: host, pathname, search } = new URL(address);
  const target = { host, port: 443, isTls: true, isAddress: false };
  const decision = decideEgress(policy, { target, method, path: `${pathname}${search}` });
  return decision.isAllowed ? (decision.isOwnOnly ? 'own' : 'open') : decision.denial;
}

describe('a sandbox with rules, whose credentials are outside', () => {
  const backend = new InProcessSandboxBackend();
  const { app } = useGitHosts(
    {
      GITHUB_CLONE_URL: 'https://github.com',
      GITHUB_API_URL: 'https://api.github.com',
      SANDBOX_CREDENTIALS: 'outside',
      SANDBOX_NETWORK: 'isolated',
    },
    { sandboxBackend: backend },
  );

  const member = async (): Promise<TestUser> => {
    const user = await app.createUser();
    const settings = { llm_model: 'openai/m', llm_api_key: 'sk-abcdefghijklmnop' };
    await new StartsClient(app, user).settings(settings);
    await storeProviderToken(app, user, 'github', TOKEN);
    return user;
  };
  const begun = async (user: TestUser, body: object): Promise<{ sandboxId: string }> => {
    const starts = new StartsClient(app, user);
    return await starts.reached(await starts.start(body), 'READY');
  };
  const policyOf = async (user: TestUser, body: object): Promise<EgressPolicy> =>
    await egressPolicy(app, backend, (await begun(user, body)).sandboxId);

  it('lets pass what its agent needs, and nothing else of these hosts', async () => {
    const policy = await policyOf(await member(), { egress: RULES });
    for (const [asked, how] of [
      ['POST https://api.openai.com/v1/chat/completions', 'own'],
      ['GET https://api.openai.com/dashboard', 'path'],
      ['GET https://api.github.com/gists', 'rule'],
      ['GET https://gist.github.com/eve/1', 'rule'],
      ['GET https://gitlab.com/eve/app', 'rule'],
      ['GET https://registry.npmjs.org/left-pad', 'open'],
    ] as const) {
      expect([asked, decided(policy, asked)]).toEqual([asked, how]);
    }
  });

  it('works in its own repository alone, with a token of its own or none', async () => {
    const user = await member();
    const { sandboxId } = await begun(user, { egress: RULES });
    const row = { sandboxId, selectedRepository: 'octo/app', gitProvider: 'github' as const };
    await new ConversationRows(app).conversation(user.id, row);
    const policy = await egressPolicy(app, backend, sandboxId);
    for (const [asked, how] of [
      ['GET https://github.com/octo/app.git/info/refs?service=git-upload-pack', 'own'],
      ['POST https://github.com/octo/app.git/git-receive-pack', 'own'],
      ['GET https://api.github.com/repos/octo/app/pulls', 'own'],
      ['GET https://codeload.github.com/octo/app/zip/main', 'own'],
      ['POST https://github.com/eve/app.git/git-receive-pack', 'path'],
      ['POST https://api.github.com/gists', 'path'],
      ['POST https://api.github.com/repos/octo/app/../../eve/app/issues', 'path'],
      ['POST https://api.github.com/graphql', 'path'],
    ] as const) {
      expect([asked, decided(policy, asked)]).toEqual([asked, how]);
    }
  });

  it('opens no host that only its own agent server says a conversation there calls', async () => {
    const user = await member();
    const { sandboxId } = await begun(user, { egress: RULES });
    const rows = new ConversationRows(app);
    const model = (host: string): object => ({ llmModel: 'openai/m', llmBaseUrl: `https://${host}/v1` });
    await rows.conversation(user.id, { sandboxId, ...model('models.example') });
    await rows.conversation(user.id, { sandboxId, ...model('eve.example'), adopted: true });
    const policy = await egressPolicy(app, backend, sandboxId);
    expect(decided(policy, 'POST https://models.example/v1/chat/completions')).toBe('own');
    expect(decided(policy, 'POST https://eve.example/v1/chat/completions')).toBe('rule');
  });

  it('reaches all of the git hosts of its user where a rule says so', async () => {
    const policy = await policyOf(await member(), { egress: { allow: ['git'] } });
    expect(decided(policy, 'GET https://api.github.com/gists')).toBe('open');
    expect(decided(policy, 'GET https://gitlab.com/eve/app')).toBe('rule');
  });

  it('is not narrowed at hosts that the default leaves open', async () => {
    const rules = { default: 'allow', deny: ['evil.example'] };
    const policy = await policyOf(await member(), { egress: rules });
    expect(decided(policy, 'GET https://api.github.com/gists')).toBe('open');
  });
});
