import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { jsonAt, jsonList, jsonText, parseJson } from '@slipway/common/json-access.js';
import { inheritedEnvironment } from '../support/service-process.js';
import type { Client } from './client.js';

const VERSION = '2.12.0';
const TOOLS = 8;
const TIMEOUT_MS = 180_000;
const run = promisify(execFile);

export const mcpInspector: Client = {
  name: 'mcp-inspector',
  what: `the command line of the MCP inspector ${VERSION}, at /mcp`,
  install: async (cache) => {
    const programs = await cache.npmPrograms(`@modelcontextprotocol/inspector@${VERSION}`);
    return {
      run: async (world, steps) => {
        const { key, api } = await world.settledUser();
        const inspect = async (...args: string[]): Promise<unknown> => {
          const server = [`${world.url}/mcp`, '--transport', 'http', '--header', `X-Session-API-Key: ${key}`];
          const program = path.join(programs, 'mcp-inspector');
          const { stdout } = await run(program, ['--cli', ...server, ...args], {
            timeout: TIMEOUT_MS,
            env: inheritedEnvironment(),
          });
          return parseJson(stdout);
        };
        const call = async (tool: string, ...args: string[]): Promise<unknown> => {
          const given = args.flatMap((arg) => ['--tool-arg', arg]);
          const result = await inspect('--method', 'tools/call', '--tool-name', tool, ...given);
          return jsonAt(result, 'structuredContent');
        };
        await steps.step('the tools are listed', async () => {
          const names = jsonList(await inspect('--method', 'tools/list'), 'tools').map((tool) =>
            jsonText(tool, 'name'),
          );
          if (names.length !== TOOLS) {
            throw new Error(`there are ${names.length} tools: ${names.join(', ')}`);
          }
          return names.join(', ');
        });
        await steps.step(
          'a conversation is started, waited for, and tells what came of it',
          async () => {
            const started = await call('start_conversation', 'message=Make the check pass.');
            const id = jsonText(started, 'conversation_id') ?? '';
            await api.conversationIn(id, 'finished');
            const waited = await call('wait_for_conversation', `conversation_id=${id}`);
            const result = await call('get_result', `conversation_id=${id}`);
            const answer = jsonText(result, 'answer');
            if (jsonText(waited, 'status') !== 'finished' || answer === null) {
              throw new Error(JSON.stringify([waited, result]));
            }
            return answer;
          },
          TIMEOUT_MS,
        );
      },
    };
  },
};
