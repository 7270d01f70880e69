import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { PUBLIC_GIT_SERVERS } from '@slipway/git-providers/public-git-servers.js';
import { cloneUrlOf, configurationReport, loadConfig, parseConfig } from './load-config.js';

describe('cloneUrlOf', () => {
  it.each([
    ['the usual place', null, 'https://api.github.com', 'https://github.com'],
    ['what the operator says', 'https://mirror.example', 'https://api.github.com', 'https://mirror.example'],
    ['the host of an Enterprise Server', null, 'https://git.example/api/v3', 'https://git.example'],
    ['the host behind a name of the API', null, 'https://api.acme.ghe.com', 'https://acme.ghe.com'],
    ['the relative root of a GitLab', null, 'https://git.example/gitlab/api', 'https://git.example/gitlab'],
    ['another port of this machine', null, 'http://127.0.0.1:9101', 'http://127.0.0.1:9101'],
  ])('is %s', (_, given, apiUrl, expected) => {
    expect(cloneUrlOf(given, apiUrl, PUBLIC_GIT_SERVERS.github)).toBe(expected);
  });
});

const KEY = `k1:${Buffer.alloc(32, 1).toString('base64')}`;
const OTHER = `k2:${Buffer.alloc(32, 2).toString('base64')}`;

/** As an environment file has them. */
const WRONG = `
  DEFAULT_MAX_BUDGET_PER_TASK=-1 DEFAULT_LLM_BASE_URL=gateway METRICS_PORT=-1 PORT=70000
  DATABASE_URL=mysql://localhost/x DATABASE_DIRECT_URL=postgres://db/x DATABASE_POOL_SIZE=0
  PUBLIC_URL=slipway.example.com PUBLIC_URL=https://slipway.example.com/?from=mail
  BOOTSTRAP_API_KEY=short WEBHOOK_HOST_ALLOWLIST=http://a/b ENCRYPTION_KEYS=k1:c2hvcnQ= CORS_ORIGINS=*
  ALLOWED_HOSTS=* ALLOWED_HOSTS=slipway.internal:3000 TRUSTED_PROXIES=11
  TRUSTED_PROXIES=proxy.internal TRUSTED_PROXIES=10.0.0.0/8,0.0.0.0/0 TRUSTED_PROXIES=10.0.0.0/33
  RATE_LIMIT_PER_MINUTE=-1 MAX_REQUESTS_IN_FLIGHT=-1 LOG_LEVEL=loud LOG_FORMAT=xml LOG_REQUESTS=yes
  GITHUB_API_URL=api.github.com GITHUB_CLONE_URL=git@github.com
  GITLAB_CLONE_URL=https://me:secret@gitlab.example.com AGENT_EXPOSE_GIT_TOKENS=no
  LLM_TIMEOUT_SECONDS=0 AGENT_CONDENSER_TOKENS=few TAVILY_API_URL=api.tavily.com
  SANDBOX_BACKEND=podman SANDBOX_NAMESPACE=Agents SANDBOX_REACH=service SANDBOX_VOLUME_SIZE=10
  SANDBOX_RUNTIME_CLASS=-gvisor SANDBOX_SERVICE_ACCOUNT=a/b
  SANDBOX_POD_TEMPLATE={"spec":{"containers":[]}} SANDBOX_REACHED_FROM=10.0.0.5
  SANDBOX_NODE_WAIT_SECONDS=long SANDBOX_ISOLATION=gvisor SANDBOX_READ_PATHS=/opt/tools,tools
  SANDBOX_READ_PATHS=/opt/.. SANDBOX_NETWORK=none SANDBOX_NETWORK_ALLOW=10.0.0.0/8,localhost
  ALLOW_UNSANDBOXED=1 INSTANCE_ID=-x SANDBOX_CALLBACK_URL=slipway:3000 SANDBOX_DOCKER_NETWORK=a/b
  SANDBOX_DOCKER_SUBNETS=198.18.0.0/28 SANDBOX_DOCKER_SUBNETS=198.18.7.0/16
  SANDBOX_ADDRESS=http://10.0.0.1 SANDBOX_EXPOSE=yes SANDBOX_PORTS_URL=apps.example.com
  SANDBOX_PORTS_URL=https://apps.example.com/path SANDBOX_PORTS_URL=http://192.168.1.5:3000
  DOCKER_HOST=/var/run/docker.sock MAX_RUNNING_SANDBOXES=0 MAX_CONVERSATIONS_PER_USER=0
  MAX_SANDBOXES_PER_USER=0 SANDBOX_LIMIT_POLICY=queue SANDBOX_WARM=-1 SANDBOX_IDLE_TIMEOUT_SECONDS=-1
  AUDIT_RETENTION_DAYS=-1 DEVICE_KEY_DAYS=-1 EVENT_RETENTION_DAYS=-1
  AUTOMATION_RUN_RETENTION_SECONDS=-1 AUTOMATION_EVENT_BYTES=-1 USER_EVENT_BYTES=-1
  SANDBOX_RETENTION_SECONDS=1e30 MAX_SANDBOXES_PER_USER=1e3 GIT_REQUEST_TIMEOUT_SECONDS=0
  SUGGESTED_TASKS_TIMEOUT_SECONDS=soon FOLLOW_POLL_SECONDS=0 HTTPS_PROXY=socks5://proxy:1080
  HTTPS_PROXY=http://user:100%@proxy:3128 HTTP_PROXY=http://user:a#b@proxy:3128
  ENCRYPTION_KEYS=, OUTBOUND_ALLOWLIST=llm.example.com,http://a/b PUBLIC_URL=ftp://slipway.example.com
  CORS_ORIGINS=https://a.example.com/path ALLOWED_HOSTS=https://slipway.internal TRUSTED_PROXIES=fd00::/129
  BITBUCKET_CLONE_URL=https://bitbucket.org/?ref=1 SANDBOX_PORTS_URL=http://[::1]:3000
  SANDBOX_DOCKER_SUBNETS=198.18.0.0 SANDBOX_EXPOSE=direct AUDIT_RETENTION_DAYS=36501
  EVENT_RETENTION_DAYS=36501 SANDBOX_RETENTION_SECONDS=0x10 DATABASE_DIRECT_URL=db.example.com`
  .trim()
  .split(/\s+/)
  .map((line): [string, string] => [line.replace(/=.*/, ''), line.replace(/^\w+=/, '')]);

describe('parseConfig', () => {
  it('needs nothing', () => {
    const { log, database, sandboxes } = parseConfig({}, true);

    expect(log).toEqual({ level: 'info', format: 'pretty', requests: true, welcome: true });
    expect([database.url, sandboxes.backend, sandboxes.allowUnsandboxed]).toEqual([null, 'process', false]);
    expect(parseConfig({}, false).log.format).toBe('json');
  });

  it.each([
    [{}, true, true],
    [{}, false, true],
    [{ LOG_FORMAT: 'json' }, true, false],
    [{ DATABASE_URL: 'postgres://db/x', ENCRYPTION_KEYS: KEY }, false, false],
    [{ DATABASE_URL: 'postgres://db/x', ENCRYPTION_KEYS: KEY }, true, true],
  ])('greets with %j and terminal %s: %s', (variables, terminal, expected) => {
    expect(parseConfig(variables, terminal).log.welcome).toBe(expected);
  });

  it.each([
    [{}, 'ports'],
    [{ PUBLIC_URL: 'http://localhost:8080' }, 'ports'],
    [{ HOST: '0.0.0.0' }, 'path'],
    [{ PUBLIC_URL: 'https://slipway.example.com' }, 'path'],
    [{ HOST: '0.0.0.0', SANDBOX_EXPOSE: 'hosts' }, 'hosts'],
  ])('reaches sandboxes with %j by %s', (variables, expected) => {
    expect(parseConfig(variables, false).sandboxes.expose).toBe(expected);
  });

  it.each([
    [{}, '127.0.0.1'],
    [{ HOST: '0.0.0.0' }, '0.0.0.0'],
    [{ HOST: '0.0.0.0', SANDBOX_BACKEND: 'kubernetes' }, '0.0.0.0'],
    [{ HOST: '0.0.0.0', SANDBOX_BACKEND: 'docker' }, '127.0.0.1'],
    [{ HOST: '0.0.0.0', SANDBOX_BACKEND: 'docker', METRICS_HOST: 'metrics' }, 'metrics'],
  ])('has metrics with %j at %s', (variables, expected) => {
    expect(parseConfig(variables, false).http.metricsHost).toBe(expected);
  });

  it.each<[string | undefined, unknown]>([
    [undefined, []],
    ['2', 2],
    ['10.0.0.7, 172.16.0.0/12,fd00::/64', ['10.0.0.7', '172.16.0.0/12', 'fd00::/64']],
  ])('trusts the proxies of %s', (value, expected) => {
    const variables = value === undefined ? {} : { TRUSTED_PROXIES: value };
    expect(parseConfig(variables, false).http.trustedProxies).toEqual(expected);
  });

  it('takes an empty value for an absent one', () => {
    expect(parseConfig({ PORT: '', DATABASE_URL: '', CORS_ORIGINS: '' }, false).http.port).toBe(3000);
  });

  it('reads lists, addresses and keys', () => {
    const config = parseConfig(
      {
        DATABASE_URL: 'postgresql://u:p@db/slipway?sslmode=verify-full',
        ENCRYPTION_KEYS: `${KEY}, ${OTHER}`,
        CORS_ORIGINS: 'https://a.example.com, http://localhost:5173',
        PUBLIC_URL: 'https://slipway.example.com/',
        GIT_HOST_ALLOWLIST: 'git.example.com,*.corp.example.com',
        RATE_LIMIT_PER_MINUTE: '0',
        OUTBOUND_ALLOWLIST: 'llm.example.com',
        GITLAB_CLONE_URL: 'http://127.0.0.1:9100/git/',
        AGENT_EXPOSE_GIT_TOKENS: 'false',
      },
      false,
    );

    expect(config.trust.encryptionKeys?.map(({ id }) => id)).toEqual(['k1', 'k2']);
    expect(config.http.corsOrigins).toEqual(['https://a.example.com', 'http://localhost:5173']);
    expect(config.http.publicUrl).toBe('https://slipway.example.com');
    expect(config.git.hostAllowlist).toEqual(['git.example.com', '*.corp.example.com']);
    expect(config.outbound.allowlist).toEqual(['llm.example.com']);
    expect(config.git.servers.gitlab.cloneUrl).toBe('http://127.0.0.1:9100/git');
    expect(config.agent.exposeGitTokens).toBe(false);
  });

  it('reads the defaults of users, whose key belongs to a model', () => {
    const given = { DEFAULT_LLM_API_KEY: 'key', DEFAULT_MAX_BUDGET_PER_TASK: '2.5' };
    const { agent } = parseConfig({ ...given, DEFAULT_LLM_MODEL: 'openai/gpt-5' }, false);
    expect(agent).toMatchObject({
      defaultLlmModel: 'openai/gpt-5',
      defaultLlmApiKey: 'key',
      defaultMaxBudgetPerTask: 2.5,
    });
    expect(() => parseConfig(given, false)).toThrow(/^DEFAULT_LLM_API_KEY: needs DEFAULT_LLM_MODEL or/);
  });

  it.each([{ SANDBOX_ISOLATION: 'none' }, { SANDBOX_NETWORK: 'shared' }])(
    'keeps no credentials outside of sandboxes that have no proxy: %j',
    (given) => {
      expect(() => parseConfig({ ...given, SANDBOX_CREDENTIALS: 'outside' }, false)).toThrow(
        /^SANDBOX_CREDENTIALS: outside needs/,
      );
    },
  );

  it.each([{}, { SANDBOX_BACKEND: 'docker', SANDBOX_NETWORK: 'shared' }])(
    'keeps them outside: %j',
    (given) => {
      const { egress } = parseConfig({ ...given, SANDBOX_CREDENTIALS: 'outside' }, false);
      expect(egress.credentials).toBe('outside');
    },
  );

  it('has the egress proxy of processes listen at a port of its installation, and others at the same', () => {
    const portOf = (given: Record<string, string>): number => parseConfig(given, false).egress.port;
    const [one, other] = ['/var/lib/one', '/var/lib/other'].map((folder) => portOf({ DATA_DIR: folder }));
    expect(one).not.toBe(other);
    expect(portOf({ DATA_DIR: '/var/lib/../lib/one/' })).toBe(one);
    expect(Math.min(one ?? 0, other ?? 0)).toBeGreaterThanOrEqual(20_000);
    expect(Math.max(one ?? 0, other ?? 0)).toBeLessThan(32_768);
    expect(portOf({ DATA_DIR: '/var/lib/one', SANDBOX_EGRESS_PORT: '3190' })).toBe(3190);
    expect(['docker', 'kubernetes'].map((SANDBOX_BACKEND) => portOf({ SANDBOX_BACKEND }))).toEqual([
      3180, 3180,
    ]);
  });

  it('keeps credentials outside of pods where the proxy in the cluster has a key', () => {
    const given = { SANDBOX_BACKEND: 'kubernetes', SANDBOX_CREDENTIALS: 'outside' };
    expect(() => parseConfig(given, false)).toThrow(/^EGRESS_PROXY_KEY: is required/);
    const [next, last] = ['b'.repeat(32), 'a'.repeat(256)];
    const { egress } = parseConfig({ ...given, EGRESS_PROXY_KEY: `${next}, ${last}` }, false);
    expect(egress).toMatchObject({ credentials: 'outside', proxyKeys: [next, last], host: null });
  });

  it.each([
    'a'.repeat(31),
    'a'.repeat(257),
    `${'a'.repeat(32)},`,
    `${'a'.repeat(31)}:`,
    Array(3).fill('a'.repeat(32)).join(),
  ])('takes no key of egress proxies that is %s', (EGRESS_PROXY_KEY) => {
    expect(() => parseConfig({ EGRESS_PROXY_KEY }, false)).toThrow(
      /^EGRESS_PROXY_KEY: must be one or two keys/,
    );
  });

  it.each([
    ...WRONG,
    ['BOOTSTRAP_API_KEY', 'sixteen chars and blanks'],
    ['ENCRYPTION_KEYS', Buffer.alloc(32).toString('base64')],
    ['ENCRYPTION_KEYS', `${KEY},${KEY}`],
    ['SANDBOX_IMAGE', 'two words'],
    ['SANDBOX_STORAGE_CLASS', 'fast disks'],
    ['HOST_ID', 'two words'],
    ['CONVERSATION_EVENT_BYTES', '2 GB'],
  ])('refuses %s=%s in one line that names it', (name, value) => {
    expect(() => parseConfig({ [name]: value }, false)).toThrow(new RegExp(`^${name}: [^\\n]+$`));
  });

  it('hands programs of sandboxes their surroundings, and nothing of the service', () => {
    const { environment } = parseConfig(
      {
        PATH: '/bin',
        LC_ALL: 'C',
        HTTPS_PROXY: 'http://proxy:3128',
        SECRET: 'x',
        ENCRYPTION_KEYS: KEY,
        TZ: '',
      },
      false,
    ).sandboxes;

    expect(environment).toEqual({ PATH: '/bin', LC_ALL: 'C', HTTPS_PROXY: 'http://proxy:3128' });
  });

  it.each([
    [{ https_proxy: 'proxy:3128' }, { HTTPS_PROXY: 'http://proxy:3128' }],
    [{ HTTPS_PROXY: 'http://upper', https_proxy: 'http://lower' }, { HTTPS_PROXY: 'http://upper' }],
    [
      { http_proxy: 'u:p@proxy:1', ALL_PROXY: 'socks5h://proxy:2' },
      { HTTP_PROXY: 'http://u:p@proxy:1', ALL_PROXY: 'socks5h://proxy:2' },
    ],
    [{ NO_PROXY: 'upper', no_proxy: 'lower' }, { NO_PROXY: 'upper,lower' }],
  ])('reads %j in any spelling', (given, environment) => {
    const { outbound, sandboxes } = parseConfig(given, false);
    expect(sandboxes.environment).toEqual(environment);
    expect(outbound).toMatchObject({
      proxyUrl: 'HTTPS_PROXY' in environment ? environment.HTTPS_PROXY : null,
      noProxy: 'NO_PROXY' in environment ? environment.NO_PROXY : null,
    });
  });

  it('never repeats a key in its refusal', () => {
    expect(() => parseConfig({ ENCRYPTION_KEYS: 'k1:topsecret' }, false)).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('topsecret') }),
    );
  });

  it('needs encryption keys with a database of the operator', () => {
    expect(() => parseConfig({ DATABASE_URL: 'postgres://db/x' }, false)).toThrow(
      /^ENCRYPTION_KEYS: is required/,
    );
  });

  it.each([
    [{}, 'ENTERPRISE_SSO_ALIAS'],
    [{ ENTERPRISE_SSO_ALIAS: 'a' }, 'ENTERPRISE_SSO_KIND'],
    [{ ENTERPRISE_SSO_ALIAS: 'a', ENTERPRISE_SSO_KIND: 'svn' }, 'ENTERPRISE_SSO_KIND'],
    [{ ENTERPRISE_SSO_ALIAS: 'a', ENTERPRISE_SSO_KIND: 'bitbucket_dc' }, 'ENTERPRISE_SSO_HOST'],
    [
      { ENTERPRISE_SSO_ALIAS: 'a', ENTERPRISE_SSO_KIND: 'gitlab', ENTERPRISE_SSO_API_VERSION: 'v2' },
      'ENTERPRISE_SSO_CLIENT_ID',
    ],
  ])('says what enterprise_sso lacks: %j', (given, name) => {
    const issuer = { ENTERPRISE_SSO_ISSUER: 'https://sso.example.com/realms/main' };

    expect(() => parseConfig({ ...issuer, ...given }, false)).toThrow(new RegExp(`^${name}: `));
  });

  it('needs an issuer for the rest of enterprise_sso', () => {
    expect(() => parseConfig({ ENTERPRISE_SSO_ALIAS: 'a' }, false)).toThrow(
      /^ENTERPRISE_SSO_ISSUER: .+ALIAS/,
    );
    // Kubernetes gives this one to every pod beside a service named enterprise-sso.
    const foreign = { ENTERPRISE_SSO_ALIAS: '', ENTERPRISE_SSO_PORT: 'tcp://10.0.0.1:80' };
    expect(parseConfig(foreign, false).git.enterpriseSso).toBeNull();
  });

  it('reads a GitHub App, whose key may have its line ends in letters', () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });
    const key = privateKey.export({ type: 'pkcs1', format: 'pem' }).toString();
    const given = {
      GITHUB_APP_ID: '42',
      GITHUB_APP_PRIVATE_KEY: key.replaceAll('\n', String.raw`\n`),
      GITHUB_APP_SANDBOX_PERMISSIONS: 'workflows:write, packages:read',
      GITHUB_APP_FOR: 'members',
    };
    expect(parseConfig(given, false).git.githubApp).toEqual({
      id: '42',
      privateKey: key,
      sandboxPermissions: { workflows: 'write', packages: 'read' },
      standsInFor: [{ members: true }],
    });
    expect(parseConfig({}, false).git.githubApp).toBeNull();
    const groups = { ...given, GITHUB_APP_FOR: 'a=b=Octo/*,ops=octo/infra' };
    expect(() => parseConfig(groups, false)).toThrow(/^GITHUB_APP_FOR: .*OIDC_ISSUER/);
    const issuer = { OIDC_ISSUER: 'https://sso.example.com', OIDC_AUDIENCE: 'a' };
    expect(parseConfig({ ...groups, ...issuer }, false).git.githubApp?.standsInFor).toEqual([
      { group: 'a=b', repositories: 'octo/*' },
      { group: 'ops', repositories: 'octo/infra' },
    ]);
    for (const [name, value] of [
      ['GITHUB_APP_ID', 'Iv1.abc'],
      ['GITHUB_APP_PRIVATE_KEY', 'topsecret'],
      ['GITHUB_APP_SANDBOX_PERMISSIONS', 'workflows'],
      ['GITHUB_APP_SANDBOX_PERMISSIONS', 'organization_secrets:read'],
      ['GITHUB_APP_FOR', 'everybody'],
      ['GITHUB_APP_FOR', 'dev=*'],
      ['GITHUB_APP_FOR', 'dev=octo'],
    ] as const) {
      const wrong = (): unknown => parseConfig({ ...given, [name]: value }, false);
      expect(wrong).toThrow(new RegExp(`^${name}: `));
      expect(wrong).not.toThrow(/topsecret/);
    }
    expect(() => parseConfig({ GITHUB_APP_ID: '42' }, false)).toThrow(/^GITHUB_APP_PRIVATE_KEY: /);
    expect(() => parseConfig({ GITHUB_APP_FOR: 'members' }, false)).toThrow(
      /^GITHUB_APP_ID: .*GITHUB_APP_FOR/,
    );
  });

  it('refuses an issuer that is no realm, and says what else one needs', () => {
    expect(() => parseConfig({ ENTERPRISE_SSO_ISSUER: 'https://sso.example.com' }, false)).toThrow(
      /^ENTERPRISE_SSO_ISSUER: .+\nENTERPRISE_SSO_ALIAS: .+\nENTERPRISE_SSO_KIND: .+$/,
    );
  });

  it.each([
    ['https://tools.example.com/docs', 'PUBLIC_URL'],
    ['https://tools.example.com/api/slipway', 'PUBLIC_URL'],
    ['https://tools.example.com/a"b', 'PUBLIC_URL'],
    ["https://tools.example.com/a'b", 'PUBLIC_URL'],
    ['https://tools.example.com/slipway', 'WEB_APP_FOLDER'],
  ])('refuses to be at %s together with an application', (address, name) => {
    const given = { PUBLIC_URL: address, WEB_APP_FOLDER: '/srv/application' };

    expect(() => parseConfig(given, false)).toThrow(new RegExp(`^${name}: `));
  });

  it('may be below a path', () => {
    const { http } = parseConfig({ PUBLIC_URL: 'https://tools.example.com/team/slip-way/' }, false);

    expect(http.publicUrl).toBe('https://tools.example.com/team/slip-way');
  });

  it('names all wrong variables at once, each in a line of its own', () => {
    const wrong = { PORT: 'x', LOG_LEVEL: 'loud', ENCRYPTION_KEYS: 'k1:short', SANDBOX_BACKEND: 'vm' };

    expect(() => parseConfig(wrong, false)).toThrow(
      /^PORT: .+\nLOG_LEVEL: .+\nENCRYPTION_KEYS: .+\nSANDBOX_BACKEND: .+$/,
    );
  });
});

describe('configurationReport', () => {
  it('names .env where that is a folder, which Docker makes of a file that is not there', () => {
    const [before, folder] = [process.cwd(), mkdtempSync(path.join(tmpdir(), 'config-'))];
    mkdirSync(path.join(folder, '.env'));
    process.chdir(folder);
    try {
      expect(() => loadConfig()).toThrow(/^\.env: cannot be read: /);
    } finally {
      process.chdir(before);
      rmSync(folder, { recursive: true, maxRetries: 10 });
    }
  });

  it('names what is set, also by a file, without values that may be secrets', () => {
    const environment = {
      PORT: '3100',
      DATABASE_URL: 'postgres://slipway:topsecret@db/slipway',
      ENCRYPTION_KEYS_FILE: '/run/secrets/keys',
      HOME: '/root',
    };

    expect(configurationReport(environment)).toEqual({
      PORT: '3100',
      DATABASE_URL: '(set)',
      ENCRYPTION_KEYS_FILE: '(set)',
    });
  });
});
