import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { text } from '../system/journeys/support/api-client.js';
import { countOperations, type FuzzTarget } from './fuzz-target.js';
import type { FuzzWorld } from './support/fuzz-world.js';

/** What the stock agent server publishes of the routes that ours has too; it says nothing of answers. */
const PUBLISHED = fileURLToPath(new URL('../fixtures/agent-server.openapi.json', import.meta.url));

/**
 * Our agent server in a sandbox. It has no document of its own, so only this is promised: no request makes it fail.
 * Commands are replaced by one that does nothing.
 */
export async function agentServerTarget({ journey, sandboxId }: FuzzWorld): Promise<FuzzTarget> {
  return {
    name: 'agent server',
    document: PUBLISHED,
    operations: countOperations(JSON.parse(await readFile(PUBLISHED, 'utf8'))),
    url: `${journey.url}/api/v1/sandboxes/${sandboxId}/agent-server`,
    key: text(await journey.admin.sandbox(sandboxId), 'session_api_key'),
    checks: ['not_a_server_error'],
    refusals: [],
    wanted: [],
    kept: [],
    bodies: { 'POST /api/bash/start_bash_command': { command: 'true' } },
  };
}
