import { runAgentServer } from '../../packages/agent-server/src/program.js';
import { FakeEngine } from '../../packages/agent-server/test/fakes/fake-engine.js';

/* Runs the agent server as a process of its own, with an engine that needs no model. */
await runAgentServer(async () => new FakeEngine());
