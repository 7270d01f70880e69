import { strict as assert } from 'node:assert';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { jsonAt, jsonList, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { until } from '../support/until.js';
import type { Client } from './client.js';
import { REPOSITORY } from './support/clients-world.js';

const PACKAGE = '@openhands/typescript-client';
const VERSION = '1.39.0';
const TIMEOUT_MS = 120_000;

type Call = (...args: unknown[]) => Promise<unknown>;
/** Its methods by their names: the types of the package are not installed here. */
type CloudClient = Record<string, Call>;
type Clients = Record<'CloudClient', new (options: object) => CloudClient>;

export const openhandsTypescript: Client = {
  name: 'openhands-typescript',
  what: `CloudClient of the npm package ${PACKAGE} ${VERSION}`,
  install: async (cache) => {
    const programs = await cache.npmPrograms(`${PACKAGE}@${VERSION}`);
    const file = path.join(programs, '..', PACKAGE, 'dist', 'clients.js');
    const { CloudClient }: Clients = await import(pathToFileURL(file).href);
    return {
      run: async (world, steps) => {
        const { key, api } = await world.settledUser();
        const options = { host: world.url, apiKey: key };
        const client = new CloudClient(options);
        const call = async (name: string, ...args: unknown[]): Promise<unknown> => client[name]?.(...args);
        await steps.step('profiles of the personal organization', async () => {
          // The current one is the installation's, whose profiles administrators keep.
          const organizations = jsonList(await call('getOrganizations'), 'items');
          const orgId = jsonText(
            organizations.find((each) => jsonAt(each, 'is_personal') === true),
            'id',
          );
          const own = new CloudClient({ ...options, orgId });
          await own['saveProfile']?.('slow', { llm: { model: 'openai/slow', api_key: 'k' } });
          await own['renameProfile']?.('slow', 'slower');
          const name = jsonText(await own['getProfile']?.('slower'), 'name');
          await own['deleteProfile']?.('slower');
          assert.deepEqual(jsonList(await own['listProfiles']?.(), 'profiles'), []);
          return name ?? '';
        });
        await steps.step('settings', async () => {
          await call('saveSettings', { conversation_settings_diff: { max_iterations: 77 } });
          const settings = await call('getSettingsWithDerivedFields');
          assert.equal(jsonNumber(settings, 'conversation_settings', 'max_iterations'), 77);
          return jsonText(settings, 'agent_settings', 'llm', 'model') ?? '';
        });
        await steps.step('secrets', async () => {
          await call('createSecret', 'FIRST', 'v', 'a secret');
          await call('updateSecret', 'FIRST', 'SECOND', 'another');
          const names = JSON.stringify(await call('listSecrets'));
          await call('deleteSecret', 'SECOND');
          assert.match(names, /SECOND/);
          return 'made, renamed, listed, deleted';
        });
        await steps.step('repositories, branches and tasks', async () => {
          const lists = await Promise.all([
            call('searchRepositories', { provider: 'github', query: 'store' }),
            call('getRepositoryBranches', { provider: 'github', repository: REPOSITORY }),
            call('getSuggestedTasks'),
          ]);
          const counts = lists.map((list) => jsonList(list, 'items').length);
          assert.ok(counts.every((count) => count > 0));
          return counts.join(', ');
        });
        await steps.step(
          'a conversation from its start to its files',
          async () => {
            const message = { role: 'user', content: [{ type: 'text', text: 'Make the check pass.' }] };
            const request = { initial_message: message, selected_repository: REPOSITORY };
            const task = jsonText(await call('createConversation', request), 'id');
            let id: string | null = null;
            await until(async () => {
              id = jsonText(await call('getConversationStartTask', task), 'app_conversation_id');
              return id !== null;
            });
            await api.conversationIn(String(id), 'finished');
            return String(await call('readConversationFile', id, 'NOTES.md')).trim();
          },
          TIMEOUT_MS,
        );
      },
    };
  },
};
