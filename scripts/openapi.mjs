import { runBuilt } from './lib/run-built.mjs';

await runBuilt('cli/openapi.js');
