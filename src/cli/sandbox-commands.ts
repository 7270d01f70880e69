import { setTimeout as delay } from 'node:timers/promises';
import type { SandboxDto } from '../v1/sandboxes/api/sandbox.dto.js';
import { CommandError, EXIT, printRows } from './command-output.js';
import type { Invocation, ServiceClient } from './service-client.js';

const SANDBOXES = '/api/v1/sandboxes';
const COLUMNS = { ID: 'id', STATUS: 'status', USER: 'created_by_user_id', CREATED: 'created_at' } as const;
const POLL_MS = 250;

/** Sandboxes of the key's user; of all users with an administrator's key. */
export async function listSandboxes(invocation: Invocation): Promise<void> {
  const sandboxes = await findSandboxes(invocation.client);
  printRows(invocation, sandboxes, COLUMNS, (sandbox) =>
    Object.assign(sandbox, { session_api_key: undefined }),
  );
}

/** Pauses sandboxes, or all that run, which keep their files, and waits until their programs have ended. */
export async function stopSandboxes(
  { client, output }: Omit<Invocation, 'json'>,
  ids: readonly string[] | 'all',
): Promise<void> {
  const chosen = ids === 'all' ? (await findSandboxes(client)).filter(runs).map(({ id }) => id) : ids;
  for (const id of chosen) {
    await client.http.post(`${SANDBOXES}/${encodeURIComponent(id)}/pause`);
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
  for (; ; await delay(POLL_MS)) {
    const [sandbox] = await client.http
      .get(SANDBOXES, { searchParams: { id } })
      .json<(SandboxDto | null)[]>();
    if (sandbox?.status === 'ERROR') {
      throw new CommandError(`sandbox ${id}: ${sandbox.status_detail ?? 'failed to stop'}`);
    }
    if (!sandbox || !runs(sandbox)) {
      return;
    }
  }
}

function runs({ status }: SandboxDto): boolean {
  return status === 'STARTING' || status === 'RUNNING';
}

async function findSandboxes(client: ServiceClient): Promise<SandboxDto[]> {
  const search = async (all?: true): Promise<SandboxDto[]> =>
    await client.list(`${SANDBOXES}/search`, { limit: 100, all });
  try {
    return await search(true);
  } catch (error) {
    if (error instanceof CommandError && error.status === EXIT.notAllowed) {
      return await search();
    }
    throw error;
  }
}
