import { expect, it } from '@jest/globals';
import { proxyVariables } from './proxy-variables.js';

const CALLBACK = 'http://service.example:3000/api/v1/webhooks';

it('says nothing where there is no proxy', () => {
  expect(proxyVariables({ PATH: '/bin', NO_PROXY: '*', HTTPS_PROXY: undefined }, CALLBACK, true)).toEqual({});
});

it('hands proxies on, and keeps them out of the way to the service', () => {
  const own = { HTTPS_PROXY: 'http://proxy:3128', http_proxy: 'proxy:3128', NO_PROXY: '.corp', PATH: '/bin' };
  const noProxy = '.corp,localhost,127.0.0.1,::1,service.example';
  expect(proxyVariables(own, CALLBACK, false)).toEqual({
    HTTPS_PROXY: 'http://proxy:3128',
    http_proxy: 'proxy:3128',
    NO_PROXY: noProxy,
    no_proxy: noProxy,
    NODE_USE_ENV_PROXY: '1',
  });
});

it('goes by the lower-case name where both are given, as programs do', () => {
  const own = { HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: 'upper', no_proxy: 'lower' };
  expect(proxyVariables(own, null, true)).toMatchObject({ NO_PROXY: 'lower,localhost,127.0.0.1,::1' });
});

it.each(['http://127.0.0.1:3128', '127.0.0.2:3128', 'http://localhost:3128', 'http://[::1]:3128'])(
  'hands %s to what runs on the same machine only',
  (proxy) => {
    expect(proxyVariables({ HTTPS_PROXY: proxy }, CALLBACK, true)).toMatchObject({ HTTPS_PROXY: proxy });
    expect(proxyVariables({ HTTPS_PROXY: proxy }, CALLBACK, false)).toEqual({});
  },
);
