import { runAgentServer } from '../../packages/agent-server/src/program.js';
import { FakeEngine } from './fake-engine.js';

/* Runs the agent server as a process of its own, with an engine that needs no model. */
await runAgentServer(async () => new FakeEngine());
