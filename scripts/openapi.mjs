import { COMMAND_LINES } from './lib/command-lines.ts';

COMMAND_LINES['scripts/openapi.mjs'].parse();
await import('./lib/typescript-loader.cjs');
await import('../src/cli/openapi.ts');
