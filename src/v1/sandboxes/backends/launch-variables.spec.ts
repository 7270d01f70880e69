import { expect, it } from '@jest/globals';
import { proxyVariables } from './launch-variables.js';

const LAUNCH = { env: {}, callbackUrl: 'http://service.example:3000/api/v1/webhooks' };

it('says nothing where there is no proxy', () => {
  expect(
    proxyVariables({ PATH: '/bin', NO_PROXY: '*', HTTPS_PROXY: undefined, http_proxy: '' }, LAUNCH, true),
  ).toEqual({});
});

it('hands proxies on, and keeps them out of the way to the service', () => {
  const own = { HTTPS_PROXY: 'http://proxy:3128', http_proxy: 'proxy:3128', NO_PROXY: '.corp', PATH: '/bin' };
  const noProxy = '.corp,localhost,127.0.0.1,::1,service.example';
  expect(proxyVariables(own, LAUNCH, false)).toEqual({
    HTTPS_PROXY: 'http://proxy:3128',
    http_proxy: 'proxy:3128',
    NO_PROXY: noProxy,
    no_proxy: noProxy,
    NODE_USE_ENV_PROXY: '1',
  });
});

it('exempts what is exempt under either name', () => {
  const own = { HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: 'upper', no_proxy: 'lower' };
  expect(proxyVariables(own, { env: {}, callbackUrl: null }, true)).toMatchObject({
    NO_PROXY: 'lower,upper,localhost,127.0.0.1,::1',
  });
});

it('leaves to the specification what it names, in whichever case', () => {
  const own = { https_proxy: 'http://proxy:3128', HTTP_PROXY: 'http://proxy:3128' };
  const env = { HTTPS_PROXY: 'http://other:3128', NO_PROXY: '*' };
  expect(proxyVariables(own, { ...LAUNCH, env }, true)).toEqual({
    HTTP_PROXY: 'http://proxy:3128',
    NODE_USE_ENV_PROXY: '1',
  });
});

it.each(['http://127.0.0.1:3128', '127.0.0.2:3128', 'http://localhost:3128', 'http://[::1]:3128'])(
  'hands %s to what runs on the same machine only',
  (proxy) => {
    expect(proxyVariables({ HTTPS_PROXY: proxy }, LAUNCH, true)).toMatchObject({ HTTPS_PROXY: proxy });
    expect(proxyVariables({ HTTPS_PROXY: proxy }, LAUNCH, false)).toEqual({});
  },
);
