import { COMMAND_LINES } from './lib/command-lines.ts';

COMMAND_LINES['scripts/check-migrations.mjs'].parse();
await import('./lib/typescript-loader.cjs');
await import('../src/cli/check-migrations.ts');
