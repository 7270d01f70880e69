import type { Command } from '@commander-js/extra-typings';
import { unlessCode } from '@slipway/common/errors/error-message.js';
import { loadConfig } from '../config/load-config.js';
import type { SandboxDto } from '../v1/sandboxes/api/sandbox.dto.js';
import { CommandError, printRows, UsageError } from './command-output.js';
import { type Invocation, type Invoke, ServiceClient } from './service-client.js';

const SANDBOXES = '/api/v1/sandboxes';
const COLUMNS = { ID: 'id', STATUS: 'status', USER: 'created_by_user_id', CREATED: 'created_at' } as const;

export function defineSandboxes(sandboxes: Command, invoke: Invoke): void {
  sandboxes
    .description('list and stop sandboxes')
    .command('list')
    .description('show your sandboxes, and those of all to administrators')
    .option('--json', 'print JSON')
    .action(async ({ json }) => {
      const { client, ...shown } = invoke(json);
      const found = await findSandboxes(client);
      const rows = found.map((sandbox) => Object.assign(sandbox, { session_api_key: undefined }));
      printRows(shown, rows, COLUMNS);
    });
  sandboxes
    .command('stop [ids...]')
    .description('stop sandboxes, which keep their files; also where no service runs in this folder')
    .option('--all', 'all that run')
    .action(async (ids, { all = false }) => {
      if (all === ids.length > 0) {
        throw new UsageError('sandboxes stop needs ids, or --all');
      }
      await onAnyService(invoke(), async (invocation) => await stopSandboxes(invocation, all ? null : ids));
    });
}

/** Pauses these sandboxes or all that run, which keep their files, and waits until their programs have ended. */
async function stopSandboxes({ client, output }: Invocation, ids: string[] | null): Promise<void> {
  const chosen = ids ?? (await findSandboxes(client)).filter(runs).map(({ id }) => id);
  for (const id of chosen) {
    await client.http.post(`${SANDBOXES}/${encodeURIComponent(id)}/pause`);
  }
  for (const id of chosen) {
    const sandbox = await client.poll<SandboxDto>(SANDBOXES, { id }, (found) => !found || !runs(found));
    if (sandbox?.status === 'ERROR') {
      throw new CommandError(`sandbox ${id}: ${sandbox.status_detail ?? 'failed to stop'}`);
    }
    output.result(`stopped ${id}`);
  }
  if (chosen.length === 0) {
    output.note('no sandbox is running');
  }
}

function runs({ status }: SandboxDto): boolean {
  return status === 'STARTING' || status === 'RUNNING';
}

/** Those of the key's user; of all users with an administrator's key. */
async function findSandboxes(client: ServiceClient): Promise<SandboxDto[]> {
  const path = `${SANDBOXES}/search`;
  const all = client.list<SandboxDto>(path, { limit: 100, all: true });
  return (await unlessCode('notAllowed', all)) ?? (await client.list(path, { limit: 100 }));
}

/** Runs an action on the service; where none runs on this machine, on one that is started for it, with nothing warm. */
async function onAnyService(
  invocation: Invocation,
  action: (invocation: Invocation) => Promise<void>,
): Promise<void> {
  const { config } = invocation.client;
  const outcome = await (config.isLocal ? unlessCode('unreachable', action(invocation)) : action(invocation));
  if (outcome !== null) {
    return;
  }
  const own = loadConfig();
  Object.assign(own.http, { host: '127.0.0.1', port: 0, shutdownDelaySeconds: 0 });
  own.log.welcome = false;
  own.sandboxes.warm = 0;
  const { AppLogger } = await import('@slipway/api/logging/app-logger.js');
  const { startService } = await import('../program/start-service.js');
  const service = await startService(own, new AppLogger({ level: 'error', format: own.log.format }));
  const client = new ServiceClient({ ...config, url: `http://127.0.0.1:${service.port}` });
  await action({ ...invocation, client }).finally(() => service.stop());
}
