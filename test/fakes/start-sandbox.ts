import { text } from 'node:stream/consumers';
import type { ProcessBackendOptions } from '@slipway/sandboxes/process/process.options.js';
import { ProcessSandboxBackend } from '@slipway/sandboxes/process/process.backend.js';
import type { SandboxLaunch } from '@slipway/sandboxes/sandbox-backend.js';

/* A service that starts one sandbox, described on its standard input, anew, and is killed right after. */
const { options, launch }: { options: ProcessBackendOptions; launch: SandboxLaunch } = JSON.parse(
  await text(process.stdin),
);
const backend = new ProcessSandboxBackend(options);
await backend.prepare();
await backend.pause(launch.id);
await backend.start(launch, new AbortController().signal);
while ((await backend.inspect(launch.id)).address === null) {
  // The key is still on its way until the program has read it.
}
process.kill(process.pid, 'SIGKILL');
