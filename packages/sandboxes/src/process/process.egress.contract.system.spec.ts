import { reservedPort } from '../../../../test/support/reserved-port.js';
import { describeSandboxEgress } from '../sandbox-backend.egress.contract.js';
import { NETWORK_INTERFACE } from './sandbox-network.js';
import { describeNetwork, processHarness } from './process.sandbox-backend.harness.js';

describeNetwork('process sandboxes', () => {
  describeSandboxEgress('process', async () => {
    const harness = await processHarness('bwrap', { network: { mode: 'isolated', allow: [] } });
    return Object.assign(harness, {
      port: await reservedPort(),
      interfaces: [NETWORK_INTERFACE],
      listen: async (port: number) => ({ host: '127.0.0.1', port }),
    });
  });
});
