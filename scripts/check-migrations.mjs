import { runBuilt } from './lib/run-built.mjs';

await runBuilt('cli/check-migrations.js');
