import { describe, expect, it } from '@jest/globals';
import type { SandboxLaunch } from './sandbox-backend.js';
import { egressVariables, proxyVariables } from './launch-variables.js';

const LAUNCH = { env: {}, callbackUrl: 'http://service.example:3000/api/v1/webhooks' };

it('sets nothing where there is no proxy', () => {
  expect(
    proxyVariables({ PATH: '/bin', NO_PROXY: '*', HTTPS_PROXY: undefined, HTTP_PROXY: '' }, LAUNCH, true),
  ).toEqual({});
});

const OWN = 'localhost,127.0.0.1,::1,.svc,.cluster.local';

it('passes proxies on in both cases, with the service exempt', () => {
  const service = {
    HTTPS_PROXY: 'http://proxy:3128',
    HTTP_PROXY: 'http://other:3128',
    NO_PROXY: '.corp',
    PATH: '/bin',
  };
  const noProxy = `.corp,${OWN},service.example`;
  expect(proxyVariables(service, LAUNCH, false)).toEqual({
    HTTPS_PROXY: 'http://proxy:3128',
    https_proxy: 'http://proxy:3128',
    HTTP_PROXY: 'http://other:3128',
    http_proxy: 'http://other:3128',
    NO_PROXY: noProxy,
    no_proxy: noProxy,
    NODE_USE_ENV_PROXY: '1',
  });
});

it.each([
  [{}, OWN],
  [{ NO_PROXY: '10.0.0.0/8  *.corp, git.corp:8443' }, `10.0.0.0/8,.corp,git.corp:8443,${OWN}`],
  [{ NO_PROXY: '[fd00::7],fd00::8' }, `fd00::7,fd00::8,${OWN}`],
  [{ NO_PROXY: 'a.corp,*' }, '*'],
])('writes the exemptions of %j as any program reads them', (exemptions, expected) => {
  const service = { HTTPS_PROXY: 'http://proxy:3128', ...exemptions };
  expect(proxyVariables(service, { env: {}, callbackUrl: null }, true)).toMatchObject({
    NO_PROXY: expected,
    no_proxy: expected,
  });
});

it('leaves variables of the specification alone, in whichever case', () => {
  const service = { HTTPS_PROXY: 'http://proxy:3128', HTTP_PROXY: 'http://proxy:3128' };
  const env = { HTTPS_PROXY: 'http://other:3128', NO_PROXY: '*' };
  expect(proxyVariables(service, { ...LAUNCH, env }, true)).toEqual({
    HTTP_PROXY: 'http://proxy:3128',
    http_proxy: 'http://proxy:3128',
    NODE_USE_ENV_PROXY: '1',
  });
});

it.each(['http://127.0.0.1:3128', '127.0.0.2:3128', 'http://localhost:3128', 'http://[::1]:3128'])(
  'passes %s on only to sandboxes that share the loopback',
  (proxy) => {
    expect(proxyVariables({ HTTPS_PROXY: proxy }, LAUNCH, true)).toMatchObject({ HTTPS_PROXY: proxy });
    expect(proxyVariables({ HTTPS_PROXY: proxy }, LAUNCH, false)).toEqual({});
  },
);

describe('variables of a sandbox that leaves by its own proxy', () => {
  const access = { port: 3180, credential: 'id.secret', authority: null, isOnlyWay: true };

  it.each<[string, SandboxLaunch['program'], string]>([
    [
      'our own agent server, whose start they would delay',
      { kind: 'native', image: null },
      'SLIPWAY_LATE_PROXY',
    ],
    ['other programs', { kind: 'command', command: 'p', args: [] }, 'NODE_USE_ENV_PROXY'],
  ])('has %s use the proxy', (_, program, name) => {
    expect(egressVariables({ id: 'a', program }, access, '127.0.0.1')).toMatchObject({
      https_proxy: 'http://a:id.secret@127.0.0.1:3180',
      [name]: '1',
    });
  });

  it('names an authority only where there is one', () => {
    const program = { kind: 'native', image: null } as const;
    const names = (authority: string | null): string[] =>
      Object.keys(egressVariables({ id: 'a', program }, { ...access, authority }, '127.0.0.1'));
    expect(names(null)).not.toContain('SLIPWAY_AUTHORITY_1000');
    expect(names('PEM')).toContain('SLIPWAY_AUTHORITY_1000');
  });
});
