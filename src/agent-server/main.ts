import { runAgentServer } from './program.js';

await runAgentServer(async (context, surroundings) => {
  // Only when the first conversation runs: the AI SDK takes longer to load than all the rest.
  const { createNativeEngine } = await import('./engine/native/native.engine.js');
  return createNativeEngine(context, surroundings);
});
// Whatever a tool server or an idle connection still holds open: all is on the disk.
process.exit();
