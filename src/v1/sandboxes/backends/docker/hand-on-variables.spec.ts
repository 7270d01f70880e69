import { expect, it } from '@jest/globals';
import { handOnVariables } from './hand-on-variables.js';

it.each([
  [[], ['JAVA_HOME=/opt/java', 'PATH=/bin'], ['SLIPWAY_TOOL_VARIABLES=JAVA_HOME,PATH']],
  [
    ['A=1', 'SLIPWAY_TOOL_VARIABLES=WORKER_1'],
    ['RUSTUP_HOME=/x=y'],
    ['A=1', 'SLIPWAY_TOOL_VARIABLES=WORKER_1,RUSTUP_HOME'],
  ],
  [
    [],
    [
      'NODE_OPTIONS=--inspect',
      'LD_PRELOAD=x',
      'OH_SESSION_API_KEYS_0=x',
      'NPM_TOKEN=x',
      'SLIPWAY_X=1',
      'B=1',
    ],
    ['SLIPWAY_TOOL_VARIABLES=B'],
  ],
])('%j and of the image %j', (Env, variables, expected) => {
  expect(handOnVariables({ Image: 'i', Env }, variables)).toEqual({ Image: 'i', Env: expected });
});
