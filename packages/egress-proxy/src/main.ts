import { errorMessage } from '@slipway/common/errors/error-message.js';
import { exitProcess } from '@slipway/common/processes/end-processes.js';
import { runEgressProxy } from './run-egress-proxy.js';

// Names are resolved by these threads, half of which may wait for resolvers at once.
process.env['UV_THREADPOOL_SIZE'] ??= '32';

runEgressProxy(process.env, process.stdin).then(
  // Kept connections must not keep the process alive.
  () => exitProcess(),
  (error: unknown) => {
    process.stderr.write(`The egress proxy cannot start: ${errorMessage(error)}\n`);
    exitProcess(1);
  },
);
