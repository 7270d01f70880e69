import { MemoryMachine, MemorySandboxBackend } from '../../../../test/fakes/memory-sandbox-backend.js';
import { sandboxLaunch } from './process/process.sandbox-backend.harness.js';
import { describeSandboxBackend } from './sandbox-backend.contract.js';

describeSandboxBackend(
  'the fake one in memory',
  async () => {
    const machine = new MemoryMachine();
    return {
      backend: new MemorySandboxBackend(machine),
      reopen: async () => new MemorySandboxBackend(machine),
      launch: sandboxLaunch,
      brokenLaunch: () =>
        sandboxLaunch({ program: { kind: 'command', command: 'echo', args: ['it is broken'] } }),
      hidden: { file: '/no/such/file', text: 'nothing' },
      close: async () => await machine.close(),
    };
  },
  { isolated: false, samePaths: false, timeoutMs: 30_000 },
);
