import { expect, it } from '@jest/globals';
import { toolEnvironment } from './tool-environment.js';

it('passes on the variables on the list, and nothing else', () => {
  const environment = toolEnvironment({
    PATH: '/bin',
    HOME: '/home/a',
    LC_ALL: 'C.UTF-8',
    https_proxy: 'http://proxy:3128',
    OH_SESSION_API_KEYS_0: 'k',
    LLM_API_KEY: 'k',
    NODE_OPTIONS: '--inspect',
    PATHOLOGY: 'x',
    SLIPWAY_SANDBOX: 'instance/id',
  });
  expect(environment).toEqual({
    PATH: '/bin',
    HOME: '/home/a',
    LC_ALL: 'C.UTF-8',
    https_proxy: 'http://proxy:3128',
    SLIPWAY_SANDBOX: 'instance/id',
    GIT_TERMINAL_PROMPT: '0',
    GIT_PAGER: 'cat',
    PAGER: 'cat',
  });
});
