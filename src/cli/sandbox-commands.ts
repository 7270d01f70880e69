import { setTimeout as delay } from 'node:timers/promises';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { type CommandOutput, textTable } from './command-output.js';
import { CommandError, EXIT, type ServiceClient } from './service-client.js';

const SANDBOXES = '/api/v1/sandboxes';
const COLUMNS = ['id', 'status', 'created_by_user_id', 'created_at'] as const;
const STOPPABLE = new Set(['STARTING', 'RUNNING']);
const POLL_MS = 250;

/** Sandboxes of the key's user; of all users with an administrator's key. */
export async function listSandboxes(
  client: ServiceClient,
  json: boolean,
  output: CommandOutput,
): Promise<void> {
  const sandboxes = await findSandboxes(client);
  const rows = sandboxes.map((sandbox) => COLUMNS.map((column) => jsonText(sandbox, column) ?? ''));
  const lines = json
    ? [JSON.stringify(sandboxes.map(withoutKey))]
    : textTable([['ID', 'STATUS', 'USER', 'CREATED'], ...rows]);
  lines.forEach((line) => output.result(line));
}

/** Pauses sandboxes, which keep their files, and waits until their programs have ended. */
export async function stopSandboxes(
  client: ServiceClient,
  ids: readonly string[] | 'all',
  output: CommandOutput,
): Promise<void> {
  const chosen =
    ids === 'all'
      ? (await findSandboxes(client))
          .filter((sandbox) => STOPPABLE.has(jsonText(sandbox, 'status') ?? ''))
          .map((sandbox) => jsonText(sandbox, 'id') ?? '')
      : ids;
  for (const id of chosen) {
    await client.request(`${SANDBOXES}/${encodeURIComponent(id)}/pause`, { method: 'POST' });
  }
  for (const id of chosen) {
    await awaitStopped(client, id);
    output.result(`stopped ${id}`);
  }
  if (chosen.length === 0) {
    output.note('no sandbox is running');
  }
}

async function awaitStopped(client: ServiceClient, id: string): Promise<void> {
  for (;;) {
    const { body } = await client.request(SANDBOXES, { query: { id } });
    const status = jsonText(jsonList(body)[0], 'status');
    if (status === 'ERROR') {
      throw new CommandError(
        `sandbox ${id}: ${jsonText(jsonList(body)[0], 'status_detail') ?? 'failed to stop'}`,
      );
    }
    if (status === null || !STOPPABLE.has(status)) {
      return;
    }
    await delay(POLL_MS);
  }
}

async function findSandboxes(client: ServiceClient): Promise<unknown[]> {
  const search = async (all: boolean): Promise<unknown[]> =>
    await client.list(`${SANDBOXES}/search`, { limit: 100, ...(all && { all }) });
  try {
    return await search(true);
  } catch (error) {
    if (error instanceof CommandError && error.status === EXIT.notAllowed) {
      return await search(false);
    }
    throw error;
  }
}

function withoutKey(sandbox: unknown): object {
  return { ...(sandbox as object), session_api_key: undefined };
}
