import { expect, it } from '@jest/globals';
import { proxyVariables } from './launch-variables.js';

const LAUNCH = { env: {}, callbackUrl: 'http://service.example:3000/api/v1/webhooks' };

it('sets nothing where there is no proxy', () => {
  expect(
    proxyVariables({ PATH: '/bin', NO_PROXY: '*', HTTPS_PROXY: undefined, http_proxy: '' }, LAUNCH, true),
  ).toEqual({});
});

it('passes proxies on, with the service exempt', () => {
  const service = {
    HTTPS_PROXY: 'http://proxy:3128',
    http_proxy: 'proxy:3128',
    NO_PROXY: '.corp',
    PATH: '/bin',
  };
  const noProxy = '.corp,localhost,127.0.0.1,::1,service.example';
  expect(proxyVariables(service, LAUNCH, false)).toEqual({
    HTTPS_PROXY: 'http://proxy:3128',
    http_proxy: 'proxy:3128',
    NO_PROXY: noProxy,
    no_proxy: noProxy,
    NODE_USE_ENV_PROXY: '1',
  });
});

it('merges the exemptions of both spellings', () => {
  const service = { HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: 'upper', no_proxy: 'lower' };
  expect(proxyVariables(service, { env: {}, callbackUrl: null }, true)).toMatchObject({
    NO_PROXY: 'lower,upper,localhost,127.0.0.1,::1',
  });
});

it('leaves variables of the specification alone, in whichever case', () => {
  const service = { https_proxy: 'http://proxy:3128', HTTP_PROXY: 'http://proxy:3128' };
  const env = { HTTPS_PROXY: 'http://other:3128', NO_PROXY: '*' };
  expect(proxyVariables(service, { ...LAUNCH, env }, true)).toEqual({
    HTTP_PROXY: 'http://proxy:3128',
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
