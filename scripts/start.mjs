import { runBuilt } from './lib/run-built.mjs';

await runBuilt('service/main.js', 'scripts/start.mjs');
