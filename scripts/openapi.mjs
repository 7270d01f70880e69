import { COMMAND_LINES } from './lib/command-lines.ts';
import { runBuilt } from './lib/run-built.mjs';

COMMAND_LINES['scripts/openapi.mjs'].parse();
await runBuilt('cli/openapi.js');
