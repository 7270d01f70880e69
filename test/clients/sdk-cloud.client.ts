import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Client } from './client.js';
import { pythonSteps } from './support/python-steps.js';
import { SDK_PACKAGES } from './support/sdk-packages.js';

export const sdkCloud: Client = {
  name: 'sdk-cloud',
  what: `OpenHandsCloudWorkspace of the Python SDK (${SDK_PACKAGES.join(', ')})`,
  install: async (cache) => {
    const programs = await cache.pythonPackages('sdk', SDK_PACKAGES);
    return {
      run: async (world, steps) => {
        const { key } = await world.settledUser();
        await pythonSteps({
          steps,
          python: path.join(programs, 'python'),
          program: fileURLToPath(new URL('sdk_cloud_workspace.py', import.meta.url)),
          args: [world.url, key],
        });
      },
    };
  },
};
