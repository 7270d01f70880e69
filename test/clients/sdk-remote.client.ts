import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { text } from '../system/journeys/support/api-client.js';
import type { Client } from './client.js';
import { obedientModel } from './support/obedient-model.js';
import { pythonSteps } from './support/python-steps.js';
import { SDK_PACKAGES } from './support/sdk-packages.js';

export const sdkRemote: Client = {
  name: 'sdk-remote',
  what: `RemoteWorkspace and RemoteConversation of the Python SDK (${SDK_PACKAGES.join(', ')})`,
  install: async (cache) => {
    const programs = await cache.pythonPackages('sdk', SDK_PACKAGES);
    return {
      run: async (world, steps) => {
        world.journey.llm.script = obedientModel;
        const { api } = await world.settledUser();
        const id = text(await api.post('/api/v1/sandboxes'), 'id');
        const sandbox = await api.sandboxIn(id, 'RUNNING');
        const server = jsonList(sandbox, 'exposed_urls').find(
          (exposed) => jsonText(exposed, 'name') === 'AGENT_SERVER',
        );
        await pythonSteps({
          steps,
          python: path.join(programs, 'python'),
          program: fileURLToPath(new URL('sdk_remote_workspace.py', import.meta.url)),
          args: [
            text(server, 'url'),
            text(sandbox, 'session_api_key'),
            '/workspace/project',
            world.journey.llm.url,
          ],
        });
      },
    };
  },
};
