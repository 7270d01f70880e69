import { describe, expect, it } from '@jest/globals';
import { decideEgress } from '@slipway/egress-proxy/decision.js';
import { parseConfigured } from '@slipway/common/errors/config.error.js';
import { BUILT_IN_PRESETS, egressPresetsSchema, egressSchema, parseEgressHost } from './egress-rules.js';

describe('parseEgressHost', () => {
  it.each([
    ['api.github.com', { host: 'api.github.com' }],
    ['API.GitHub.com.', { host: 'api.github.com' }],
    ['*.npmjs.org', { host: '*.npmjs.org' }],
    ['bücher.example', { host: 'xn--bcher-kva.example' }],
    ['git.example.com:8443', { host: 'git.example.com', port: 8443 }],
    ['gitlab', { host: 'gitlab' }],
    ['192.0.2.7', { host: '192.0.2.7' }],
    ['192.0.2.7:8080', { host: '192.0.2.7', port: 8080 }],
    ['[2001:DB8::1]:443', { host: '2001:db8::1', port: 443 }],
  ])('%s', (text, expected) => {
    expect(parseEgressHost(text)).toEqual(expected);
  });

  it.each([
    '',
    '*',
    '*.',
    'a b',
    'https://example.com',
    'example.com/path',
    'user@example.com',
    'example.com:0',
    'example.com:65536',
    'a.*.example',
    '*.192.0.2.7',
    '0300.0.2.7',
    '3221225991',
    '0xc0000207',
    '192.0.2',
    'example.com..',
    '2001:db8::1',
    '[192.0.2.7]',
    `${'a.'.repeat(130)}example`,
  ])('takes %j for no host', (text) => {
    expect(parseEgressHost(text)).toBeNull();
  });
});

describe('egressSchema', () => {
  const presets = { npm: [{ host: 'registry.npmjs.org' }], git: [{ host: 'git.example.com', port: 8443 }] };
  const parse = async (rules: unknown): Promise<unknown> =>
    parseConfigured(JSON.stringify(rules), egressSchema(presets));

  it('has a denial as its default, and replaces presets by their hosts', async () => {
    await expect(
      parse({
        allow: ['npm', 'git', { host: 'api.example.com', methods: ['GET'], paths: ['/v1/*'] }, 'x.example'],
        deny: ['telemetry.example.com'],
      }),
    ).resolves.toEqual({
      default: 'deny',
      allow: [
        { host: 'registry.npmjs.org' },
        { host: 'git.example.com', port: 8443 },
        { host: 'api.example.com', methods: ['GET'], paths: ['/v1/*'] },
        { host: 'x.example' },
      ],
      deny: [{ host: 'telemetry.example.com' }],
    });
    await expect(parse({})).resolves.toEqual({ default: 'deny', allow: [], deny: [] });
  });

  it.each([
    [{ allow: ['nmp'] }, /^allow\[0\]: "nmp" is no preset \(npm, git\)/],
    [{ allow: [{ host: 'a b' }] }, /^allow\[0\]\.host: "a b" must be a host/],
    [{ allow: [{ host: 'a.example', methods: ['get'] }] }, /methods\[0\]: must be a method in upper case/],
    [{ allow: [{ host: 'a.example', paths: ['v1'] }] }, /paths\[0\]: must be a path/],
    [{ allow: [{ host: 'a.example', path: '/v1' }] }, /path/],
    [{ deny: ['*'] }, /^deny\[0\]: "\*" must be a host/],
    [{ default: 'none' }, /^default: /],
    [{ rules: [] }, /rules/],
  ])('refuses %j', async (rules, reason) => {
    await expect(parse(rules)).rejects.toThrow(reason);
  });

  it.each([
    [
      'npm',
      'registry.npmjs.org',
      ['GET /vite', 'POST /-/npm/v1/security/advisories/bulk'],
      ['PUT /mine', 'POST /'],
    ],
    [
      'npm',
      'registry.yarnpkg.com',
      ['GET /vite', 'POST /-/npm/v1/security/audits'],
      ['PUT /mine', 'POST /-/v1/login'],
    ],
    ['pypi', 'pypi.org', ['GET /simple/six/', 'HEAD /simple/six/'], ['POST /legacy/']],
    ['debian', 'deb.debian.org', ['GET /debian/dists/stable/InRelease'], ['PUT /debian/x']],
    ['go', 'go.dev', ['GET /dl/?mode=json'], ['POST /_/share']],
    ['crates', 'crates.io', ['GET /api/v1/crates/serde/1.0.0/download'], ['PUT /api/v1/crates/new']],
    ['maven', 'plugins.gradle.org', ['GET /m2/x.pom'], ['POST /api/v1/publish/versions/new/x']],
    [
      'docker',
      'registry-1.docker.io',
      ['HEAD /v2/library/node/manifests/24'],
      ['POST /v2/mine/data/blobs/uploads/'],
    ],
    ['docker', 'auth.docker.io', ['GET /token?scope=x', 'POST /token'], ['POST /v2/users']],
    ['playwright', 'cdn.playwright.dev', ['GET /builds/chromium.zip'], ['PUT /x']],
    ['common', 'registry.npmjs.org', ['GET /vite', 'POST /-/npm/v1/security/audits/quick'], ['PUT /mine']],
    ['common', 'rubygems.org', ['GET /gems/rake.gem'], ['POST /api/v1/gems']],
    ['npm registry.npmjs.org', 'registry.npmjs.org', ['PUT /mine', 'POST /'], []],
  ])('opens by %s at %s %j and not %j', (preset, host, opened, closed) => {
    const layers = [egressSchema(BUILT_IN_PRESETS).parse({ allow: preset.split(' ') })];
    const passes = (request: string): boolean => {
      const [method = '', path = ''] = request.split(' ');
      const target = { host, port: 443, isTls: true, isAddress: false };
      return decideEgress({ layers }, { target, method, path }).isAllowed;
    };
    expect([...opened, ...closed].filter(passes)).toEqual(opened);
  });

  it('has presets that an operator replaces as a whole', async () => {
    await expect(
      parseConfigured('{ version: 1, presets: { own: [a.example] } }', egressPresetsSchema),
    ).resolves.toEqual({ own: [{ host: 'a.example' }] });
    await expect(parseConfigured('{ presets: {} }', egressPresetsSchema)).rejects.toThrow(/version/);
  });
});
