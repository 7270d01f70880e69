import { exitProcess } from '@slipway/common/processes/end-processes.js';
import { nodeProblem, runAgentServer } from './program.js';

const problem = nodeProblem(process.versions.node);
if (problem === null) {
  void runAgentServer(async (context, server) => {
    if (context.kind === 'acp') {
      const { AcpEngine } = await import('./engine/acp/acp.engine.js');
      return new AcpEngine({ environment: server.environment, wrapper: server.toolWrapper });
    }
    // Imported when the first conversation runs: the AI SDK takes longer to load than everything else together.
    const { createNativeEngine } = await import('./engine/native/native.engine.js');
    return createNativeEngine(context, server);
  })
    // All state is on disk: tool servers or idle connections that are still open must not keep the process alive.
    .then(() => exitProcess());
} else {
  process.stderr.write(`${problem}\n`);
  process.exitCode = 1;
}
