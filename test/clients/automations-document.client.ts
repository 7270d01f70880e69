import { strict as assert } from 'node:assert';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { type JsonSchema, schemaProblems } from '../support/schema-problems.js';
import { until } from '../support/until.js';
import type { Client } from './client.js';

const run = promisify(execFile);
const TIMEOUT_MS = 180_000;
const GENERATOR = fileURLToPath(new URL('../../scripts/typescript-client.mjs', import.meta.url));
const DOCUMENT = fileURLToPath(new URL('../fixtures/automation.openapi.json', import.meta.url));

/** Of the generated client: the name of the operation, with its path and method. */
type Operation = (options: object) => Promise<{ data?: unknown; response?: Response }>;

export const automationsDocument: Client = {
  name: 'automations-document',
  what: "a TypeScript client that is generated from the peer's own document of its automation service 1.26.0",
  install: async (cache) => {
    await mkdir(cache.folder, { recursive: true });
    const folder = await mkdtemp(path.join(cache.folder, '.automations-'));
    const schemas: Record<string, JsonSchema> = JSON.parse(await readFile(DOCUMENT, 'utf8')).components
      .schemas;
    return {
      run: async (world, steps) => {
        const { key } = await world.settledUser();
        let sdk: Record<string, Operation> = {};
        /** The body of the answer, which the document allows. */
        const call = async (name: string, schema: string | null, options: object = {}): Promise<unknown> => {
          const common = { baseUrl: world.url, headers: { 'X-Session-API-Key': key } };
          const { data, response } = (await sdk[name]?.({ ...common, ...options })) ?? {};
          assert.ok(response?.ok, `${name} answered ${response?.status}`);
          const rule = schema === null ? undefined : schemas[schema];
          const problems = rule === undefined ? [] : schemaProblems(data, rule, schemas);
          assert.deepEqual(problems, []);
          return data;
        };
        try {
          await steps.step(
            'it is generated and compiles',
            async () => {
              await run(process.execPath, [GENERATOR, folder, DOCUMENT]);
              sdk = await import(pathToFileURL(path.join(folder, 'dist', 'index.js')).href);
              return `${Object.keys(sdk).length} operations`;
            },
            TIMEOUT_MS,
          );
          let automation = {};
          await steps.step('an automation is made by the preset for prompts, and listed', async () => {
            const trigger = { type: 'cron', schedule: '0 9 * * 1-5', timezone: 'Europe/Berlin' };
            const body = { name: 'Morning triage', prompt: 'Make the check pass.', trigger };
            const made = await call(
              'createAutomationFromPromptApiAutomationV1PresetPromptPost',
              'AutomationResponse',
              { body },
            );
            automation = { path: { automation_id: jsonText(made, 'id') } };
            const list = await call('listAutomationsApiAutomationV1Get', 'AutomationListResponse');
            assert.equal(jsonAt(list, 'total'), 1);
            await call('getAutomationApiAutomationV1AutomationIdGet', 'AutomationResponse', automation);
            return jsonText(jsonList(list, 'automations')[0], 'name') ?? '';
          });
          await steps.step(
            'it is dispatched, and its run ends',
            async () => {
              await call(
                'dispatchAutomationApiAutomationV1AutomationIdDispatchPost',
                'AutomationRunResponse',
                automation,
              );
              let status: string | null = null;
              await until(async () => {
                const runs = await call(
                  'listAutomationRunsApiAutomationV1AutomationIdRunsGet',
                  'AutomationRunListResponse',
                  automation,
                );
                status = jsonText(jsonList(runs, 'runs')[0], 'status');
                return status !== 'PENDING' && status !== 'RUNNING';
              });
              assert.equal(status, 'COMPLETED');
              return String(status);
            },
            TIMEOUT_MS,
          );
          await steps.step('it is disabled, and deleted', async () => {
            const changed = await call(
              'updateAutomationApiAutomationV1AutomationIdPatch',
              'AutomationResponse',
              {
                ...automation,
                body: { enabled: false },
              },
            );
            assert.equal(jsonAt(changed, 'enabled'), false);
            await call('deleteAutomationApiAutomationV1AutomationIdDelete', null, automation);
            const list = await call('listAutomationsApiAutomationV1Get', 'AutomationListResponse');
            assert.equal(jsonAt(list, 'total'), 0);
            return 'none is left';
          });
        } finally {
          await rm(folder, { recursive: true, force: true, maxRetries: 10 });
        }
      },
    };
  },
};
