import { expect, it } from '@jest/globals';
import { sandboxReach } from './sandbox-reach.js';

it.each([
  [null, null, { by: 'port', hostIp: '127.0.0.1', urlHost: '127.0.0.1' }],
  [null, '10.0.0.5', { by: 'port', hostIp: '10.0.0.5', urlHost: '10.0.0.5' }],
  [null, 'fd00::5', { by: 'port', hostIp: 'fd00::5', urlHost: '[fd00::5]' }],
  [null, 'host.example', { by: 'port', hostIp: '0.0.0.0', urlHost: 'host.example' }],
  ['sandboxes', '10.0.0.5', { by: 'name' }],
])('network %s, address %s', (network, listenAddress, expected) => {
  expect(sandboxReach({ network, listenAddress })).toEqual(expected);
});
