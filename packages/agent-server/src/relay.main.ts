import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { parseArgs } from 'node:util';
import { exitProcess } from '@slipway/common/processes/end-processes.js';
import { networkConnected, parseRelay, startRelays } from './port-relay.js';

// Runs another program in a sandbox's network and forwards between its ports and Unix sockets:
// `relay.main.js --relay unix:/path=tcp:127.0.0.1:8000 -- program arguments`. Ends as the program ends. Without a program it
// stands beside one, in a container that shares its network.

const { values, positionals } = parseArgs({
  options: {
    relay: { type: 'string', multiple: true, default: [] },
    'await-network': { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const [program = '', ...args] = positionals;

async function run(): Promise<void> {
  if (values['await-network']) {
    await networkConnected();
  }
  const relays = await startRelays(values.relay.map(parseRelay));
  if (positionals.length === 0) {
    // The first process of a container has no default action for signals.
    process.once('SIGTERM', () => {
      relays.close();
      exitProcess();
    });
    return;
  }
  // Handled before there is a program: a signal that came in between would end the relay, and the program with it.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => child.kill(signal));
  }
  const child = spawn(program, args, { stdio: 'inherit' });
  child.on('error', (error) => {
    process.stderr.write(`${program} cannot be run: ${error.message}\n`);
    relays.close();
    exitProcess(127);
  });
  child.on('exit', (code, signal) => {
    relays.close();
    exitProcess(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
  });
}

// A CommonJS module has no await of its own. A relay that cannot start ends the process.
void run();
