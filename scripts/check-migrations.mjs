import { COMMAND_LINES } from './lib/command-lines.ts';
import { runBuilt } from './lib/run-built.mjs';

COMMAND_LINES['scripts/check-migrations.mjs'].parse();
await runBuilt('cli/check-migrations.js');
