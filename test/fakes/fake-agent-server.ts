import { runAgentServer } from '../../src/agent-server/program.js';
import { FakeEngine } from './fake-engine.js';

/* Runs the agent server as a process of its own, with an engine that needs no model. */
await runAgentServer(async () => new FakeEngine());
